-- Include: reading checkpoints. A record is described in record.rs.
local function header(record)
  local _, seq, at, parent, run, delta, refs = cmsgpack.unpack_limit(record, 6)
  return { seq = seq, at = at, parent = parent, run = run, delta = delta, refs = refs }
end

-- The values of these fields of a hash, in their order; false where there is none.
local function values_of(key, fields)
  local values = {}
  each_chunk(fields, function(...)
    local found = redis.call('HMGET', key, ...)
    -- Nearly always one call will do, and its answer is returned as it is.
    if #fields <= CHUNK then values = found return end
    for _, value in ipairs(found) do values[#values + 1] = value end
  end)
  return values
end

-- The values of a checkpoint, in the order of its refs; false where there is none.
local function blobs(prefix, refs)
  local fields = {}
  for i = 1, #refs do fields[i] = prefix .. refs[i] end
  return values_of(BLOBS, fields)
end

-- The fields of all writes of a checkpoint.
local function write_fields(checkpoint)
  return redis.call('ZRANGEBYLEX', TASKS, '[' .. checkpoint .. '/', '(' .. checkpoint .. '0')
end

-- Field and value of all writes of a checkpoint, one after the other.
local function writes(checkpoint)
  local fields, found = write_fields(checkpoint), {}
  for i, value in ipairs(values_of(WRITES, fields)) do
    found[2 * i - 1] = fields[i]
    found[2 * i] = value
  end
  return found
end

-- The escaped id of the newest checkpoint of a namespace, or nil.
local function latest(prefix)
  local member = redis.call('ZREVRANGEBYLEX', INDEX, '(' .. prefix .. ':', '[' .. prefix, 'LIMIT', 0, 1)[1]
  return member and string.match(member, '[^/]*$')
end

