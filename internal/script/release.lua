-- release: frees the lock on this node, if the key is ours, and tells those who wait. Uses no
-- command that a node at maxmemory refuses; a user without the right to publish still frees.
--
-- KEYS  1 lock
-- ARGV  1 owner token  2 channel
--
-- Reply: one letter
--   + freed   0 nobody's   - somebody else's, then PTTL and its owner token
local holder = redis.call('GET', KEYS[1])
if not holder then
  return '0'
end
if holder ~= ARGV[1] then
  return '- ' .. redis.call('PTTL', KEYS[1]) .. ' ' .. holder
end
redis.call('DEL', KEYS[1])
redis.pcall('PUBLISH', ARGV[2], ARGV[1])
return '+'
