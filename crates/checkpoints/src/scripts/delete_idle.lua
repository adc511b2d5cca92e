-- Deletes a thread, unless it was written to since.
-- ARGV 1 a moment in ms, by the server's clock
-- Returns 1 if it was deleted. Errors: SWFORMAT n
--#include open
local _, is_there, refused = open()
if refused then return refused end
if not is_there then return 0 end
if tonumber(redis.call('HGET', META, 'at') or 0) > tonumber(ARGV[1]) then return 0 end
each_chunk(KEYS, function(...) redis.call('UNLINK', ...) end)
return 1
