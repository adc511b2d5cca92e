-- Streams of tasks, and how many tasks of each nobody has claimed.
local added = {}

local function count_task(stream, by) added[stream] = (added[stream] or 0) + by end

local function enqueue(r, node, stream, reads, needs)
  redis.call('XADD', stream, '*', 'run_id', r.id, 'node_id', node, 'gen', r.gen, 'reads', reads, 'needs', needs,
    'at', now_text)
  count_task(stream, 1)
end

-- Writes the counts, and tells those who wait for work what there is beyond what this call took.
local function write_counts(queued, wake)
  for stream, by in pairs(added) do
    if by ~= 0 and redis.call('HINCRBY', queued, stream, by) <= 0 then redis.call('HDEL', queued, stream) end
    if by > 0 then redis.call('PUBLISH', wake, by .. ' ' .. stream) end
  end
end
