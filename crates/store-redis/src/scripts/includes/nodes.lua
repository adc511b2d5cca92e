-- A node in `dag:{run}`: state attempt claim continues deliveries open fired started completed ended rounds more
-- [entry [limit]], the entry `-` for none. Mirrors core run/node.rs; written by Rust in record/node.rs as well.
local NODE = '^(%a) (%d+) (%d+) ([01]) (%d+) (%d+) (%d+) (%S+) (%S+) (%d+) (%d+) ([01]) ?(%S*) ?(%d*)$'

local function parse_node(text)
  local state, attempt, claim, continues, deliveries, open, fired, started, completed, ended, rounds, more, entry,
    limit = string.match(text, NODE)
  return {
    state = state, attempt = attempt, claim = claim, continues = continues, deliveries = deliveries, open = open,
    fired = fired, started = started, completed = completed, ended = ended, rounds = rounds, more = more,
    entry = entry == '-' and '' or entry, limit = limit, changed = false,
  }
end

local function node_text(n)
  local text = n.state .. ' ' .. n.attempt .. ' ' .. n.claim .. ' ' .. n.continues .. ' ' .. n.deliveries .. ' '
    .. n.open .. ' ' .. n.fired .. ' ' .. n.started .. ' ' .. n.completed .. ' ' .. n.ended .. ' ' .. n.rounds .. ' '
    .. n.more
  if n.limit ~= '' then return text .. ' ' .. (n.entry ~= '' and n.entry or '-') .. ' ' .. n.limit end
  if n.entry ~= '' then return text .. ' ' .. n.entry end
  return text
end

-- A node that nothing has happened to is not stored.
local function untouched(needs)
  return {
    state = 'P', attempt = '0', claim = '0', continues = '0', deliveries = '0', open = needs, fired = '0',
    started = '-', completed = '-', ended = '0', rounds = '0', more = '0', entry = '', limit = '',
    changed = false,
  }
end
