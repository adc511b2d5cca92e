-- Names of the keys of a run, as keys.rs makes them. They share the slot of the keys that were passed.
local function run_key(id) return begin .. 'run:' .. id end
local function dag_key(id) return begin .. 'dag:' .. id end
local function context_key(id) return begin .. 'context:' .. id end
local function operations_key(id) return begin .. 'operations:' .. id end
local function children_key(id, node) return begin .. 'children:' .. id .. ':' .. node end
