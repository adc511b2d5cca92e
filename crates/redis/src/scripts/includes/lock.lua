-- A fenced lock: a hash of its owner and a fencing number, which expires. The last number is kept beside it, so that no
-- number is given twice.

-- The fencing number, if `who` has the lock or it is free. Else nil.
local function hold_lock(key, who, lasts)
  local lock = redis.call('HMGET', key, 'owner', 'fence')
  local owner, fence = lock[1], lock[2]
  if owner and owner ~= who then return nil end
  if not owner then
    fence = redis.call('HINCRBY', key .. ':fence', 'last', 1)
    redis.call('HSET', key, 'owner', who, 'fence', fence)
  end
  redis.call('PEXPIRE', key, lasts)
  return tonumber(fence)
end

-- Whether the process that was given this number still has the lock: nothing is written under it otherwise.
local function has_lock(key, fence) return redis.call('HGET', key, 'fence') == fence end
