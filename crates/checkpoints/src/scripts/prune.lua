-- Keeps the newest checkpoint of each namespace, and the ancestors that its delta channels are rebuilt from.
-- ARGV none
-- Returns how many checkpoints were removed. Errors: SWFORMAT n
--#include open
--#include load
--#include remove
local _, _, refused = open()
if refused then return refused end

local members = redis.call('ZRANGE', INDEX, 0, -1)
local gone, newest, member_of = {}, {}, {}
for _, member in ipairs(members) do
  local prefix, id = string.match(member, '^([^/]*/)[^/]*/([^/]*)$')
  gone[member] = true
  newest[prefix] = id
  member_of[prefix .. id] = member
end

-- Channels of the list that have no value at this checkpoint.
local function without_value(prefix, head, channels)
  local stored = {}
  for i, value in ipairs(blobs(prefix, head.refs)) do
    if value then stored[string.match(head.refs[i], '^[^/]*')] = true end
  end
  local left = {}
  for _, channel in ipairs(channels) do
    if not stored[channel] then left[#left + 1] = channel end
  end
  return left
end

for prefix, id in pairs(newest) do
  local member = member_of[prefix .. id]
  local head = header(redis.call('HGET', DATA, prefix .. id))
  local channels = head.delta
  while member and gone[member] do
    gone[member] = nil
    channels = without_value(prefix, head, channels)
    member = #channels > 0 and head.parent ~= '' and member_of[prefix .. head.parent]
    if member then head = header(redis.call('HGET', DATA, prefix .. head.parent)) end
  end
end
return remove(members, gone)
