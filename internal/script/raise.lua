-- raise: lifts the register to the token that its holder goes by, where the key is the holder's.
-- Sent when the nodes of a majority answered with different numbers.
--
-- KEYS  1 lock  2 register (hash)
-- ARGV  1 owner token  2 fencing token  3 the register's life, ms
--
-- Reply: one letter
--   + the register is at least the token   0 nobody's lock   - somebody else's, then PTTL, token
local holder = redis.call('GET', KEYS[1])
if not holder then
  return '0'
end
if holder ~= ARGV[1] then
  return '- ' .. redis.call('PTTL', KEYS[1]) .. ' ' .. holder
end
local register = redis.call('HGET', KEYS[2], 'token')
if not register or tonumber(register) < tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[2], 'token', ARGV[2])
end
-- The marks of a job live in the same hash, and longer than a register: a life is never shortened.
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return '+'
