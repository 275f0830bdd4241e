-- The bills of one or several requests, decided one after the other: checks all lines of a bill, then charges all
-- enforced ones, or none.
--
-- KEYS     a line's key each, bill after bill; absent while drained
-- ARGV[1]  the call's number, a little-endian double; then a line each, eight of them: kind, enforced (1; 0; 2: it is
--          only looked at, and its bill refused whatever it says; or 3: it counts what the line before it decides,
--          beyond its limit where its kind does that), and up to six numbers, which the function of that kind names
-- ARGV[2]  a byte for each bill: how many lines it has
-- ARGV[3]  there only where lines of several bills have one key
-- returns  now; then of each bill 1 charged, 0 refused, or 2: nothing was charged, because a calendar's windows came
--          for another time than ours; then of each line three numbers of its state before; then the call's number,
--          so that whoever asked knows that this is the answer to it
--
-- Instants and lengths are whole microseconds. Everything stays below 2^53, so doubles are exact: lengths are at
-- most 100 years, 3.2 * 10^15, so an instant now (1.8 * 10^15 in 2027) and one of them come to less than
-- 9 * 10^15 until the year 2150. For whole 0 <= a < 2^53 and b >= 1 floor(a / b) and a % b are exact as well: a
-- quotient just below a whole number k lies at least 1 / b below it, which is more than half the gap between
-- doubles there (k * 2^-53 at most, and k * b <= 2^53). What the numbers mean to a client, the asker works out with
-- the same code as for state in its own process.
--
-- State never moves backwards here, whatever the clock does. What is of another kind, as a changed configuration
-- leaves it behind, counts as lost.
local call, take, pack, byte, format = redis.call, struct.unpack, struct.pack, string.byte, string.format
local keys, lines, counts = KEYS, ARGV[1], ARGV[2]
local number, at = take('<d', lines)
local n, bills = #keys, #counts

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local states = call('MGET', unpack(keys)) -- of what is no string nothing, where GET would be an error
-- Of a line that fits: its state to be, or what makes it so, and how long from now that takes to drain.
-- These tables begin with room for as much as most calls need: one that grows is made anew at 1, 2, 4, 8.
local nexts, aheads = { nil, nil, nil, nil }, { nil, nil, nil, nil }
local base = bills - 1 -- line i is told of from reply[base + 3 * i] on
local reply = { now, 1, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil }
for bill = 2, bills do
  reply[bill + 1] = 1
end

-- The function of a kind from 2 on, which checks line i, answers for it, and says whether it fits; nil if that is for
-- the asker to find out. `beyond`: it is charged though it does not fit, but for a bucket. Made where a line of that kind
-- comes, from arguments alone: a function, and what it shares with the script, cost as much to make as a check by spacing,
-- so each kind makes what it needs. known: what the kinds share, `others` alone.
local function kind_of(kind, known, keys, now, states, nexts, aheads, reply, base)
  local call, take, pack, byte, sub = redis.call, struct.unpack, struct.pack, string.byte, string.sub
  local floor, ceil, min, max, concat = math.floor, math.ceil, math.min, math.max, table.concat
  local most_counted = 4294967295 -- 2^32 - 1, as in the asker's windows

  local function answer(i, first, second, third)
    local told = base + 3 * i
    reply[told], reply[told + 1], reply[told + 2] = first, second, third or 0
  end

  -- A token bucket refilled by `count` each `period`. State: the last refill accounted for, and the tokens spent.
  -- What time has refilled may pass 2^53 (periods * count), but is then rounded to no less than 2^53, and so beyond
  -- anything spent, as the exact product is.
  if kind == 2 then
    return function(i, _, period, count, burst, cost)
      local state = states[i]
      local anchor, spent = 0, 0
      if state and #state == 17 and byte(state) == 2 then
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
      nexts[i] = pack('<Bdd', 2, anchor, spent)
      aheads[i] = anchor - now + ceil(spent / count) * period
      return true
    end
  end

  -- A fixed window, of lengths that are alike or (kind 4) of a calendar: three windows end to end, first to second, to
  -- third, to fourth, among which ours is looked for where no window is under way. State: the end of the window, what
  -- it has admitted, and since when that is counted: what was charged before then was lost, and is not to be given back
  -- (refund.lua).
  if kind == 3 or kind == 4 then
    local function counted(i, beyond, limit, cost, find)
      local finish, used, since = 0, 0, now
      local state = states[i]
      if state and #state == 24 and byte(state) == 3 then
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
      nexts[i] = pack('<BddI7', 3, finish, min(used + cost, most_counted), min(since, now))
      aheads[i] = finish - now
      return true
    end
    if kind == 3 then
      return function(i, beyond, period, limit, cost)
        return counted(i, beyond, limit, cost, now - now % period + period)
      end
    end
    return function(i, beyond, first, second, third, fourth, limit, cost)
      local ours = now >= first and now < fourth
      return counted(i, beyond, limit, cost, ours and (now < second and second or now < third and third or fourth))
    end
  end

  -- What kind 1 is of a state that has gaps, for a rule with a lease. Where one of them has room the line is charged there,
  -- and the TAT stays. Answer: of the TAT, as of kind 1; or, charged in a gap, how far the TAT lay ahead, rounded up, then
  -- the fraction of where the gap began, and how far that lay ahead, and one.
  if kind == 9 then
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
      local wait, passed = tat - now, 25 -- from where on gaps are kept
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

  if kind == 5 then
    -- a * b as high * 2^42 + low, for a < 2^32 and b < 2^53, each product and its carry being less than 2^53.
    local function product(a, b)
      local limb = 2097152 -- 2^21
      local low = b % limb
      local middle = (b - low) / limb % limb
      local high = (b - low - middle * limb) / (limb * limb)
      low = a * low
      middle = a * middle + floor(low / limb)
      return a * high + floor(middle / limb), middle % limb * limb + low % limb
    end

    -- A sliding window by weight: previous * (what is left of the current window) / period + current + cost <= limit,
    -- compared exactly, both sides times the period. State: the start of the current window, the counts of the
    -- previous and the current one, and since when they are counted, as of a fixed window.
    local function weighted(i, beyond, period, limit, cost)
      local start, previous, current, since = 0, 0, 0, now
      local state = states[i]
      if state and #state == 24 and byte(state) == 5 then
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
      nexts[i] = pack('<BdI4I4I7', 5, start, previous, min(current + cost, most_counted), min(since, now))
      aheads[i] = start - now + 2 * period
      return true
    end
    return weighted
  end

  -- What keys need that may be no strings, made when one does: functions `ask`, and `become` of become.lua.
  local function beyond_strings()
    -- The answer of a command to a key that is no string; nil where there is none, or it is of another kind, as no error but
    -- that one is to be passed over. Whether a list or a sorted set may be among the keys is asked once, for all of them that
    -- are no strings (known.others).
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

  -- What is included makes a function of each kind. In scope are the arguments, `answer`, `beyond_strings`, `most_counted`
  -- and the names of Redis's and Lua's functions above.
  if kind == 6 then
