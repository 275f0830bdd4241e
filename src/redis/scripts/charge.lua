-- Decides the bills of one or several requests, in order. A bill is the list of charges (lines) of one request. Checks
-- all lines of a bill, then charges all enforced lines or none.
--
-- KEYS     The key of each line, bill after bill. A key that does not exist is unused.
-- ARGV[1]  The call's number, a little-endian double. Then eight doubles for each line: kind, enforced, and up to six
--          numbers, which are the arguments of the kind's function below. The values of `enforced`:
--          1: The line is enforced.
--          0: The line is not enforced: it never causes a refusal.
--          2: The line belongs to a peek: it is never charged, and its bill is refused in any case.
--          3: The line follows the line before it: it is charged if the line before is admitted, even beyond its own
--             limit if the kind allows this.
--          One of these values plus 4: The line is a check (a charge of cost 0). It is decided like other lines, but
--             never charged.
-- ARGV[2]  A byte for each bill: its number of lines.
-- ARGV[3]  Present only if two bills have lines with the same key.
-- A line of Kind.Penalty checks the penalty of the charge in the line before it. If a bill is refused, only its
-- lines of this kind are written.
-- returns  The time (now). Then a verdict for each bill: 1 charged, 0 refused, 2 not decided, because now is in none of
--          the calendar windows sent. Then three numbers for each line, called its answer. They describe the key's
--          state before this charge; for Kind.Penalty, they are the result of the check. Then the call's number, which
--          proves to weir that this reply belongs to the call.
--
-- Instants and durations are whole microseconds. All numbers stay below 2^53, so doubles are exact. Durations are at
-- most 100 years, which is 3.2 * 10^15. An instant is 1.8 * 10^15 in 2027. So the sum of an instant and a duration
-- stays below 9 * 10^15 until the year 2150.
--
-- For whole 0 <= a < 2^53 and b >= 1, floor(a / b) and a % b are exact too. A quotient just below a whole number k is
-- at least 1 / b below k. This is more than half the gap between doubles near k, because the gap is at most k * 2^-53
-- and k * b <= 2^53.
--
-- weir computes the outcome from the answer, with the same code as for states in its own process.
--
-- A charge never sets a time in a state back, even if the clock was set back. If a key has a state of another kind,
-- because the configuration has changed, the state counts as lost.
local call, take, pack, byte, format = redis.call, struct.unpack, struct.pack, string.byte, string.format
local keys, lines, counts = KEYS, ARGV[1], ARGV[2]
local number, at = take('<d', lines)
local n, bills = #keys, #counts

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local states = call('MGET', unpack(keys)) -- nil for a key that is not a string; GET would return an error
-- Two tables with an element for each line that fits. `nexts`: the key's state after the charge, or a function that
-- writes that state. `aheads`: the time until the key is unused. The tables are created with four elements, enough for
-- most calls, because a growing table is reallocated at 1, 2, 4 and 8.
local nexts, aheads = { nil, nil, nil, nil }, { nil, nil, nil, nil }
local base = bills - 1 -- the numbers of line i start at reply[base + 3 * i]
local reply = { now, 1, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil }
for bill = 2, bills do
  reply[bill + 1] = 1
end

