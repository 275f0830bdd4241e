    -- The state of a bucket with prefetched units (redis/prefetch/grant.hpp). Each charge takes a slot, an interval of
    -- virtual time. When unused units are refunded, their slots become gaps before the TAT (theoretical arrival time),
    -- between the slots of other charges. Later charges fill the gaps.
    --
    -- State: the byte of the kind, 9; the TAT and its fraction; the instant at which the state began (charges before
    -- this instant were lost). Then the gaps, the earliest first, each as its start and end. A state of Kind.Gcra has
    -- no gaps.

    -- Returns the start and end of the gap at byte `at`, without the part that is in the past. If the configured rate
    -- has changed, a fraction may be too large for the new rate. It is then rounded so that the gap becomes shorter.
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
