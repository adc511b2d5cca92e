-- reserve: looks whether a new run may be accepted, and takes its idempotency key for it. Mirrors InFlight::check_key.
-- The reservation expires if its process dies before the run is in place.
--
-- It always writes: a server that takes no writes has to say so before the run is archived.
--
-- KEYS  run, probe, idempotency key if it has one
-- ARGV  time or '', run, hash of the body, how long the reservation lasts in ms
-- Returns { time, 'new' } or { time, 'exists' } (the run is here) or { time, run, hash of its body } (the key is taken)
-- Events: none
--#include clock
local now = whole(clock(ARGV[1]))
if KEYS[3] then
  local taken = redis.call('HMGET', KEYS[3], 'run', 'body')
  if taken[1] and taken[1] ~= ARGV[2] then return { now, taken[1], taken[2] } end
end
if redis.call('EXISTS', KEYS[1]) == 1 then return { now, 'exists' } end
if KEYS[3] then
  redis.call('HSET', KEYS[3], 'run', ARGV[2], 'body', ARGV[3])
  redis.call('PEXPIRE', KEYS[3], ARGV[4])
else
  redis.call('SET', KEYS[2], 1, 'PX', 1)
end
return { now, 'new' }
