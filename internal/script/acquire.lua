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
--
-- Stands behind node.lua. A call for many locks has the keys and arguments of the first as above,
-- and of each further one its keys 1 and 2 and its arguments 1 to 3; the rest is the same for all.
local function acquire(lock, hash, owner, ttl, proposal)
  if refusal then return refusal end
  local letter = '+'
  local register
  if not redis.call('SET', lock, owner, 'NX', 'PX', ttl) then
    local holder = redis.call('GET', lock)
    local left = redis.call('PTTL', lock)
    if holder ~= owner then
      return '-' .. head .. ' ' .. left .. ' ' .. holder
    end
    -- Ours: a reply was lost, or the message came twice. The register stays, so that both
    -- answers name the same token. A key is never shortened.
    if left < tonumber(ttl) then
      redis.call('PEXPIRE', lock, ttl)
    end
    register = redis.call('HGET', hash, 'token')
    if register then
      if register == proposal then
        return '=' .. head
      end
      return '=' .. head .. ' ' .. register
    end
    letter = '='
  end

  -- A new grant: the register grows, to the proposal if that is larger. The proposal is clamped by
  -- this node's clock, so that no client's clock can push tokens where a node that forgets could
  -- not follow; the floor lies above whatever a forgotten or expired register can have held.
  local token = tonumber(proposal)
  local proposed = token
  if token > now + ARGV[4] then token = now + ARGV[4] end
  if floor > token then token = floor end
  register = redis.call('HGET', hash, 'token')
  if register and tonumber(register) >= token then token = tonumber(register) + 1 end
  redis.call('HSET', hash, 'token', token)
  redis.call('PEXPIRE', hash, ARGV[6])
  if token == proposed then
    return letter .. head
  end
  -- Read back: a number of 16 digits must not become text inside Lua.
  return letter .. head .. ' ' .. redis.call('HGET', hash, 'token')
end
