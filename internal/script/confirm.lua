-- confirm: says whether a lease is still ours at this tick, and moves the leader's mark to this
-- reading of the clock. After a hand-over a reading too near to the old leader's mark is refused:
-- the tick around it may have been fired.
--
-- KEYS  1 lease lock  2 register and mark (hash)
-- ARGV  1 owner token  2 the leader's clock, ms  3 guard, ms  4 the hash's life, ms
--
-- Reply: one letter, then sec usec (TIME)
--   + confirmed   0 nobody's lease   - somebody else's, then PTTL and its owner token
--   m too near to the mark of another leader, then how many ms are missing
local time = redis.call('TIME')
local head = ' ' .. time[1] .. ' ' .. time[2]
local holder = redis.call('GET', KEYS[1])
if not holder then
  return '0' .. head
end
if holder ~= ARGV[1] then
  return '-' .. head .. ' ' .. redis.call('PTTL', KEYS[1]) .. ' ' .. holder
end
-- A leader whose clock is ahead must not move the mark out of the reach of those after it.
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local reading = math.min(tonumber(ARGV[2]), now)
local mark = redis.call('HMGET', KEYS[2], 'mark', 'by')
if mark[1] and mark[2] ~= ARGV[1] then
  local missing = tonumber(mark[1]) + tonumber(ARGV[3]) - reading
  if missing >= 0 then
    return 'm' .. head .. ' ' .. missing
  end
end
if not mark[1] or mark[2] ~= ARGV[1] or tonumber(mark[1]) < reading then
  redis.call('HSET', KEYS[2], 'mark', reading, 'by', ARGV[1])
end
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return '+' .. head
