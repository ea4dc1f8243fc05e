-- acquire: takes the lock on this node, if the node may vote and nobody holds it.
-- Also sent as a plant, by a holder whose key is missing here: same rules, guard included.
--
-- KEYS  1 lock  2 register (hash)  3 node (hash)
-- ARGV  1 owner token  2 TTL, ms  3 proposed fencing token  4 clock allowance d, us
--       5 half the register's life, us  6 the register's life, ms
--       7 identity of the node's memory, or '' for guard off
--       8 the client's MaxTTL, ms  9 the largest MaxTTL it has seen on any node, ms
--
-- Reply: one letter, then sec usec (TIME), since from max (ql:node; 0 0 0 with the guard off)
--   + granted               then the register, unless it is the proposed token exactly
--   = the key is ours       the same
--   - somebody else's       then PTTL and the holder's owner token
--   ~ waits                 the node's memory is too new to vote
--   ! another memory        ql:node is missing or names another one: admission first
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local head = ' ' .. time[1] .. ' ' .. time[2]
local floor = now - ARGV[5]

if ARGV[7] == '' then
  head = head .. ' 0 0 0'
else
  local node = redis.call('HMGET', KEYS[3], 'id', 'since', 'from', 'max', 'floor')
  if node[1] ~= ARGV[7] or not (node[2] and node[3] and node[4] and node[5]) then
    return '!' .. head .. ' 0 0 0'
  end
  -- The largest MaxTTL of all users counts, so each writes its own before its first lock.
  if tonumber(node[4]) < tonumber(ARGV[8]) then
    redis.call('HSET', KEYS[3], 'max', ARGV[8])
    node[4] = ARGV[8]
    -- With a larger MaxTTL, tokens may have been further ahead when the memory before this ended.
    local least = node[2] + node[4] * 1000
    if least > tonumber(node[5]) then
      redis.call('HSET', KEYS[3], 'floor', least)
      node[5] = least
    end
  end
  head = head .. ' ' .. node[2] .. ' ' .. node[3] .. ' ' .. node[4]
  -- from 0: an operator has said that this node holds no forgotten lock.
  if node[3] ~= '0' and (now < tonumber(node[3]) or now < node[2] + node[4] * 1000
    or now < node[2] + ARGV[9] * 1000) then
    return '~' .. head
  end
  if tonumber(node[5]) > floor then floor = tonumber(node[5]) end
end

local letter = '+'
local register
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local holder = redis.call('GET', KEYS[1])
  local left = redis.call('PTTL', KEYS[1])
  if holder ~= ARGV[1] then
    return '-' .. head .. ' ' .. left .. ' ' .. holder
  end
  -- Ours: a reply was lost, or the message came twice. The register stays, so that both
  -- answers name the same token. A key is never shortened.
  if left < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  register = redis.call('HGET', KEYS[2], 'token')
  if register then
    if register == ARGV[3] then
      return '=' .. head
    end
    return '=' .. head .. ' ' .. register
  end
  letter = '='
end

-- A new grant: the register grows, to the proposal if that is larger. The proposal is clamped by
-- this node's clock, so that no client's clock can push tokens where a node that forgets could
-- not follow; the floor lies above whatever a forgotten or expired register can have held.
local token = tonumber(ARGV[3])
local proposed = token
if token > now + ARGV[4] then token = now + ARGV[4] end
if floor > token then token = floor end
register = redis.call('HGET', KEYS[2], 'token')
if register and tonumber(register) >= token then token = tonumber(register) + 1 end
redis.call('HSET', KEYS[2], 'token', token)
redis.call('PEXPIRE', KEYS[2], ARGV[6])
if token == proposed then
  return letter .. head
end
-- Read back: a number of 16 digits must not become text inside Lua.
return letter .. head .. ' ' .. redis.call('HGET', KEYS[2], 'token')
