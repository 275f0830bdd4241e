  -- A limit of concurrency, counted by permits. A permit has 20 bytes: holder, serial number and cost. It expires at an
  -- instant unless it is renewed. Up to `few_permits` permits form one string. It has the kind's byte, then the
  -- total cost, the first and the last expiry, 7 bytes each. The permits follow, each behind its expiry, 27 bytes
  -- together. More permits form a sorted set, scored by expiry, until none is held. The set also has the member '', whose score is minus the
  -- total cost.
  local few_permits = 32

  -- Returns the numbers and the unexpired permits of a string; zeroes and '' if there are none.
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

  -- Makes a sorted set of a string that is too long. Returns false if it cannot.
  local function set_of_permits(key, total, permits, ttl)
    local members = { -total, '' }
    for at = 1, #permits, 27 do
      members[#members + 1] = struct.unpack('<I7', permits, at)
      members[#members + 1] = string.sub(permits, at + 7, at + 26)
    end
    return become(key, ttl, 'ZADD', members)
  end

