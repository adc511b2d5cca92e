-- take_signals: moves signals of plain workers to the list of whoever asks, after those of processes that have gone
-- silent were put back. What was taken stays in that list until it is settled, so that nobody's death loses a signal.
--
-- KEYS  signals, movers, list of whoever asks
-- ARGV  beginning of the names of such lists, time or '', who asks, after how long somebody is silent in ms, how many
--       to hold at most
-- Returns { mark, { signals } }; the mark stands in movers for as long as nobody has put them back
-- Events: none
--#include clock
local now = clock(ARGV[2])
local mark, silence = whole(now), tonumber(ARGV[4])

local movers = redis.call('HGETALL', KEYS[2])
for i = 1, #movers, 2 do
  if movers[i] ~= ARGV[3] and tonumber(movers[i + 1]) + silence < now then
    while redis.call('LMOVE', ARGV[1] .. movers[i], KEYS[1], 'RIGHT', 'LEFT') do end
    redis.call('HDEL', KEYS[2], movers[i])
  end
end

redis.call('HSET', KEYS[2], ARGV[3], mark)
for _ = redis.call('LLEN', KEYS[3]) + 1, tonumber(ARGV[5]) do
  if not redis.call('LMOVE', KEYS[1], KEYS[3], 'LEFT', 'RIGHT') then break end
end
return { mark, redis.call('LRANGE', KEYS[3], 0, -1) }
