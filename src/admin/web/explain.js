// The form that describes a request, and the decision that weir returns for it (POST /api/explain). A button resets the
// key of a refusal, and lifts its penalty (DELETE /api/keys).

import { ask, NotThere, Unauthorized } from "./api.js";
import { find, h, shadow_badge } from "./dom.js";
import { count, micros, plural, span } from "./words.js";

let unauthorized; // called if weir does not accept the token

export function listen(whenUnauthorized) {
  unauthorized = whenUnauthorized;
  find("#explain-form").addEventListener("submit", (event) => {
    event.preventDefault();
    explain();
  });
}

async function explain() {
  const button = find("#explain-form button");
  button.disabled = true;
  try {
    show(await ask("/api/explain", described()));
  } catch (error) {
    if (error instanceof Unauthorized) return unauthorized();
    complain(error instanceof NotThere ? "This weir cannot explain requests." : error.message);
  } finally {
    button.disabled = false;
  }
}

// Returns a button that resets the limit's key and then explains the request again. Returns null if the key is neither
// refused nor delayed and has no violation.
function reset(rule, limit) {
  if (limit.says === "admit" && !limit.violations) return null;
  const button = h("button", { type: "button", class: "plain", "aria-label": `Reset the key of rule ${rule.name}` }, "Reset key");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await ask(`/api/keys?rule=${encodeURIComponent(rule.name)}&key=${limit.digest}`, undefined, "DELETE");
      await explain();
    } catch (error) {
      if (error instanceof Unauthorized) return unauthorized();
      button.replaceWith(h("span", { class: "fault", role: "alert" }, error.message));
    }
  });
  return button;
}

const value = (name) => find(`#explain-${name}`).value.trim();

// Returns what the form describes, without empty fields. Throws if a line is not a header field.
function described() {
  const request = { method: value("method"), path: value("path") };
  for (const name of ["host", "ip"]) if (value(name)) request[name] = value(name);
  const fields = new Map(); // a name that occurs twice is one field with two lines
  for (const line of value("headers").split("\n").filter((each) => each.trim())) {
    const colon = line.indexOf(":");
    if (colon < 1) throw new Error(`"${line.trim()}" is not a header: write Name: value`);
    const name = line.slice(0, colon).trim().toLowerCase();
    fields.set(name, [...(fields.get(name) ?? []), line.slice(colon + 1).trim()]);
  }
  if (fields.size) request.headers = Object.fromEntries(fields);
  const body = find("#explain-body").value; // blanks count
  if (body) request.body = body;
  return request;
}

function complain(text) {
  find("#explanation").replaceChildren(h("p", { class: "fault" }, text));
}

function show({ verdict, client, route, rules }) {
  const mood = { forward: "good", delay: "warn", refuse: "bad" }[verdict.verdict] ?? (verdict.status < 400 ? "good" : "note");
  const said = verdict.verdict === "answer" ? `answer ${verdict.status}` : verdict.verdict;
  const goes = route.name === null ? "no route matches" : `route ${route.name}${route.target ? `, ${route.target}` : ""}`;
  find("#explanation").replaceChildren(
    h("p", { class: "headline" }, h("span", { class: `badge ${mood}` }, said), h("span", {}, verdict.why)),
    h("p", { class: "quiet" }, [`client ${client.address}`, ...traits(client), goes].join("; ")),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Decision of each rule" }, table(rules)));
}

const kPlain = ["address", "peer", "peer_trusted"];
const traits = (client) => Object.entries(client).filter(([name]) => !kPlain.includes(name)).map(([name, said]) => `${name} ${said}`);

function table(rules) {
  const heads = ["Rule", "Key", "Decision", "Left", "Available in"].map((head) => h("th", { scope: "col" }, head));
  return h("table", { class: "rows" }, h("thead", {}, h("tr", {}, heads)),
    h("tbody", {}, rules.length ? rules.map(row) : h("tr", {}, h("td", { class: "quiet full", colspan: 5 }, "There are no rules."))));
}

function row(rule) {
  const name = h("th", { scope: "row", class: "full" }, rule.name, " ",
    rule.mode === "shadow" && shadow_badge(), h("span", { class: "detail" }, rule.match));
  if (!rule.applies) return h("tr", {}, name, h("td", { class: "quiet full", colspan: 4 }, `does not apply: ${rule.why}`));
  const limits = rule.limits ?? [];
  const each = (read) => limits.map((limit) => h("span", { class: "line" }, read(limit)));
  return h("tr", {}, name,
    h("td", { "data-label": "Key" }, h("span", { class: "code" }, (rule.key ?? []).join(", ") || "all requests"),
      rule.cost > 1 && h("span", { class: "detail" }, `costs ${count(rule.cost)}`)),
    h("td", { "data-label": "Decision" }, limits.map((limit) => says(rule, limit)), rule.why && h("span", { class: "detail" }, rule.why)),
    h("td", { "data-label": "Left" }, each((limit) => (limit.says === "pace" ? "" : limit.limit === undefined ? "unknown" : `${count(limit.remaining)} of ${count(limit.limit)}`))),
    h("td", { "data-label": "Available in" }, each(frees)));
}

const kMoods = { admit: "good", delay: "warn", refuse: "bad", pace: "note", unknown: "note" };

function says(rule, limit) {
  const counts = limit.decides === false ? "; does not decide" : "";
  const would = rule.mode === "shadow" && limit.says !== "admit" && limit.says !== "unknown";
  return h("span", { class: "line" }, h("span", { class: `badge ${would ? "note" : kMoods[limit.says]}` }, would ? `would ${limit.says}` : limit.says),
    h("span", { class: "detail" }, [limit.limiter, limit.chosen_by, penalty(limit), limit.note].filter(Boolean).join("; ") + counts),
    reset(rule, limit));
}

function penalty(limit) {
  if (limit.penalty_seconds) return `penalty for ${seconds(limit.penalty_seconds)}`;
  return limit.violations ? plural(limit.violations, "violation") : "";
}

function frees(limit) {
  if (limit.says === "unknown") return "unknown";
  if (limit.says === "pace") return limit.busy_seconds ? `busy for ${seconds(limit.busy_seconds)}` : "now";
  if (limit.retry_after_seconds === null) return "never: the cost exceeds the limit";
  if (limit.retry_after_seconds !== undefined) return `${seconds(limit.retry_after_seconds)}; reset in ${seconds(limit.reset_after_seconds)}`;
  if (limit.delay_seconds) return `forwarded in ${seconds(limit.delay_seconds)}`;
  return limit.reset_after_seconds ? `now; reset in ${seconds(limit.reset_after_seconds)}` : "now; unused";
}
const seconds = (value) => (value === null ? "never" : value < 1 ? micros(value * 1e6) : span(value * 1000));
