-- lost: looks through the tasks of a stream that were read. Void ones are removed. Unclaimed ones that their reader has
-- kept for too long are taken from the reader and returned. At the end of the stream, unread tasks are counted anew,
-- because plain readers do not count.
--
-- KEYS  stream, queued, wake
-- ARGV  beginning of all names, the first entry to look at, how many, how long a reader may be silent in ms, the
--       consumer that takes them over
-- Returns { the entry to go on from or '', { { entry, run, node, who had it } … } }
-- Events: publishes on wake if there is more than was counted
local begin = ARGV[1]
--#include keys
--#include nodes
--#include pending
local stream, silence, taker = KEYS[1], ARGV[4], ARGV[5]

local function group()
  local found = redis.pcall('XINFO', 'GROUPS', stream)
  for _, flat in ipairs(found.err and {} or found) do
    local about = {}
    for i = 1, #flat, 2 do about[flat[i]] = flat[i + 1] end
    if about.name == 'workers' then return about end
  end
  redis.call('XGROUP', 'CREATE', stream, 'workers', '0', 'MKSTREAM')
  return { pending = 0, ['last-delivered-id'] = '0-0' }
end

local lost = {}
local function look(id, raw)
  local what, e = classify(id, raw)
  if what == 'void' then
    drop(stream, id)
  elseif what == 'unclaimed' then
    local pending = redis.call('XPENDING', stream, 'workers', id, id, 1)[1]
    if not pending then
      -- Acknowledged before it was done: its time begins when that is seen.
      redis.call('XCLAIM', stream, 'workers', taker, 0, id, 'FORCE', 'JUSTID')
    elseif #redis.call('XCLAIM', stream, 'workers', taker, silence, id, 'JUSTID') == 1 then
      lost[#lost + 1] = { id, e.run_id, e.node_id, pending[2] }
    end
  end
end

local function recount()
  local about = group()
  local unread = redis.call('XRANGE', stream, '(' .. about['last-delivered-id'], '+', 'COUNT', 1)
  -- Entries that were deleted while pending are still in the pending list; only existing entries are counted.
  local count = math.max(redis.call('XLEN', stream) - about.pending, #unread)
  local known = tonumber(redis.call('HGET', KEYS[2], stream) or 0)
  if count == known then return end
  if count > 0 then redis.call('HSET', KEYS[2], stream, count) else redis.call('HDEL', KEYS[2], stream) end
  if count > known then redis.call('PUBLISH', KEYS[3], count - known .. ' ' .. stream) end
end

local entries = redis.call('XRANGE', stream, ARGV[2], group()['last-delivered-id'], 'COUNT', ARGV[3])
for _, entry in ipairs(entries) do look(entry[1], entry[2]) end
if #entries < tonumber(ARGV[3]) then
  recount()
  return { '', lost }
end
return { '(' .. entries[#entries][1], lost }
