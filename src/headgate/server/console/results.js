// Results of the query that is shown, as they come: the last ones as a table, and numbers as a chart.

import * as api from "./api.js";
import { element, mark, one, soon, write } from "./dom.js";
import { cell, instant } from "./format.js";
import { on, state } from "./state.js";

const SHOWN = 200;
const POINTS = 500;
let followed = null;
let stop = () => {};
let rows = [];
let total = 0;
let charted = null;
let chart = null;

export function start() {
  one("#results").append(
    element("div", { class: "bar" }, element("h2", { id: "results-title" }, "Results"), element("span", { class: "faint", id: "results-note" }), element("span", { class: "spring" }), element("select", { id: "charted", "aria-label": "Column of the chart", onchange: (event) => ((charted = event.target.value), clearChart(), soon("results", draw)) })),
    element("div", { id: "results-chart", class: "plot" }),
    element("div", { class: "scroll" }, element("table", { id: "results-table" }, element("thead"), element("tbody"))),
  );
  for (const event of ["query", "view", "status"]) on(event, follow);
}

function follow() {
  if (state.view !== "results" || followed === state.query) return;
  stop();
  followed = state.query;
  rows = [];
  total = 0;
  charted = null;
  clearChart();
  write(one("#results-title"), followed ?? "Results");
  write(one("#results-note"), "");
  one("#results-table thead").replaceChildren();
  one("#results-table tbody").replaceChildren();
  if (!followed) return;
  const name = followed;
  begin(name).catch((error) => write(one("#results-note"), error.message));
}

/** Begin a few rows before the end: a query may have millions of results. */
async function begin(name) {
  const { position } = await api.about(name);
  if (name !== followed) return;
  const [edition, last] = position.split("-");
  const from = Number(last) > SHOWN ? `${edition}-${Number(last) - SHOWN}` : "beginning";
  stop = api.follow(name, from, {
    rows(more) {
      rows.push(...more);
      total += more.length;
      if (rows.length > POINTS) rows.splice(0, rows.length - POINTS);
      soon("results", draw);
    },
    restart: () => (rows = []),
    state: (how) => mark(one("#results"), "data-live", how),
    end: (error) => write(one("#results-note"), `${error.message}. ${error.hint ?? ""}`),
  });
}

function draw() {
  if (!rows.length) return;
  write(one("#results-note"), `${total} seen, the last at ${instant(rows.at(-1)._time)}`);
  const columns = Object.keys(rows.at(-1));
  const head = one("#results-table thead");
  if (head.dataset.columns !== columns.join()) {
    head.dataset.columns = columns.join();
    const words = { _time: "time", _change: "±" };
    head.replaceChildren(element("tr", {}, ...columns.map((column) => element("th", {}, words[column] ?? column))));
    const numbers = columns.filter((column) => rows.some((row) => typeof row[column] === "number") && column !== "_time");
    charted = numbers[0] ?? null;
    one("#charted").replaceChildren(...numbers.map((column) => element("option", { value: column }, `chart ${column}`)));
    one("#charted").hidden = numbers.length === 0;
  }
  fill(one("#results-table tbody"), rows.slice(-SHOWN).reverse(), columns);
  drawChart();
}

/** Write rows into the lines that are there: no line is made or removed while their number stays. */
export function fill(body, shown, columns) {
  while (body.rows.length < shown.length) body.append(element("tr"));
  while (body.rows.length > shown.length) body.lastChild.remove();
  shown.forEach((row, at) => {
    const line = body.rows[at];
    while (line.cells.length < columns.length) line.append(element("td"));
    while (line.cells.length > columns.length) line.lastChild.remove();
    columns.forEach((column, place) => {
      write(line.cells[place], column === "_time" ? instant(row[column]) : cell(row[column] ?? null));
      mark(line.cells[place], "class", typeof row[column] === "number" ? "number" : null);
    });
  });
}

async function drawChart() {
  const box = one("#results-chart");
  box.hidden = charted === null;
  if (charted === null) return;
  const points = rows.filter((row) => typeof row[charted] === "number" && row._change !== "-");
  const at = (row) => (typeof row._time === "number" ? row._time : Date.parse(row._time) / 1000);
  const sorted = points.map((row) => [at(row), row[charted]]).sort((a, b) => a[0] - b[0]);
  const data = [sorted.map(([time]) => time), sorted.map(([, value]) => value)];
  const { default: UPlot } = await import("./vendor/uplot/uPlot.esm.js");
  if (chart) return chart.setData(data);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  chart = new UPlot(
    { width: Math.max(240, box.clientWidth), height: 190, legend: { show: false }, scales: { x: { time: typeof rows[0]._time !== "number" } }, axes: [axis, { ...axis, size: 56 }], series: [{}, { stroke: colour("--accent"), width: 0, paths: () => null, points: { show: true, size: 5, fill: colour("--accent") } }] },
    data,
    box,
  );
  new ResizeObserver(() => box.clientWidth && chart?.setSize({ width: box.clientWidth, height: 190 })).observe(box);
}

function clearChart() {
  chart?.destroy();
  chart = null;
  one("#results-chart").replaceChildren();
}
