// The top of the dashboard: whether weir is healthy, which rules refuse requests, and since when.

import { find, fill, h, say } from "./dom.js";
import { clock, plural, rate, span } from "./words.js";

const kDay = 86_400_000;
const kWarnDays = 14; // a certificate that expires in fewer days causes a warning
const kNearlyFull = 0.9; // the dashboard warns if a larger part of the key table is in use

export const refusals = (rule) => rule.counters.refused + rule.counters.shadow_refused;

// Returns the findings, the worst first: { mood: "bad" | "warn" | "note", badge, text, about }. `about`: the affected
// part of weir, which the headline names.
export function findings(overview, rates) {
  const all = [...readiness(overview), ...alerts(overview), ...redis(overview, rates), ...servers(overview, rates),
               ...certificates(overview), ...table(overview, rates), ...rules(overview, rates)];
  const order = ["bad", "warn", "note"];
  return all.sort((one, other) => order.indexOf(one.mood) - order.indexOf(other.mood));
}

const finding = (mood, badge, text, about = badge) => ({ mood, badge, text, about });

function readiness({ ready, detail }) {
  if (ready) return [];
  if (detail === "about to drain") return [finding("warn", "about to drain", "weir was told to stop. It serves until drain_delay is over.")];
  if (detail === "draining") return [finding("warn", "draining", "weir finishes its present requests and accepts no new ones.")];
  return [finding("bad", "not ready", detail || "weir accepts no requests.")];
}

function alerts({ alerts = [] }) {
  return alerts.filter((alert) => alert.firing)
    .map((alert) => finding("bad", "alert", `${alert.name} has been firing ${alert.clients === undefined ? "" : `for ${plural(alert.clients, "client")} `}since ${clock(alert.since)}: ${alert.seen} events in the last period; the threshold is ${alert.above}.`,
      `alert ${alert.name}`));
}

function redis({ redis }, rates) {
  if (!redis) return [];
  if (redis.up === 0) return [finding("bad", "redis", "Redis cannot be reached: its rules follow on_store_failure.", "Redis")];
  const found = [];
  if (redis.up < redis.connections) found.push(finding("warn", "redis", `${redis.up} of ${plural(redis.connections, "connection")} ${redis.up === 1 ? "is" : "are"} up.`, "Redis"));
  const failing = rates.of((seen) => seen.redis?.failures);
  if (failing > 0) found.push(finding("warn", "redis", `${rate(failing)} calls/s get no usable reply.`, "Redis"));
  return found;
}

function servers({ upstreams }, rates) {
  const found = [];
  for (const [at, upstream] of upstreams.entries()) {
    const out = upstream.servers.filter((server) => !server.healthy).map((server) => server.server);
    const all = upstream.servers.length;
    if (out.length > 0)
      found.push(finding(out.length === all ? "bad" : "warn", upstream.name,
        out.length === all ? `No server receives requests (${out.join(", ")}).` : `${out.length} of ${all} servers ${out.length === 1 ? "is" : "are"} down: ${out.join(", ")}.`,
        `upstream ${upstream.name}`));
    const drained = upstream.servers.filter((server) => server.drained).map((server) => server.server);
    if (drained.length > 0)
      found.push(finding(drained.length === all ? "bad" : "warn", upstream.name,
        drained.length === all ? `All servers are drained (${drained.join(", ")}): requests get 503.` : `${drained.length} of ${all} servers ${drained.length === 1 ? "is" : "are"} drained: ${drained.join(", ")}.`,
        `upstream ${upstream.name}`));
    const failing = rates.of((seen) => sum(seen.upstreams[at]));
    if (failing > 0) found.push(finding("warn", upstream.name, `${rate(failing)} requests/s fail or get a 5xx response.`, `upstream ${upstream.name}`));
  }
  return found;
}
const sum = (upstream) => (upstream ? upstream.failures + upstream.errors : undefined);

function certificates({ certificates = [], now }) {
  return certificates.filter(({ not_after }) => not_after - now < kWarnDays * kDay)
    .map(({ file, not_after }) => not_after <= now
      ? finding("bad", "certificate", `${file} expired ${span(now - not_after)} ago.`, "a certificate")
      : finding("warn", "certificate", `${file} expires in ${span(not_after - now)}.`, "a certificate"));
}

function table({ keys }, rates) {
  if (!keys) return [];
  const overflowing = rates.of((seen) => seen.keys?.overflowed);
  if (overflowing > 0) return [finding("warn", "key table", "The table or a rule's share of it is full: new clients share overflow cells.", "the key table")];
  const full = keys.used / keys.slots;
  return full > kNearlyFull ? [finding("warn", "key table", `${Math.round(full * 100)} % of the slots are used.`, "the key table")] : [];
}

function rules(overview, rates) {
  return overview.rules.map((rule, at) => ({ rule, refused: rates.of((seen) => refused_of(seen, at, rule.name)) }))
    .filter(({ rule }) => rule.refusing_since)
    .sort((one, other) => shadow(one) - shadow(other) || (other.refused ?? 0) - (one.refused ?? 0))
    .map(({ rule, refused }) => finding("note", rule.name, limiting(rule, refused, overview.now)));
}

const shadow = ({ rule }) => Number(rule.mode === "shadow");

function limiting(rule, refused, now) {
  const only = rule.mode === "shadow";
  const since = `since ${clock(rule.refusing_since)} (${span(now - rule.refusing_since)})`;
  if (!refused) return `${only ? "would have refused" : "refused"} clients ${since}, last at ${clock(rule.last_refused)}`;
  return `${only ? "would refuse" : "refuses"} ${rate(refused)}/s, ${since}`;
}

const refused_of = (overview, at, name) => {
  const rule = overview.rules[at]?.name === name ? overview.rules[at] : undefined;
  return rule && refusals(rule);
};

function headline(found, overview) {
  const worst = found[0]?.mood;
  if (!overview.ready) return { draining: "Draining", "about to drain": "About to drain" }[overview.detail] ?? "Not ready";
  const limiting = overview.rules.filter((rule) => rule.refusing_since && rule.mode !== "shadow").length;
  const limits = limiting === 0 ? "No client is being limited." : `${plural(limiting, "rule")} ${limiting === 1 ? "is" : "are"} limiting clients.`;
  if (worst !== "bad" && worst !== "warn") return `Healthy. ${limits}`;
  const about = new Set(found.filter(({ mood }) => mood === worst).map((each) => each.about));
  return `${worst === "bad" ? "In trouble" : "Needs attention"}: ${[...about].join(", ")}. ${limits}`;
}

const kMost = 8; // how many findings are listed; the tables below show the rest

export function show(overview, rates) {
  const found = findings(overview, rates);
  const mood = found[0]?.mood ?? "good";
  find("#verdict").className = `verdict ${mood}`;
  say(find("#headline"), headline(found, overview));
  const rows = found.slice(0, kMost).map(({ mood: each, badge, text }) =>
    h("li", { class: each }, h("span", { class: "badge" }, badge), h("span", {}, text)));
  if (found.length > kMost) rows.push(h("li", { class: "quiet" }, `and ${found.length - kMost} more below`));
  fill(find("#findings"), rows);
}
