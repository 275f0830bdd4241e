-- Corrects the cost of charges from `reserved` to `actual`. For a refund, `actual` is 0. For a settlement
-- (limit/settle.hpp), `actual` is more or less than `reserved`. To renew a permit, `actual` equals `reserved`. The
-- numbers and states are those of charge.lua.
--
-- KEYS     The key of each line.
-- ARGV[1]  The call's number, a little-endian double. Then eight doubles for each line: kind, and up to seven numbers,
--          which are the arguments of the kind's function below.
-- returns  The number of corrected lines. Then the number of gaps of buckets that were lost. Then the call's number.
--
-- A key without a state is unused. Then a refund changes nothing, and a settlement to more than `reserved` charges all
-- of `actual`, as of the time of the charge. A state of another kind, which a changed configuration has left, remains
-- unchanged. Exception: an overdraft (a settlement from 0 to more) replaces such a state, as a charge does. The check
-- before the overdraft has charged nothing, so it has not replaced the state.
--
-- Nothing is corrected if the key was reset after the charge. A marker key (the key's name with ":reset") has the time
-- of the reset. The marker is not in KEYS, but it is in the same slot.
--
-- A refund must change nothing if Redis has lost the state with the charge (FLUSHALL), because the present state counts
-- other requests. The states of windows, of logs and of buckets with prefetched units contain enough to detect this
-- loss; other states do not. No state shows that a replica was promoted before it got the charge.
local take = struct.unpack
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local lines, corrected, lost = ARGV[1], 0, 0
local number, at = take('<d', lines)

-- Makes the function that corrects charges of a kind. The function corrects the charge of one line and returns true if
-- the state has changed. `state`: the string that is stored in the key; nil if the key has another Redis type (GET
-- would return an error). The function is made when the kind first occurs, as in charge.lua.
local function kind_of(kind, now)
  local call, take, pack, byte, sub = redis.call, struct.unpack, struct.pack, string.byte, string.sub
  local max, min, ceil, format = math.max, math.min, math.ceil, string.format
  local most_counted = 4294967295 -- 2^32 - 1, the largest count of a window

  -- Resets a key. A marker key stores the time of the reset for one day, which is longer than any request lasts.
  if kind == Kind.Reset then
    return function(key)
      local found = call('DEL', key) == 1
      redis.pcall('SET', key .. ':reset', now, 'PX', 86400000) -- an error is possible: the slot may be moving
      return found
    end
  end

  -- Returns a time to live as charge.lua computes it: whole milliseconds plus two, as text.
  local function milliseconds(ahead)
    return format('%d', (ahead - ahead % 1000) / 1000 + 2)
  end

  -- Returns true for a settlement of a check to more than 0, which is an overdraft.
  local function overdraws(reserved, actual)
    return reserved == 0 and actual > 0
  end

  -- Writes a state that lasts for `ahead` microseconds, or deletes the key if the state is unused by now.
  local function keep(key, state, ahead)
    if ahead > 0 then
      call('SET', key, state, 'PX', milliseconds(ahead))
    else
      call('DEL', key)
    end
    return true
  end

  if kind == Kind.Gcra then
--#include spans.lua
    -- `latest`: -1 for a queue; otherwise the last instant to which a higher cost may move the TAT. For a queue,
    -- charged_at is the promised departure. A departure is refunded only if it is the last one promised. Otherwise two
    -- requests could get the same departure.
    return function(key, state, count, charged_at, reserved, reserved_part, actual, actual_part, latest)
      local tat, part = 0, 0
      local overdraft = overdraws(reserved + reserved_part, actual + actual_part)
      -- A rule that had `lease` may have left a state with gaps. An overdraft uses only the TAT of that state and drops
      -- its gaps, as charge.lua does.
      local gapped = overdraft and state and #state % 32 == 24 and byte(state) == Kind.GapGcra
      if gapped or (state and #state == 16) then
        tat, part = take('<dd', state, gapped and 2 or 1)
        if part >= count then
          tat, part = tat + 1, 0
        end
      elseif not overdraft and (state or call('EXISTS', key) == 1) then
        return
      end
      if less(actual, actual_part, reserved, reserved_part) then
        if not state then
          return
        end
        local back, back_part = minus(reserved, reserved_part, actual, actual_part, count)
        tat, part = minus(tat, part, back, back_part, count)
        if latest < 0 and charged_at ~= (part > 0 and tat + 1 or tat) then
          return
        end
      else
        local from, from_part = plus(charged_at, 0, reserved, reserved_part, count)
        if less(tat, part, from, from_part) then
          tat, part = from, from_part
        end
        local more, more_part = minus(actual, actual_part, reserved, reserved_part, count)
        if less(tat, part, latest, 0) then
          local room, room_part = minus(latest, 0, tat, part, count)
          if less(more, more_part, room, room_part) then
            tat, part = plus(tat, part, more, more_part, count)
          else
            tat, part = latest, 0
          end
        end
      end
      return keep(key, pack('<dd', tat, part), (part > 0 and tat + 1 or tat) - now)
    end
  end

  -- A bucket with prefetched units: refunds the slots (intervals of virtual time) from `first` on, except their part
  -- in the past. Only these slots become free, because later slots may belong to other charges. If the bucket gets too
  -- many gaps, drops the shortest gap and counts it in `lost`.
  if kind == Kind.GapGcra then
--#include spans.lua
--#include gaps.lua
    local most_gaps = 16

    local function gaps_in(state, count)
      local gaps = {}
      for at = 25, #state, 32 do
        local gap = { gap_at(state, at, count) }
        if less(gap[1], gap[2], gap[3], gap[4]) then
          gaps[#gaps + 1] = gap
        end
      end
      return gaps
    end

    -- Adds the refunded slots to the gaps. Returns false if the slots overlap a gap: then they were refunded before.
    local function insert(gaps, first, first_part, last, last_part)
      local n = 1
      while gaps[n] and not less(first, first_part, gaps[n][3], gaps[n][4]) do
        n = n + 1
      end
      local before, behind = gaps[n - 1], gaps[n]
      if behind and less(behind[1], behind[2], last, last_part) then
        return false
      end
      if behind and behind[1] == last and behind[2] == last_part then
        last, last_part = behind[3], behind[4]
        table.remove(gaps, n)
      end
      if before and before[3] == first and before[4] == first_part then
        before[3], before[4] = last, last_part
      else
        table.insert(gaps, n, { first, first_part, last, last_part })
      end
      return true
    end

    local function without_shortest(gaps, count)
      local shortest, its, its_part
      for n, gap in ipairs(gaps) do
        local length, length_part = minus(gap[3], gap[4], gap[1], gap[2], count)
        if not shortest or less(length, length_part, its, its_part) then
          shortest, its, its_part = n, length, length_part
        end
      end
      table.remove(gaps, shortest)
    end

    return function(key, state, count, charged_at, first, first_part, length, length_part)
      if not state or #state % 32 ~= 24 or byte(state) ~= Kind.GapGcra then
        return
      end
      local tat, part, since = take('<ddI7', state, 2)
      if part >= count then -- the TAT is tat + part/count. A reload has lowered count: round the TAT up.
        tat, part = tat + 1, 0
      end
      local last, last_part = plus(first, first_part, length, length_part, count)
      if first < now then
        first, first_part = now, 0
      end
      if charged_at < since or less(tat, part, last, last_part) or not less(first, first_part, last, last_part) then
        return
      end
      local gaps = gaps_in(state, count)
      if not insert(gaps, first, first_part, last, last_part) then
        return
      end
      local final = gaps[#gaps]
      if final[3] == tat and final[4] == part then -- the gap ends at the TAT, so the TAT moves back instead
        tat, part = final[1], final[2]
        gaps[#gaps] = nil
      end
      if #gaps > most_gaps then
        without_shortest(gaps, count)
        lost = lost + 1
      end
      local packed = { head_of(tat, part, since) }
      for n, gap in ipairs(gaps) do
        packed[n + 1] = pack('<dddd', unpack(gap))
      end
      return keep(key, table.concat(packed), (part > 0 and tat + 1 or tat) - now)
    end
  end

  -- Runs a command and returns its reply. Returns nil if the key has another Redis type than the command needs. Raises
  -- any other error.
  local function ask(...)
    local answer = redis.pcall(...)
    if type(answer) == 'table' and answer.err then
      return not string.find(answer.err, 'WRONGTYPE', 1, true) and call(...) or nil
    end
    return answer
  end

  -- Each included file defines the function of a kind. The file may use the arguments of kind_of, and the local names
  -- of Redis's and Lua's functions above. It may also use `ask`, `milliseconds`, `overdraws` and `most_counted`.
  -- refund_held.lua also uses held_state.lua, which uses `become` and `now`.
  if kind == Kind.Log then
--#include refund_log.lua
    return logged
  elseif kind == Kind.Permits then
--#include become.lua
--#include held_state.lua
--#include refund_held.lua
    return held
  end

  -- Returns the numbers in a state. Returns zeroes if the key does not exist. If the state is of another kind, returns
  -- zeroes if `overdraft` is true, and otherwise nothing.
  local function numbers_of(key, state, kind, form, size, overdraft)
    if state and #state == size and byte(state) == kind then
      return take(form, state, 2)
    elseif overdraft or (not state and call('EXISTS', key) == 0) then
      return 0, 0, 0, 0
    end
  end

  if kind == Kind.SteppedBucket then
    -- `most`: the most tokens that may be spent after the correction.
    return function(key, state, charged_at, reserved, actual, period, count, most)
      local anchor, spent = numbers_of(key, state, Kind.SteppedBucket, '<dd', 17, overdraws(reserved, actual))
      if not anchor or (spent == 0 and actual < reserved) then
        return
      end
      if spent == 0 then
        anchor, spent = charged_at, min(actual, most)
      else
        spent = max(0, min(spent + actual - reserved, max(spent, most)))
      end
      local ahead = spent > 0 and anchor + ceil(spent / count) * period - now or 0
      return keep(key, pack('<Bdd', Kind.SteppedBucket, anchor, spent), ahead)
    end
  end

  -- Returns how many of the `reserved` units are in a state that began at `since`: all of them, or 0 if the charge is
  -- older than the state. Returns nil instead of 0 for a refund or a settlement to less: then nothing is corrected.
  local function found(charged_at, since, reserved, actual)
    if charged_at >= since then
      return reserved
    end
    return actual > reserved and 0 or nil
  end

  if kind == Kind.FixedWindow then
    -- `finish`: the end of the window in which the charge was made.
    return function(key, state, finish, reserved, actual, charged_at)
      local overdraft = overdraws(reserved, actual)
      local stored_finish, used, since = numbers_of(key, state, Kind.FixedWindow, '<ddI7', 24, overdraft)
      if not stored_finish or (used > 0 and stored_finish > finish) then
        return
      end
      if used > 0 and stored_finish == finish then
        reserved = found(charged_at, since, reserved, actual)
        if not reserved then
          return
        end
        used = max(0, min(used + actual - reserved, most_counted))
      elseif actual > reserved then
        used, since = min(actual, most_counted), charged_at
      else
        return
      end
      return keep(key, pack('<BddI7', Kind.FixedWindow, finish, used, since), used > 0 and finish - now or 0)
    end
  end

  -- Sliding window by weight: corrects the previous or the current count, if the charge was made in that window.
  return function(key, state, period, charged_at, reserved, actual)
    local overdraft = overdraws(reserved, actual)
    local start, previous, current, since = numbers_of(key, state, Kind.SlidingWindow, '<dI4I4I7', 24, overdraft)
    if not start or (previous + current == 0 and actual < reserved) then
      return
    end
    local raises = actual > reserved
    if previous + current == 0 then
      since = charged_at
    end
    reserved = found(charged_at, since, reserved, actual)
    if not reserved then
      return
    end
    if raises and charged_at >= start and (charged_at - start >= period or previous + current == 0) then
      previous = charged_at - start < 2 * period and current or 0
      start, current = charged_at - charged_at % period, 0
    end
    if charged_at >= start + period or charged_at < start - period then
      return
    end
    local function correct(count)
      if count == 0 then
        return raises and min(actual, most_counted) or 0
      end
      return max(0, min(count + actual - reserved, most_counted))
    end
    if charged_at >= start then
      current = correct(current)
    else
      previous = correct(previous)
    end
    local drained = current > 0 and start + 2 * period or previous > 0 and start + period or now
    return keep(key, pack('<BdI4I4I7', Kind.SlidingWindow, start, previous, current, since), drained - now)
  end
end

-- Returns a key's state, and the time of its reset if the key was reset within a day.
local function states_of(key)
  local both = redis.pcall('MGET', key, key .. ':reset')
  if both.err then -- a node whose slot is moving rejects commands with several keys
    return redis.call('MGET', key)[1], false
  end
  return both[1], both[2]
end

local kinds = {}
for i = 1, #KEYS do
  local kind, a, b, c, d, e, f, g
  kind, a, b, c, d, e, f, g, at = take('<dddddddd', lines, at)
  local state, reset_at
  if kind ~= Kind.Permits and kind ~= Kind.Reset then -- concurrency limits are never reset
    state, reset_at = states_of(KEYS[i])
  end
  local in_b = kind == Kind.Gcra or kind == Kind.SlidingWindow or kind == Kind.GapGcra
  local charged_at = in_b and b or kind == Kind.FixedWindow and d or a
  reset_at = reset_at and tonumber(reset_at)
  -- Ignores a time of reset in the future, which only shows that the clock was set back.
  if not reset_at or charged_at > reset_at or reset_at > now then
    local correct = kinds[kind] or kind_of(kind, now)
    kinds[kind] = correct
    if correct(KEYS[i], state, a, b, c, d, e, f, g) then
      corrected = corrected + 1
    end
  end
end
return { corrected, lost, number }
