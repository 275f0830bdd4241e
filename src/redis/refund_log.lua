-- Of a log: in the first entry from where it was charged on, and as much as that lacks in the next; it lies near the
-- end, for what is amended was mostly charged of late. from, expiry: where the part of its instant begins, and when
-- what was entered there counts no more. most: of one entry.
local function logged(key, charged_at, reserved, actual, from, expiry, most)
  if expiry <= now or state then -- a string is of another kind
    return
  end
  local head = ask('LINDEX', key, 0)
  if head == nil then -- of another kind as well
    return
  end
  local newest, total, last = 0, 0, 0
  if head then
    newest, total = take('<I7I4', head)
    last = call('LLEN', key) - 1
  end

  local function entry(number)
    return take('<I7I4', call('LINDEX', key, number))
  end

  local first, chunk = last + 1, {} -- all entries from `first` on are of that part or later
  while first > 1 do
    if #chunk == 0 then
      chunk = call('LRANGE', key, max(first - 64, 1), first - 1)
    end
    if take('<I7', table.remove(chunk)) < from then
      break
    end
    first = first - 1
  end

  local function give_back(left)
    while left > 0 and first <= last do
      local entered, paid = entry(first)
      local back = min(paid, left)
      if total <= back then
        call('DEL', key)
        return
      end
      if paid > back then
        call('LSET', key, first, pack('<I7I4', entered, paid - back))
      else
        call('LREM', key, -1, pack('<I7I4', entered, paid))
        last = last - 1
        newest = entry(-1)
      end
      left, total = left - back, total - back
    end
    call('LSET', key, 0, pack('<I7I4', newest, total))
  end

  if actual < reserved then
    if first <= last then
      amended = amended + 1
      give_back(reserved - actual)
    end
    return
  end
  amended = amended + 1
  if first <= last then
    local entered, paid = entry(first)
    local more = min(actual - reserved, most - paid, most_counted - total)
    call('LSET', key, first, pack('<I7I4', entered, paid + more))
    call('LSET', key, 0, pack('<I7I4', newest, total + more))
    return
  end
  local whole = min(actual, most, most_counted - total)
  local top = pack('<I7I4', charged_at, total + whole)
  if head then
    call('LSET', key, 0, top)
  else
    call('RPUSH', key, top)
  end
  call('RPUSH', key, pack('<I7I4', charged_at, whole))
  call('PEXPIRE', key, (expiry - now - (expiry - now) % 1000) / 1000 + 2)
end
