-- ship_next: takes or renews the one shipper's lock, and reads what is next in the outbox.
--
-- KEYS  lock, outbox, forgotten
-- ARGV  who asks, how long the lock lasts in ms, how many entries
-- Returns { fencing number, { entries }, { run, life, … that are forgotten } }, or { 0 } while somebody else ships
-- Events: none
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
