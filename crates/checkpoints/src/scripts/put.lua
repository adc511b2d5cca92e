-- Stores a checkpoint and the values that are new with it. The same checkpoint again replaces it in its place.
-- ARGV 1 ttl in ms, 0 for ever   2 thread id   3 `ns/`   4 checkpoint id   5 run id or ''   6 record from `parent` on
-- ARGV 7 how many values, then field and value of each, then the fields that have no value any more
-- Returns the checkpoint's seq. Errors: SWFORMAT n
--#include open
--#include keep
local own, is_there, refused, last = open()
if refused then return refused end

local values = tonumber(ARGV[7])
local first_empty = 8 + 2 * values
each_chunk(ARGV, function(...) redis.call('HSET', BLOBS, ...) end, 8, first_empty - 1)
each_chunk(ARGV, function(...) redis.call('HDEL', BLOBS, ...) end, first_empty)

local field = ARGV[3] .. ARGV[4]
local before = redis.call('HGET', DATA, field)
local place = last + 1
if before then
  place = select(2, cmsgpack.unpack_limit(before, 1))
else
  last = place
  redis.call('ZADD', INDEX, 0, string.format('%s%016d/%s', ARGV[3], place, ARGV[4]))
end
local now = touch(ARGV[2], is_there, last)
redis.call('HSET', DATA, field, cmsgpack.pack(place, now) .. ARGV[6])
if ARGV[5] ~= '' then redis.call('SADD', RUNS, ARGV[5]) end
keep(own, ARGV[1])
return place
