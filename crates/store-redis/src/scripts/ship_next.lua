-- ship_next: takes or renews the one shipper's lock, and reads what is next in the outbox. Only for the archive that this
-- Redis belongs to; one that belongs to none, because it was flushed, belongs to the asking one from now on.
--
-- KEYS  lock, outbox, forgotten, archive
-- ARGV  who asks, how long the lock lasts in ms, about how many entries, id of the archive, its location
-- Returns { fencing number, { entries }, { fields and values of forgotten }, 1 if there are more entries, else 0 }, { 0 }
--         while another process ships, or
--         { -1, id, location } of the archive that this Redis belongs to instead
-- Events: none
--#include lock
local bound = redis.call('HMGET', KEYS[4], 'id', 'place')
if bound[1] and bound[1] ~= ARGV[4] then return { -1, bound[1], bound[2] or '' } end
if not bound[1] then redis.call('HSET', KEYS[4], 'id', ARGV[4], 'place', ARGV[5]) end
local fence = hold_lock(KEYS[1], ARGV[1], ARGV[2])
if not fence then return { 0 } end

-- An entry may have the events of hundreds of runs: what is read is bounded by its words, too.
local max, PAGE = tonumber(ARGV[3]), 20
local entries, words, from, more = {}, 0, '-', true
while more and #entries < max and words < 100 * max do
  local page = redis.call('XRANGE', KEYS[2], from, '+', 'COUNT', PAGE)
  for _, entry in ipairs(page) do
    entries[#entries + 1] = entry
    words = words + #entry[2]
    from = '(' .. entry[1]
  end
  more = #page == PAGE
end
return { fence, entries, redis.call('HGETALL', KEYS[3]), more and 1 or 0 }
