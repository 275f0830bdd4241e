// Runs the dashboard: asks for the token if weir needs one, and then requests the data repeatedly. Shows a message if
// weir does not answer.

import { ask, forgetToken, hasToken, isAdmitted, keepToken, Unauthorized } from "./api.js";
import { Charts } from "./charts.js";
import { find, say } from "./dom.js";
import * as explain from "./explain.js";
import * as panels from "./panels.js";
import { Rates } from "./rates.js";
import * as top from "./top.js";
import * as verdict from "./verdict.js";
import { clock, rate, span } from "./words.js";

const kEvery = 2000; // milliseconds between two requests while the page is visible
const kEveryHidden = 20_000; // milliseconds between two requests while the page is hidden
const kHistoryEvery = 15_000;

let charts;
let rates = new Rates();
let history;
let historyAt = 0;
let started; // start time of the weir process that sent the latest data
let shownAt; // when the latest data arrived; undefined if no data has arrived
let seenAt; // the time of weir's clock in the latest data
let timer;
let asking = false;

async function poll() {
  if (asking) return;
  asking = true;
  clearTimeout(timer);
  try {
    if (started === undefined && !(await isAdmitted())) return askForToken();
    const overview = await ask("/api/overview");
    await remember(overview);
    show(overview);
    await top.refresh(overview);
  } catch (error) {
    if (error instanceof Unauthorized) return askForToken();
    lost(error);
  } finally {
    asking = false;
  }
  timer = setTimeout(poll, document.hidden ? kEveryHidden : kEvery);
}

// Requests the history of the last minutes. The charts need it once after each start of weir. The table of rules
// needs it regularly.
async function remember(overview) {
  const fresh = started !== overview.started;
  if (!fresh && Date.now() - historyAt < kHistoryEvery) return;
  history = await ask("/api/history");
  historyAt = Date.now();
  if (!fresh) return;
  started = overview.started;
  rates = new Rates();
  find("#figures").hidden = false; // this line must come first, because the charts measure their size
  find("#waiting").hidden = true;
  charts ??= new Charts();
  charts.begin(history);
}

function show(overview) {
  rates.take(overview);
  const traffic = (name) => rates.latest((seen) => seen.traffic[name]);
  const now = { admitted: traffic("admitted"), delayed: traffic("delayed"), refused: traffic("refused") };
  if (now.admitted !== null) charts.push(overview.now, now);
  for (const name of Object.keys(now)) say(find(`[data-series=${name}] output`), rate(now[name]));
  verdict.show(overview, rates);
  panels.show(overview, rates, history);
  say(find("#identity"), `${overview.version}, up ${span(overview.now - overview.started)}`);
  say(find("#freshness"), `as of ${clock(overview.now)}`);
  document.title = `${find("#headline").textContent} – weir`;
  document.documentElement.classList.remove("stale");
  document.documentElement.dataset.polls = Number(document.documentElement.dataset.polls ?? 0) + 1;
  find("#trouble").hidden = true;
  find("#forget").hidden = !hasToken();
  shownAt = Date.now();
  seenAt = overview.now;
}

function lost(error) {
  const gone = error instanceof TypeError || error.name === "TimeoutError";
  const what = gone ? "weir does not answer." : `weir answers with an error: ${error.message}.`;
  const old = shownAt ? ` The data below is ${span(Date.now() - shownAt)} old.` : "";
  find("#trouble").hidden = false;
  say(find("#trouble"), `${what}${old} Trying again every ${kEvery / 1000} seconds.`);
  find("#waiting").hidden = true;
  document.documentElement.classList.add("stale");
  document.title = "No answer – weir";
  if (shownAt) charts.push(seenAt + Date.now() - shownAt, null);
}

// Shows the form that asks for the token. Called again if the token was wrong or is no longer valid.
function askForToken() {
  const wrong = hasToken();
  forgetToken();
  find("#figures").hidden = true;
  find("#waiting").hidden = true;
  find("#trouble").hidden = true;
  find("#forget").hidden = true;
  find("#login").hidden = false;
  say(find("#login-fault"), wrong ? "Wrong token." : "");
  find("#token").setAttribute("aria-invalid", wrong);
  find("#token").select();
}

find("#login").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(find("#token").value);
  find("#token").value = "";
  find("#login").hidden = true;
  find("#waiting").hidden = false;
  started = undefined;
  poll();
});

find("#forget").addEventListener("click", () => {
  forgetToken();
  clearTimeout(timer);
  askForToken();
});

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && find("#login").hidden) poll();
});

explain.listen(askForToken);
poll();