-- Makes the function that checks lines of a kind. (Lines of Kind.Gcra are checked by the main loop below.) The function
-- checks line i and sets the line's answer. It returns true if the line fits, false if not, and nil if weir must ask
-- again with other calendar windows.
--
-- `beyond`: true if the line must be charged even if it does not fit; buckets ignore `beyond`. `known`: a table that
-- the functions of all kinds share. known.others belongs to ask(). known.written_if_refused has the lines that are
-- written even if their bill is refused.
--
-- Making a function costs as much as a check of Kind.Gcra, and more for each outside variable that the function uses.
-- So a kind's function is made when the kind first occurs, and uses no variables from outside kind_of.
local function kind_of(kind, known, keys, now, states, nexts, aheads, reply, base)
  local call, take, pack, byte, sub = redis.call, struct.unpack, struct.pack, string.byte, string.sub
  local floor, ceil, min, max, concat = math.floor, math.ceil, math.min, math.max, table.concat
  local most_counted = 4294967295 -- 2^32 - 1, the largest count of a window; weir has the same bound

  local function answer(i, first, second, third)
    local answer_at = base + 3 * i
    reply[answer_at], reply[answer_at + 1], reply[answer_at + 2] = first, second, third or 0
  end

  -- A token bucket that refills `count` tokens every `period`. State: the instant of the last refill that is counted,
  -- and the number of spent tokens. The number of refilled tokens (periods * count) may exceed 2^53, and is rounded
  -- then. This does no harm, because the rounded number still exceeds any number of spent tokens.
  if kind == Kind.SteppedBucket then
    return function(i, _, period, count, burst, cost)
      local state = states[i]
      local anchor, spent = 0, 0
      if state and #state == 17 and byte(state) == Kind.SteppedBucket then
        anchor, spent = take('<dd', state, 2)
      end
      answer(i, anchor, spent)
      if spent == 0 then
        anchor = now
      elseif now > anchor then
        local periods = floor((now - anchor) / period)
        spent = spent - periods * count
        if spent > 0 then
          anchor = anchor + periods * period
        else
          anchor, spent = now, 0
        end
      end
      if spent + cost > burst then
        return false
      end
      spent = spent + cost
      nexts[i] = pack('<Bdd', Kind.SteppedBucket, anchor, spent)
      aheads[i] = anchor - now + ceil(spent / count) * period
      return true
    end
  end

  -- A fixed window, either of a given length or of a calendar (Kind.CalendarWindow). State: the end of the window, the
  -- count, and the instant `since`. Charges that were made before `since` were lost and must not be refunded
  -- (refund.lua).
  --
  -- For a calendar, weir sends three adjacent windows: first to second, second to third, third to fourth. The script
  -- chooses the one that contains now, unless the state has a window that has not ended.
  if kind == Kind.FixedWindow or kind == Kind.CalendarWindow then
    local function counted(i, beyond, limit, cost, find)
      local finish, used, since = 0, 0, now
      local state = states[i]
      if state and #state == 24 and byte(state) == Kind.FixedWindow then
        finish, used, since = take('<ddI7', state, 2)
      end
      answer(i, finish, used)
      if used == 0 or finish <= now then
        finish, used, since = find, 0, now
        if not finish then
          return nil
        end
      end
      if used + cost > limit and not beyond then
        return false
      end
      nexts[i] = pack('<BddI7', Kind.FixedWindow, finish, min(used + cost, most_counted), min(since, now))
      aheads[i] = finish - now
      return true
    end
    if kind == Kind.FixedWindow then
      return function(i, beyond, period, limit, cost)
        return counted(i, beyond, limit, cost, now - now % period + period)
      end
    end
    return function(i, beyond, first, second, third, fourth, limit, cost)
      local ours = now >= first and now < fourth
      return counted(i, beyond, limit, cost, ours and (now < second and second or now < third and third or fourth))
    end
  end

  -- A token bucket or GCRA of a rule with `lease`. Its state has gaps: slots of virtual time that were refunded. If the
  -- cost fits into a gap, the charge fills the gap, and the TAT (theoretical arrival time) stays the same. Otherwise
  -- the charge is made at the TAT.
  --
  -- Answer for a charge at the TAT: as in Kind.Gcra. For a charge in a gap, the first number is how far the TAT was
  -- ahead of now, rounded up. The second is the fraction of the gap's start. The third is how far the gap's start was
  -- ahead of now, plus one.
  if kind == Kind.GapGcra then
