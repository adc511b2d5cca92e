-- commit: writes what the core decided, if everything it was decided on is still as it was. All or nothing.
--
-- KEYS  every key that is written
-- ARGV  number of graphs that runs are on from now on, their keys; number of expectations, each: hash, field, value
--       ('' for none); number of commands, each: its length, then the command word by word
-- Returns 'written', or nothing was: 'changed' when an expectation did not hold, 'graph' when a graph is not there
-- Events: those among the commands (XADD to the outbox, PUBLISH)
--#include arguments

for _ = 1, tonumber(arg()) do
  if redis.call('EXISTS', arg()) == 0 then return 'graph' end
end

for _ = 1, tonumber(arg()) do
  local key, field, value = arg(), arg(), arg()
  if (redis.call('HGET', key, field) or '') ~= value then return 'changed' end
end

for _ = 1, tonumber(arg()) do
  local length = tonumber(arg())
  redis.call(unpack(ARGV, read + 1, read + length))
  read = read + length
end
return 'written'
