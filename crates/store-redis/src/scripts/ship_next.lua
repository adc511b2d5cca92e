-- ship_next: takes or renews the one shipper's lock, and reads what is next in the outbox. Only for the archive that this
-- Redis belongs to; one that belongs to none, because it was flushed, belongs to the asking one from now on.
--
-- KEYS  lock, outbox, forgotten, archive
-- ARGV  who asks, how long the lock lasts in ms, how many entries, id of the archive, its place
-- Returns { fencing number, { entries }, { run, life, … that are forgotten } }, { 0 } while another process ships, or
--         { -1, id, place } of the archive that this Redis belongs to instead
-- Events: none
local bound = redis.call('HMGET', KEYS[4], 'id', 'place')
if bound[1] and bound[1] ~= ARGV[4] then return { -1, bound[1], bound[2] or '' } end
if not bound[1] then redis.call('HSET', KEYS[4], 'id', ARGV[4], 'place', ARGV[5]) end
local lock = redis.call('HMGET', KEYS[1], 'owner', 'fence')
local fence = tonumber(lock[2] or 0)
if lock[1] and lock[1] ~= ARGV[1] then return { 0 } end
if not lock[1] then
  -- The number outlives the lock, so that it never comes twice.
  fence = redis.call('HINCRBY', KEYS[1] .. ':fence', 'last', 1)
  redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'fence', fence)
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return { fence, redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', ARGV[3]), redis.call('HGETALL', KEYS[3]) }
