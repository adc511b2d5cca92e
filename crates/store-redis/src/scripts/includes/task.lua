-- A claimed node as its holder is handed it. Mirrors Run::task in core; read by Rust in task.rs.

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
  return values_of(r.context, fields)
end

-- What is short comes as one text: every part of an answer costs both sides something.
local function task_of(r, n, names, needs, at)
  local skip = needs ~= '0' and n.fired == '0' and '1' or '0'
  local found, own = context_of(r, n, names), n.more == '1'
  local head = r.id .. ' ' .. names[1] .. ' ' .. n.claim .. ' ' .. n.attempt .. ' ' .. r.definition .. ' ' .. r.attempt
    .. ' ' .. r.at .. ' ' .. n.started .. ' ' .. r.depth .. ' ' .. skip .. ' ' .. n.rounds .. ' ' .. at .. ' '
    .. (n.limit ~= '' and n.limit or '-') .. ' ' .. r.priority
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
