-- commit: writes what the core decided, if everything it was decided on is still as it was. All or nothing.
--
-- KEYS  every key that is written
-- ARGV  beginning of all names, time or '', number of graphs that runs are on from now on, their hashes; number of keys
--       that were staged, their names; number of expectations, each: hash, field, value ('' for none); number of
--       commands, each: its length, then the command word by word
-- Returns 'written', or nothing was: 'changed' when an expectation did not hold or a staged key is gone, 'graph' when a
--       graph is not there
-- Events: those among the commands (XADD to the outbox, PUBLISH)
--#include arguments
local begin, given = arg(), arg()
--#include clock
--#include chunks
local graphs = {}
for i = 1, tonumber(arg()) do
  graphs[i] = arg()
  if redis.call('EXISTS', begin .. 'ir:' .. graphs[i]) == 0 then return 'graph' end
end

for _ = 1, tonumber(arg()) do
  if redis.call('EXISTS', arg()) == 0 then return 'changed' end
end

for _ = 1, tonumber(arg()) do
  local key, field, value = arg(), arg(), arg()
  if (redis.call('HGET', key, field) or '') ~= value then return 'changed' end
end

local count = tonumber(arg())
local first = read
for _ = 1, count do
  local length = tonumber(arg())
  if length > WORDS_MAX then return redis.error_reply('ERR a command of ' .. length .. ' words') end
  read = read + length
end

read = first
for _, graph in ipairs(graphs) do redis.call('ZADD', begin .. 'wf.graphs', whole(clock(given)), graph) end
for _ = 1, count do
  local length = tonumber(arg())
  call_words(ARGV, read + 1, length)
  read = read + length
end
return 'written'
