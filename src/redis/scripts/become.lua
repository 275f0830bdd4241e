  -- Replaces a string by a key of another type. `command`: RPUSH or ZADD, which adds `values`. `ttl`: the new key's
  -- time to live, in milliseconds. Returns true on success. Returns false and leaves the string unchanged if Redis
  -- denies a command, or the slot is moving to another node. So the new key is built under another name and then
  -- renamed: if the string were deleted first, a failure would lose it.
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

