-- Gives a thread a TTL of its own, or takes it back.
-- ARGV 1 the saver's ttl in ms, 0 for ever   2 the thread's own in ms, 0 for ever, or '' for the saver's
-- Returns 1, or 0 if there is no such thread. Errors: SWFORMAT n
--#include open
--#include keep
local _, is_there, refused = open()
if refused then return refused end
if not is_there then return 0 end

if ARGV[2] == '' then
  redis.call('HDEL', META, 'ttl_ms')
  keep(false, ARGV[1])
else
  redis.call('HSET', META, 'ttl_ms', ARGV[2])
  keep(ARGV[2], ARGV[1])
end
return 1
