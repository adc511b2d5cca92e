-- Claims tasks. Mirrors Yard::claim and Run::claim in core: higher bands first, then in the order of the queues that
-- were asked for, then first come, first served. Void tasks go away here.
local tasks = {}

local function read_group(stream, consumer, count)
  local answer = redis.pcall('XREADGROUP', 'GROUP', 'workers', consumer, 'COUNT', count, 'STREAMS', stream, '>')
  if answer and answer.err then
    redis.call('XGROUP', 'CREATE', stream, 'workers', '0', 'MKSTREAM')
    answer = redis.call('XREADGROUP', 'GROUP', 'workers', consumer, 'COUNT', count, 'STREAMS', stream, '>')
  end
  return answer and answer[1][2] or {}
end

local function start(r, name, n, entry)
  if n.continues ~= '1' then n.attempt = tonumber(n.attempt) + 1 end
  n.state, n.continues, n.entry = 'R', '0', entry
  n.claim, n.deliveries = tonumber(n.claim) + 1, tonumber(n.deliveries) + 1
  if n.started == '-' then n.started = whole(now - r.at) end
  set_node(r, name, n)
  emit(r, '{"node_started":{"node":' .. cjson.encode(name) .. ',"attempt":' .. n.attempt .. ',"claim":' .. n.claim
    .. ',"worker":' .. worker_name .. '}}')
  if lease ~= '' then
    redis.call('ZADD', KEYS[2], whole(now + tonumber(lease)), r.id .. ' ' .. n.claim .. ' ' .. name)
  end
end

local function task_of(r, name, n, e, reads)
  local skip = e.needs ~= '0' and tonumber(n.fired) == 0 and 1 or 0
  local fields = { 'input', name .. ':wait', name .. ':checkpoint', 'trace' }
  for _, read in ipairs(reads) do
    fields[#fields + 1] = read .. ':output'
    fields[#fields + 1] = read .. ':error'
  end
  local found = redis.call('HMGET', context_key(r.id), unpack(fields))
  local task = {
    r.id, name, tonumber(n.claim), tonumber(n.attempt), r.definition, tonumber(r.attempt),
    whole(r.at + tonumber(n.started)), tonumber(r.depth), skip, tonumber(n.rounds), e.at, found[1], found[2],
    found[3], found[4],
  }
  for i, read in ipairs(reads) do
    local node = r.nodes[read]
    task[#task + 1] = node and node.state or 'P'
    task[#task + 1] = found[2 * i + 3]
    task[#task + 1] = found[2 * i + 4]
  end
  return task
end

local function claim_entry(stream, id, values)
  local e = {}
  for i = 1, #values, 2 do e[values[i]] = values[i + 1] end
  local r = open_run(e.run_id)
  if r and r.gen == e.gen and hands_out(r) then
    local reads, names = {}, { e.node_id }
    for read in string.gmatch(e.reads, '%S+') do
      reads[#reads + 1] = read
      names[#names + 1] = read
    end
    open_nodes(r, names)
    local n = r.nodes[e.node_id] or untouched(e.needs)
    if n.state == 'Q' then
      start(r, e.node_id, n, id)
      tasks[#tasks + 1] = task_of(r, e.node_id, n, e, reads)
      return
    end
  end
  redis.call('XACK', stream, 'workers', id)
  redis.call('XDEL', stream, id)
end

local function claim_from(stream, depths, consumer, max)
  local left = (depths[stream] or 0) + (added[stream] or 0)
  while left > 0 and #tasks < max do
    local entries = read_group(stream, consumer, math.min(left, max - #tasks))
    -- Somebody read the stream without us: what was counted is not there.
    if #entries == 0 then count_task(stream, -left) return end
    for _, entry in ipairs(entries) do
      if entry[2] then claim_entry(stream, entry[1], entry[2]) end
    end
    count_task(stream, -#entries)
    left = left - #entries
  end
end

local function streams_like(depths, pattern)
  local alike = {}
  local function look(names)
    for stream in pairs(names) do
      if string.sub(stream, 1, #pattern) == pattern then alike[stream] = true end
    end
  end
  look(depths)
  look(added)
  local sorted = {}
  for stream in pairs(alike) do sorted[#sorted + 1] = stream end
  table.sort(sorted)
  return sorted
end

local function claim(queued, consumer, max, queues)
  local flat, depths = redis.call('HGETALL', queued), {}
  for i = 1, #flat, 2 do depths[flat[i]] = tonumber(flat[i + 1]) end
  for _, band in ipairs({ 'wf.high.', 'wf.tasks.', 'wf.low.' }) do
    for _, queue in ipairs(queues) do
      local name = begin .. band .. queue
      if string.sub(queue, -1) == '*' then
        for _, stream in ipairs(streams_like(depths, string.sub(name, 1, -2))) do
          claim_from(stream, depths, consumer, max)
        end
      else
        claim_from(name, depths, consumer, max)
      end
    end
  end
end
