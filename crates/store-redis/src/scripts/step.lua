-- step: settles claims, releases what depended on them, claims what is next. The one call of the hot path.
-- Mirrors Yard::settle and Yard::claim in core. A settlement that is not plain (see includes/settle.lua) is left
-- untouched, and everything after it too: the caller lets the core carry it out, and comes back with the rest.
--
-- KEYS  outbox, leases, queued, wake, then run, dag and context of each run that is settled
-- ARGV  beginning of all names, time or '', consumer, its name as JSON, how many to claim, lease in ms or '',
--       number of settlements, each as includes/settle.lua reads it, number of queues, their names or patterns
-- Returns { { an answer for each settlement, up to the first that is 'rare' }, { tasks } }
-- Events: node_succeeded, node_skipped, node_released, node_started, run_ended
--#include arguments
local begin, given = arg(), arg()
--#include keys
--#include clock
local now = clock(given)
local now_text = whole(now)
local consumer, worker_name, max, lease = arg(), arg(), tonumber(arg()), arg()
--#include nodes
--#include events
--#include runs
--#include queues
--#include settle
--#include claim

local answers, settled_all = {}, true
local settlements = {}
for i = 1, tonumber(arg()) do settlements[i] = read_settlement() end
local queues = {}
for i = 1, tonumber(arg()) do queues[i] = arg() end

for i, settlement in ipairs(settlements) do
  answers[i] = settle(settlement)
  if answers[i] == 'rare' then
    settled_all = false
    break
  end
end
if settled_all and max > 0 then claim(KEYS[3], consumer, max, queues) end

send_events(KEYS[1])
write_runs()
write_counts(KEYS[3], KEYS[4])
return { answers, tasks }
