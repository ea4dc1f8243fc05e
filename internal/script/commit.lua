-- commit: puts a tick on record, before it runs, where the claim lock is ours. On a majority of
-- the nodes it makes the tick ours for good.
--
-- A mark of another claimer is written over by one with a larger fencing token: whoever asks for
-- that has made sure that the other cannot have had a majority, and dead claimers must not wedge a
-- tick (protocol review, T2).
--
-- KEYS  1 claim lock  2 register and marks (hash)
-- ARGV  1 owner token  2 the tick's instant, ms  3 the claim's fencing token
--       4 state: run or skip  5 Grace, ms  6 the hash's life, ms
--       7 after this instant, ms, everything without a mark counts as passed over
--
-- Reply: one letter
--   + on record   0 nobody's claim   - somebody else's claim, then PTTL and its owner token
--   m a mark with a larger token is there
local holder = redis.call('GET', KEYS[1])
if not holder then
  return '0'
end
if holder ~= ARGV[1] then
  return '- ' .. redis.call('PTTL', KEYS[1]) .. ' ' .. holder
end
local field = 't' .. ARGV[2]
local mark = redis.call('HGET', KEYS[2], field)
if mark and tonumber(string.match(mark, '^(%d+)')) > tonumber(ARGV[3]) then
  return 'm'
end
redis.call('HSET', KEYS[2], field, ARGV[3] .. ' ' .. ARGV[4] .. ' ' .. ARGV[1], 'from', ARGV[7])
redis.call('PEXPIRE', KEYS[2], ARGV[6])

-- Marks that are kept: all younger than Grace, at least 8, at most 512. Fields are not in order,
-- so the oldest are found by sorting what is there, and only when there are too many.
local count = redis.call('HLEN', KEYS[2])
if count > 20 then
  local at = {}
  for _, name in ipairs(redis.call('HKEYS', KEYS[2])) do
    local t = string.match(name, '^t(%d+)$')
    if t then at[#at + 1] = t end
  end
  table.sort(at, function(a, b) return tonumber(a) < tonumber(b) end)
  local clock = redis.call('TIME')
  local old = clock[1] * 1000 - tonumber(ARGV[5])
  local low
  for i = 1, #at - 8 do
    if tonumber(at[i]) < old or #at - i >= 512 then
      redis.call('HDEL', KEYS[2], 't' .. at[i])
      low = at[i]
    end
  end
  local before = redis.call('HGET', KEYS[2], 'low')
  if low and (not before or tonumber(before) < tonumber(low)) then
    redis.call('HSET', KEYS[2], 'low', low)
  end
end
return '+'
