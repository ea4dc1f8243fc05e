-- release: frees the lock on this node, if the key is ours, and tells those who wait. Uses no
-- command that a node at maxmemory refuses; a user without the right to publish still frees.
--
-- KEYS  1 lock
-- ARGV  1 owner token  2 channel  3 ms that the key has to stay at the least, mostly 0
--
-- Reply: one letter
--   + freed, or shortened to what it has to stay   0 nobody's
--   - somebody else's, then PTTL and its owner token
local holder = redis.call('GET', KEYS[1])
if not holder then
  return '0'
end
local left = redis.call('PTTL', KEYS[1])
if holder ~= ARGV[1] then
  return '- ' .. left .. ' ' .. holder
end
if ARGV[3] == '0' then
  redis.call('DEL', KEYS[1])
elseif left > tonumber(ARGV[3]) or left < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
-- Also when it was shortened: those who wait have a new moment to wait for.
redis.pcall('PUBLISH', ARGV[2], ARGV[1])
return '+'
