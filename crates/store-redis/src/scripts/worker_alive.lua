-- worker_alive: a worker says that it is alive, until when that holds, and what it does.
--
-- KEYS  workers, worker
-- ARGV  time or '', name, how long that holds in ms, how long it is remembered in ms, field, value, …
-- Returns { how many are alive }
-- Events: none
--#include clock
--#include chunks
local now = clock(ARGV[1])
redis.call('ZADD', KEYS[1], whole(now + tonumber(ARGV[3])), ARGV[2])
-- Workers that reported long ago are removed.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', whole(now - tonumber(ARGV[4])))
redis.call('HSET', KEYS[2], 'at', whole(now))
each_chunk(ARGV, function(...) redis.call('HSET', KEYS[2], ...) end, 5)
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return { redis.call('ZCOUNT', KEYS[1], whole(now), '+inf') }
