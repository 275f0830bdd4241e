  -- A sliding log, or a sliding window of n buckets, which is a log with fewer different instants. The period is
  -- divided into `buckets` parts, and the parts are numbered from the epoch. A charge expires when `buckets` further
  -- parts have begun. In an exact log, a part is one microsecond.
  --
  -- State: pairs of an instant and a cost, 11 bytes each. The first pair is the head: the instant of the newest entry
  -- and the total cost. The entries follow, the oldest first. Each part in which a charge was made has one entry, with
  -- the instant of the first of these charges.
  --
  -- Up to `few` entries form one string after the byte of the kind. All strings of a call are read by one command, and
  -- each is written by one command.
  --
  -- More entries form a list, until all of them have expired. Each entry of a list also has a sum, modulo 2^32: the
  -- cost of this entry and of all entries before it since the list was made. The head has the sum of the last entry.
  -- All entries together cost less than 2^32, so the difference of two sums is the cost of the entries between them.
  --
  -- Commands access only the ends of a list, with one exception: a binary search of the sums finds the entry that must
  -- expire before a cost fits. The next charge removes expired entries.
  --
  -- Answer: the instant of the newest entry, the cost of all live entries, and the instant of the oldest live entry. If
  -- the cost does not fit, the last number is the instant of the last entry that must expire before the cost fits.
  --
  -- If the log may be charged beyond its limit, it keeps only the newest `most` units.
  local few = 64
  local wrap = 4294967296

  -- Returns the start and end of the part of the period that contains `offset`. Used if the parts have different
  -- lengths: period = width * buckets + rest, where rest > 0. Part s begins at s * width + ceil(s * rest / buckets).
  -- This is exact, because s * rest < buckets^2 <= 10^6. The estimate of s may be off by one, so the search starts
  -- above the estimate and goes down.
  local function uneven_part(offset, period, buckets, width, rest)
    local s = floor(offset / period * buckets) + 2
    local begin, finish = s * width + ceil(s * rest / buckets), nil
    repeat
      s, finish = s - 1, begin
      begin = s * width + ceil(s * rest / buckets)
    until begin <= offset
    return begin, finish
  end

  -- Makes the functions for logs that are lists. Called only if a log is a list or becomes one, because making a
  -- function costs as much as a charge.
  local function of_lists()
    local _, become = beyond_strings()
    -- Returns a function that turns a string with too many entries into a list. If the list cannot be made, the
    -- function writes the string and returns it.
    local function listing(key, state)
      return function(ttl)
        local entries, sum = {}, 0
        for at = 13, #state, 11 do
          local entered, paid = take('<I7I4', state, at)
          sum = (sum + paid) % wrap
          entries[#entries + 1] = pack('<I7I4I4', entered, paid, sum)
        end
        local newest, total = take('<I7I4', state, 2)
        table.insert(entries, 1, pack('<I7I4I4', newest, total, sum))
        if become(key, ttl, 'RPUSH', entries) then
          known.others = true
          return
        end
        call('SET', key, state, 'PX', ttl)
        return state
      end
    end

    -- Returns a function that adds a charge to a list and removes the expired entries. `expired`: the number of these
    -- entries. `live`: the cost of all others. `over`: how many of the oldest live units to remove. `from`: the start
    -- of the part that contains `instant`. `newest`, `sum`: the instant and the sum of the last entry.
    local function list_log(key, expired, live, over, from, newest, sum, instant, cost)
      return function(ttl)
        while over > 0 and live > 0 do
          local entered, paid, until_then = take('<I7I4I4', call('LINDEX', key, expired + 1))
          local removed = min(paid, over)
          if removed < paid then
            call('LSET', key, expired + 1, pack('<I7I4I4', entered, paid - removed, until_then))
          else
            expired = expired + 1
          end
          live, over = live - removed, over - removed
        end
        local merges = live > 0 and newest >= from
        sum = (sum + cost) % wrap
        local head = pack('<I7I4I4', merges and newest or instant, live + cost, sum)
        if expired > 0 then
          call('LTRIM', key, expired, -1) -- the last expired entry is kept and becomes the head
        end
        call('LSET', key, 0, head)
        if merges then
          local entered, paid = take('<I7I4I4', call('LINDEX', key, -1))
          call('LSET', key, -1, pack('<I7I4I4', entered, paid + cost, sum))
        else
          call('RPUSH', key, pack('<I7I4I4', instant, cost, sum))
        end
        call('PEXPIRE', key, ttl)
      end
    end

    -- Searches a list for the entry that must expire before the cost fits. The caller has searched the first
    -- `looked_at` entries in vain. Returns the cost of all live entries, the number of expired entries, and the instant
    -- of the entry found. `first_live`: the position in the list of the first live entry, if known. `total`: the cost
    -- of all entries, as the head has it. Entries before `since` have expired. `excess`: the cost minus the limit, or
    -- -wrap if the cost exceeds the limit.
    local function seek(key, total, looked_at, first_live, since, excess)
      local last = call('LLEN', key) - 1
      -- Returns the instant, the cost and the sum of an entry.
      local function entry(number)
        return take('<I7I4I4', call('LINDEX', key, number))
      end
      -- Returns the position of the first entry, from `low` on, for which `holds` is true; last + 1 if there is none.
      -- REQUIRES: if `holds` is true for an entry, it is true for all later entries.
      local function first_that(low, holds)
        local high = last + 1
        while low < high do
          local middle = floor((low + high) / 2)
          if holds(entry(middle)) then
            high = middle
          else
            low = middle + 1
          end
        end
        return low
      end
      local _, paid, sum = entry(1)
      local none = sum - paid -- the cost of the entries before the first one, which were removed from the list
      local first = first_live or first_that(looked_at + 1, function(entered)
        return entered >= since
      end)
      if first > last then
        return 0, last
      end
      local decisive, its, until_then = entry(first)
      local expired = (until_then - its - none) % wrap
      local need = max(total - expired + excess, 1)
      if need > its then
        decisive = entry(first_that(max(first, looked_at) + 1, function(_, _, passed)
          return (passed - none) % wrap - expired >= need
        end))
      end
      return total - expired, first - 1, decisive
    end
    return listing, list_log, seek
  end

  local function logged(i, beyond, period, buckets, limit, cost, most)
    local key, state = keys[i], states[i]
    -- The text that was read: the whole string, or the start of the list. `form`, `size`: format and size of an entry.
    -- `next`: the position of the second entry; the first entry is read together with the head.
    local text, form, size, next = state, '<I7I4', 11, 24
    local newest, total, sum, entered, paid = 0, 0, 0, nil, 0
    if state then
      local read = 0
      if #state % 11 == 1 and #state > 12 then
        read, newest, total, entered, paid = take('<BI7I4I7I4', state)
      end
      if read ~= 6 then
        newest, total = 0, 0
      end
    elseif known.others ~= false then
      text = concat(beyond_strings()('LRANGE', key, 0, 3) or {})
      if #text % 15 == 0 and #text > 15 then
        form, size, next = '<I7I4I4', 15, 31
        newest, total, sum, entered, paid = take('<I7I4I4I7I4', text)
      end
    end

    local instant = newest > now and newest or now
    local offset, rest = instant % period, period % buckets
    local width = (period - rest) / buckets
    local begin = offset - offset % width -- begin, finish: bounds of the part that contains `instant`
    local finish = begin + width
    if rest > 0 then -- never true for an exact log
      begin, finish = uneven_part(offset, period, buckets, width, rest)
    end
    local from = instant - offset + begin
    local since = instant - offset + finish - period -- entries before this instant have expired

    -- Finds `decisive`, the instant of the last entry that must expire before the cost fits. Adds up the costs of the
    -- live entries, oldest first, until the sum is at least live + excess: the units that must expire. Finds the oldest
    -- live entry if the cost fits now, or if it exceeds the limit and so never fits (`excess` is -wrap).
    local excess = cost <= limit and cost - limit or -wrap
    local live, expired, decisive, expiring = total, 0, nil, 0
    while live > 0 do
      if entered < since then
        live, expired = live - paid, expired + 1
      else
        decisive, expiring = entered, expiring + paid
        if expiring >= live + excess then
          break
        end
      end
      if next > #text then
        break
      end
      entered, paid = take(form, text, next)
      next = next + size
    end
    if not state and live > 0 and not (decisive and expiring >= live + excess) then
      local _, _, seek = of_lists()
      live, expired, decisive = seek(key, total, #text / size - 1, decisive and expired + 1, since, excess)
    end
    -- The entries cost more than the total cost in the head. weir never writes that, so the script treats the state as
    -- lost.
    if live < 0 then
      live = 0
    end
    local answer_at = base + 3 * i
    reply[answer_at], reply[answer_at + 1], reply[answer_at + 2] = newest, live, decisive or 0

    if live + cost > limit and not beyond then
      return false
    end
    local over = beyond and live + cost - most or 0
    aheads[i] = from + period - now
    if not state and live > 0 then
      local _, list_log = of_lists()
      nexts[i] = list_log(key, expired, live, over, from, newest, sum, instant, cost)
      return true
    end
    -- Keeps the string's entries from byte `at` on, without their first `over` units. The new cost becomes a new entry,
    -- or is added to the last entry. `part`: the new text of the first kept entry if only some of its units are
    -- removed; otherwise empty.
    local at, part = 13 + 11 * expired, ''
    while over > 0 and live > 0 do
      entered, paid = take('<I7I4', state, at)
      local removed = min(paid, over)
      at, live, over = at + 11, live - removed, over - removed
      part = removed < paid and pack('<I7I4', entered, paid - removed) or ''
    end
    local log
    if live == 0 then
      log = pack('<BI7I4I7I4', Kind.Log, instant, cost, instant, cost)
    elseif newest < from then
      log = pack('<BI7I4c0I7I4', Kind.Log, instant, live + cost, part .. sub(state, at), instant, cost)
    elseif at + 10 == #state and not beyond then -- `entered` and `paid` are the only live entry
      log = pack('<BI7I4I7I4', Kind.Log, newest, live + cost, entered, paid + cost)
    else
      local kept = part .. sub(state, at)
      log = pack('<BI7I4c0I4', Kind.Log, newest, live + cost, sub(kept, 1, -5), take('<I4', kept, #kept - 3) + cost)
    end
    if #log > 12 + 11 * few then
      log = of_lists()(key, log)
    end
    nexts[i] = log
    return true
  end
