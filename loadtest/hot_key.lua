-- One client with one bucket: the hottest case for the key table. Shows that the limit is exact.
--
--   wrk -t2 -c200 -d10s --latency -s loadtest/hot_key.lua http://127.0.0.1:8080
--
-- Prints the admitted and refused requests, and the number that load.toml allows: burst + rate x time.
local RATE, BURST = 1000, 1000

wrk.path = '/hot'
wrk.headers['X-API-Key'] = 'hot'

function done(summary, latency, _)
    local seconds = summary.duration / 1e6
    local refused = summary.errors.status
    io.write(string.format('admitted %d, refused %d in %.2f s; the limit allows %.0f\n',
        summary.requests - refused, refused, seconds, BURST + RATE * seconds))
    io.write(string.format('p50 %.2f ms, p99 %.2f ms\n', latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
