-- swap: hands a lock over to another owner token, where the key has the old one. Two who resume
-- one handle cannot both find the old token on a majority.
--
-- KEYS  1 lock  2 register (hash)  3 node (hash)
-- ARGV  1 old owner token  2 new owner token  3 TTL, ms  4 the register's life, ms
--       5 the client's MaxTTL, ms
--
-- Reply: one letter, then sec usec (TIME)
--   + handed over (never shortened)   0 nobody's   - somebody else's, then PTTL and its owner token
local time = redis.call('TIME')
local head = ' ' .. time[1] .. ' ' .. time[2]
local holder = redis.call('GET', KEYS[1])
if not holder then
  return '0' .. head
end
local left = redis.call('PTTL', KEYS[1])
if holder ~= ARGV[1] and holder ~= ARGV[2] then
  return '-' .. head .. ' ' .. left .. ' ' .. holder
end
-- Whoever takes over may have a larger MaxTTL than all before, and has not acquired anything here.
local node = redis.call('HMGET', KEYS[3], 'since', 'from', 'max', 'floor')
if node[1] and node[2] and node[3] and node[4] then
  larger(KEYS[3], node[1], node[2], node[3], node[4], ARGV[5])
end
if left < tonumber(ARGV[3]) then left = ARGV[3] end
redis.call('SET', KEYS[1], ARGV[2], 'PX', left)
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return '+' .. head
