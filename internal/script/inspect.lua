-- inspect: what this node knows of a name. Changes nothing.
--
-- KEYS  1 lock  2 register (hash)
--
-- Reply: one letter, then sec usec (TIME), the register (0: none), and for - PTTL and the holder's
-- owner token
--   0 nobody's   - somebody's
local time = redis.call('TIME')
local register = redis.call('HGET', KEYS[2], 'token') or '0'
local head = ' ' .. time[1] .. ' ' .. time[2] .. ' ' .. register
local holder = redis.call('GET', KEYS[1])
if not holder then
  return '0' .. head
end
return '-' .. head .. ' ' .. redis.call('PTTL', KEYS[1]) .. ' ' .. holder
