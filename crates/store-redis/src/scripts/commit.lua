-- commit: writes what the core decided, if everything it was decided on is still as it was. All or nothing.
--
-- KEYS  every key that is written
-- ARGV  number of expectations, each: hash, field, value ('' for none); number of commands, each: its length, then
--       the command word by word
-- Returns 1 when it was written, 0 when an expectation did not hold and nothing was
-- Events: those among the commands (XADD to the outbox, PUBLISH)
--#include arguments

for _ = 1, tonumber(arg()) do
  local key, field, value = arg(), arg(), arg()
  if (redis.call('HGET', key, field) or '') ~= value then return 0 end
end

for _ = 1, tonumber(arg()) do
  local length = tonumber(arg())
  redis.call(unpack(ARGV, read + 1, read + length))
  read = read + length
end
return 1
