-- pending: the entries of a stream that have been pending for long, and what they stand for. The process that has the lock
-- removes void entries.
--
-- KEYS  stream, lock
-- ARGV  beginning of all names, how long in ms, how many at most, fencing number of the lock or '' to remove nothing
-- Returns { how many were void, { id, consumer, idle in ms, deliveries, 'held' or 'unclaimed', run, node } for each other }
-- Events: none
--#include arguments
local begin = arg()
--#include keys
--#include nodes
--#include pending
--#include lock
local stream, long, max, fence = KEYS[1], arg(), tonumber(arg()), arg()
local clears = fence ~= '' and has_lock(KEYS[2], fence)
local found, void = {}, 0
local entries = redis.pcall('XPENDING', stream, 'workers', 'IDLE', long, '-', '+', max)
if entries.err then return { 0, {} } end
for _, entry in ipairs(entries) do
  local what, e = look_at(stream, entry[1])
  if what == 'held' or what == 'unclaimed' then
    found[#found + 1] = { entry[1], entry[2], entry[3], entry[4], what, e.run_id, e.node_id }
  else
    if clears then drop(stream, entry[1]) end
    void = void + 1
  end
end
return { void, found }
