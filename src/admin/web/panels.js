// The tables and tiles below the charts of the dashboard.

import { spark } from "./charts.js";
import { fill, find, h, shadow_badge } from "./dom.js";
import { refusals } from "./verdict.js";
import { bytes, clock, compact, count, micros, plural, rate, span } from "./words.js";

export function show(overview, rates, history) {
  tiles(overview, rates);
  rules(overview, rates, history);
  upstreams(overview, rates);
  state(overview, rates);
}

const tile = (name, value, more) => h("div", {}, h("dt", {}, name), h("dd", {}, value, more && h("small", {}, more)));

const kMostRows = 100; // rows of rules; a browser would need long to draw a thousand rows every two seconds

function tiles(overview, rates) {
  const { http2, keys } = overview;
  const errors = rates.of((seen) => seen.answers["5xx"]);
  const shed = rates.of((seen) => seen.traffic.shed);
  fill(find("#tiles"),
    tile("Latency", micros(rates.quantile(0.5)), `p99 ${micros(rates.quantile(0.99))}`),
    tile("Waiting in queues", count(overview.queue_depth), "requests"),
    tile("5xx responses", `${rate(errors)}/s`, shed > 0 ? `${rate(shed)}/s shed` : "on all routes"),
    tile("Connections", count(overview.connections),
      http2.connections > 0 ? `${count(http2.connections)} HTTP/2 with ${plural(http2.streams, "stream")}` : "open, from clients"),
    keys && tile("Keys", compact(keys.used), `of ${compact(keys.slots)} slots`));
}

const cell = (label, value, kind = "") =>
  h("td", { class: `number ${kind} ${value === 0 || value == null ? "none" : ""}`.trim(), "data-label": label }, `${rate(value)}/s`);

function rules(overview, rates, history) {
  const rows = overview.rules.map((rule, at) => {
    const of = (read) => rates.of((seen) => (seen.rules[at]?.name === rule.name ? read(seen.rules[at]) : undefined));
    return { rule, admitted: of((seen) => seen.counters.admitted), delayed: of((seen) => seen.counters.delayed), refused: of(refusals) };
  });
  const shadow = ({ rule }) => Number(rule.mode === "shadow");
  const idle = (row) => Number(rows.length > kMostRows && !row.admitted && !row.delayed && !row.refused && !row.rule.refusing_since);
  rows.sort((one, other) => idle(one) - idle(other) || shadow(one) - shadow(other) || (other.refused ?? 0) - (one.refused ?? 0));
  const more = rows.length - kMostRows;
  fill(find("#rules tbody"), rows.length ? rows.slice(0, kMostRows).map((row) => rule_row(row, overview, history)) : nothing("There are no rules: every request is admitted.", 7),
    more > 0 && nothing(`${plural(more, "more rule")}; /api/rules lists all.`, 7));
}

function rule_row({ rule, admitted, delayed, refused }, { now }, history) {
  const shadow = rule.mode === "shadow";
  const past = history?.rules.find(({ name }) => name === rule.name)?.refused ?? [];
  const missed = rule.counters.store_failed;
  return h("tr", {},
    h("th", { scope: "row", class: "full" }, rule.name, " ", shadow && shadow_badge(),
      h("span", { class: "detail" }, rule.match)),
    h("td", { class: "full" }, h("span", {}, rule.limit),
      h("span", { class: "detail" }, rule.key === "[]" ? `all requests together, in ${rule.store}` : `for each ${rule.key.replace(/^\[|\]$/g, "")}, in ${rule.store}`,
        missed > 0 && `; ${plural(missed, "decision")} without its store`)),
    cell("Admitted", admitted),
    cell("Delayed", delayed, delayed > 0 ? "slow" : ""),
    cell(shadow ? "Would refuse" : "Refused", refused, refused > 0 && !shadow ? "hot" : ""),
    past.some((each) => each > 0) || rule.refusing_since ? h("td", { class: "full", "data-label": `${shadow ? "Would have refused" : "Refused"}, last 15 min` }, spark(past))
      : h("td", { class: "full idle quiet" }, "none"),
    rule.last_refused ? h("td", { class: "full", "data-label": shadow ? "Would refuse since" : "Refusing since" }, since(rule, now)) : h("td", { class: "full idle quiet" }, "–"));
}

