-- drop_graphs: removes graphs that no run is on, unless one has been put on it since.
--
-- KEYS  graphs, then the graphs that no run was found on
-- ARGV  the moment up to which they were last used, then their hashes
-- Returns how many were removed
-- Events: none
local removed = 0
for i = 2, #KEYS do
  local used = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if used and tonumber(used) <= tonumber(ARGV[1]) then
    redis.call('UNLINK', KEYS[i])
    redis.call('ZREM', KEYS[1], ARGV[i])
    removed = removed + 1
  end
end
return removed
