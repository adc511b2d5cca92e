-- Claims tasks. Mirrors InFlight::claim and Run::claim in core: higher bands first, then in the order of the queues that
-- were asked for, where functions take turns by the age of their first task, then first come, first served. Void tasks
-- go away here.
local tasks = {}

-- Entries that a call looks at: after a pause or a cancellation thousands of them may be void.
local LOOKS_MAX, looked = 1000, 0
-- Tasks of runs that are locked go back to the end of their stream; after this many the rest has to wait.
local LOCKED_MAX, locked = 20, 0

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

-- The claim is due at the end of its lease or of its limit, whichever comes first. Mirrors InFlight::set_lease in core.
local function hold(r, name, n, limit)
  local ends, ends_text = lease_ends, lease_ends_text
  if limit ~= '' then
    local limit_ends = now + limit
    n.limit = whole(limit_ends - r.at)
    if not ends or limit_ends < ends then ends, ends_text = limit_ends, whole(limit_ends) end
  end
  if ends then
    local count = #leases_new
    leases_new[count + 1], leases_new[count + 2] = ends_text, r.id .. ' ' .. n.claim .. ' ' .. name
  end
end

local function start(r, name, n, entry, limit)
  if n.continues ~= '1' then n.attempt = whole(n.attempt + 1) end
  n.state, n.continues, n.entry = 'R', '0', entry
  n.claim, n.deliveries = whole(n.claim + 1), whole(n.deliveries + 1)
  if n.started == '-' then n.started = since(r) end
  set_node(r, name, n)
  emit(r, '{"node_started":{"node":' .. quoted(name) .. ',"attempt":' .. n.attempt .. ',"claim":' .. n.claim
    .. ',"worker":' .. worker_name .. '}}')
  hold(r, name, n, limit)
end

-- Its fields are written in this order: run_id, node_id, gen, reads, needs, at, limit. An entry of another form is void,
-- except that one from before there were limits has none.
local function claim_entry(stream, id, f)
  local r = f[1] == 'run_id' and f[11] == 'at' and open_run(f[2])
  if r and r.gen == f[6] and hands_out(r) then
    local names = names_of(f[4], f[8])
    open_nodes(r, names)
    local n = r.nodes[f[4]] or untouched(f[10])
    if n.state == 'Q' and is_locked(r) then
      locked = locked + 1
      redis.call('XADD', stream, '*', 'run_id', f[2], 'node_id', f[4], 'gen', f[6], 'reads', f[8], 'needs', f[10],
        'at', f[12], 'limit', f[14] or '')
      count_task(stream, 1)
    elseif n.state == 'Q' then
      start(r, f[4], n, id, f[14] or '')
      tasks[#tasks + 1] = task_of(r, n, names, f[10], f[12])
      return
    end
  end
  finish_entry(stream, id)
end

local function claim_from(stream, depths, consumer, max)
  local left = (depths[stream] or 0) + (added[stream] or 0)
  while left > 0 and #tasks < max and looked < LOOKS_MAX and locked < LOCKED_MAX do
    local entries = read_group(stream, consumer, whole(math.min(left, max - #tasks)))
    -- A plain worker read the stream: the counted entries are not there.
    if #entries == 0 then count_task(stream, -left) return end
    for _, entry in ipairs(entries) do
      if entry[2] then claim_entry(stream, entry[1], entry[2]) end
    end
    count_task(stream, -#entries)
    left, looked = left - #entries, looked + #entries
  end
end

local BANDS = { ['wf.high.'] = 1, ['wf.tasks.'] = 2, ['wf.low.'] = 3 }

-- Whether a wanted queue takes turns with others. Mirrors queue_name::takes_turns in core.
local function takes_turns(wanted)
  return string.sub(wanted, 1, 8) == 'function' and string.byte(wanted, 9) ~= 46
end

-- The queues that were asked for: exact names in a table, because there may be hundreds, and patterns apart.
local function read_wanted(queues)
  local w = { exact = {}, patterns = {}, turns = {} }
  local first_turn
  for i, wanted in ipairs(queues) do
    local rank = i
    if takes_turns(wanted) then
      first_turn = first_turn or i
      rank = first_turn
      w.turns[rank] = true
    end
    if string.byte(wanted, -1) == 42 then
      w.patterns[#w.patterns + 1] = { string.sub(wanted, 1, -2), rank }
    else
      w.exact[wanted] = math.min(rank, w.exact[wanted] or rank)
    end
  end
  return w
end

-- Where a stream comes among those that are wanted: its band, then its queue's rank; and whether it takes turns.
local function rank_of(stream, wanted)
  local band, queue = string.match(string.sub(stream, #begin + 1), '^(wf%.%l+%.)(.*)$')
  if not BANDS[band] then return nil end
  local rank = wanted.exact[queue]
  for _, pattern in ipairs(wanted.patterns) do
    local alike = string.sub(queue, 1, #pattern[1]) == pattern[1]
    if alike and (not rank or pattern[2] < rank) then rank = pattern[2] end
  end
  if not rank then return nil end
  return BANDS[band] * 10000 + rank, wanted.turns[rank]
end

-- When the first task of a stream that was not read yet was queued.
local function first_at(stream)
  local last, groups = '0-0', redis.pcall('XINFO', 'GROUPS', stream)
  for _, flat in ipairs(groups.err and {} or groups) do
    local about = {}
    for i = 1, #flat, 2 do about[flat[i]] = flat[i + 1] end
    if about.name == 'workers' then last = about['last-delivered-id'] end
  end
  local first = redis.call('XRANGE', stream, '(' .. last, '+', 'COUNT', 1)[1]
  return first and first[2][11] == 'at' and tonumber(first[2][12]) or 0
end

-- The streams that have something for this worker, in the order in which it takes from them.
local function wanted_streams(depths, queues)
  local wanted = read_wanted(queues)
  local streams, ranks, ages, turns = {}, {}, {}, 0
  local function look(names)
    for stream in pairs(names) do
      if not ranks[stream] then
        local rank, takes_turn = rank_of(stream, wanted)
        if rank then
          ranks[stream], streams[#streams + 1] = rank, stream
          if takes_turn then ages[stream], turns = true, turns + 1 end
        end
      end
    end
  end
  look(depths)
  look(added)
  -- A worker that finds tasks of one function only is spared the look at their age.
  for stream in pairs(ages) do ages[stream] = turns > 1 and first_at(stream) or 0 end
  if #streams > 1 then
    table.sort(streams, function(a, b)
      if ranks[a] ~= ranks[b] then return ranks[a] < ranks[b] end
      local age_a, age_b = ages[a] or 0, ages[b] or 0
      if age_a ~= age_b then return age_a < age_b end
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
