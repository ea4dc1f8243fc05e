-- acquire: takes the lock on this node, if the node may vote and nobody holds it.
-- Also sent as a plant, by a holder whose key is missing here: same rules, guard included.
--
-- KEYS  1 lock  2 register (hash)  3 node (hash)
-- ARGV  1 owner token  2 proposed fencing token  3 TTL, ms  4 clock allowance d, us
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
-- and of each further one its keys 1 and 2 and its arguments 1 and 2; the rest is the same for all.
local ttl = ARGV[3]

local function acquire(lock, hash, owner, proposal)
  if refusal then return refusal, '' end
  local letter = '+'
  local register
  if not call('SET', lock, owner, 'NX', 'PX', ttl) then
    local holder = call('GET', lock)
    local left = call('PTTL', lock)
    if holder ~= owner then
      return '-', ' ' .. left .. ' ' .. holder
    end
    -- Ours: a reply was lost, or the message came twice. The register stays, so that both
    -- answers name the same token. A key is never shortened.
    if left < tonumber(ttl) then
      call('PEXPIRE', lock, ttl)
    end
    register = call('HGET', hash, 'token')
    if register then
      if register == proposal then
        return '=', ''
      end
      return '=', ' ' .. register
    end
    letter = '='
  end

  -- A new grant: the register grows, to the proposal if that is larger. The proposal is clamped by
  -- this node's clock, so that no client's clock can push tokens where a node that forgets could
  -- not follow; the floor lies above whatever a forgotten or expired register can have held.
  local token = proposal
  if exceeds(token, most) then token = most end
  if exceeds(least, token) then token = least end
  register = call('HGET', hash, 'token')
  if register and not exceeds(token, register) then
    token = string.format('%.0f', register + 1)
  end
  call('HSET', hash, 'token', token)
  -- The life is longer by the time in which a token's leading digits stay, so that it need not be
  -- prolonged each time.
  if not register or string.sub(register, 1, -11) ~= string.sub(token, 1, -11) then
    call('PEXPIRE', hash, ARGV[6])
  end
  if token == proposal then
    return letter, ''
  end
  return letter, ' ' .. token
end
