-- 60 clients at once into a queue that lets 100 a second pass: nobody is refused, everybody waits a turn.
--   wrk -t1 -c60 -d5s --latency -s loadtest/queued_burst.lua http://127.0.0.1:8080
-- With all 60 connections always asking, the rate is the queue's and the wait settles near 60 / (100/s) = 600 ms.
wrk.path = '/queued'

function done(summary, latency, _)
    io.write(string.format('%.1f answers a second, %d refused; wait p50 %.0f ms, p99 %.0f ms\n',
        summary.requests / (summary.duration / 1e6), summary.errors.status,
        latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
