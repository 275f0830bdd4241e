// The three charts of requests a second, and the small ones of rules.

import { find, say } from "./dom.js";
import { clock, rate } from "./words.js";

const kKept = 15 * 60 * 1000; // milliseconds that are shown at most,
const kLeast = 3 * 60; // and seconds at least, however short weir has run
const kSeries = ["admitted", "delayed", "refused"];

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Rates at instants: what all three charts show.
class Track {
  times = []; // in seconds, as uPlot has them
  values = { admitted: [], delayed: [], refused: [] };

  push(milliseconds, rates) {
    this.times.push(milliseconds / 1000);
    for (const name of kSeries) this.values[name].push(rates ? rates[name] : null);
    const oldest = (milliseconds - kKept) / 1000;
    while (this.times[0] < oldest) {
      this.times.shift();
      for (const name of kSeries) this.values[name].shift();
    }
  }
}

export class Charts {
  #track = new Track();
  #plots = new Map();

  constructor() {
    for (const name of kSeries) this.#plots.set(name, undefined);
    const rebuild = () => this.#build();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", rebuild);
    new ResizeObserver(() => this.#fit()).observe(find(".charts"));
  }

  // What weir remembers of the time before this page was opened.
  begin(history) {
    this.#track = new Track();
    const steps = history.admitted.length;
    const second = history.step_ms / 1000;
    for (let i = 0; i < steps; ++i) {
      const at = history.end - (steps - 1 - i) * history.step_ms;
      this.#track.push(at, Object.fromEntries(kSeries.map((name) => [name, history[name][i] / second])));
    }
    this.#build();
  }

  // `rates`: null for a time of which nothing is known.
  push(milliseconds, rates) {
    this.#track.push(milliseconds, rates);
    this.#show();
  }

  #build() {
    for (const name of kSeries) {
      this.#plots.get(name)?.destroy();
      this.#plots.set(name, plot(name, this.#data(name)));
    }
    this.#show();
  }

  #data(name) {
    return [this.#track.times, this.#track.values[name]];
  }

  #show() {
    const latest = this.#track.times.at(-1);
    if (latest === undefined) return;
    const oldest = Math.min(this.#track.times[0], latest - kLeast);
    for (const [name, chart] of this.#plots) {
      if (!chart) continue;
      chart.setData(this.#data(name), false);
      chart.batch(() => {
        chart.setScale("x", { min: oldest, max: latest });
        chart.setScale("y", { min: 0, max: ceiling(this.#track.values[name]) });
      });
      describe(name, this.#track.values[name]);
    }
  }

  #fit() {
    for (const [name, chart] of this.#plots) if (chart) chart.setSize(room(name));
  }
}

// The least top of the scale that looks calm: an idle weir is a flat line, not noise blown up.
const ceiling = (values) => Math.max(1, ...values.filter((value) => value !== null)) * 1.1;

const place = (name) => find(`[data-series=${name}] .plot`);
const room = (name) => ({ width: Math.max(80, place(name).clientWidth), height: Math.max(60, place(name).clientHeight) });

function describe(name, values) {
  const known = values.filter((value) => value !== null);
  const most = Math.max(0, ...known);
  place(name).setAttribute("role", "img");
  place(name).setAttribute("aria-label",
    `Requests ${name} a second over the last 15 minutes: now ${rate(known.at(-1) ?? 0)}, at most ${rate(most)}`);
}

function plot(name, data) {
  const line = colour(name);
  const axis = { stroke: colour("quiet"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return new uPlot({
    ...room(name),
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "traffic" }, drag: { x: false, y: false }, y: false },
    scales: { x: { time: true }, y: { auto: false, range: (_, low, high) => [low ?? 0, high ?? 1] } },
    axes: [
      { ...axis, grid: { show: false }, size: 26, gap: 8, space: 60, values: (_, ticks) => ticks.map((tick) => clock(tick * 1000).slice(-8, -3)) },
      { ...axis, size: 40, gap: 6, space: 34, values: (_, ticks) => ticks.map(rate) },
    ],
    series: [{}, { stroke: line, width: 1.75, fill: `${line}26`, points: { show: false }, spanGaps: false }],
    hooks: { setCursor: [(chart) => point(name, chart)] },
  }, data, place(name));
}

// What the pointer is at stands where the current rate does.
const pointed = new Map();
function point(name, chart) {
  const at = chart.cursor.idx;
  const value = at == null ? null : chart.data[1][at];
  pointed.set(name, value == null ? undefined : `${rate(value)} at ${clock(chart.data[0][at] * 1000)}`);
  caption(name);
}
function caption(name) {
  const title = name[0].toUpperCase() + name.slice(1);
  say(find(`[data-series=${name}] figcaption`), pointed.get(name) ? `${title}: ${pointed.get(name)}` : title);
}

const kSteps = 180; // that weir remembers

// A small chart of what a rule refused: SVG, so that a table of a hundred costs little.
export function spark(known) {
  const counts = [...Array(Math.max(0, kSteps - known.length)).fill(0), ...known];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "spark");
  svg.setAttribute("viewBox", "0 0 100 20");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const most = Math.max(...counts, 1);
  const points = counts.map((count, i) => `${((i * 100) / Math.max(1, counts.length - 1)).toFixed(1)},${(19 - (18 * count) / most).toFixed(1)}`);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", `M0,19.5 L${points.join(" L")} L100,19.5 Z`);
  svg.append(path);
  return svg;
}
