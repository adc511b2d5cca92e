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

-- Ids rarely have anything in them that JSON escapes.
local function quoted(name)
  if string.find(name, '["\\%c]') then return cjson.encode(name) end
  return '"' .. name .. '"'
end

local function start(r, name, n, entry)
  if n.continues ~= '1' then n.attempt = whole(n.attempt + 1) end
  n.state, n.continues, n.entry = 'R', '0', entry
  n.claim, n.deliveries = whole(n.claim + 1), whole(n.deliveries + 1)
  if n.started == '-' then n.started = since(r) end
  set_node(r, name, n)
  emit(r, '{"node_started":{"node":' .. quoted(name) .. ',"attempt":' .. n.attempt .. ',"claim":' .. n.claim
    .. ',"worker":' .. worker_name .. '}}')
  if lease_ends then
    local count = #leases_new
    leases_new[count + 1], leases_new[count + 2] = lease_ends, r.id .. ' ' .. n.claim .. ' ' .. name
  end
end

-- The node itself, then those that it reads; taken apart once for all tasks alike.
local lists = {}
local function names_of(node, reads)
  local key = node .. ' ' .. reads
  local names = lists[key]
  if not names then
    names = {}
    for name in string.gmatch(key, '%S+') do names[#names + 1] = name end
    lists[key] = names
  end
  return names
end

-- What it reads of the context: only what can be there.
local function context_of(r, n, names)
  local fields = { 'input', 'trace' }
  if n.more == '1' then fields[3], fields[4] = names[1] .. ':wait', names[1] .. ':checkpoint' end
  for i = 2, #names do
    local node = r.nodes[names[i]]
    if node then
      fields[#fields + 1] = names[i] .. ':output'
      if node.more == '1' then fields[#fields + 1] = names[i] .. ':error' end
    end
  end
  return redis.call('HMGET', r.context, unpack(fields))
end

-- What is short comes as one text: every part of an answer costs both sides something.
local function task_of(r, n, names, needs, at)
  local skip = needs ~= '0' and n.fired == '0' and '1' or '0'
  local found, own = context_of(r, n, names), n.more == '1'
  local head = r.id .. ' ' .. names[1] .. ' ' .. n.claim .. ' ' .. n.attempt .. ' ' .. r.definition .. ' ' .. r.attempt
    .. ' ' .. r.at .. ' ' .. n.started .. ' ' .. r.depth .. ' ' .. skip .. ' ' .. n.rounds .. ' ' .. at
  local task = { head, found[1], found[2], own and found[3], own and found[4] }
  local next_found = own and 5 or 3
  for i = 2, #names do
    local node, count = r.nodes[names[i]], #task
    task[count + 1], task[count + 2], task[count + 3] = 'P', false, false
    if node then
      task[count + 1], task[count + 2] = node.state, found[next_found]
      if node.more == '1' then
        next_found = next_found + 1
        task[count + 3] = found[next_found]
      end
      next_found = next_found + 1
    end
  end
  return task
end

-- Its fields are written in this order: run_id, node_id, gen, reads, needs, at. What somebody else has put there is void.
local function claim_entry(stream, id, f)
  local r = f[1] == 'run_id' and f[11] == 'at' and open_run(f[2])
  if r and r.gen == f[6] and hands_out(r) then
    local names = names_of(f[4], f[8])
    open_nodes(r, names)
    local n = r.nodes[f[4]] or untouched(f[10])
    if n.state == 'Q' then
      start(r, f[4], n, id)
      tasks[#tasks + 1] = task_of(r, n, names, f[10], f[12])
      return
    end
  end
  finish_entry(stream, id)
end

local function claim_from(stream, depths, consumer, max)
  local left = (depths[stream] or 0) + (added[stream] or 0)
  while left > 0 and #tasks < max do
    local entries = read_group(stream, consumer, whole(math.min(left, max - #tasks)))
    -- Somebody read the stream without us: what was counted is not there.
    if #entries == 0 then count_task(stream, -left) return end
    for _, entry in ipairs(entries) do
      if entry[2] then claim_entry(stream, entry[1], entry[2]) end
    end
    count_task(stream, -#entries)
    left = left - #entries
  end
end

local BANDS = { ['wf.high.'] = 1, ['wf.tasks.'] = 2, ['wf.low.'] = 3 }

-- Where a stream comes among those that are wanted: its band, then the first name or pattern that takes its queue.
local function rank_of(stream, queues)
  local band, queue = string.match(string.sub(stream, #begin + 1), '^(wf%.%l+%.)(.*)$')
  if not BANDS[band] then return nil end
  for i, wanted in ipairs(queues) do
    local length = #wanted - 1
    local alike = string.byte(wanted, -1) == 42 and string.sub(queue, 1, length) == string.sub(wanted, 1, length)
    if wanted == queue or alike then return BANDS[band] * 10000 + i end
  end
  return nil
end

-- The streams that have something for this worker, in the order in which it takes from them.
local function wanted_streams(depths, queues)
  local streams, ranks = {}, {}
  local function look(names)
    for stream in pairs(names) do
      if not ranks[stream] then
        ranks[stream] = rank_of(stream, queues)
        if ranks[stream] then streams[#streams + 1] = stream end
      end
    end
  end
  look(depths)
  look(added)
  if #streams > 1 then
    table.sort(streams, function(a, b)
      if ranks[a] ~= ranks[b] then return ranks[a] < ranks[b] end
      return a < b
    end)
  end
  return streams
end

local function claim(queued, consumer, max, queues)
  local flat, depths = redis.call('HGETALL', queued), {}
  for i = 1, #flat, 2 do depths[flat[i]] = tonumber(flat[i + 1]) end
  for _, stream in ipairs(wanted_streams(depths, queues)) do claim_from(stream, depths, consumer, max) end
end
