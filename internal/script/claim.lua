-- claim: takes the claim lock of a job for one tick, and reads what is on record of that tick. It
-- stands behind node.lua and acquire.lua.
--
-- KEYS  1 claim lock  2 register and marks (hash)  3 node (hash)
-- ARGV  1-9 as acquire  10 the tick's instant, ms
--
-- Reply: that of acquire, or with letter
--   e early                 this node's clock has not reached the instant: nothing is taken
-- then a line feed, the instant up to which marks were dropped (0: none), and after a space the
-- mark of the tick, if there is one: fencing token, state, owner token.
local reply
if now / 1000 < tonumber(ARGV[10]) then
  reply = 'e ' .. time[1] .. ' ' .. time[2] .. ' 0 0 0'
else
  local letter, rest = acquire(KEYS[1], KEYS[2], ARGV[1], ARGV[2])
  reply = letter .. head .. rest
end
local marks = call('HMGET', KEYS[2], 'low', 't' .. ARGV[10])
reply = reply .. '\n' .. (marks[1] or '0')
if marks[2] then
  reply = reply .. ' ' .. marks[2]
end
return reply
