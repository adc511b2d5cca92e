-- A thread as it is at one moment, to be restored elsewhere.
-- ARGV none
-- Returns nil, or the rest of its life in ms (0 for ever) and each key's serialized value or nil. Errors: SWFORMAT n
--#include open
local _, is_there, refused = open()
if refused then return refused end
if not is_there then return false end

local answer = { math.max(redis.call('PTTL', META), 0) }
for i, key in ipairs(KEYS) do answer[i + 1] = redis.call('DUMP', key) end
return answer
