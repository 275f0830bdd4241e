-- 10,000 clients in random order, each far below its limit. No request may be refused.
--
--   wrk -t2 -c200 -d10s --latency -s loadtest/many_keys.lua http://127.0.0.1:8080
local KEYS = 10000
local requests = {}

local threads = 0
function setup(thread)
    thread:set('number', threads)
    threads = threads + 1
end

-- Builds all requests in advance, so that the test does not measure the work of wrk.
function init()
    math.randomseed(os.time() + number)
    for key = 1, KEYS do
        requests[key] = wrk.format('GET', '/many', { ['X-API-Key'] = 'client-' .. key })
    end
end

function request() return requests[math.random(KEYS)] end

function done(summary, latency, _)
    io.write(string.format('%d requests from %d keys, %d refused, %d failed; p50 %.2f ms, p99 %.2f ms\n',
        summary.requests, KEYS, summary.errors.status, summary.errors.connect + summary.errors.read + summary.errors.write,
        latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
