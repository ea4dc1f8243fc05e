-- release: frees the lock on this node, if the key is ours, and tells those who wait. Uses no
-- command that a node at maxmemory refuses; a user without the right to publish still frees.
--
-- KEYS  1 lock
-- ARGV  1 owner token  2 channel  3 ms that the key has to stay at the least, mostly 0
--
-- Reply: one letter
--   + freed, or shortened to what it has to stay   0 nobody's
--   - somebody else's, then PTTL and its owner token
--
-- A call for many locks has the key and arguments of the first as above, and of each further one its
-- key and its arguments 1 and 2; the rest is the same for all.
local call = redis.call
local head = ''
local stay = ARGV[3]

local function release(lock, owner, channel)
  local holder = call('GET', lock)
  if not holder then
    return '0', ''
  end
  if holder ~= owner then
    return '-', ' ' .. call('PTTL', lock) .. ' ' .. holder
  end
  if stay == '0' then
    call('DEL', lock)
  else
    local left = call('PTTL', lock)
    if left > tonumber(stay) or left < 0 then
      call('PEXPIRE', lock, stay)
    end
  end
  redis.pcall('PUBLISH', channel, owner)
  return '+', ''
end