--#include spans.lua
--#include gaps.lua
    return function(i, _, count, room, room_part, need, need_part)
      local state = states[i]
      local tat, part, since = take('<ddI7', state, 2)
      if part >= count then
        tat, part = tat + 1, 0
      end
      if tat < now then
        tat, part = now, 0
      end
      local wait, passed = tat - now, 25 -- passed: the byte of the first gap to keep
      for at = 25, #state, 32 do
        local first, first_part, last, last_part = gap_at(state, at, count)
        local rest, rest_part = plus(first, first_part, need, need_part, count)
        if last <= now then
          passed = at + 32
        elseif not less(last, last_part, rest, rest_part) and not less(room, room_part, first - now, first_part) then
          answer(i, part > 0 and wait + 1 or wait, first_part, first - now + 1)
          local left = less(rest, rest_part, last, last_part) and pack('<dddd', rest, rest_part, last, last_part) or ''
          nexts[i] = concat({ sub(state, 1, 24), sub(state, passed, at - 1), left, sub(state, at + 32) })
          aheads[i] = wait
          return true
        end
      end
      answer(i, wait, part)
      if less(room, room_part, wait, part) then
        return false
      end
      tat, part = plus(tat, part, need, need_part, count)
      nexts[i], aheads[i] = head_of(tat, part, since) .. sub(state, passed), tat - now
      return true
    end
  end

  if kind == Kind.SlidingWindow then
    -- Returns a * b as two numbers, high and low, for a < 2^32 and b < 2^53, so that a * b = high * 2^42 + low. Each
    -- partial product, with its carry, is below 2^53.
    local function product(a, b)
      local limb = 2097152 -- 2^21
      local low = b % limb
      local middle = (b - low) / limb % limb
      local high = (b - low - middle * limb) / (limb * limb)
      low = a * low
      middle = a * middle + floor(low / limb)
      return a * high + floor(middle / limb), middle % limb * limb + low % limb
    end

    -- A sliding window by weight: previous * (rest of the current window) / period + current + cost <= limit. Both
    -- sides are multiplied by the period, so that the comparison is exact. State: the start of the current window, the
    -- counts of the previous and the current window, and the instant since which the counts are valid, as in a fixed
    -- window.
    local function weighted(i, beyond, period, limit, cost)
      local start, previous, current, since = 0, 0, 0, now
      local state = states[i]
      if state and #state == 24 and byte(state) == Kind.SlidingWindow then
        start, previous, current, since = take('<dI4I4I7', state, 2)
      end
      answer(i, start, previous, current)
      if now >= start + period or previous + current == 0 and now >= start then
        previous = current > 0 and now - start < 2 * period and current or 0
        start, current = now - now % period, 0
      end
      local room = limit - current - cost
      if room < 0 and not beyond then
        return false
      end
      if previous > room and not beyond then
        local weight, weight_low = product(previous, start + period - (now > start and now or start))
        local bound, bound_low = product(room, period)
        if weight > bound or (weight == bound and weight_low > bound_low) then
          return false
        end
      end
      local counted = min(current + cost, most_counted)
      nexts[i] = pack('<BdI4I4I7', Kind.SlidingWindow, start, previous, counted, min(since, now))
      aheads[i] = start - now + 2 * period
      return true
    end
    return weighted
  end

  -- Makes two functions for keys that may be lists or sorted sets: `ask`, and `become` of become.lua. Called only if a
  -- state is not a string, because making functions takes time.
  local function beyond_strings()
    -- Runs a command on a key that is not a string, and returns the reply. Returns nil if the key does not exist, or
    -- has another Redis type than the command needs. Raises any other error. The first call runs one EXISTS for all
    -- keys that are not strings, and stores in known.others whether any of these keys exists.
    local function ask(...)
      if known.others == nil then
        local absent = {}
        for i = 1, #keys do
          if not states[i] then
            absent[#absent + 1] = keys[i]
          end
        end
        known.others = call('EXISTS', unpack(absent)) > 0
      end
      if not known.others then
        return nil
      end
      local answer = redis.pcall(...)
      if type(answer) == 'table' and answer.err then
        return not string.find(answer.err, 'WRONGTYPE', 1, true) and call(...) or nil
      end
      return answer
    end
--#include become.lua
    return ask, become
  end

  -- Each included file defines the function of a kind. The file may use the arguments of kind_of, `answer`,
  -- `beyond_strings`, `most_counted` and the local names of Redis's and Lua's functions above.
  if kind == Kind.Penalty then
--#include charge_penalty.lua
    return check_penalty
  end
  if kind == Kind.Log then
--#include charge_log.lua
    return logged
  end

  -- charge_held.lua also uses `permits_in`, `string_of_permits`, `set_of_permits` and `few_permits` of held_state.lua.
  -- held_state.lua uses `become` and `now`.
  local ask, become = beyond_strings()
--#include held_state.lua
--#include charge_held.lua
  return held
end

-- Used only if several bills may charge the same key. Maps a key to the number of the last line that charged it. The
-- next line with this key starts from the state after that charge. Only the state after the last charge is written.
local charged = ARGV[3] and {}
-- `kinds`: the functions that kind_of() made, by kind. `known`: the table that these functions share. Both tables are
-- made at the first line whose kind is not Kind.Gcra.
local kinds, known
local last = 0
for bill = 1, bills do
  -- decided: whether the line before fits (nil: weir must ask again with other calendar windows). Lines with
  -- enforced = 3 and lines of Kind.Penalty depend on it.
  local first, verdict, decided = last + 1, 1, false
  last = last + byte(counts, bill)
  for i = first, last do
    if charged and charged[keys[i]] then
      states[i] = nexts[charged[keys[i]]]
    end
    local kind, enforced, a, b, c, d, e, f
    kind, enforced, a, b, c, d, e, f, at = take('<dddddddd', lines, at)
    local checks = enforced >= 4
    if checks then
      enforced = enforced - 4
    end
    local fits
    local state = states[i]
    local gapped = kind == Kind.Gcra and state and #state % 32 == 24 and byte(state) == Kind.GapGcra
    if gapped and f == 1 and #state > 24 then
      kind = Kind.GapGcra
    end
    if kind == Kind.Gcra then
      -- Token bucket, GCRA, leaky bucket. State: the TAT (theoretical arrival time) in microseconds, and a fraction of
      -- a microsecond (the names with _part) in units of 1/count, where count is that of the line's rate. Answer: how
      -- far the TAT was ahead of now, as whole microseconds and fraction.
      --
      -- weir has computed `need` and `room`, so nothing is multiplied here. `need`: the cost times the interval
      -- between requests. `room`: how far the TAT may be ahead of now before a charge of this cost; -1 if the cost can
      -- never fit.
      --
      -- f is 1 if the rule has `lease`. Then the state may have gaps (gaps.lua). Without `lease`, the script ignores
      -- and drops the gaps of a state.
      local count, room, room_part, need, need_part, since = a, b, c, d, e, f == 1 and now
      local wait, part = 0, 0
      if state and (#state == 16 or gapped) then
        local tat, tat_part, begun
        if gapped then
          tat, tat_part, begun = take('<ddI7', state, 2)
          since = since and begun
        else
          tat, tat_part = take('<dd', state)
        end
        if tat >= now then
          wait, part = tat - now, tat_part
          if part >= count then -- a reload has changed the rate's count: round the fraction up
            wait, part = wait + 1, 0
          end
        end
      end
      local answer_at = base + 3 * i
      reply[answer_at], reply[answer_at + 1], reply[answer_at + 2] = wait, part, 0
      fits = wait < room or (wait == room and part <= room_part)
      if fits then
        wait, part = wait + need, part + need_part
        if part >= count then
          wait, part = wait + 1, part - count
        end
        if since then
          nexts[i] = pack('<BddI7', Kind.GapGcra, now + wait, part, since < now and since or now)
        else
          nexts[i] = pack('<dd', now + wait, part)
        end
        aheads[i] = wait
      end
    else
      if not kinds then
        kinds, known = {}, {}
      end
      local check = kinds[kind] or kind_of(kind, known, keys, now, states, nexts, aheads, reply, base)
      kinds[kind] = check
      -- True if the line must be charged even if it does not fit. For Kind.Penalty: true if the charge in the line
      -- before fits, or if that charge is a peek or a check, which is never a violation.
      local beyond_or_fitted = enforced == 3 and decided
      if kind == Kind.Penalty then
        beyond_or_fitted = enforced == 2 or checks or decided
      end
      fits = check(i, beyond_or_fitted, a, b, c, d, e, f)
    end
    if checks or enforced == 3 and not decided then
      aheads[i] = nil
    end
    decided = fits
    if fits == nil then
      verdict = 2
    elseif (enforced == 2 or not fits and enforced == 1) and verdict == 1 then
      verdict = 0
    end
  end

  reply[bill + 1] = verdict
  local written_if_refused = verdict == 0 and known and known.written_if_refused
  for i = first, last do
    local ahead = aheads[i]
    local written = verdict == 1 or written_if_refused and written_if_refused[i]
    if not written then
      aheads[i] = nil
    elseif ahead and charged then
      local before = charged[keys[i]]
      if before then
        aheads[before] = nil
      end
      charged[keys[i]] = i
    end
    if ahead and written and type(nexts[i]) ~= 'string' then
      -- Here nexts[i] is a function that writes the state. If the state is a string, the function also returns it: a
      -- later line with the same key starts from nexts[i].
      nexts[i], aheads[i] = nexts[i]((ahead - ahead % 1000) / 1000 + 2) or false, nil
    end
  end
end

local ttl, ttl_text -- kept from the previous key, because keys of one call often have the same time to live
for i = 1, n do
  local ahead = aheads[i]
  if ahead then
    -- The time to live in whole milliseconds: one more to round up, and one more because PX may count from the time at
    -- which the script began. A key that lives too long does no harm; a key that expires early would admit too much.
    -- The number becomes text here, because Redis formats doubles slowly.
    local needed = (ahead - ahead % 1000) / 1000 + 2
    if needed ~= ttl then
      ttl, ttl_text = needed, format('%d', needed)
    end
    call('SET', keys[i], nexts[i], 'PX', ttl_text)
  end
end
reply[base + 3 * n + 3] = number
return reply
