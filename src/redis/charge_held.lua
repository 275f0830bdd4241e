  -- So many at once. State: a sorted set of permits, each with the instant at which it expires unless it is renewed; and
  -- before them '', with minus what all of them hold. A permit says whose it is, its number there, and what it holds.
  -- Answer: what is held.
  local function held(i, beyond, limit, cost, lease, holder, serial)
    local key, total, expired = keys[i], 0, {}
    local score = not states[i] and ask('ZSCORE', key, '')
    if type(score) == 'string' then
      total = -score
      expired = call('ZRANGEBYSCORE', key, 0, now)
      for _, permit in ipairs(expired) do
        total = total - take('<I4', permit, 17)
      end
    end
    answer(i, total, 0)
    if total + cost > limit and not beyond then
      return false
    end
    aheads[i] = lease
    nexts[i] = function(ttl)
      if states[i] or score == nil then -- of another kind
        call('DEL', key)
      end
      call('ZADD', key, -total - cost, '', now + lease, pack('<ddI4', holder, serial, cost))
      if expired[1] then
        call('ZREMRANGEBYSCORE', key, 0, now)
      end
      if call('PTTL', key) < ttl then -- another weir's leases may be longer
        call('PEXPIRE', key, ttl)
      end
    end
    return true
  end

