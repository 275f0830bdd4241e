-- One request's bill over all its lines: checks all, then charges all enforced ones, or none.
--
-- KEYS     a line's key each; its state is its TAT (theoretical arrival time), absent while drained
-- ARGV[1]  a line each, six little-endian doubles: count, room, room', need, need', enforced (1 or 0)
-- returns  charged (1 or 0), now, and for each line how far its TAT lay ahead of now, as wait, wait'
--
-- An instant or a length is two whole numbers: microseconds, and beside them, marked ', a fraction of the next in
-- units of 1/count, where count is the line's rate. Everything stays below 2^53, so doubles are exact: now and 100
-- years, the longest depth, come to 5 * 10^15. Nothing is multiplied here: need (cost * T) and room (how far ahead
-- the TAT may lie for that cost, -1 if the cost can never fit) come computed. What the numbers mean to a client,
-- the asker works out with the same code as for state in its own process.
--
-- State: two doubles, the TAT. It never moves backwards here, whatever the clock does.
local call, take, pack = redis.call, struct.unpack, struct.pack
local keys, lines, at = KEYS, ARGV[1], 1
local n = #keys

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local states = n == 1 and { call('GET', keys[1]) } or call('MGET', unpack(keys))

local charged = 1
local reply, aheads, parts = { 1, now }, {}, {}
for i = 1, n do
  local count, room, room_part, need, need_part, enforced
  count, room, room_part, need, need_part, enforced, at = take('<dddddd', lines, at)

  local wait, part = 0, 0
  local state = states[i]
  if state and #state == 16 then -- anything else under our name counts as lost
    local tat, tat_part = take('<dd', state)
    if tat >= now then
      wait, part = tat - now, tat_part
      if part >= count then -- the rate was configured anew: round the fraction up
        wait, part = wait + 1, 0
      end
    end
  end
  reply[2 * i + 1], reply[2 * i + 2] = wait, part

  if wait < room or (wait == room and part <= room_part) then
    wait, part = wait + need, part + need_part
    if part >= count then
      wait, part = wait + 1, part - count
    end
    aheads[i], parts[i] = wait, part
  elseif enforced == 1 then
    charged = 0
  end
end

if charged == 0 then
  reply[1] = 0
  return reply
end
for i = 1, n do
  local ahead = aheads[i]
  if ahead then
    -- Two milliseconds more than whole ones: one rounds up, one for the clock that PX counts from, which may be
    -- that of the script's beginning. A key that lives too long costs nothing; one that died early would be a gift.
    local ttl = (ahead - ahead % 1000) / 1000 + 2
    call('SET', keys[i], pack('<dd', now + ahead, parts[i]), 'PX', ttl)
  end
end
return reply
