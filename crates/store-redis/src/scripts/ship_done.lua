-- ship_done: the entries that were read are archived. Trims the outbox, publishes to followers, and removes runs whose end
-- is archived.
--
-- KEYS  lock, outbox, runs, archive
-- ARGV  beginning of all names, fencing number, id of the archive, id of the last entry, how long ended idempotency keys last in ms,
--       whether to release the lock (1 or 0), number of runs, each: id, life, seq, ended (1 or 0)
-- Returns 1, or 0 when another process ships by now, or to another archive, and nothing was done
-- Events: publishes {"seq":…,"ended":…} on run:{id} of each
--#include arguments
local begin = arg()
--#include keys
--#include lock
if not has_lock(KEYS[1], arg()) then return 0 end
if redis.call('HGET', KEYS[4], 'id') ~= arg() then return 0 end
redis.call('HDEL', KEYS[4], 'error', 'error_at')
local last, key_memory, releases = arg(), arg(), arg()
if last ~= '' then
  local ms, n = string.match(last, '^(%d+)-(%d+)$')
  redis.call('XTRIM', KEYS[2], 'MINID', '=', ms .. '-' .. string.format('%.0f', tonumber(n) + 1))
end

for _ = 1, tonumber(arg()) do
  local id, life, seq, ended = arg(), arg(), arg(), arg()
  if ended == '1' then
    local run = redis.call('HMGET', run_key(id), 'life', 'phase', 'idem')
    -- A run that was taken up again meanwhile stays.
    if run[1] == life and run[2] == 'ended' then
      redis.call('UNLINK', run_key(id), dag_key(id), context_key(id), operations_key(id))
      redis.call('SREM', KEYS[3], id)
      if run[3] then redis.call('PEXPIRE', begin .. 'idempotency:' .. run[3], key_memory) end
    end
  end
  redis.call('PUBLISH', run_key(id), '{"seq":' .. seq .. ',"ended":' .. (ended == '1' and 'true' or 'false') .. '}')
end
if releases == '1' then redis.call('DEL', KEYS[1]) end
return 1
