-- Prints wrk's summary as one line of JSON, for bench.py. Defines no request() or response(), so that wrk stays fast.
-- With an argument, each request sends a body of that number of octets.
function init(arguments)
    if arguments[1] then
        wrk.method = "PUT"
        wrk.body = string.rep("x", tonumber(arguments[1]))
    end
end

function done(summary, latency, _)
    local errors = summary.errors
    io.write(string.format(
        '{"requests": %d, "octets": %.0f, "seconds": %.6f, "refused": %d, "faults": %d, "p50_us": %d, "p99_us": %d}\n',
        summary.requests, summary.bytes, summary.duration / 1e6, errors.status,
        errors.connect + errors.read + errors.write + errors.timeout,
        latency:percentile(50), latency:percentile(99)))
end
