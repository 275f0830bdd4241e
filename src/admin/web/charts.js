// The three charts of requests per second, which Dygraph draws, and the small charts in the table of rules.

import { find, say } from "./dom.js";
import { clock, rate } from "./words.js";

const kKept = 15 * 60 * 1000; // longest time shown, in milliseconds
const kLeast = 3 * 60 * 1000; // shortest time shown, even if weir has just started
const kSeries = ["admitted", "delayed", "refused"];

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Only these two plugins are used. The Legend plugin would set inline styles, which the page's
// Content-Security-Policy forbids.
Dygraph.PLUGINS = [Dygraph.Plugins.Axes, Dygraph.Plugins.Grid];

// The data of all three charts. Each row has a time and the three rates at that time; a rate is null if it is
// unknown.
class Track {
  rows = [];

  push(milliseconds, rates) {
    this.rows.push([new Date(milliseconds), ...kSeries.map((name) => (rates ? rates[name] : null))]);
    while (this.rows[0][0] < milliseconds - kKept) this.rows.shift();
  }

  // Returns the times and the rates for the chart of this name.
  of(name) {
    const at = kSeries.indexOf(name) + 1;
    return this.rows.map((row) => [row[0], row[at]]);
  }
}

export class Charts {
  #track = new Track();
  #plots = new Map();

  constructor() {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#build());
    new ResizeObserver(() => this.#plots.forEach((chart) => chart.resize())).observe(find(".charts"));
  }

  // Starts with weir's history, which covers the time before this page was opened.
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

  // Adds a row. `rates`: null if the rates at that time are unknown.
  push(milliseconds, rates) {
    this.#track.push(milliseconds, rates);
    if (this.#plots.size === 0) this.#build();
    else this.#show();
  }

  #build() {
    if (this.#track.rows.length === 0) return;
    for (const name of kSeries) {
      this.#plots.get(name)?.destroy();
      this.#plots.set(name, plot(name, this.#track.of(name)));
    }
    this.#show();
  }

  #show() {
    const latest = +this.#track.rows.at(-1)[0];
    const oldest = Math.min(+this.#track.rows[0][0], latest - kLeast);
    for (const [name, chart] of this.#plots) {
      const rows = this.#track.of(name);
      const values = rows.map((row) => row[1]).filter((value) => value !== null);
      chart.updateOptions({ file: rows, dateWindow: [oldest, latest], valueRange: [0, ceiling(values)] });
      describe(name, values);
    }
  }
}

// Returns the top of the chart's scale. It is at least 1.1, so that a few requests do not look like a peak.
const ceiling = (values) => Math.max(1, ...values) * 1.1;

const place = (name) => find(`[data-series=${name}] .plot`);

function describe(name, values) {
  place(name).setAttribute("role", "img");
  place(name).setAttribute("aria-label",
    `Requests ${name} per second in the last 15 minutes: ${rate(values.at(-1) ?? 0)} now, ${rate(Math.max(0, ...values))} at most`);
}

// Draws a chart. Its axes show hours and minutes, and rates in the format of the rest of the page.
function plot(name, rows) {
  const chart = new Dygraph(place(name), rows, {
    labels: ["time", name],
    colors: [colour(name)],
    strokeWidth: 1.75,
    fillGraph: true,
    fillAlpha: 0.15,
    legend: "never",
    interactionModel: {},
    highlightCircleSize: 3,
    rightGap: 8,
    axes: {
      x: { drawGrid: false, pixelsPerLabel: 60, axisLabelFormatter: (at) => clock(+at).slice(-8, -3) },
      y: { axisLabelWidth: 40, pixelsPerLabel: 34, axisLabelFormatter: rate },
    },
    axisLabelFontSize: 11,
    axisLineColor: colour("grid"),
    gridLineColor: colour("grid"),
    highlightCallback: (_, at, [point]) => point_at(name, at, point?.yval),
    unhighlightCallback: () => point_at(name),
  });
  place(name).querySelector("input")?.remove(); // the invisible input that Dygraph adds has no label
  return chart;
}

// Shows the value under the pointer in the chart's caption.
function point_at(name, at, value) {
  const title = name[0].toUpperCase() + name.slice(1);
  say(find(`[data-series=${name}] figcaption`), value == null ? title : `${title}: ${rate(value)} at ${clock(at)}`);
}

const kSteps = 180; // number of steps in weir's history

// Returns a small chart of a rule's refusals. The chart is plain SVG, so that a hundred of these
// charts use little time.
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
