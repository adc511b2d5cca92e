-- publish: puts a graph where every process finds it.
--
-- KEYS  the graph, graphs
-- ARGV  time or '', hash of the graph, its text
-- Returns nothing
-- Events: none
--#include clock
redis.call('SET', KEYS[1], ARGV[3], 'NX')
redis.call('ZADD', KEYS[2], whole(clock(ARGV[1])), ARGV[2])
