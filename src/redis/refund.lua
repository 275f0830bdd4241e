-- Gives charges back. Numbers and states as in charge.lua.
--
-- KEYS     a line's key each
-- ARGV[1]  a line each, five little-endian doubles: kind, and up to four numbers, which the function of that kind
--          names
-- returns  how many lines were given back
--
-- A state that is not there has drained, and nothing is owed. A key that drains earlier than before keeps its time
-- to live, unless that is easily said: one that lives too long costs nothing.
local call, take, pack, byte = redis.call, struct.unpack, struct.pack, string.byte
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local lines, at, given = ARGV[1], 1, 0

local function state_of(key)
  return call('MGET', key)[1] -- of what is no string nothing, where GET would be an error
end

-- The numbers of a state of this kind, or nothing.
local function numbers_of(key, kind, format, size)
  local state = state_of(key)
  if state and #state == size and byte(state) == kind then
    return take(format, state, 2)
  end
end

-- departure is -1 where the TAT alone is the state. For a queue it is the microsecond that was promised, and it can
-- only be given back while it is the last one promised: two requests may never hold one departure.
local function spaced(key, count, need, need_part, departure)
  local state = state_of(key)
  if not state or #state ~= 16 then
    return
  end
  local tat, part = take('<dd', state)
  if part >= count then
    tat, part = tat + 1, 0
  end
  tat, part = tat - need, part - need_part
  if part < 0 then
    tat, part = tat - 1, part + count
  end
  local reached = part > 0 and tat + 1 or tat
  if departure >= 0 and departure ~= reached then
    return
  end
  given = given + 1
  if reached <= now then
    call('DEL', key)
  else
    local ahead = tat - now
    call('SET', key, pack('<dd', tat, part), 'PX', (ahead - ahead % 1000) / 1000 + 2)
  end
end

-- A count beside an instant: less by the cost, and gone when nothing is left of it.
local function reduce(key, kind, instant, count, cost)
  given = given + 1
  if count > cost then
    call('SET', key, pack('<Bdd', kind, instant, count - cost), 'KEEPTTL')
  else
    call('DEL', key)
  end
end

local function stepped(key, cost)
  local anchor, spent = numbers_of(key, 2, '<dd', 17)
  if anchor then
    reduce(key, 2, anchor, spent, cost)
  end
end

-- finish: the end of the window in which it was charged.
local function fixed(key, finish, cost)
  local stands, used = numbers_of(key, 3, '<dd', 17)
  if stands == finish then
    reduce(key, 3, finish, used, cost)
  end
end

-- Where it was counted, if that window is one of the two.
local function weighted(key, period, charged_at, cost)
  local start, previous, current = numbers_of(key, 5, '<ddd', 25)
  if not start or charged_at >= start + period or charged_at < start - period then
    return
  end
  given = given + 1
  if charged_at >= start then
    current = current > cost and current - cost or 0
  else
    previous = previous > cost and previous - cost or 0
  end
  if previous + current > 0 then
    call('SET', key, pack('<Bddd', 5, start, previous, current), 'KEEPTTL')
  else
    call('DEL', key)
  end
end

-- From the entry between two instants, which lies near the end: what is given back was mostly charged of late.
local function logged(key, from, till, cost)
  local function entry(at)
    local found = call('LINDEX', key, at)
    if found then
      return take('<I7I4', found)
    end
  end
  if call('MGET', key)[1] then -- a string: of another kind
    return
  end
  local newest, total = entry(0)
  local last = newest and call('LLEN', key) - 1 or 0
  local at, chunk = last + 1, {}
  local entered, paid
  repeat
    if #chunk == 0 then
      chunk = call('LRANGE', key, at - 64 > 1 and at - 64 or 1, at - 1)
    end
    at = at - 1
    entered, paid = 0, 0
    if at >= 1 then
      entered, paid = take('<I7I4', table.remove(chunk))
    end
  until entered < till
  if at < 1 or entered < from then
    return
  end

  given = given + 1
  local back = paid > cost and cost or paid
  if total <= back then
    call('DEL', key)
    return
  end
  if paid > back then
    call('LSET', key, at, pack('<I7I4', entered, paid - back))
  else
    call('LREM', key, -1, pack('<I7I4', entered, paid))
    if at == last then
      newest = entry(-1)
    end
  end
  call('LSET', key, 0, pack('<I7I4', newest, total - back))
end

local kinds = { spaced, stepped, fixed, false, weighted, logged }

for i = 1, #KEYS do
  local kind, a, b, c, d
  kind, a, b, c, d, at = take('<ddddd', lines, at)
  kinds[kind](KEYS[i], a, b, c, d)
end
return given
