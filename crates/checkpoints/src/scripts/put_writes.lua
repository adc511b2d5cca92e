-- Stores what a task wrote. A write that is there already stays, unless its index is below 0: then it is replaced.
-- ARGV 1 ttl in ms, 0 for ever   2 thread id   3 `ns/checkpoint/task`   4 the writes, as described in writes.rs
-- Returns 1 if these are the task's first writes, 0 if they were merged. Errors: SWFORMAT n
--#include open
--#include keep
local own, is_there, refused, last = open()
if refused then return refused end

local is_first = redis.call('HSETNX', WRITES, ARGV[3], ARGV[4])
if is_first == 1 then
  redis.call('ZADD', TASKS, 0, ARGV[3])
else
  local merged = cmsgpack.unpack(redis.call('HGET', WRITES, ARGV[3]))
  local place = {}
  for i, write in ipairs(merged) do place[write[1]] = i end
  for _, write in ipairs(cmsgpack.unpack(ARGV[4])) do
    local index = write[1]
    if not place[index] then
      merged[#merged + 1] = write
      place[index] = #merged
    elseif index < 0 then
      merged[place[index]] = write
    end
  end
  redis.call('HSET', WRITES, ARGV[3], cmsgpack.pack(merged))
end
touch(ARGV[2], is_there, last)
keep(own, ARGV[1])
return is_first
