-- queue_ready: puts tokens of a list on their streams, a batch of them. Those of a run that has been given another
-- generation since are void, and go away.
--
-- KEYS  list, ready, queued, wake
-- ARGV  beginning of all names, member of ready (run, generation, number), how many at most
-- Returns how many are left
-- Events: publishes on wf.wake what was queued
--#include arguments
local begin, member, max = arg(), arg(), arg()
--#include keys
local id, gen = string.match(member, '^(%S+) (%S+)')
if redis.call('HGET', run_key(id), 'gen') ~= gen then
  redis.call('UNLINK', KEYS[1])
  redis.call('ZREM', KEYS[2], member)
  return 0
end

local added = {}
for _, token in ipairs(redis.call('LPOP', KEYS[1], max) or {}) do
  local stream, node, reads, needs, at, limit =
    string.match(token, '^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)$')
  redis.call('XADD', stream, '*', 'run_id', id, 'node_id', node, 'gen', gen, 'reads', reads, 'needs', needs, 'at', at,
    'limit', limit)
  added[stream] = (added[stream] or 0) + 1
end
for stream, count in pairs(added) do
  redis.call('HINCRBY', KEYS[3], stream, count)
  redis.call('PUBLISH', KEYS[4], count .. ' ' .. stream)
end
local left = redis.call('LLEN', KEYS[1])
if left == 0 then redis.call('ZREM', KEYS[2], member) end
return left
