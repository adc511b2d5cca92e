-- step: settles claims, releases what depended on them, claims what is next. The one call of the fast path; callers of
-- one worker that are ready at the same moment are batched into it.
-- Mirrors InFlight::settle and InFlight::claim in core. A settlement for the slow path (see includes/settle.lua)
-- is left untouched, and so are those of its caller that follow: the caller lets the core carry it out, then sends the rest.
--
-- KEYS  outbox, leases, queued, wake
-- ARGV  beginning of all names, time or '', consumer, its name as JSON, lease in ms or '', number of queues, their
--       names or patterns, number of hints, each as includes/settle.lua reads it, number of callers, each: how many
--       to claim, number of settlements, each: run, number of its hints, claim, kind (S, K or H), output or reason
-- Returns { for each caller a letter for each settlement, up to the first that is 'r' or 'l'; callers apart by blanks,
--         { tasks }, 1 if there may be more than this call looked at, else 0 }
-- Events: node_succeeded, node_skipped, node_released, node_started, run_ended
--#include arguments
local begin, given = arg(), arg()
--#include keys
--#include clock
local now = clock(given)
local now_text = whole(now)
local consumer, worker_name, lease = arg(), arg(), arg()
local lease_ends = lease ~= '' and now + lease
local lease_ends_text = lease_ends and whole(lease_ends)
--#include chunks
--#include nodes
--#include events
--#include runs
--#include queues
--#include settle
--#include task
--#include claim

local queues, hints = {}, {}
for i = 1, tonumber(arg()) do queues[i] = arg() end
for i = 1, tonumber(arg()) do hints[i] = read_hints() end

-- The answers of a caller, and how many tasks it wants after them.
local function settle_all()
  local max, count, answers = tonumber(arg()), tonumber(arg()), ''
  local after = read + 5 * count
  while read < after do
    local answer = settle(ARGV[read + 1], hints[tonumber(ARGV[read + 2])], ARGV[read + 3], ARGV[read + 4], ARGV[read + 5])
    answers, read = answers .. answer, read + 5
    if answer == 'r' or answer == 'l' then max, read = 0, after end
  end
  return answers, max
end

local answers, max = {}, 0
for i = 1, tonumber(arg()) do
  local answer, wanted = settle_all()
  answers[i], max = answer, max + wanted
end

write_finished(KEYS[2])
write_outputs()
write_tokens()
if max > 0 then claim(KEYS[3], consumer, max, queues) end
write_finished(KEYS[2])
write_leases(KEYS[2])
send_events(KEYS[1])
write_runs()
write_counts(KEYS[3], KEYS[4])
return { table.concat(answers, ' '), tasks, looked >= LOOKS_MAX and 1 or 0 }
