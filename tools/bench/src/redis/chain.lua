-- chain: the Redis commands of a step of a chain, without any thought between them. What a step cannot be faster than.
--
-- KEYS  none: what it touches begins with the first argument
-- ARGV  beginning of all names, run, entry to acknowledge, an output, an event
-- Returns the entry that was read
local k, run, entry, output, event = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local stream = k .. 'tasks'
redis.call('TIME')
redis.call('HMGET', k .. 'run:' .. run, 'seq', 'gen', 'phase', 'counter', 'definition', 'at', 'life', 'flags')
redis.call('HMGET', k .. 'dag:' .. run, 'n0', 'n1')
redis.call('XACK', stream, 'workers', entry)
redis.call('XDEL', stream, entry)
redis.call('ZREM', k .. 'leases', run .. ' 1 n0')
redis.call('HSET', k .. 'context:' .. run, 'n0:output', output)
redis.call('XADD', stream, '*', 'run_id', run, 'node_id', 'n1', 'gen', '3481600000000000', 'reads', '', 'needs', '1',
  'at', '1700000000000', 'limit', '1800000')
redis.call('HGETALL', k .. 'queued')
local read = redis.call('XREADGROUP', 'GROUP', 'workers', 'bench', 'COUNT', '1', 'STREAMS', stream, '>')
redis.call('HMGET', k .. 'context:' .. run, 'input', 'trace')
redis.call('ZADD', k .. 'leases', '1700000000000', run .. ' 1 n0')
redis.call('XADD', k .. 'outbox', 'MAXLEN', '~', '1000', '*', 'apart', '1', run .. ' 5 1700000000000 3481600000000000',
  event, run .. ' 6 1700000000000 3481600000000000', event)
redis.call('HSET', k .. 'dag:' .. run, 'n0', 'S 1 1 0 1 0 0 5 9 5 0 0', 'n1', 'R 1 1 0 1 0 1 9 - 0 0 0 1700000000000-0 1800009')
redis.call('HSET', k .. 'run:' .. run, 'seq', '6', 'counter', '1', 'phase', 'running')
return read[1][2][1][1]
