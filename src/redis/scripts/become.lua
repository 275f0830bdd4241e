  -- Replaces the string in a key by a list or a sorted set. `command`: RPUSH or ZADD, which adds `values`. `ttl`: the
  -- key's new time to live, in milliseconds. Returns true on success. Returns false and leaves the string unchanged if
  -- Redis denies a command, or the slot is moving to another node. To keep the string until all commands have
  -- succeeded, the function adds the values to another key, and renames that key at the end.
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

