// The clients with the most admitted and the most refused units of each rule (GET /api/top). Hidden if weir does not
// count clients.

import { ask } from "./api.js";
import { fill, find, h, shadow_badge } from "./dom.js";
import { count, span } from "./words.js";

export async function refresh({ top: counted }) {
  if (counted) show(await ask("/api/top"));
  else find("#top").hidden = true;
}

function show({ top }) {
  const busy = top.filter(({ admitted, refused }) => admitted.length + refused.length > 0);
  busy.sort((one, other) => shadow(one) - shadow(other) || cost(other.refused) - cost(one.refused));
  find("#top").hidden = false;
  const seconds = Math.max(0, ...top.map((rule) => rule.seconds));
  find("#top-note").textContent = busy.length === 0 ? "No clients yet." :
    `For each rule, the clients with the highest costs${seconds ? ` in the last ${span(seconds * 1000)}` : ""}. The number after ± says by how much a cost may be too high.`;
  if (busy.length > kMostRules) find("#top-note").textContent += ` ${busy.length - kMostRules} more rules have clients; /api/top lists all.`;
  fill(find("#top-rules"), busy.slice(0, kMostRules).map((rule) => h("div", { class: "heavy-rule" }, h("h3", {}, rule.rule, " ", shadow(rule) && shadow_badge()),
    h("div", { class: "heavy" }, list(shadow(rule) ? "Would be refused" : "Refused", rule.refused), list("Admitted", rule.admitted)))));
}

const shadow = ({ mode }) => mode === "shadow";
const cost = (clients) => clients.reduce((sum, client) => sum + client.cost, 0);
const kShown = 8;
const kMostRules = 100;

// Returns the name of a client. Adds a digest if several clients may have the name: if it is empty, or has "api_key" or
// a label, such as "header:x-tenant". An IPv6 address has colons, but is unique.
const is_unique = (client) => /^[0-9a-f:.]+$/.test(client) || (client && !/api_key|:/.test(client));
const named = ({ client, digest }) => (is_unique(client) ? client : `${client} ${digest.slice(0, 8)}`.trim());

function list(title, clients) {
  const rows = clients.slice(0, kShown).map((each) => h("tr", {},
    h("td", { class: "code" }, named(each)),
    h("td", { class: "number" }, count(each.cost), each.error > 0 && h("span", { class: "quiet" }, ` ±${count(each.error)}`))));
  return h("table", {}, h("caption", {}, title),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Client"), h("th", { scope: "col", class: "number" }, "Cost"))),
    h("tbody", {}, rows.length ? rows : h("tr", {}, h("td", { class: "quiet", colspan: 2 }, "none"))));
}
