  -- A sliding log, and a sliding window of n buckets, which is the same with fewer instants: a period is divided into
  -- `buckets` parts, numbered from the epoch, and what is admitted counts from the part of its instant on until as
  -- many more have begun. An exact log has a part for each microsecond.
  --
  -- State: pairs of instant and cost, 11 bytes each. First the instant of the newest entry and what all of them cost;
  -- then the entries, oldest first, one for each part in which something was admitted, at the instant when it first
  -- was. Up to `few` entries are one string behind the kind's byte, which is read with all others and written by one
  -- command; more of them are a list, of which only the ends are touched, until it has drained. Entries that no longer
  -- count are dropped when the next one is charged.
  --
  -- Answer: the instant of the newest entry, what those that count cost together, and the instant of the oldest of
  -- them; or, where the cost does not fit, of the one that has to go before it does.
  --
  -- Beyond the limit `most` units are kept, the newest ones.
  local few = 64

  -- Where the part begins and ends in which an offset into a period lies. Part s begins ceil(s * period / buckets)
  -- after its period: s * whole + ceil(s * rest / buckets), where s * rest < buckets^2 <= 10^6.
  local function part_at(offset, period, buckets)
    local whole, rest = floor(period / buckets), period % buckets
    if rest == 0 then -- of an exact log as well
      local begin = offset - offset % whole
      return begin, begin + whole
    end
    local function begin_of(part)
      return part * whole + ceil(part * rest / buckets)
    end
    local s = floor(offset / period * buckets)
    while begin_of(s) > offset do
      s = s - 1
    end
    while begin_of(s + 1) <= offset do
      s = s + 1
    end
    return begin_of(s), begin_of(s + 1)
  end

  -- What becomes of a string: the entries from the byte `at` on stay, but for `over` units of them, and one of `cost`
  -- comes in, or adds to the last.
  local function string_log(state, at, live, over, from, newest, instant, cost)
    local part = '' -- of an entry that goes in part
    while over > 0 and live > 0 do
      local entered, paid = take('<I7I4', state, at)
      local gone = min(paid, over)
      at, live, over = at + 11, live - gone, over - gone
      part = gone < paid and pack('<I7I4', entered, paid - gone) or ''
    end
    local rest = live > 0 and sub(state, at) or ''
    if live == 0 or newest < from then
      return pack('<BI7I4', 6, instant, live + cost) .. part .. rest .. pack('<I7I4', instant, cost)
    end
    local kept = part .. rest
    local entered, paid = take('<I7I4', kept, #kept - 10)
    return pack('<BI7I4', 6, newest, live + cost) .. sub(kept, 1, -12) .. pack('<I7I4', entered, paid + cost)
  end

  -- Makes a list of a string that has become too long.
  local function listing(key, state)
    return function(ttl)
      local pairs = {}
      others = true
      for at = 2, #state, 11 do
        pairs[#pairs + 1] = sub(state, at, at + 10)
      end
      call('DEL', key)
      call('RPUSH', key, unpack(pairs))
      call('PEXPIRE', key, ttl)
    end
  end

  -- The same as string_log of a list, of whose entries so many have expired, and others count.
  local function list_log(key, expired, live, over, from, newest, instant, cost)
    return function(ttl)
      while over > 0 and live > 0 do
        local entered, paid = take('<I7I4', call('LINDEX', key, expired + 1))
        local gone = min(paid, over)
        if gone < paid then
          call('LSET', key, expired + 1, pack('<I7I4', entered, paid - gone))
        else
          expired = expired + 1
        end
        live, over = live - gone, over - gone
      end
      local merges = live > 0 and newest >= from
      local head = pack('<I7I4', merges and newest or instant, live + cost)
      if expired > 0 then
        call('LTRIM', key, expired, -1) -- the last of them makes room for the head
      end
      call('LSET', key, 0, head)
      if merges then
        local entered, paid = take('<I7I4', call('LINDEX', key, -1))
        call('LSET', key, -1, pack('<I7I4', entered, paid + cost))
      else
        call('RPUSH', key, pack('<I7I4', instant, cost))
      end
      call('PEXPIRE', key, ttl)
    end
  end

  local function logged(i, beyond, period, buckets, limit, cost, most)
    local key, state, chunk = keys[i], states[i], 4
    local text, next = state, 2 -- pairs at hand, and the byte where the next one begins
    if not state then
      text, next = concat(ask('LRANGE', key, 0, chunk - 1) or {}), 1
    elseif byte(state) ~= 6 or #state % 11 ~= 1 then
      text = ''
    end
    local newest, total, read = 0, 0, #text / 11
    if text ~= '' then
      newest, total, next = take('<I7I4', text, next)
    end

    local instant = newest > now and newest or now
    local offset = instant % period
    local begin, finish = part_at(offset, period, buckets)
    local from = instant - offset + begin -- where the part of this instant begins
    local since = instant - offset + finish - period -- what is older counts no more

    local live, expired, speaker, going = total, 0, nil, 0
    while live > going do
      if next > #text then
        chunk = chunk < 1024 and chunk * 4 or chunk
        text, next = state and '' or concat(call('LRANGE', key, read, read + chunk - 1)), 1
        read = read + #text / 11
        if text == '' then
          break
        end
      end
      local entered, paid
      entered, paid, next = take('<I7I4', text, next)
      if entered < since then
        live, expired = live - paid, expired + 1
      else
        speaker, going = entered, going + paid
        if live + cost <= limit or live - going + cost <= limit or cost > limit then
          break
        end
      end
    end
    answer(i, newest, live, speaker)

    if live + cost > limit and not beyond then
      return false
    end
    local over = beyond and live + cost - most or 0
    aheads[i] = from + period - now
    if state or live == 0 then
      local log = string_log(state or '', 13 + 11 * expired, live, over, from, newest, instant, cost)
      nexts[i] = #log <= 12 + 11 * few and log or listing(key, log)
    else
      nexts[i] = list_log(key, expired, live, over, from, newest, instant, cost)
    end
    return true
  end

