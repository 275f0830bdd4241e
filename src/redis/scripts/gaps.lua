    -- A bucket of which units are taken in advance (redis/prefetch/lot.hpp). What is given back of it leaves gaps in front of the TAT,
    -- between the places of others, which the next charges fill.
    --
    -- State: the kind's byte, 9; the TAT and its fraction; since when it is charged, for what was debited before then is
    -- lost; then the gaps, the earliest first: where each begins and where it ends. A bucket's plain state has none.

    -- The gap at a byte: where it begins, for what time has passed of it is none any more, and where it ends. Fractions that
    -- cannot be of this rate, which was configured anew, are rounded so that it is shorter.
    local function gap_at(state, at, count)
      local first, first_part, last, last_part = take('<dddd', state, at)
      if first < now then
        first, first_part = now, 0
      elseif first_part >= count then
        first, first_part = first + 1, 0
      end
      return first, first_part, last, last_part < count and last_part or 0
    end

    local function head_of(tat, part, since)
      return pack('<BddI7', 9, tat, part, min(since, now))
    end
