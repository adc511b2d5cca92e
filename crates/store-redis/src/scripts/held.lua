-- held: the task of a claim that counts, as its holder was handed it. Mirrors InFlight::held_task in core.
--
-- KEYS  run, dag and context of the run
-- ARGV  beginning of all names, run, node, claim, the definition that the caller expects the run to be on, ids of the
--       nodes that it reads, how many edges lead to it
-- Returns { 'held', task as includes/task.lua makes it }, { 'moved', definition that the run is on }, or { 'lost' } for a
--       claim that does not count
-- Events: none
--#include arguments
local begin = arg()
--#include keys
--#include clock
--#include chunks
--#include nodes
--#include runs
--#include task
local id, node, claim, definition, reads, needs = arg(), arg(), arg(), arg(), arg(), arg()

local r = open_run(id)
if not r or r.phase == 'ended' then return { 'lost' } end
if r.definition ~= definition then return { 'moved', r.definition } end
local names = names_of(node, reads)
open_nodes(r, names)
local n = r.nodes[node]
if not n or n.state ~= 'R' or n.claim ~= claim then return { 'lost' } end
return { 'held', task_of(r, n, names, needs, whole(r.at + n.started)) }
