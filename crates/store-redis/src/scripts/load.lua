-- load: reads runs with everything that is kept about them, and concurrency keys, as they are at one moment. Of a run
-- with more nodes than a call should read, only where it stands.
--
-- KEYS  the hashes of the runs
-- ARGV  beginning of all names, time or '', how many of a line to read, from how many fields on a hash is large, number
--       of runs, their ids, number of concurrency keys, the keys (those of the runs are read as well), number of
--       operations, each: run, operation id
-- Returns { time, { { id, run, dag, context, { node, end of its lease, … } }, { id, run } if it is large, or { id } …},
--         { { key, limit, version, arrivals, under way, waiting, { run, arrival, … } } … }, { hash of what was asked for,
--         or '' … } }; hashes are flat; the runs that were asked for are among those of a key, with arrival 0 if they are
--         under way
-- Events: none
--#include arguments
local begin, given = arg(), arg()
--#include keys
--#include clock
--#include nodes
local head, large = tonumber(arg()), tonumber(arg())

local wanted_gates, seen = {}, {}
local function want_gate(key)
  if key and not seen[key] then
    seen[key] = true
    wanted_gates[#wanted_gates + 1] = key
  end
end

local function leases_of(id, dag)
  local leases = {}
  for i = 1, #dag, 2 do
    if string.sub(dag[i + 1], 1, 1) == 'R' then
      local claim = parse_node(dag[i + 1]).claim
      local ends = redis.call('ZSCORE', begin .. 'wf.leases', id .. ' ' .. claim .. ' ' .. dag[i])
      if ends then
        leases[#leases + 1] = dag[i]
        leases[#leases + 1] = whole(tonumber(ends))
      end
    end
  end
  return leases
end

local runs, ids = {}, {}
for i = 1, tonumber(arg()) do
  local id = arg()
  ids[i] = id
  local run = redis.call('HGETALL', run_key(id))
  if #run == 0 then
    runs[i] = { id }
  else
    want_gate(redis.call('HGET', run_key(id), 'gate'))
    if redis.call('HLEN', dag_key(id)) >= large or redis.call('HLEN', context_key(id)) >= large then
      runs[i] = { id, run }
    else
      local dag = redis.call('HGETALL', dag_key(id))
      runs[i] = { id, run, dag, redis.call('HGETALL', context_key(id)), leases_of(id, dag) }
    end
  end
end
for _ = 1, tonumber(arg()) do want_gate(arg()) end

local gates = {}
for i, key in ipairs(wanted_gates) do
  local gate, line = begin .. 'gate:' .. key, begin .. 'gate.line:' .. key
  local about = redis.call('HMGET', gate, 'limit', 'version', 'arrivals')
  local first = redis.call('ZRANGEBYSCORE', line, '(0', '+inf', 'WITHSCORES', 'LIMIT', 0, head)
  for _, id in ipairs(ids) do
    local arrival = redis.call('ZSCORE', line, id)
    if arrival then
      first[#first + 1] = id
      first[#first + 1] = arrival
    end
  end
  gates[i] = {
    key, about[1] or '', about[2] or '', about[3] or '', redis.call('ZCOUNT', line, 0, 0),
    redis.call('ZCOUNT', line, '(0', '+inf'), first,
  }
end

local operations = {}
for i = 1, tonumber(arg()) do
  local id, operation = arg(), arg()
  operations[i] = redis.call('HGET', operations_key(id), operation) or ''
end
return { whole(clock(given)), runs, gates, operations }
