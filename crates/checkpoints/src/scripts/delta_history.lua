-- Walks from a checkpoint to its ancestors, until each channel has met a stored value.
-- ARGV 1 `ns/`   2 checkpoint id, or '' for the newest   3 whether that one is an ancestor itself (a page after the first)
-- ARGV 4 how many ancestors at most   5… the channels, escaped
-- Returns: the id to go on with, or ''; then for each ancestor its id, field and value of its writes, and number (from 0)
-- and value of each channel that ends here. Errors: SWFORMAT n
--#include open
--#include load
local _, _, refused = open()
if refused then return refused end

local prefix, id = ARGV[1], ARGV[2]
if id == '' then id = latest(prefix) end
local record = id and redis.call('HGET', DATA, prefix .. id)
if not record then return { '' } end
if ARGV[3] == '0' then
  id = header(record).parent
  record = id ~= '' and redis.call('HGET', DATA, prefix .. id)
end

local looked_for, remaining = {}, 0
for i = 5, #ARGV do
  looked_for[ARGV[i]] = i - 5
  remaining = remaining + 1
end
local answer = { '' }
while record and remaining > 0 do
  if #answer > tonumber(ARGV[4]) then
    answer[1] = id
    return answer
  end
  local head, ends = header(record), {}
  for _, ref in ipairs(head.refs) do
    local channel = string.match(ref, '^[^/]*')
    local value = looked_for[channel] and redis.call('HGET', BLOBS, prefix .. ref)
    if value then
      ends[#ends + 1] = looked_for[channel]
      ends[#ends + 1] = value
      looked_for[channel] = nil
      remaining = remaining - 1
    end
  end
  answer[#answer + 1] = { id, writes(prefix .. id), ends }
  id = head.parent
  record = id ~= '' and redis.call('HGET', DATA, prefix .. id)
end
return answer
