-- A typical way to limit across machines with nginx: a few lines of Lua and one script call a request. `./dev bench`
-- compares weir's Redis mode with it. For a fair comparison it has pooled connections, EVALSHA and Redis's own clock.
local M = {}

-- GCRA (ITU-T I.371), with all times in microseconds. KEYS[1] holds the theoretical arrival time. ARGV[1]: the interval
-- between requests. ARGV[2]: the tolerance, by which requests may come early.
local SCRIPT = [[
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local arrival = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
local next = arrival + ARGV[1]
if next - now > tonumber(ARGV[2]) then return {0, next - now - ARGV[2]} end
redis.call('SET', KEYS[1], string.format('%d', next), 'PX', math.ceil((next - now) / 1000) + 1)
return {1, 0}
]]
local digest

local function command(...)
    local words = { ... }
    local out = { '*', #words, '\r\n' }
    for _, word in ipairs(words) do
        word = tostring(word)
        out[#out + 1] = '$' .. #word .. '\r\n' .. word .. '\r\n'
    end
    return out
end

-- Returns a RESP2 reply; for an error, nil and its text.
local function reply(socket)
    local line, fault = socket:receive('*l')
    if not line then return nil, fault end
    local kind, rest = line:sub(1, 1), line:sub(2)
    if kind == ':' then return tonumber(rest) end
    if kind == '+' then return rest end
    if kind == '-' then return nil, rest end
    if kind == '$' then
        local bytes = socket:receive(tonumber(rest) + 2)
        return bytes and bytes:sub(1, -3)
    end
    local list = {}
    for i = 1, tonumber(rest) do list[i] = reply(socket) end
    return list
end

local function call(socket, ...)
    socket:send(command(...))
    return reply(socket)
end

-- Ends the request with 429 if it exceeds `rate` per second and `burst`.
function M.limit(port, rate, burst)
    local socket = ngx.socket.tcp()
    socket:settimeout(1000)
    if not socket:connect('127.0.0.1', port) then return ngx.exit(503) end
    digest = digest or assert(call(socket, 'SCRIPT', 'LOAD', SCRIPT))
    local interval = 1000000 / rate
    local verdict = call(socket, 'EVALSHA', digest, 1, 'bench:' .. ngx.var.remote_addr, interval, interval * burst)
    socket:setkeepalive(60000, 256)
    if not verdict then return ngx.exit(503) end
    if verdict[1] == 0 then
        ngx.header['Retry-After'] = math.max(1, math.ceil(verdict[2] / 1000000))
        return ngx.exit(429)
    end
end

return M
