-- lock_renew: renews a lock, or releases it.
--
-- KEYS  lock
-- ARGV  fencing number, how long the lock lasts from now in ms, or 0 to release it
-- Returns 1, or 0 when another process has the lock by now and nothing was done
-- Events: none
--#include lock
if not has_lock(KEYS[1], ARGV[1]) then return 0 end
if ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
else
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
