  -- Used if the permits are in a sorted set. Releases a permit if `actual` is 0. Otherwise renews the permit, or adds
  -- it again if Redis has lost it.
  local function held_in_set(key, permit, cost, actual, lease)
    if actual == 0 then
      if call('ZREM', key, permit) == 0 then -- the permit has expired
        return false
      end
      if tonumber(call('ZINCRBY', key, cost, '')) >= 0 then
        call('DEL', key)
      end
      return true
    end
    if call('ZADD', key, now + lease, permit) == 1 then
      call('ZINCRBY', key, -cost, '')
    end
    local ttl = (lease - lease % 1000) / 1000 + 2
    if call('PTTL', key) < ttl then
      call('PEXPIRE', key, ttl)
    end
    return true
  end

  -- Releases a permit if `actual` is 0. Otherwise renews the permit, or adds it again if Redis has lost it. Adds the
  -- permit even if the total cost then exceeds the limit, because the permit's request is in progress.
  local function held(key, _, cost, actual, lease, holder, serial)
    local permit = pack('<ddI4', holder, serial, cost)
    local state = call('MGET', key)[1]
    if state and (byte(state) ~= Kind.Permits or #state % 27 ~= 22) then -- the state is of another kind
      return false
    elseif not state then
      local size = ask('ZSCORE', key, '')
      if size == nil then -- the key has another Redis type
        return false
      elseif size then
        return held_in_set(key, permit, cost, actual, lease)
      end
    end
    local total, first, last, permits = permits_in(state)
    local at = string.find(permits, permit, 8, true)
    while at and at % 27 ~= 8 do
      at = string.find(permits, permit, at + 1, true)
    end
    if at then
      permits, total = string.sub(permits, 1, at - 8) .. string.sub(permits, at + 20), total - cost
    elseif actual == 0 then -- the permit has expired, so there is nothing to release
      return false
    end
    if actual > 0 then
      local expiry = now + lease
      first, last = permits == '' and expiry or min(first, expiry), max(last, expiry)
      permits, total = permits .. pack('<I7', expiry) .. permit, total + cost
    elseif permits == '' then
      call('DEL', key)
      return true
    end
    local ttl = milliseconds(last - now)
    if #permits <= 27 * few_permits or not set_of_permits(key, total, permits, ttl) then
      call('SET', key, string_of_permits(total, first, last, permits), 'PX', ttl)
    end
    return true
  end
