-- Runs that this call touches: read once, written once at the end.
local runs, opened = {}, {}

-- What most runs do not have. Its flag says who does.
local function read_more(r)
  if not string.find(r.flags, 'm', 1, true) then return end
  local f = redis.call('HMGET', r.key, 'paused', 'approvals', 'attempt', 'depth', 'priority')
  r.paused, r.approvals, r.attempt, r.depth = f[1], tonumber(f[2] or 0), f[3] or '1', f[4] or '0'
  r.priority = f[5] or '-'
end

local function open_run(id)
  local known = runs[id]
  if known ~= nil then return known end
  local key = run_key(id)
  local f = redis.call('HMGET', key, 'seq', 'gen', 'phase', 'counter', 'definition', 'at', 'life', 'flags')
  local r = false
  if f[1] then
    r = {
      id = id, key = key, dag = dag_key(id), context = context_key(id), seq = tonumber(f[1]), seq_text = f[1],
      gen = f[2], phase = f[3], counter = tonumber(f[4]), definition = f[5], at = f[6], life = f[7],
      flags = f[8] or '', paused = false, approvals = 0, attempt = '1', depth = '0', priority = '-', since = false, nodes = {},
      changed = {}, outputs = {}, cleared = {}, unlinked = {}, dirty = false,
    }
    if f[8] then read_more(r) end
    opened[#opened + 1] = r
  end
  runs[id] = r
  return r
end

-- Whether a process reads it right now to decide about it as a whole (lock_run.lua).
local function is_locked(r)
  if r.locked == nil then
    local lock = string.find(r.flags, 'l', 1, true) and redis.call('HGET', r.key, 'lock')
    r.locked = lock and tonumber(string.match(lock, '^(%d+)')) > now or false
  end
  return r.locked
end

-- Milliseconds since it was accepted.
local function since(r)
  if not r.since then r.since = whole(now - tonumber(r.at)) end
  return r.since
end

-- Reads those of the nodes that this call has not read yet; false for one that nothing has happened to.
local function open_nodes(r, names)
  local nodes, unread = r.nodes, {}
  for i = 1, #names do
    local name = names[i]
    if nodes[name] == nil then
      unread[#unread + 1] = name
      nodes[name] = false
    end
  end
  if #unread == 0 then return end
  local texts = values_of(r.dag, unread)
  for i = 1, #unread do
    if texts[i] then nodes[unread[i]] = parse_node(texts[i]) end
  end
end

local function set_node(r, name, n)
  r.nodes[name] = n
  r.dirty = true
  if not n.changed then
    n.changed = true
    r.changed[#r.changed + 1] = name
  end
end

-- Mirrors Run::hands_out in core.
local function hands_out(r)
  return not r.paused and (r.phase == 'running' or r.phase == 'closing' or r.phase == 'compensating')
end

-- What settled nodes came to. Before anything is claimed, because that reads it.
local function write_outputs()
  for _, r in ipairs(opened) do
    call_on('HDEL', r.context, r.cleared)
    each_chunk(r.unlinked, function(...) redis.call('UNLINK', ...) end)
    call_on('HSET', r.context, r.outputs)
  end
end

local function write_runs()
  for _, r in ipairs(opened) do
    if r.dirty then
      local fields = {}
      for i, name in ipairs(r.changed) do
        fields[2 * i - 1] = name
        fields[2 * i] = node_text(r.nodes[name])
      end
      call_on('HSET', r.dag, fields)
      redis.call('HSET', r.key, 'seq', r.seq_text, 'counter', whole(r.counter), 'phase', r.phase)
    end
  end
end
