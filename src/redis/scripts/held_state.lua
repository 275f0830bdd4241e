  -- The state of a concurrency limit: the permits that requests hold. A permit has 20 bytes: holder, serial number and
  -- cost. A permit that is not renewed expires.
  --
  -- Up to `few_permits` permits form one string. It begins with the byte of the kind, and with the total cost, the
  -- first expiry and the last expiry, 7 bytes each. Then follow the permits, each after its expiry of 7 bytes.
  --
  -- More permits form a sorted set, whose scores are the expiries, until no permit is held. The set has one more
  -- member, '', whose score is minus the total cost.
  local few_permits = 32

  -- Returns the total cost, the first expiry, the last expiry and the permits that have not expired, all from a string.
  -- Returns zeroes and '' if all permits have expired.
  local function permits_in(state)
    if not state or string.byte(state) ~= Kind.Permits or #state % 27 ~= 22 then
      return 0, 0, 0, ''
    end
    local total, first, last = struct.unpack('<I7I7I7', state, 2)
    if now < first then
      return total, first, last, string.sub(state, 23)
    end
    local left = {}
    first = last
    for at = 23, #state, 27 do
      local expiry = struct.unpack('<I7', state, at)
      if expiry > now then
        left[#left + 1] = string.sub(state, at, at + 26)
        first = math.min(first, expiry)
      else
        total = total - struct.unpack('<I4', state, at + 23)
      end
    end
    return total, first, last, table.concat(left)
  end

  local function string_of_permits(total, first, last, permits)
    return struct.pack('<BI7I7I7', Kind.Permits, total, first, last) .. permits
  end

  -- Stores permits, which are too many for a string, as a sorted set. Returns false if the set cannot be made.
  local function set_of_permits(key, total, permits, ttl)
    local members = { -total, '' }
    for at = 1, #permits, 27 do
      members[#members + 1] = struct.unpack('<I7', permits, at)
      members[#members + 1] = string.sub(permits, at + 7, at + 26)
    end
    return become(key, ttl, 'ZADD', members)
  end

