-- larger: what a MaxTTL that is larger than all before changes at a node. The largest of all users
-- counts, so each tells its own before it holds anything here. The node waits longer by as much, and
-- what its replicas may lag behind is still in it; and tokens may have been further ahead when the
-- memory before this ended.
--
-- Stands before node.lua, swap.lua and admit.lua. Takes the fields of ql:node and the MaxTTL that is
-- asked for, ms; writes what changes, and returns from, max and floor as they are then.
local function larger(hash, since, from, max, floor, asked)
  if tonumber(max) >= tonumber(asked) then
    return from, max, floor
  end
  local least = since + asked * 1000
  if from ~= '0' then -- 0: an operator has said that this node holds no forgotten lock
    least = from + (asked - max) * 1000
    from = string.format('%.0f', least)
  end
  if least > tonumber(floor) then
    floor = string.format('%.0f', least)
  end
  redis.call('HSET', hash, 'from', from, 'max', asked, 'floor', floor)
  return from, asked, floor
end

