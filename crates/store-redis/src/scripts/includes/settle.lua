-- One settlement of a run that is plainly running. Mirrors Run::settle, Run::resolve_edges and Run::conclude in core
-- for succeeded, skipped and handed back. Answers 'applied', 'duplicate', 'stale', or 'rare': left to the core.
local function read_settlement()
  local s = {
    run = arg(), node = arg(), claim = arg(), definition = arg(), kind = arg(), name = arg(), value = arg(),
    stream = arg(), reads = arg(), needs = arg(), result = arg(), last = arg(), last_stream = arg(),
    last_reads = arg(), last_needs = arg(), edges = {},
  }
  for i = 1, tonumber(arg()) do
    s.edges[i] = { to = arg(), fires = arg(), any = arg(), needs = arg(), stream = arg(), reads = arg() }
  end
  return s
end

local function standing(r, s)
  if not r or r.phase == 'ended' then return 'stale' end
  if r.phase ~= 'running' or r.definition ~= s.definition or string.find(r.flags, 'c', 1, true) then return 'rare' end
  local names = { s.node }
  for _, edge in ipairs(s.edges) do names[#names + 1] = edge.to end
  if s.last ~= '' then names[#names + 1] = s.last end
  open_nodes(r, names)
  local n = r.nodes[s.node]
  if not n or n.claim ~= s.claim then return 'stale' end
  if n.state ~= 'R' then return 'duplicate' end
  return 'applied'
end

-- The joins as they will be, and the nodes that this lets go, in the order of the edges.
local function decide_edges(r, s)
  local joins, released = {}, {}
  for _, edge in ipairs(s.edges) do
    local t = joins[edge.to] or r.nodes[edge.to] or untouched(edge.needs)
    local state, open = t.state, math.max(tonumber(t.open) - 1, 0)
    local fired = tonumber(t.fired) + tonumber(edge.fires)
    if state == 'P' and (open == 0 or (edge.any == '1' and fired > 0)) then
      state = 'Q'
      released[#released + 1] = { node = edge.to, stream = edge.stream, reads = edge.reads, needs = edge.needs }
    end
    joins[edge.to] = {
      state = state, attempt = t.attempt, claim = t.claim, continues = t.continues, deliveries = t.deliveries,
      open = open, fired = fired, started = t.started, completed = t.completed, ended = t.ended, rounds = t.rounds,
      entry = t.entry,
    }
  end
  return joins, released
end

-- The output step follows when nothing else is in flight.
local function release_last(r, s, joins, released)
  local t = s.last ~= '' and s.last ~= s.node and (r.nodes[s.last] or untouched(s.last_needs))
  if t and t.state == 'P' and r.counter - 1 + #released == 0 and r.approvals == 0 then
    t.state = 'Q'
    joins[s.last] = t
    released[1] = { node = s.last, stream = s.last_stream, reads = s.last_reads, needs = s.last_needs }
  end
end

local function give_up_claim(r, s, n)
  if n.entry ~= '' then
    redis.call('XACK', s.stream, 'workers', n.entry)
    redis.call('XDEL', s.stream, n.entry)
    n.entry = ''
  end
  redis.call('ZREM', KEYS[2], r.id .. ' ' .. n.claim .. ' ' .. s.node)
end

local function hand_back(r, s, n)
  give_up_claim(r, s, n)
  n.state, n.continues, n.deliveries = 'Q', '1', math.max(tonumber(n.deliveries) - 1, 0)
  set_node(r, s.node, n)
  emit(r, '{"node_released":{"node":' .. s.name .. ',"reason":"handed_back"}}')
  if not r.paused then enqueue(r, s.node, s.stream, s.reads, s.needs) end
end

local function end_node(r, s, n)
  give_up_claim(r, s, n)
  local context = context_key(r.id)
  if s.kind == 'S' then
    redis.call('HSET', context, s.node .. ':output', s.value)
    redis.call('HDEL', context, s.node .. ':wait', s.node .. ':checkpoint', s.node .. ':chunks', s.node .. ':error')
    emit(r, '{"node_succeeded":{"node":' .. s.name .. ',"output":' .. s.value .. '}}')
  else
    redis.call('HDEL', context, s.node .. ':wait', s.node .. ':checkpoint', s.node .. ':chunks')
    emit(r, '{"node_skipped":{"node":' .. s.name .. ',"reason":"' .. s.value .. '"}}')
  end
  n.state, n.completed, n.ended = s.kind, whole(now - r.at), r.seq
  set_node(r, s.node, n)
end

local function end_run(r, s)
  local output = s.result ~= '' and redis.call('HGET', context_key(r.id), s.result .. ':output')
  emit(r, '{"run_ended":{"status":"succeeded","output":' .. (output or '{"json":null}') .. ',"error":null}}')
  r.phase = 'ended'
end

local function settle(s)
  local r = open_run(s.run)
  local answer = standing(r, s)
  if answer ~= 'applied' then return answer end
  local n = r.nodes[s.node]
  if s.kind == 'H' then
    hand_back(r, s, n)
    return 'applied'
  end
  local joins, released = decide_edges(r, s)
  release_last(r, s, joins, released)
  local counter = r.counter - 1 + #released
  local ends = counter == 0 and r.approvals == 0
  if ends and r.flags ~= '' then return 'rare' end
  end_node(r, s, n)
  r.counter = counter
  for name, t in pairs(joins) do set_node(r, name, t) end
  for _, token in ipairs(released) do
    if not r.paused then enqueue(r, token.node, token.stream, token.reads, token.needs) end
  end
  if ends then end_run(r, s) end
  return 'applied'
end
