-- admit: settles from when this node's memory may vote.
--
-- A node that forgot a lock must not vote for a rival until the lock has ended. The identity of a
-- memory is master_replid: new with each process and each promotion, taken over from the primary
-- by a resync. It is read here, in the same step that writes: an identity that a client read
-- before could be an old one by now, and its admission would overwrite a newer one.
--
-- KEYS  1 node (hash)
-- ARGV  1 the client's MaxTTL, ms
--       2 min-replicas-max-lag, ms: how long an old primary may go on after a promotion
--       3 'renew': a memory that is known waits anew (its clock was stepped)
--         'vote': an operator says that this node holds no forgotten lock
--         'look': only say whether ql:node exists, for servers without INFO
--         'see': write nothing, for those who only want to know
--         '': none of these
--
-- Reply: one letter, then sec usec (TIME), since from max, and the identity
--   + written   = known already, nothing changed
--   Without more fields: r not a primary   x1, x0 ql:node exists, or not (see: is known, or not)
if ARGV[3] == 'look' then
  return 'x' .. redis.call('EXISTS', KEYS[1])
end
local info = redis.call('INFO', 'replication')
local role = string.match(info, 'role:(%w+)')
local id = string.match(info, 'master_replid:(%w+)')
if role ~= 'master' or not id then
  return 'r'
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local node = redis.call('HMGET', KEYS[1], 'id', 'since', 'from', 'max', 'floor')
local max = tonumber(ARGV[1])
if ARGV[3] ~= 'vote' and node[4] and tonumber(node[4]) > max then
  max = tonumber(node[4])
end

local wait = max * 1000
local had = string.match(info, 'master_replid2:(%w+)')
local replicas = string.match(info, 'connected_slaves:(%d+)')
if (replicas and replicas ~= '0') or (had and not string.match(had, '^0+$')) then
  wait = wait + ARGV[2] * 1000
end

local known = node[1] == id and node[2] and node[3] and node[4] and node[5]
local letter = '+'
if ARGV[3] == 'see' then
  if not known then return 'x0' end
  letter = '='
elseif ARGV[3] == 'vote' then
  -- Registers may be forgotten, too: tokens start above all that can have been given.
  redis.call('HSET', KEYS[1], 'id', id, 'from', '0', 'max', max, 'floor', now + wait)
  if not known then redis.call('HSET', KEYS[1], 'since', now) end
elseif not known or ARGV[3] == 'renew' or tonumber(node[2]) > now
  or tonumber(node[3]) > now + wait then
  -- New here; or its clock was stepped back behind its own marks, which would make it wait for
  -- the whole step.
  redis.call('HSET', KEYS[1], 'id', id, 'since', now, 'from', now + wait, 'max', max,
    'floor', now + wait)
else
  letter = '='
  larger(KEYS[1], node[2], node[3], node[4], node[5], max)
end
node = redis.call('HMGET', KEYS[1], 'since', 'from', 'max')
return letter .. ' ' .. time[1] .. ' ' .. time[2] .. ' ' .. node[1] .. ' ' .. node[2] .. ' '
  .. node[3] .. ' ' .. id
