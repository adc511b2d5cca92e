-- queues: how many tasks of streams wait, how many are claimed, and since when the first waits.
--
-- KEYS  streams
-- ARGV  none
-- Returns { { waiting, taken, when the first that waits was queued or '' } … }
-- Events: none
local function group(stream)
  for _, flat in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
    local about = {}
    for i = 1, #flat, 2 do about[flat[i]] = flat[i + 1] end
    if about.name == 'workers' then return about end
  end
  return { pending = 0, ['last-delivered-id'] = '0-0' }
end

local function queued_at(entry)
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'at' then return entry[2][i + 1] end
  end
  return string.match(entry[1], '^%d+')
end

local answers = {}
for i, stream in ipairs(KEYS) do
  if redis.call('EXISTS', stream) == 0 then
    answers[i] = { 0, 0, '' }
  else
    local about = group(stream)
    local first = redis.call('XRANGE', stream, '(' .. about['last-delivered-id'], '+', 'COUNT', 1)[1]
    local waiting = math.max(redis.call('XLEN', stream) - about.pending, first and 1 or 0)
    answers[i] = { waiting, about.pending, first and queued_at(first) or '' }
  end
end
return answers
