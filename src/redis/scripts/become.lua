  -- Has a key that holds a string hold instead what `command` makes of these values, with so long to live: whole, or not
  -- at all, and then false. It is made under another name, for where a right is missing, or the slot is on its way to
  -- another node, a key that has gone can not be made again.
  local function become(key, ttl, command, values)
    local made = key .. ':made'
    local function works(...)
      local said = redis.pcall(...)
      return type(said) ~= 'table' or not said.err
    end
    local sound = works('DEL', made)
    for at = 1, #values, 1000 do
      sound = sound and works(command, made, unpack(values, at, math.min(at + 999, #values)))
    end
    if sound and works('PEXPIRE', made, ttl) and works('RENAME', made, key) then
      return true
    end
    works('DEL', made)
    return false
  end

