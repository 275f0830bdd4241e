// Computes rates from the totals that weir counts since its start.

const kSpan = 10_000; // milliseconds over which rates are averaged

export class Rates {
  #seen = [];

  // Adds an overview (/api/overview). Forgets all earlier overviews if weir was restarted or its clock went back.
  take(overview) {
    const last = this.#seen.at(-1);
    if (last && (last.started !== overview.started || last.now > overview.now)) this.#seen = [];
    this.#seen.push(overview);
    while (this.#seen.length > 2 && overview.now - this.#seen[1].now >= kSpan) this.#seen.shift();
  }

  // Returns by how much the value that `read` returns has grown per second, on average over kSpan. Returns null if
  // there are fewer than two overviews, or if `read` returns null or undefined for one of them.
  of(read) {
    return increase(this.#seen[0], this.#seen.at(-1), read);
  }
  // Returns the growth per second since the previous overview.
  latest(read) {
    return increase(this.#seen.at(-2), this.#seen.at(-1), read);
  }

  // Returns a quantile of the durations of the latest requests, in microseconds; null if there were no requests.
  quantile(share) {
    const first = this.#seen[0];
    const last = this.#seen.at(-1);
    if (!first || first === last) return null;
    const counts = last.latency.counts.map((count, i) => Math.max(0, count - first.latency.counts[i]));
    return quantile(last.latency.bounds_us, counts, share);
  }
}

function increase(first, last, read) {
  if (!first || !last || first === last || last.now <= first.now) return null;
  const [before, after] = [read(first), read(last)];
  if (before == null || after == null) return null;
  return (Math.max(0, after - before) * 1000) / (last.now - first.now);
}

// Returns the quantile `share` (0 to 1) of a histogram. Interpolates between the bounds of its bucket, as Prometheus's
// histogram_quantile does.
export function quantile(bounds, counts, share) {
  const sum = counts.reduce((total, count) => total + count, 0);
  if (sum === 0) return null;
  const wanted = share * sum;
  let below = 0;
  for (let i = 0; i < bounds.length; ++i) {
    if (counts[i] > 0 && below + counts[i] >= wanted) {
      const from = i === 0 ? 0 : bounds[i - 1];
      return from + ((bounds[i] - from) * (wanted - below)) / counts[i];
    }
    below += counts[i];
  }
  return bounds.at(-1);
}
