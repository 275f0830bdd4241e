    -- Arithmetic of durations and instants. Each has a whole number of microseconds and a fraction (the names with
    -- _part) in units of 1/count, as in Kind.Gcra.
    local function less(a, a_part, b, b_part)
      return a < b or (a == b and a_part < b_part)
    end

    local function minus(a, a_part, b, b_part, count)
      if a_part < b_part then
        return a - b - 1, a_part - b_part + count
      end
      return a - b, a_part - b_part
    end

    local function plus(a, a_part, b, b_part, count)
      if a_part + b_part >= count then
        return a + b + 1, a_part + b_part - count
      end
      return a + b, a_part + b_part
    end
