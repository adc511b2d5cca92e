-- Removes the checkpoints that were made by any of these runs.
-- ARGV the ids of the runs
-- Returns how many checkpoints were removed. Errors: SWFORMAT n
--#include open
--#include load
--#include remove
local _, _, refused = open()
if refused then return refused end

local wanted = {}
for _, run in ipairs(ARGV) do
  if redis.call('SREM', RUNS, run) == 1 then wanted[run] = true end
end
if not next(wanted) then return 0 end

local members, gone = redis.call('ZRANGE', INDEX, 0, -1), {}
for _, member in ipairs(members) do
  local prefix, id = string.match(member, '^([^/]*/)[^/]*/([^/]*)$')
  if wanted[header(redis.call('HGET', DATA, prefix .. id)).run] then gone[member] = true end
end
return remove(members, gone)
