-- leave: takes a consumer out of the group of a stream. XGROUP DELCONSUMER drops what the consumer has pending, so all
-- of that is moved first, and the consumer goes only if nothing is left (I7). An unclaimed entry goes back
-- to the stream; a claim that counts goes to a consumer that is alive, and its lease stays what decides about it; what
-- means nothing any more goes away.
--
-- KEYS  stream, queued, wake, leases, workers, lock
-- ARGV  beginning of all names, time or '', consumer, who takes over or '', fencing number of the lock or ''
--       where the consumer leaves by itself, how long it must have been idle in ms, how many entries to move at most
-- Returns { answer, returned, claimed, void, left }; the answers: 'left' it is gone; 'kept' there is something that no worker
--       can take over yet; 'more' call again; 'alive' it is, and nothing was done; 'unknown' there is no such consumer;
--       'outdated' another process has the lock by now
-- Events: publishes on wf.wake what went back
--#include arguments
local begin, given = arg(), arg()
--#include keys
--#include clock
--#include lock
--#include chunks
--#include nodes
--#include pending
local now, stream = clock(given), KEYS[1]
local consumer, heir, fence, idle_min, max = arg(), arg(), arg(), tonumber(arg()), tonumber(arg())

local function idle_for()
  local consumers = redis.pcall('XINFO', 'CONSUMERS', stream, 'workers')
  if consumers.err then return nil end
  for _, fields in ipairs(consumers) do
    local c = {}
    for i = 1, #fields, 2 do c[fields[i]] = fields[i + 1] end
    if c.name == consumer then return c.idle end
  end
end

local idle = idle_for()
if not idle then return { 'unknown', 0, 0, 0, 0 } end
if fence ~= '' then
  if not has_lock(KEYS[6], fence) then return { 'outdated', 0, 0, 0, 0 } end
  local until_when = redis.call('ZSCORE', KEYS[5], consumer)
  if idle < idle_min or (until_when and tonumber(until_when) >= now) then return { 'alive', 0, 0, 0, 0 } end
end

local returned, claimed, void, kept = 0, 0, 0, 0
local function move(id, idle_ms)
  local what, e, raw = look_at(stream, id)
  if what == 'unclaimed' then
    each_chunk(raw, function(...) redis.call('XADD', stream, '*', ...) end)
    drop(stream, id)
    returned = returned + 1
  elseif what == 'held' then
    -- An entry without a lease would never be taken back: treat the lease as expired.
    redis.call('ZADD', KEYS[4], 'NX', whole(now), e.run_id .. ' ' .. e.claim .. ' ' .. e.node_id)
    if heir ~= '' then
      redis.call('XCLAIM', stream, 'workers', heir, 0, id, 'IDLE', idle_ms, 'JUSTID')
      claimed = claimed + 1
    else
      kept = kept + 1
    end
  else
    drop(stream, id)
    void = void + 1
  end
end

local from = '-'
repeat
  local page = redis.call('XPENDING', stream, 'workers', from, '+', 100, consumer)
  for _, entry in ipairs(page) do
    move(entry[1], entry[3])
    from = '(' .. entry[1]
  end
until #page == 0 or returned + claimed + void >= max

if returned > 0 then
  redis.call('HINCRBY', KEYS[2], stream, returned)
  redis.call('PUBLISH', KEYS[3], returned .. ' ' .. stream)
end
if #redis.call('XPENDING', stream, 'workers', '-', '+', 1, consumer) == 0 then
  redis.call('XGROUP', 'DELCONSUMER', stream, 'workers', consumer)
  return { 'left', returned, claimed, void, 0 }
end
return { returned + claimed + void >= max and 'more' or 'kept', returned, claimed, void, kept }
