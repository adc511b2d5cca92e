-- publish: puts a graph where every process finds it.
--
-- KEYS  the graph, graphs, streams
-- ARGV  time or '', hash of the graph, its text, the streams that it has nodes for
-- Returns nothing
-- Events: none
--#include clock
--#include chunks
-- The hash is that of the definition: a release that compiles it to more puts its own text in place of the older one.
if redis.call('STRLEN', KEYS[1]) ~= #ARGV[3] then redis.call('SET', KEYS[1], ARGV[3]) end
redis.call('ZADD', KEYS[2], whole(clock(ARGV[1])), ARGV[2])
each_chunk(ARGV, function(...) redis.call('SADD', KEYS[3], ...) end, 4)
