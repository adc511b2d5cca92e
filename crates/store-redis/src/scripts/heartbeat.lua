-- heartbeat: extends the leases of claims that still count, up to their limits at most. Mirrors InFlight::heartbeat in core.
--
-- KEYS  leases, then run and dag of each claim
-- ARGV  beginning of all names, time or '', lease in ms or '', number of claims, each: run, node, claim
-- Returns { 'held', 'stop' or 'lost' for each }
-- Events: none
--#include arguments
local begin, given, lease = arg(), arg(), arg()
--#include keys
--#include clock
--#include nodes
local now, answers = clock(given), {}

for i = 1, tonumber(arg()) do
  local id, node, claim = arg(), arg(), arg()
  local run = redis.call('HMGET', run_key(id), 'phase', 'flags', 'at')
  local text = redis.call('HGET', dag_key(id), node)
  local n = text and parse_node(text)
  if run[1] and n and n.state == 'R' and n.claim == claim then
    if lease ~= '' then
      local ends = now + lease
      if n.limit ~= '' then ends = math.min(ends, run[3] + n.limit) end
      redis.call('ZADD', KEYS[1], whole(ends), id .. ' ' .. claim .. ' ' .. node)
    end
    local stops = run[1] == 'closing' and string.find(run[2] or '', 's', 1, true)
    answers[i] = stops and 'stop' or 'held'
  else
    answers[i] = 'lost'
  end
end
return answers
