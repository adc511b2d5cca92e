-- What an entry of a task stream that was read stands for: 'held' (a claim that counts: its lease decides when it comes
-- back), 'unclaimed' (read by a plain worker, without a claim), or 'void' (its run has moved on, or it is not a task).
-- Then its fields by name. Mirrors claim_entry in claim.lua.
local function classify(id, raw)
  local e = {}
  for i = 1, #raw, 2 do e[raw[i]] = raw[i + 1] end
  -- More fields than one chunk: not an entry of ours.
  if not e.run_id or not e.node_id or #raw > 1000 then return 'void', e end
  local run = redis.call('HMGET', run_key(e.run_id), 'gen', 'phase')
  local text = redis.call('HGET', dag_key(e.run_id), e.node_id)
  local n = text and parse_node(text)
  if not run[1] or run[2] == 'ended' or not n then return 'void', e end
  e.claim = n.claim
  if n.state == 'R' and n.entry == id then return 'held', e end
  if n.state == 'Q' and run[1] == e.gen then return 'unclaimed', e end
  return 'void', e
end

-- The same for a pending entry, or 'gone' if there is no such entry any more; and its fields as they are stored.
local function look_at(stream, id)
  local found = redis.call('XRANGE', stream, id, id)[1]
  if not found then return 'gone', {}, {} end
  local what, e = classify(id, found[2])
  return what, e, found[2]
end

local function drop(stream, id)
  redis.call('XACK', stream, 'workers', id)
  redis.call('XDEL', stream, id)
end
