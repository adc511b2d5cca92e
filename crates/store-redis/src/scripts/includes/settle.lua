-- One settlement on the fast path. Mirrors Run::settle, Run::resolve_edges and Run::conclude in core for succeeded,
-- skipped and handed back. Answers 'a'pplied, 'd'uplicate, 's'tale, 'r': left to the slow path (fast_path/route.rs lists
-- why), or 'l'ocked: to be tried again.
-- Nothing is written here, only collected.

-- Instead of a list of reads that is too long to be sent each time: the core releases that node.
local LEFT_OUT = '?'

-- What the caller knows of a node and of what follows from its end; settlements of one node share it.
local function read_hints()
  local p = {
    node = arg(), name = arg(), definition = arg(), stream = arg(), reads = arg(), needs = arg(), limit = arg(),
    result = arg(), last = arg(), last_stream = arg(), last_reads = arg(), last_needs = arg(), last_limit = arg(),
    edges = {}, names = {},
  }
  p.leaves_out = p.last_reads == LEFT_OUT
  p.names[1] = p.node
  for i = 1, tonumber(arg()) do
    p.edges[i] = {
      to = arg(), fires = arg(), any = arg(), needs = arg(), stream = arg(), reads = arg(), limit = arg(),
    }
    if p.edges[i].reads == LEFT_OUT then p.leaves_out = true end
    p.names[i + 1] = p.edges[i].to
  end
  if p.last ~= '' then p.names[#p.names + 1] = p.last end
  return p
end

local function standing(r, p, claim)
  if not r or r.phase == 'ended' then return 's' end
  if r.flags ~= '' and is_locked(r) then return 'l' end
  if r.phase ~= 'running' or r.definition ~= p.definition then return 'r' end
  if r.flags ~= '' and string.find(r.flags, 'c', 1, true) then return 'r' end
  open_nodes(r, p.names)
  local n = r.nodes[p.node]
  if not n or n.claim ~= claim then return 's' end
  if n.state ~= 'R' then return 'd' end
  return 'a'
end

local function copy_node(n)
  return {
    state = n.state, attempt = n.attempt, claim = n.claim, continues = n.continues, deliveries = n.deliveries,
    open = n.open, fired = n.fired, started = n.started, completed = n.completed, ended = n.ended, rounds = n.rounds,
    more = n.more, entry = n.entry, limit = n.limit, changed = n.changed,
  }
end

-- The joins as they will be, and the nodes that this lets go, in the order of the edges. With
-- `careful` they are copies, because the run may still be left to the core.
local function decide_edges(r, p, careful)
  local joins, released = {}, {}
  for _, edge in ipairs(p.edges) do
    local t = joins[edge.to]
    if not t then
      t = r.nodes[edge.to]
      if not t then t = untouched(edge.needs) elseif careful then t = copy_node(t) end
      joins[edge.to] = t
    end
    local open, fired = t.open - 1, t.fired + edge.fires
    if open < 0 then open = 0 end
    if t.state == 'P' and (open == 0 or (edge.any == '1' and fired > 0)) then
      t.state = 'Q'
      released[#released + 1] = edge
    end
    t.open, t.fired = whole(open), whole(fired)
  end
  return joins, released
end

-- The output step follows when nothing else is in flight.
local function release_last(r, p, joins, released, careful)
  local t = p.last ~= '' and p.last ~= p.node and (r.nodes[p.last] or untouched(p.last_needs))
  if t and t.state == 'P' and r.counter - 1 + #released == 0 and r.approvals == 0 then
    if careful then t = copy_node(t) end
    t.state = 'Q'
    joins[p.last] = t
    released[1] = {
      to = p.last, stream = p.last_stream, reads = p.last_reads, needs = p.last_needs, limit = p.last_limit,
    }
  end
end

local function give_up_claim(r, p, n)
  if n.entry ~= '' then
    finish_entry(p.stream, n.entry)
    n.entry = ''
  end
  n.limit = ''
  leases_over[#leases_over + 1] = r.id .. ' ' .. n.claim .. ' ' .. p.node
end

local function hand_back(r, p, n)
  give_up_claim(r, p, n)
  n.state, n.continues, n.deliveries = 'Q', '1', whole(math.max(n.deliveries - 1, 0))
  set_node(r, p.node, n)
  emit(r, '{"node_released":{"node":' .. p.name .. ',"reason":"handed_back"}}')
  if not r.paused then enqueue(r, p.node, p.stream, p.reads, p.needs, p.limit) end
end

-- What a node leaves besides its output, if it has left any: in `context:{run}`, and its children.
local function clear(r, p, n, parts)
  if n.more == '0' then return end
  for _, part in ipairs(parts) do r.cleared[#r.cleared + 1] = p.node .. part end
  r.unlinked[#r.unlinked + 1] = children_key(r.id, p.node)
end

local function end_node(r, p, n, kind, value)
  give_up_claim(r, p, n)
  if kind == 'S' then
    clear(r, p, n, { ':wait', ':checkpoint', ':chunks', ':logged', ':error' })
    n.more = '0'
    local count = #r.outputs
    r.outputs[count + 1], r.outputs[count + 2] = p.node .. ':output', value
    emit(r, '{"node_succeeded":{"node":' .. p.name .. ',"output":' .. value .. '}}')
  else
    clear(r, p, n, { ':wait', ':checkpoint', ':chunks', ':logged' })
    emit(r, '{"node_skipped":{"node":' .. p.name .. ',"reason":"' .. value .. '"}}')
  end
  n.state, n.completed, n.ended = kind, since(r), r.seq_text
  set_node(r, p.node, n)
end

-- What this call has written of it comes before what is stored.
local function output_of(r, node)
  for i = #r.outputs - 1, 1, -2 do
    if r.outputs[i] == node .. ':output' then return r.outputs[i + 1] end
  end
  return redis.call('HGET', r.context, node .. ':output')
end

local function end_run(r, p)
  local output = p.result ~= '' and output_of(r, p.result)
  emit(r, '{"run_ended":{"status":"succeeded","output":' .. (output or '{"json":null}') .. ',"error":null}}')
  r.phase = 'ended'
end

local function settle(id, p, claim, kind, value)
  local r = open_run(id)
  local answer = standing(r, p, claim)
  if answer ~= 'a' then return answer end
  local n = r.nodes[p.node]
  if kind == 'H' then
    hand_back(r, p, n)
    return 'a'
  end
  local ends_slowly = r.flags ~= '' and r.flags ~= 'm'
  local joins, released = decide_edges(r, p, ends_slowly or p.leaves_out)
  release_last(r, p, joins, released, p.leaves_out)
  for _, to in ipairs(p.leaves_out and released or {}) do
    if to.reads == LEFT_OUT then return 'r' end
  end
  local counter = r.counter - 1 + #released
  local ends = counter == 0 and r.approvals == 0
  if ends and ends_slowly then return 'r' end
  end_node(r, p, n, kind, value)
  r.counter = counter
  for name, t in pairs(joins) do set_node(r, name, t) end
  for _, to in ipairs(released) do
    if not r.paused then enqueue(r, to.to, to.stream, to.reads, to.needs, to.limit) end
  end
  if ends then end_run(r, p) end
  return 'a'
end
