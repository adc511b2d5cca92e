-- queue: the Redis commands of a step that ends one run of a single node and claims another, without any thought
-- between them. What such a step cannot be faster than.
--
-- KEYS  none: what it touches begins with the first argument
-- ARGV  beginning of all names, run that ends, run that is claimed, entry to acknowledge, an output, an event
-- Returns the entry that was read
local k, run, other, entry, output, event = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local stream = k .. 'tasks'
redis.call('TIME')
redis.call('HMGET', k .. 'run:' .. run, 'seq', 'gen', 'phase', 'counter', 'definition', 'at', 'life', 'flags')
redis.call('HMGET', k .. 'dag:' .. run, 'n0')
redis.call('XACK', stream, 'workers', entry)
redis.call('XDEL', stream, entry)
redis.call('ZREM', k .. 'leases', run .. ' 1 n0')
redis.call('HSET', k .. 'context:' .. run, 'n0:output', output)
redis.call('HGETALL', k .. 'queued')
local read = redis.call('XREADGROUP', 'GROUP', 'workers', 'bench', 'COUNT', '1', 'STREAMS', stream, '>')
redis.call('HMGET', k .. 'run:' .. other, 'seq', 'gen', 'phase', 'counter', 'definition', 'at', 'life', 'flags')
redis.call('HMGET', k .. 'dag:' .. other, 'n0')
redis.call('HMGET', k .. 'context:' .. other, 'input', 'trace')
redis.call('ZADD', k .. 'leases', '1700000000000', other .. ' 1 n0')
redis.call('XADD', k .. 'outbox', 'MAXLEN', '~', '1000', '*', 'apart', '1', run .. ' 3 1700000000000 3481600000000000',
  event, run .. ' 4 1700000000000 3481600000000000', event, other .. ' 2 1700000000000 3481600000000000', event)
redis.call('HSET', k .. 'dag:' .. run, 'n0', 'S 1 1 0 1 0 0 5 9 3 0 0')
redis.call('HSET', k .. 'run:' .. run, 'seq', '4', 'counter', '0', 'phase', 'ended')
redis.call('HSET', k .. 'dag:' .. other, 'n0', 'R 1 1 0 1 0 1 9 - 0 0 0 1700000000000-0 1800009')
redis.call('HSET', k .. 'run:' .. other, 'seq', '2', 'counter', '1', 'phase', 'running')
redis.call('HINCRBY', k .. 'queued', stream, '-1')
return read[1][2][1][1]
