-- turn_give: the turn is over, and the lock goes.
--
-- KEYS  lock
-- ARGV  fencing number
-- Returns 1, or 0 when another process has it by now
-- Events: none
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
return 1