--#include charge_log.lua
    return logged
  end

  -- Beside these `permits_in`, `string_of_permits`, `set_of_permits` and `few_permits` of the first, which needs `now`
  -- alone.
  local ask, become = beyond_strings()
--#include held_state.lua
--#include charge_held.lua
  return held
end

-- Of keys that several bills may charge: the line that last did. Its state to be is what the next one finds, and only
-- the last is written.
local charged = ARGV[3] and {}
local kinds, known -- made where there is a line of a kind from 2 on: by number, and what they share
local last = 0
for bill = 1, bills do
  local first, verdict, decided = last + 1, 1, false -- whether the line before fits
  last = last + byte(counts, bill)
  for i = first, last do
    if charged and charged[keys[i]] then
      states[i] = nexts[charged[keys[i]]]
    end
    local kind, enforced, a, b, c, d, e, f
    kind, enforced, a, b, c, d, e, f, at = take('<dddddddd', lines, at)
    local fits
    local state = states[i]
    local gapped = kind == 1 and state and #state % 32 == 24 and byte(state) == 9
    if gapped and f == 1 and #state > 24 then
      kind = 9
    end
    if kind == 1 then
      -- Token bucket, GCRA, leaky bucket. State: the TAT (theoretical arrival time), in microseconds and, beside them,
      -- marked ', a fraction of the next in units of 1/count, where count is the line's rate. Nothing is multiplied:
      -- need (cost * T) and room (how far ahead the TAT may lie for that cost, -1 if the cost can never fit) come
      -- computed. Answer: how far the TAT lay ahead of now, as wait, wait'. A rule with a lease (f is 1) keeps the state of
      -- gaps.lua; one without takes that for a plain one, and makes it one.
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
          if part >= count then -- the rate was configured anew: round the fraction up
            wait, part = wait + 1, 0
          end
        end
      end
      local told = base + 3 * i
      reply[told], reply[told + 1], reply[told + 2] = wait, part, 0
      fits = wait < room or (wait == room and part <= room_part)
      if fits then
        wait, part = wait + need, part + need_part
        if part >= count then
          wait, part = wait + 1, part - count
        end
        if since then
          nexts[i] = pack('<BddI7', 9, now + wait, part, since < now and since or now)
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
      fits = check(i, enforced == 3 and decided, a, b, c, d, e, f)
    end
    if enforced == 3 and not decided then
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
  for i = first, last do
    local ahead = aheads[i]
    if verdict ~= 1 then
      aheads[i] = nil
    elseif ahead and charged then
      local before = charged[keys[i]]
      if before then
        aheads[before] = nil
      end
      charged[keys[i]] = i
    end
    if ahead and verdict == 1 and type(nexts[i]) ~= 'string' then
      -- In its list or set now, or in a string that stays one.
      nexts[i], aheads[i] = nexts[i]((ahead - ahead % 1000) / 1000 + 2) or false, nil
    end
  end
end

local ttl, ttl_text -- those of windows are often alike
for i = 1, n do
  local ahead = aheads[i]
  if ahead then
    -- Two milliseconds more than whole ones: one rounds up, one for the clock that PX counts from, which may be
    -- that of the script's beginning. A key that lives too long costs nothing; one that died early would be a gift.
    -- As text, for Redis writes doubles out slowly.
    local needed = (ahead - ahead % 1000) / 1000 + 2
    if needed ~= ttl then
      ttl, ttl_text = needed, format('%d', needed)
    end
    call('SET', keys[i], nexts[i], 'PX', ttl_text)
  end
end
reply[base + 3 * n + 3] = number
return reply
