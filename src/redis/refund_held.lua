-- A permit of what is under way: given back; or, where it is still worth what it was, renewed, and entered again if
-- Redis has lost it. It counts then whatever the limit says, for its request is under way.
local held_in_set

local function held(key, cost, actual, lease, holder, serial)
  local permit = pack('<ddI4', holder, serial, cost)
  local state = call('MGET', key)[1]
  if state and (byte(state) ~= 7 or #state % 27 ~= 22) then -- of another kind
    return
  elseif not state and held_in_set(key, permit, cost, actual, lease) then
    return
  end
  local total, first, last, permits = permits_in(state)
  local at = string.find(permits, permit, 8, true)
  while at and at % 27 ~= 8 do
    at = string.find(permits, permit, at + 1, true)
  end
  if at then
    permits, total = string.sub(permits, 1, at - 8) .. string.sub(permits, at + 20), total - cost
  elseif actual == 0 then -- it has expired
    return
  end
  amended = amended + 1
  if actual > 0 then
    local expiry = now + lease
    first, last = permits == '' and expiry or min(first, expiry), max(last, expiry)
    permits, total = permits .. pack('<I7', expiry) .. permit, total + cost
  elseif permits == '' then
    call('DEL', key)
    return
  end
  local ttl = (last - now - (last - now) % 1000) / 1000 + 2
  if #permits > 27 * few_permits then
    set_of_permits(key, total, permits, ttl)
  else
    call('SET', key, string_of_permits(total, first, last, permits), 'PX', ttl)
  end
end

-- False: there is no sorted set, nor anything of another kind.
held_in_set = function(key, permit, cost, actual, lease)
  local total = ask('ZSCORE', key, '')
  if total == nil then
    return true
  elseif not total then
    return false
  end
  if actual == 0 then
    if call('ZREM', key, permit) == 1 then -- else it has expired
      amended = amended + 1
      if tonumber(call('ZINCRBY', key, cost, '')) >= 0 then
        call('DEL', key)
      end
    end
    return true
  end
  amended = amended + 1
  if call('ZADD', key, now + lease, permit) == 1 then
    call('ZINCRBY', key, -cost, '')
  end
  local ttl = (lease - lease % 1000) / 1000 + 2
  if call('PTTL', key) < ttl then
    call('PEXPIRE', key, ttl)
  end
  return true
end
