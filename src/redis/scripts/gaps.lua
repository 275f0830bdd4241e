    -- The state of a bucket whose units are prefetched (redis/prefetch/grant.hpp). Each charge takes a slot, an
    -- interval of virtual time. When unused units are refunded, their slots become gaps: free time before the TAT
    -- (theoretical arrival time), between the slots of other charges. Later charges fill the gaps.
    --
    -- State: the byte of the kind; the TAT and its fraction; the instant `since`. Charges that were made before `since`
    -- were lost and must not be refunded. Then the start and end of each gap, the earliest gap first. A state of
    -- Kind.Gcra has no gaps.

    -- Returns the start and end of the gap at byte `at`, without the part that is in the past. If a fraction is too
    -- large for the present rate, because the configured rate has changed, rounds it so that the gap becomes shorter.
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
      return pack('<BddI7', Kind.GapGcra, tat, part, min(since, now))
    end
