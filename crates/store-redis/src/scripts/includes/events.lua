-- Events of this call. They leave in an entry that says that its runs have nothing to do with each other: nothing that a
-- step does reaches from one run into another. So more of them than fit are simply several entries.
local events = {}

-- Mirrors Run::emit in core: the next seq of the run, at the time of this call.
local function emit(r, body)
  r.seq = r.seq + 1
  r.seq_text = whole(r.seq)
  r.dirty = true
  local count = #events
  events[count + 1] = r.id .. ' ' .. r.seq_text .. ' ' .. now_text .. ' ' .. r.life
  events[count + 2] = body
end

local function send_events(outbox)
  each_chunk(events, function(...) redis.call('XADD', outbox, '*', 'apart', '1', ...) end)
end
