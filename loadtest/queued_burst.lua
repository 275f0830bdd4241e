-- 60 clients at once in a queue with a rate of 100/s. All requests wait, and none is refused.
--
--   wrk -t1 -c60 -d5s --latency -s loadtest/queued_burst.lua http://127.0.0.1:8080
--
-- All 60 connections always have a request. So the rate is that of the queue, and the wait is near 60 / (100/s) = 600 ms.
wrk.path = '/queued'

function done(summary, latency, _)
    io.write(string.format('%.1f answers a second, %d refused; wait p50 %.0f ms, p99 %.0f ms\n',
        summary.requests / (summary.duration / 1e6), summary.errors.status,
        latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
