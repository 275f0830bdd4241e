-- Three customers at once: free (20/s), pro (200/s) and one without an API key (2/s for its address). Prints how many
-- requests of each were admitted, and how many its tier allows. load_keys.toml has the keys.
--
--   wrk -t1 -c30 -d10s -s loadtest/mixed_tiers.lua http://127.0.0.1:8080
--
-- The customers send in turn. Needs one thread, because wrk's threads share no counters.
local CUSTOMERS = {
    { name = 'free', key = 'load-free-key', rate = 20, burst = 20 },
    { name = 'pro', key = 'load-pro-key', rate = 200, burst = 200 },
    { name = 'anonymous', rate = 2, burst = 5 },
}
local threads = {}

function setup(thread) table.insert(threads, thread) end

function init()
    turn, requests, admitted, by_burst = 0, {}, {}, {}
    for number, customer in ipairs(CUSTOMERS) do
        requests[number] = wrk.format('GET', '/tiers', customer.key and { ['X-API-Key'] = customer.key } or {})
        admitted[number] = 0
        by_burst[tostring(customer.burst)] = number
    end
end

function request()
    turn = turn % #CUSTOMERS + 1
    return requests[turn]
end

-- X-RateLimit-Limit gives the bucket's size, which identifies the customer.
function response(status, headers, _)
    local number = by_burst[headers['X-RateLimit-Limit'] or '']
    if number and status == 200 then admitted[number] = admitted[number] + 1 end
end

function done(summary, _, _)
    local seconds = summary.duration / 1e6
    for number, customer in ipairs(CUSTOMERS) do
        local granted = 0
        for _, thread in ipairs(threads) do granted = granted + thread:get('admitted')[number] end
        io.write(string.format('%-10s admitted %5d, its tier allows %5.0f\n', customer.name, granted,
            customer.burst + customer.rate * seconds))
    end
end
