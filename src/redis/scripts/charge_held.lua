  -- A concurrency limit. Answer: the total cost of the held permits, and 0.
  local function held(i, beyond, limit, cost, lease, holder, serial)
    local key, state = keys[i], states[i]
    local total, first, last, permits = permits_in(state)
    local score, expired = not state and ask('ZSCORE', key, ''), {}
    if score then
      total, expired = -score, call('ZRANGEBYSCORE', key, 0, now)
      for n = 1, #expired do
        total = total - take('<I4', expired[n], 17)
      end
    end
    answer(i, total, 0)
    if total + cost > limit and not beyond then
      return false
    end
    local expiry, permit = now + lease, pack('<ddI4', holder, serial, cost)
    if total > 0 and permits == '' then -- the permits are in a sorted set
      aheads[i] = lease
      nexts[i] = function(ttl)
        call('ZADD', key, -total - cost, '', expiry, permit)
        if expired[1] then
          call('ZREMRANGEBYSCORE', key, 0, now)
        end
        if call('PTTL', key) < ttl then -- permits of other weirs may last longer
          call('PEXPIRE', key, ttl)
        end
      end
      return true
    end
    first, last = permits == '' and expiry or min(first, expiry), max(last, expiry)
    permits = permits .. pack('<I7', expiry) .. permit
    aheads[i] = last - now
    local string_of_all = string_of_permits(total + cost, first, last, permits)
    nexts[i] = #permits <= 27 * few_permits and string_of_all
      or function(ttl)
        if set_of_permits(key, total + cost, permits, ttl) then
          known.others = true
          return
        end
        call('SET', key, string_of_all, 'PX', ttl)
        return string_of_all
      end
    return true
  end

