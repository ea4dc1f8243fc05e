-- node: what comes before acquire.lua and claim.lua, once for all locks of a call: whether this
-- node may vote. Sets
--   now      the node's clock, us
--   head     what every reply begins with, after its letter
--   floor    the least fencing token
--   refusal  the reply of a node that may not vote; nil: it may
--
-- KEYS and ARGV are acquire.lua's.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local head = ' ' .. time[1] .. ' ' .. time[2]
local floor = now - ARGV[5]
local refusal

if ARGV[7] == '' then
  head = head .. ' 0 0 0'
else
  local node = redis.call('HMGET', KEYS[3], 'id', 'since', 'from', 'max', 'floor')
  if node[1] ~= ARGV[7] or not (node[2] and node[3] and node[4] and node[5]) then
    refusal = '!' .. head .. ' 0 0 0'
  else
    -- The largest MaxTTL of all users counts, so each writes its own before its first lock. The
    -- node waits longer by as much, and what its replicas may lag behind is still in it.
    if tonumber(node[4]) < tonumber(ARGV[8]) then
      local least = node[2] + ARGV[8] * 1000
      if node[3] ~= '0' then
        least = node[3] + (ARGV[8] - node[4]) * 1000
        redis.call('HSET', KEYS[3], 'from', least)
        node[3] = redis.call('HGET', KEYS[3], 'from')
      end
      redis.call('HSET', KEYS[3], 'max', ARGV[8])
      node[4] = ARGV[8]
      -- And tokens may have been further ahead when the memory before this ended.
      if least > tonumber(node[5]) then
        redis.call('HSET', KEYS[3], 'floor', least)
        node[5] = least
      end
    end
    head = head .. ' ' .. node[2] .. ' ' .. node[3] .. ' ' .. node[4]
    -- from 0: an operator has said that this node holds no forgotten lock.
    local more = math.max(ARGV[9] - node[4], 0)
    if node[3] ~= '0' and now < math.max(node[3], node[2] + node[4] * 1000) + more * 1000 then
      refusal = '~' .. head
    end
    if tonumber(node[5]) > floor then floor = tonumber(node[5]) end
  end
end
