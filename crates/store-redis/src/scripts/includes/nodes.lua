-- A node in `dag:{run}`: state attempt claim continues deliveries open fired started completed ended rounds [entry].
-- Mirrors core run/node.rs; written by Rust in record/node.rs as well.
local NODE = '^(%a) (%d+) (%d+) ([01]) (%d+) (%d+) (%d+) (%S+) (%S+) (%d+) (%d+) ?(%S*)$'

local function parse_node(text)
  local n = {}
  n.state, n.attempt, n.claim, n.continues, n.deliveries, n.open, n.fired, n.started, n.completed, n.ended, n.rounds,
    n.entry = string.match(text, NODE)
  return n
end

local function node_text(n)
  local text = n.state .. ' ' .. n.attempt .. ' ' .. n.claim .. ' ' .. n.continues .. ' ' .. n.deliveries .. ' '
    .. n.open .. ' ' .. n.fired .. ' ' .. n.started .. ' ' .. n.completed .. ' ' .. n.ended .. ' ' .. n.rounds
  if n.entry ~= '' then return text .. ' ' .. n.entry end
  return text
end

-- A node that nothing has happened to is not stored.
local function untouched(needs)
  return {
    state = 'P', attempt = '0', claim = '0', continues = '0', deliveries = '0', open = needs, fired = '0',
    started = '-', completed = '-', ended = '0', rounds = '0', entry = '',
  }
end
