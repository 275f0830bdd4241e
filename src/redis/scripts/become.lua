  -- Replaces a key's string by what `command` makes of `values`, with `ttl` milliseconds to live. Returns true if it
  -- replaced all of it, and false if it changed nothing. The new value is built under another name. If a right is
  -- missing or the slot is moving to another node, a key that was deleted first could not be made again.
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

