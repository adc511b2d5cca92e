-- Include: one expiry for all keys of a thread, so that none outlives the others.
-- own is the thread's own TTL or false, ttl the saver's; 0 is for ever.
local function keep(own, ttl)
  ttl = tonumber(own or ttl)
  if ttl > 0 then
    for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ttl) end
  elseif redis.call('PTTL', META) >= 0 then
    for _, key in ipairs(KEYS) do redis.call('PERSIST', key) end
  end
end

-- Marks the thread as written to, with this seq.
local function touch(thread, is_there, seq)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if is_there then
    redis.call('HSET', META, 'at', now, 'seq', seq)
  else
    redis.call('HSET', META, 'format', FORMAT, 'thread', thread, 'at', now, 'seq', seq)
  end
  return now
end

