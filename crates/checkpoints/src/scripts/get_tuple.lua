-- Reads a checkpoint with its values and its pending writes.
-- ARGV 1 ttl in ms to give the thread again, or -1 to leave it   2 `ns/`   3 checkpoint id, or '' for the newest
-- Returns nil, or: id, record, values in the order of its refs, and field and value of its writes. Errors: SWFORMAT n
--#include open
--#include keep
--#include load
local own, is_there, refused = open()
if refused then return refused end

local id = ARGV[3]
if id == '' then id = latest(ARGV[2]) end
local record = id and redis.call('HGET', DATA, ARGV[2] .. id)
if not record then return false end
if ARGV[1] ~= '-1' then keep(own, ARGV[1]) end
local refs = select(7, cmsgpack.unpack_limit(record, 6))
return { id, record, blobs(ARGV[2], refs), writes(ARGV[2] .. id) }
