-- due: what is due in a sorted set of moments, and when the next is.
--
-- KEYS  timers or leases
-- ARGV  time or '', how many at most
-- Returns { time, { members that are due }, the earliest moment or '' }
-- Events: none
--#include clock
local now = clock(ARGV[1])
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', whole(now), 'LIMIT', 0, ARGV[2])
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return { whole(now), due, first[2] and whole(tonumber(first[2])) or '' }
