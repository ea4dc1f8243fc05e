-- extend: prolongs the lock on this node, if the key is still ours. Needs no guard: our key is
-- proof of memory, because no key ever comes onto a node that may not vote. Uses no command that
-- a node at maxmemory refuses.
--
-- KEYS  1 lock  2 register (hash)
-- ARGV  1 owner token  2 TTL, ms  3 the register's life, ms, or 0: leave it
--
-- Reply: one letter, then sec usec (TIME)
--   + prolonged (never shortened)   0 nobody's   - somebody else's, then PTTL and its owner token
local time = redis.call('TIME')
local head = ' ' .. time[1] .. ' ' .. time[2]
local holder = redis.call('GET', KEYS[1])
if not holder then
  return '0' .. head
end
local left = redis.call('PTTL', KEYS[1])
if holder ~= ARGV[1] then
  return '-' .. head .. ' ' .. left .. ' ' .. holder
end
if left < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
if ARGV[3] ~= '0' then
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return '+' .. head
