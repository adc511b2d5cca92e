-- publish: puts a graph where every process finds it.
--
-- KEYS  the graph, graphs, streams
-- ARGV  time or '', hash of the graph, its text, the streams that it has nodes for
-- Returns nothing
-- Events: none
--#include clock
redis.call('SET', KEYS[1], ARGV[3], 'NX')
redis.call('ZADD', KEYS[2], whole(clock(ARGV[1])), ARGV[2])
redis.call('SADD', KEYS[3], unpack(ARGV, 4))
