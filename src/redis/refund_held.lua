-- A permit of what is under way: given back; or, where it is still worth what it was, renewed, and entered again if
-- Redis has lost it. It counts then whatever the limit says, for its request is under way.
local function held(key, cost, actual, lease, holder, serial)
  local permit = pack('<ddI4', holder, serial, cost)
  if actual == 0 then
    if ask('ZREM', key, permit) == 1 then -- else it has expired, or the key is of another kind
      amended = amended + 1
      if tonumber(call('ZINCRBY', key, cost, '')) >= 0 then
        call('DEL', key)
      end
    end
    return
  end
  local added = ask('ZADD', key, now + lease, permit)
  if added == nil then -- of another kind
    return
  end
  amended = amended + 1
  if added == 1 then
    call('ZINCRBY', key, -cost, '')
  end
  local ttl = (lease - lease % 1000) / 1000 + 2
  if call('PTTL', key) < ttl then
    call('PEXPIRE', key, ttl)
  end
end
