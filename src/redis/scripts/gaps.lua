    -- A bucket whose units are taken in advance (redis/prefetch/grant.hpp). Units given back leave gaps before the TAT,
    -- between the slots of others. The next charges fill the gaps.
    --
    -- State: the kind's byte, 9; the TAT and its fraction; the instant since which it counts. Earlier debits were lost.
    -- Then come the gaps, earliest first, each with its start and end. The plain state of a bucket has no gaps.

    -- Returns the start and end of the gap at a byte. The part of a gap that time has passed is gone. If a fraction is
    -- too large for this rate, because the configuration has changed, it is rounded so that the gap becomes shorter.
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
