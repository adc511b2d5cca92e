-- take_signals: moves signals of plain workers to the list of the caller, after those of processes that have gone
-- silent were put back. A signal stays in that list until it is settled, so that a process that dies loses none.
-- A signal that is too large is replaced by its beginning.
--
-- KEYS  signals, movers, list of the caller
-- ARGV  beginning of the names of such lists, time or '', name of the caller, after how long a process is silent in ms,
--       how many to hold at most, how many bytes to answer (one signal may exceed it), how many bytes a signal may
--       have, how many bytes stay of one that has more, what such a rest begins with
-- Returns { mark, { signals } }; the mark stands in movers until another process puts the signals back
-- Events: none
--#include clock
local now = clock(ARGV[2])
local mark, silence = whole(now), tonumber(ARGV[4])
local count_max, batch_bytes = tonumber(ARGV[5]), tonumber(ARGV[6])
local signal_bytes, excerpt_bytes, oversized = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]

local movers = redis.call('HGETALL', KEYS[2])
for i = 1, #movers, 2 do
  if movers[i] ~= ARGV[3] and tonumber(movers[i + 1]) + silence < now then
    while redis.call('LMOVE', ARGV[1] .. movers[i], KEYS[1], 'RIGHT', 'LEFT') do end
    redis.call('HDEL', KEYS[2], movers[i])
  end
end

redis.call('HSET', KEYS[2], ARGV[3], mark)
local taken, bytes = {}, 0
while #taken < count_max and bytes < batch_bytes do
  -- One at a time: all of them together may be more than anyone wants to hold.
  local signal = redis.call('LINDEX', KEYS[3], #taken) or redis.call('LMOVE', KEYS[1], KEYS[3], 'LEFT', 'RIGHT')
  if not signal then break end
  if #signal > signal_bytes then
    signal = oversized .. #signal .. ':' .. string.sub(signal, 1, excerpt_bytes)
    redis.call('LSET', KEYS[3], #taken, signal)
  end
  taken[#taken + 1] = signal
  bytes = bytes + #signal
end
return { mark, taken }
