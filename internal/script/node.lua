-- node: what comes before acquire.lua and claim.lua, once for all locks of a call: whether this
-- node may vote. Sets
--   now      the node's clock, us
--   head     what every reply begins with, after its letter
--   least    the least fencing token
--   most     the largest that it takes from a client
--   refusal  the letter of a node that may not vote; nil: it may
--
-- KEYS and ARGV are acquire.lua's.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local head = ' ' .. time[1] .. ' ' .. time[2]
local floor = now - ARGV[5]
local refusal

if ARGV[7] == '' then
  head = head .. ' 0 0 0'
else
  local node = call('HMGET', KEYS[3], 'id', 'since', 'from', 'max', 'floor')
  if node[1] ~= ARGV[7] or not (node[2] and node[3] and node[4] and node[5]) then
    head = head .. ' 0 0 0'
    refusal = '!'
  else
    node[3], node[4], node[5] = larger(KEYS[3], node[2], node[3], node[4], node[5], ARGV[8])
    head = head .. ' ' .. node[2] .. ' ' .. node[3] .. ' ' .. node[4]
    -- from 0: an operator has said that this node holds no forgotten lock.
    local more = math.max(ARGV[9] - node[4], 0)
    if node[3] ~= '0' and now < math.max(node[3], node[2] + node[4] * 1000) + more * 1000 then
      refusal = '~'
    end
    if tonumber(node[5]) > floor then floor = tonumber(node[5]) end
  end
end

-- Tokens are compared as they are sent, as digits: numbers of 16 of them are what a script is slow
-- at, to read and to write.
local least = string.format('%.0f', math.max(floor, 0))
local most = string.format('%.0f', now + ARGV[4])

local function exceeds(a, b)
  return #a > #b or #a == #b and a > b
end
