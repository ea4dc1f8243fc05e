-- extend: prolongs the lock on this node, if the key is still ours. Needs no guard: our key is
-- proof of memory, because no key ever comes onto a node that may not vote. Uses no command that
-- a node at maxmemory refuses.
--
-- KEYS  1 lock  2 register (hash)
-- ARGV  1 owner token  2 TTL, ms  3 the register's life, ms, or 0: leave it
--
-- Reply: one letter, then sec usec (TIME)
--   + prolonged (never shortened)   0 nobody's   - somebody else's, then PTTL and its owner token
--
-- A call for many locks has the keys and arguments of the first as above, and of each further one
-- its keys and its argument 1; the rest is the same for all.
local time = redis.call('TIME')
local head = ' ' .. time[1] .. ' ' .. time[2]
local ttl, life = ARGV[2], ARGV[3]

local function extend(lock, hash, owner)
  local holder = redis.call('GET', lock)
  if not holder then
    return '0', ''
  end
  local left = redis.call('PTTL', lock)
  if holder ~= owner then
    return '-', ' ' .. left .. ' ' .. holder
  end
  if left < tonumber(ttl) then
    redis.call('PEXPIRE', lock, ttl)
  end
  if life ~= '0' then
    redis.call('PEXPIRE', hash, life)
  end
  return '+', ''
end
