-- turn_take: takes the turn of a duty that one process at a time has, once an interval.
--
-- KEYS  lock
-- ARGV  time or '', who asks, how long the lock lasts in ms, the interval in ms (0: it is always time)
-- Returns { fencing number, 0 }, or { 0, ms until it may be time } while another process has it or it is not time yet
-- Events: none
--#include clock
local now, every = clock(ARGV[1]), tonumber(ARGV[4])
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= ARGV[2] then return { 0, redis.call('PTTL', KEYS[1]) } end
-- The number outlives the lock, so that it never comes twice.
local memory = KEYS[1] .. ':fence'
local last = tonumber(redis.call('HGET', memory, 'at') or '')
-- A clock that went back must not stop the duty.
if last and now >= last and now - last < every then return { 0, last + every - now } end
local fence = redis.call('HINCRBY', memory, 'last', 1)
redis.call('HSET', memory, 'at', whole(now))
redis.call('HSET', KEYS[1], 'owner', ARGV[2], 'fence', fence)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return { fence, 0 }
