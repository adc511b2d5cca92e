-- Events of this call. They leave as one entry, so that what changed together is archived together.
local events = {}

-- Mirrors Run::emit in core: the next seq of the run, at the time of this call.
local function emit(r, body)
  r.seq = r.seq + 1
  r.dirty = true
  events[#events + 1] = r.id .. ' ' .. r.seq .. ' ' .. now_text .. ' ' .. r.life
  events[#events + 1] = body
end

local function send_events(outbox)
  if #events > 0 then redis.call('XADD', outbox, '*', unpack(events)) end
end
