-- lock_run: locks a large run while a process reads it in pieces and decides about it. Steps of the run wait meanwhile
-- (is_locked in includes/runs.lua); the commit ends the lock, and so does its time.
--
-- KEYS  run
-- ARGV  time or '', who asks, for how long in ms, or 0 to unlock
-- Returns 1 if who asked has it, or had it until now; else 0
-- Events: none
--#include clock
local now, who, lasts = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local run = redis.call('HMGET', KEYS[1], 'lock', 'flags', 'seq')
if not run[3] then return 0 end
local ends, owner = string.match(run[1] or '', '^(%d+) (.*)$')
if owner and owner ~= who and tonumber(ends) > now then return 0 end
local flags = string.gsub(run[2] or '', 'l', '')
if lasts > 0 then
  redis.call('HSET', KEYS[1], 'lock', whole(now + lasts) .. ' ' .. who, 'flags', flags .. 'l')
else
  if owner ~= who then return 0 end
  redis.call('HDEL', KEYS[1], 'lock')
  if flags == '' then redis.call('HDEL', KEYS[1], 'flags') else redis.call('HSET', KEYS[1], 'flags', flags) end
end
return 1
