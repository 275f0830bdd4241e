    -- A bucket of which units are taken in advance (redis/lot.hpp). What is given back of it leaves gaps in front of the TAT,
    -- between the places of others, which the next charges fill.
    --
    -- State: the kind's byte, 9; the TAT and its fraction; since when it is charged, for what was debited before then is
    -- lost; then the gaps, the earliest first: where each begins and where it ends. A bucket's plain state has none.
    local most_gaps = 16 -- of more of them the earliest is lost, whose time runs out first

    local function is_gapped(state)
      return state and #state % 32 == 24 and byte(state) == 9
    end

    -- What time has passed of a gap is none any more. Of a rate that was configured anew fractions are rounded: the TAT's up.
    local function places_in(state, count)
      local tat, part, since, gaps = 0, 0, now, {}
      if state and #state == 16 then
        tat, part = take('<dd', state)
      elseif is_gapped(state) then
        tat, part, since = take('<ddI7', state, 2)
        for at = 25, #state, 32 do
          local first, first_part, last, last_part = take('<dddd', state, at)
          if first < now then
            first, first_part = now, 0
          elseif first_part >= count then
            first, first_part = first + 1, 0
          end
          last_part = last_part < count and last_part or 0
          if less(first, first_part, last, last_part) then
            gaps[#gaps + 1] = { first, first_part, last, last_part }
          end
        end
      end
      if part >= count then
        tat, part = tat + 1, 0
      end
      return tat, part, since, gaps
    end

    local function places_of(tat, part, since, gaps)
      local packed = { pack('<BddI7', 9, tat, part, min(since, now)) }
      for n = max(1, #gaps - most_gaps + 1), #gaps do
        packed[#packed + 1] = pack('<dddd', unpack(gaps[n]))
      end
      return concat(packed)
    end
