    -- Corrects a charge in a log. Changes the first entry at or after the start of the charge's part (bucket) of the
    -- period. If that entry costs less than the refund, takes the remainder from later entries. Reads the log from its
    -- end, because most corrected charges are recent. `from`: the start of the charge's part. `expiry`: when the
    -- entries of that part expire. `most`: the largest cost of one entry. `strict`: 1 if only a loss of the state can
    -- have removed the charge's entry; 0 if charges beyond the limit may have dropped the entry.

    -- Returns functions that read and change the log entries in a string, as pairs of an instant and a cost. Entry 1 is
    -- the oldest; number 0 is the head. Only keep() writes to Redis.
    local function string_log(key, text)
      local log = { last = (#text - 12) / 11 }
      function log.pair(number)
        return take('<I7I4', text, 2 + 11 * number)
      end
      function log.set(number, instant, cost)
        text = sub(text, 1, 1 + 11 * number) .. pack('<I7I4', instant, cost) .. sub(text, 13 + 11 * number)
      end
      function log.remove(number)
        text = sub(text, 1, 1 + 11 * number) .. sub(text, 13 + 11 * number)
        log.last = log.last - 1
      end
      function log.push(instant, cost)
        text = text .. pack('<I7I4', instant, cost)
      end
      function log.keep(ttl)
        if ttl then
          call('SET', key, text, 'PX', ttl)
        else
          call('SET', key, text, 'KEEPTTL')
        end
      end
      return log
    end

    -- Returns the functions of string_log() for a log in a Redis list. An element has the instant and the cost of an
    -- entry, and the sum of all costs up to this entry. If an entry changes, its own sum and all later sums change, so
    -- keep() writes all entries from the first changed entry on. Reads the list from its end, 64 entries at a time.
    local function list_log(key)
      local wrap = 4294967296
      local log = { last = call('LLEN', key) - 1 }
      local entered, paid = {}, {} -- the instant and the cost of each entry, by the entry's number
      -- `begin`: the lowest number of the entries read so far. `before`: the sum of all costs before that entry.
      local begin, before = log.last + 1, nil
      local changed -- number of the first changed entry
      local newest, total, sum = take('<I7I4I4', call('LINDEX', key, 0))

      function log.pair(number)
        if number == 0 then
          return newest, total
        end
        while number < begin do
          local low = max(begin - 64, 1)
          local texts = call('LRANGE', key, low, begin - 1)
          for at = #texts, 1, -1 do
            local until_then
            entered[low + at - 1], paid[low + at - 1], until_then = take('<I7I4I4', texts[at])
            before = until_then - paid[low + at - 1]
          end
          begin = low
        end
        return entered[number], paid[number]
      end
      function log.set(number, instant, cost)
        if number == 0 then
          newest, total = instant, cost
        else
          entered[number], paid[number], changed = instant, cost, min(changed or number, number)
        end
      end
      function log.remove(number)
        for at = number, log.last do
          entered[at], paid[at] = entered[at + 1], paid[at + 1]
        end
        log.last, changed = log.last - 1, min(changed or number, number)
      end
      function log.push(instant, cost)
        log.last = log.last + 1
        entered[log.last], paid[log.last], changed = instant, cost, changed or log.last
      end
      function log.keep(ttl)
        if changed then
          local texts, passed = {}, before or sum
          for number = begin, log.last do
            passed = (passed + paid[number]) % wrap
            if number >= changed then
              texts[#texts + 1] = pack('<I7I4I4', entered[number], paid[number], passed)
            end
          end
          sum = passed
          call('LTRIM', key, 0, changed - 1)
          for at = 1, #texts, 1000 do
            call('RPUSH', key, unpack(texts, at, min(at + 999, #texts)))
          end
        end
        call('LSET', key, 0, pack('<I7I4I4', newest, total, sum))
        if ttl then
          call('PEXPIRE', key, ttl)
        end
      end
      return log
    end

    -- Returns the log of a key; an empty log if the key does not exist. If the key has a state of another kind, or
    -- another Redis type than a list, returns an empty log if `overdraft` is true, and otherwise nil.
    local function log_of(key, state, overdraft)
      if state and byte(state) == Kind.Log and #state % 11 == 1 then
        return string_log(key, state)
      end
      local head
      if not state then
        head = ask('LINDEX', key, 0)
      end
      if head then
        return list_log(key)
      end
      return (head == false or overdraft) and string_log(key, pack('<BI7I4', Kind.Log, 0, 0)) or nil
    end

    local function logged(key, state, charged_at, reserved, actual, from, expiry, most, strict)
      local log = expiry > now and log_of(key, state, overdraws(reserved, actual))
      if not log then
        return false
      end
      local newest, total = log.pair(0)
      -- Moves `first` back to the first entry at or after `from`. If there is none, `first` stays log.last + 1.
      local first = log.last + 1
      while first > 1 and log.pair(first - 1) >= from do
        first = first - 1
      end

      local function refund_units(left)
        while left > 0 and first <= log.last do
          local entered, paid = log.pair(first)
          local back = min(paid, left)
          if total <= back then
            call('DEL', key)
            return
          end
          if paid > back then
            log.set(first, entered, paid - back)
          else
            log.remove(first)
            newest = log.pair(log.last)
          end
          left, total = left - back, total - back
        end
        log.set(0, newest, total)
        log.keep()
      end

      if actual < reserved then
        -- An entry has the instant of the first charge that it contains. So an entry with a later instant than the
        -- corrected charge does not contain that charge.
        local there = first <= log.last and (strict == 0 or log.pair(first) <= charged_at)
        if there then
          refund_units(reserved - actual)
        end
        return there
      end
      if first <= log.last then
        local entered, paid = log.pair(first)
        local more = min(actual - reserved, most - paid, most_counted - total)
        log.set(first, entered, paid + more)
        log.set(0, newest, total + more)
        log.keep()
        return true
      end
      local whole = min(actual, most, most_counted - total)
      if whole > 0 then -- 0: the log already has the largest possible cost
        log.set(0, charged_at, total + whole)
        log.push(charged_at, whole)
        log.keep(milliseconds(expiry - now))
      end
      return true
    end

