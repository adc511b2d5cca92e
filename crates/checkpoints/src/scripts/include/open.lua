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

-- Lua passes at most a few thousand arguments: calls a command on a list in pieces.
local function in_pieces(list, size, act)
  for first = 1, #list, size do
    act(first, math.min(first + size - 1, #list))
  end
end

