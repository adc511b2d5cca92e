-- Streams of tasks, and how many tasks of each are unclaimed. Entries that are added or finished are collected while
-- settling, and written together.
local added, tokens, done, leases_over, leases_new = {}, {}, {}, {}, {}

local function count_task(stream, by) added[stream] = (added[stream] or 0) + by end

local function enqueue(r, node, stream, reads, needs, limit)
  tokens[#tokens + 1] = { r, node, stream, reads, needs, limit }
end

-- The entry of a claim that has been settled, or of a task that is void.
local function finish_entry(stream, entry)
  local entries = done[stream]
  if not entries then
    entries = {}
    done[stream] = entries
  end
  entries[#entries + 1] = entry
end

local function write_finished(leases)
  for stream, entries in pairs(done) do
    each_chunk(entries, function(...)
      redis.call('XACK', stream, 'workers', ...)
      redis.call('XDEL', stream, ...)
    end)
  end
  done = {}
  call_on('ZREM', leases, leases_over)
  leases_over = {}
end

local function write_tokens()
  for _, t in ipairs(tokens) do
    redis.call('XADD', t[3], '*', 'run_id', t[1].id, 'node_id', t[2], 'gen', t[1].gen, 'reads', t[4], 'needs', t[5],
      'at', now_text, 'limit', t[6])
    count_task(t[3], 1)
  end
end

local function write_leases(leases) call_on('ZADD', leases, leases_new) end

-- Writes the counts, and tells those who wait for work what there is beyond what this call took.
local function write_counts(queued, wake)
  for stream, by in pairs(added) do
    if by ~= 0 and redis.call('HINCRBY', queued, stream, whole(by)) <= 0 then redis.call('HDEL', queued, stream) end
    if by > 0 then redis.call('PUBLISH', wake, by .. ' ' .. stream) end
  end
end
