-- lock_take: takes a lock that one process at a time has, at most once an interval.
--
-- KEYS  lock
-- ARGV  time or '', who asks, how long the lock lasts in ms, the interval in ms (0: none)
-- Returns { fencing number, 0 }, or { 0, ms until it may be free } while another process has it or the interval lasts
-- Events: none
--#include clock
--#include lock
local now, who, every = clock(ARGV[1]), ARGV[2], tonumber(ARGV[4])
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= who then return { 0, redis.call('PTTL', KEYS[1]) } end
local last = tonumber(redis.call('HGET', KEYS[1] .. ':fence', 'at') or '')
-- A clock that went back must not keep the lock from being taken.
if last and now >= last and now - last < every then return { 0, last + every - now } end
-- Each time it is taken has a number of its own.
redis.call('DEL', KEYS[1])
local fence = hold_lock(KEYS[1], who, ARGV[3])
redis.call('HSET', KEYS[1] .. ':fence', 'at', whole(now))
return { fence, 0 }
