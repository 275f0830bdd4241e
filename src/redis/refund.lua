-- Gives charges back. Numbers and state as in charge.lua.
--
-- KEYS     a line's key each
-- ARGV[1]  a line each, four little-endian doubles: count, need, need', departure
-- returns  how many lines were given back
--
-- departure is -1 where the TAT alone is the state. For a queue it is the microsecond that was promised, and it can
-- only be given back while it is the last one promised: two requests may never hold one departure.
local call, take, pack = redis.call, struct.unpack, struct.pack
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local lines, at, given = ARGV[1], 1, 0

for i = 1, #KEYS do
  local count, need, need_part, departure
  count, need, need_part, departure, at = take('<dddd', lines, at)
  local state = call('GET', KEYS[i])
  if state and #state == 16 then -- else drained, and nothing is owed
    local tat, part = take('<dd', state)
    if part >= count then
      tat, part = tat + 1, 0
    end
    tat, part = tat - need, part - need_part
    if part < 0 then
      tat, part = tat - 1, part + count
    end
    local reached = part > 0 and tat + 1 or tat
    if departure < 0 or departure == reached then
      given = given + 1
      if reached <= now then
        call('DEL', KEYS[i])
      else
        local ahead = tat - now
        call('SET', KEYS[i], pack('<dd', tat, part), 'PX', (ahead - ahead % 1000) / 1000 + 2)
      end
    end
  end
end
return given