function since(rule, now) {
  if (!rule.refusing_since) return h("span", { class: "quiet" }, `not now; last at ${clock(rule.last_refused)}`);
  return [h("span", {}, clock(rule.refusing_since)), h("span", { class: "detail" }, `for ${span(now - rule.refusing_since)}`)];
}

const nothing = (text, columns) => h("tr", {}, h("td", { class: "quiet full", colspan: columns }, text));

function upstreams({ upstreams: all }, rates) {
  fill(find("#upstreams"), all.length ? all.map((upstream, at) => {
    const of = (read) => rates.of((seen) => (seen.upstreams[at]?.name === upstream.name ? read(seen.upstreams[at]) : undefined));
    const failures = of((seen) => seen.failures);
    const errors = of((seen) => seen.errors);
    return h("div", { class: "upstream" },
      h("h3", {}, upstream.name),
      h("p", { class: "detail" }, `${rate(failures)}/s failed, ${rate(errors)}/s with a 5xx response, ${rate(of((seen) => seen.retries))}/s retried`),
      h("ul", { class: "servers" }, upstream.servers.map(server_row)));
  }) : h("p", { class: "quiet" }, "There are no upstreams: weir answers every request itself."));
}

function server_row(server) {
  return h("li", {},
    server.healthy ? h("span", { class: "badge good" }, "up") : h("span", { class: "badge bad" }, "down"),
    server.drained && h("span", { class: "badge warn", title: "an operator keeps requests away from it" }, "drained"),
    h("span", { class: "code" }, server.server),
    h("span", { class: "quiet" }, `${plural(server.in_flight, "request")} in flight`,
      server.weight !== server.configured_weight && `, weight ${server.weight} instead of ${server.configured_weight}`),
    server.ejections > 0 && h("span", { class: "quiet" }, `ejected ${plural(server.ejections, "time")} since the start`));
}

const fact = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, ...value));

function state(overview, rates) {
  const { keys, redis, process, certificates = [], now } = overview;
  const cpu = rates.of((seen) => seen.process?.cpu_seconds);
  fill(find("#state"),
    keys && fact("Key table", `${count(keys.used)} of ${count(keys.slots)} slots used`,
      h("meter", { min: 0, max: keys.slots, high: 0.9 * keys.slots, value: keys.used, "aria-label": "used slots of the key table" }),
      keys.overflowed > 0 && h("span", { class: "detail" }, `${plural(keys.overflowed, "charge")} to overflow cells`)),
    redis ? redis_fact(redis, rates) : fact("Redis", h("span", { class: "quiet" }, "no rule uses Redis")),
    certificates.map((each) => fact("Certificate", certificate(each, now))),
    process && fact("Process", `${plural(overview.workers, "worker")}, ${bytes(process.resident_bytes)}`,
      h("span", { class: "detail" }, `${cpu == null ? "–" : Math.round(cpu * 100)} % of a core, ${count(process.open_descriptors)} of ${count(process.most_descriptors)} descriptors`)));
}

function redis_fact(redis, rates) {
  const mood = redis.up === redis.connections ? "good" : redis.up === 0 ? "bad" : "warn";
  const word = { good: "connected", bad: "unreachable", warn: `${redis.up} of ${redis.connections} connected` }[mood];
  return fact("Redis", h("span", { class: `badge ${mood}` }, word),
    h("span", { class: "detail" }, `${rate(rates.of((seen) => seen.redis?.calls))} calls/s, ${rate(rates.of((seen) => seen.redis?.failures))}/s failed, ` +
      `${plural(redis.timeouts, "time-out")} and ${plural(redis.reconnects, "reconnect")} since the start`));
}

function certificate({ listener, shown_to, file, not_after }, now) {
  const days = Math.floor((not_after - now) / 86_400_000);
  const mood = days < 0 ? "bad" : days < 14 ? "warn" : "good";
  return h("span", {}, h("span", { class: `badge ${mood}` }, days < 0 ? "expired" : `${plural(days, "day")} left`),
    h("span", { class: "detail code" }, listener ? `${file} on ${listener}` : `${file}, shown to ${shown_to}`));
}
