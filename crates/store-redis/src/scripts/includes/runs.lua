-- Runs that this call touches: read once, written once at the end.
local runs, opened = {}, {}

local function open_run(id)
  if runs[id] ~= nil then return runs[id] end
  local f = redis.call('HMGET', run_key(id), 'seq', 'gen', 'phase', 'paused', 'counter', 'approvals', 'definition',
    'flags', 'at', 'attempt', 'depth', 'life')
  local r = false
  if f[1] then
    r = {
      id = id, seq = tonumber(f[1]), gen = f[2], phase = f[3], paused = f[4], counter = tonumber(f[5]),
      approvals = tonumber(f[6] or 0), definition = f[7], flags = f[8] or '', at = tonumber(f[9]),
      attempt = f[10] or '1', depth = f[11] or '0', life = f[12], nodes = {}, changed = {},
    }
    opened[#opened + 1] = r
  end
  runs[id] = r
  return r
end

-- Reads those of the nodes that this call has not read yet; false for one that nothing has happened to.
local function open_nodes(r, names)
  local unread = {}
  for _, name in ipairs(names) do
    if r.nodes[name] == nil then
      unread[#unread + 1] = name
      r.nodes[name] = false
    end
  end
  if #unread == 0 then return end
  local texts = redis.call('HMGET', dag_key(r.id), unpack(unread))
  for i, name in ipairs(unread) do
    if texts[i] then r.nodes[name] = parse_node(texts[i]) end
  end
end

local function set_node(r, name, n)
  r.nodes[name] = n
  r.changed[name] = true
  r.dirty = true
end

-- Mirrors Run::hands_out in core.
local function hands_out(r)
  return not r.paused and (r.phase == 'running' or r.phase == 'closing' or r.phase == 'compensating')
end

local function write_runs()
  for _, r in ipairs(opened) do
    if r.dirty then
      local fields = {}
      for name in pairs(r.changed) do
        fields[#fields + 1] = name
        fields[#fields + 1] = node_text(r.nodes[name])
      end
      if #fields > 0 then redis.call('HSET', dag_key(r.id), unpack(fields)) end
      redis.call('HSET', run_key(r.id), 'seq', r.seq, 'counter', r.counter, 'phase', r.phase)
    end
  end
end
