-- Makes a thread out of what dump.lua returned.
-- ARGV 1 thread id   2 the rest of its life in ms, 0 for ever   3… each key's serialized value, or ''
-- Returns 1, or 0 if there is such a thread already: then nothing has changed.
for _, key in ipairs(KEYS) do
  if redis.call('EXISTS', key) == 1 then return 0 end
end
for i, key in ipairs(KEYS) do
  if ARGV[i + 2] ~= '' then redis.call('RESTORE', key, ARGV[2], ARGV[i + 2]) end
end
redis.call('HSET', KEYS[1], 'thread', ARGV[1])
return 1
