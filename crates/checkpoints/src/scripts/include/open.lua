-- Include: what every script knows about a thread before it does anything.
-- KEYS meta, index, data, blobs, writes, tasks, runs: all of one thread
local META, INDEX, DATA, BLOBS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local WRITES, TASKS, RUNS = KEYS[5], KEYS[6], KEYS[7]
local FORMAT = '1'

-- Returns the thread's own TTL in ms or false, whether it is there, an error if another release wrote it, and its seq.
local function open()
  local found = redis.call('HMGET', META, 'format', 'ttl_ms', 'seq')
  if found[1] and found[1] ~= FORMAT then
    return nil, nil, redis.error_reply('SWFORMAT ' .. found[1])
  end
  return found[2], found[1] and true or false, nil, tonumber(found[3] or 0)
end

-- Lua passes at most a few thousand arguments: calls `use` with the words of a list from `first` to `last`, a chunk at a
-- time. Nothing else unpacks. A chunk has an even number of words, so that a field stays with its value.
local CHUNK = 1000
local function each_chunk(list, use, first, last)
  last = last or #list
  for from = first or 1, last, CHUNK do use(unpack(list, from, math.min(from + CHUNK - 1, last))) end
end

