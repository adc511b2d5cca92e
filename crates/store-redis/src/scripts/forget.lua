-- forget: removes runs that contradict the archive, so that they are rebuilt from it. What they still have in the
-- outbox is not shipped any more.
--
-- KEYS  forgotten, runs, leases, timers
-- ARGV  beginning of all names, how long they are remembered as forgotten in ms, number of runs, each: id, life
-- Returns the concurrency keys that they had: there may be room for the next
-- Events: none
--#include arguments
local begin = arg()
--#include keys
--#include nodes
local memory, gates = arg(), {}

local function forget_moments(id, run)
  local timers = run[2] and cjson.decode(run[2]) or {}
  for _, timer in ipairs(timers) do redis.call('ZREM', KEYS[4], id .. ' ' .. timer[2]) end
  local dag = redis.call('HGETALL', dag_key(id))
  for i = 1, #dag, 2 do
    local n = parse_node(dag[i + 1])
    redis.call('ZREM', KEYS[3], id .. ' ' .. n.claim .. ' ' .. dag[i])
    if n.more == '1' then redis.call('UNLINK', children_key(id, dag[i])) end
  end
end

for _ = 1, tonumber(arg()) do
  local id, life = arg(), arg()
  redis.call('HSET', KEYS[1], id .. ' ' .. life, 1)
  local run = redis.call('HMGET', run_key(id), 'life', 'timers', 'gate', 'idem')
  if run[1] == life then
    forget_moments(id, run)
    if run[3] then
      redis.call('ZREM', begin .. 'gate.line:' .. run[3], id)
      redis.call('HINCRBY', begin .. 'gate:' .. run[3], 'version', 1)
      if redis.call('EXISTS', begin .. 'gate.line:' .. run[3]) == 0 then redis.call('DEL', begin .. 'gate:' .. run[3]) end
      gates[#gates + 1] = run[3]
    end
    if run[4] then redis.call('DEL', begin .. 'idempotency:' .. run[4]) end
    redis.call('UNLINK', run_key(id), dag_key(id), context_key(id), operations_key(id))
    redis.call('SREM', KEYS[2], id)
  end
end
redis.call('PEXPIRE', KEYS[1], memory)
return gates
