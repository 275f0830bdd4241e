  -- What is under way, counted by permits: each says whose it is, its number there, and what it holds, 20 bytes; and
  -- has an instant at which it expires unless it is renewed. Up to `few_permits` are one string: the kind's byte; what
  -- all of them hold, and when the first and the last expires, 7 bytes each; then each of them behind its instant, 27
  -- bytes. More are a sorted set by that instant, until nothing is held: of the permits and, before them, of '' with
  -- minus what all of them hold.
  local few_permits = 32

  -- The numbers and permits of a string without those that have expired; zeroes and '' where there are none.
  local function permits_in(state)
    if not state or string.byte(state) ~= 7 or #state % 27 ~= 22 then
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
    return struct.pack('<BI7I7I7', 7, total, first, last) .. permits
  end

  -- Makes a sorted set of a string that has become too long; false where it cannot be.
  local function set_of_permits(key, total, permits, ttl)
    local members = { -total, '' }
    for at = 1, #permits, 27 do
      members[#members + 1] = struct.unpack('<I7', permits, at)
      members[#members + 1] = string.sub(permits, at + 7, at + 26)
    end
    return become(key, ttl, 'ZADD', members)
  end

