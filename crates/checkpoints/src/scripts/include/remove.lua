-- Include: taking checkpoints out of a thread, with everything that only they used.
-- members are all of the index, gone says which of them go. Returns how many went.
local function remove(members, gone)
  local fields, removed, used = {}, {}, {}
  for _, member in ipairs(members) do
    local prefix, id = string.match(member, '^([^/]*/)[^/]*/([^/]*)$')
    local field = prefix .. id
    fields[member] = field
    if gone[member] then removed[#removed + 1] = member end
  end
  if #removed == 0 then return 0 end

  local is_gone = {}
  for _, member in ipairs(removed) do is_gone[fields[member]] = true end
  for _, member in ipairs(members) do
    if not gone[member] then
      local field = fields[member]
      local prefix = string.match(field, '^[^/]*/')
      local record = redis.call('HGET', DATA, field)
      local head = header(record)
      for _, ref in ipairs(head.refs) do used[prefix .. ref] = true end
      if head.parent ~= '' and is_gone[prefix .. head.parent] then
        local rest = cmsgpack.unpack_limit(record, 4)
        local front = cmsgpack.pack(head.seq, head.at, '', head.run)
        redis.call('HSET', DATA, field, front .. string.sub(record, rest + 1))
      end
    end
  end

  for _, member in ipairs(removed) do
    local field = fields[member]
    local tasks = write_fields(field)
    each_chunk(tasks, function(...)
      redis.call('HDEL', WRITES, ...)
      redis.call('ZREM', TASKS, ...)
    end)
    redis.call('HDEL', DATA, field)
    redis.call('ZREM', INDEX, member)
  end

  local unused = {}
  for _, field in ipairs(redis.call('HKEYS', BLOBS)) do
    if not used[field] then unused[#unused + 1] = field end
  end
  each_chunk(unused, function(...) redis.call('HDEL', BLOBS, ...) end)
  if redis.call('ZCARD', INDEX) == 0 and redis.call('ZCARD', TASKS) == 0 then
    each_chunk(KEYS, function(...) redis.call('UNLINK', ...) end)
  end
  return #removed
end

