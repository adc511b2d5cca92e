-- Milliseconds since the epoch: the server's, unless the caller brought a time (tests do).
local function clock(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Numbers of this size must not be written as 1.7e+12. Left to themselves, Lua and Redis print numbers as floating
-- point, which takes several times as long.
local function whole(number) return string.format('%d', number) end
