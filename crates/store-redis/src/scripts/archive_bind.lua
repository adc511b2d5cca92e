-- archive_bind: asks whether this Redis belongs to an archive. One that belongs to none belongs to that one from now on.
--
-- KEYS  archive
-- ARGV  id of the archive, its place, its position in ms
-- Returns { 'ours' }, or nothing was changed: { 'other', id, place } of the archive that it belongs to, or
--         { 'behind', position } that was seen of this archive before, when it was further
-- Events: none
local bound = redis.call('HMGET', KEYS[1], 'id', 'place', 'position')
if bound[1] and bound[1] ~= ARGV[1] then return { 'other', bound[1], bound[2] or '' } end
if tonumber(bound[3] or 0) > tonumber(ARGV[3]) then return { 'behind', bound[3] } end
if bound[3] ~= ARGV[3] then redis.call('HSET', KEYS[1], 'id', ARGV[1], 'place', ARGV[2], 'position', ARGV[3]) end
return { 'ours' }
