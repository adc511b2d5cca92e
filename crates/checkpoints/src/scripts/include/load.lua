-- Include: reading checkpoints. A record is described in record.rs.
local function header(record)
  local _, seq, at, parent, run, delta, refs = cmsgpack.unpack_limit(record, 6)
  return { seq = seq, at = at, parent = parent, run = run, delta = delta, refs = refs }
end

-- The values of a checkpoint, in the order of its refs; false where there is none.
local function blobs(prefix, refs)
  local values = {}
  in_pieces(refs, 1000, function(first, last)
    local fields = {}
    for i = first, last do fields[#fields + 1] = prefix .. refs[i] end
    for _, value in ipairs(redis.call('HMGET', BLOBS, unpack(fields))) do values[#values + 1] = value end
  end)
  return values
end

-- The fields of all writes of a checkpoint.
local function write_fields(checkpoint)
  return redis.call('ZRANGEBYLEX', TASKS, '[' .. checkpoint .. '/', '(' .. checkpoint .. '0')
end

-- Field and value of all writes of a checkpoint, one after the other.
local function writes(checkpoint)
  local fields, found = write_fields(checkpoint), {}
  in_pieces(fields, 1000, function(first, last)
    local values = redis.call('HMGET', WRITES, unpack(fields, first, last))
    for i, value in ipairs(values) do
      found[#found + 1] = fields[first + i - 1]
      found[#found + 1] = value
    end
  end)
  return found
end

-- The escaped id of the newest checkpoint of a namespace, or nil.
local function latest(prefix)
  local member = redis.call('ZREVRANGEBYLEX', INDEX, '(' .. prefix .. ':', '[' .. prefix, 'LIMIT', 0, 1)[1]
  return member and string.match(member, '[^/]*$')
end

