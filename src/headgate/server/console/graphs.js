// Graphs over time. Each is a continuous query over a system stream, which is registered when the graph is added,
// followed as all results are, and dropped when it is closed. A reload of the page finds the graphs of this tab again.

import * as api from "./api.js";
import { copy, element, notice, one } from "./dom.js";
import { cell, named } from "./format.js";
import { on, show, state } from "./state.js";

/** What can be drawn of each kind of thing: a column of its system stream. */
export const METRICS = {
  query: [
    { column: "rate", label: "results a second" },
    { column: "behind_seconds", label: "seconds behind" },
    { column: "waiting", label: "tuples that wait" },
    { column: "age_seconds", label: "latency" },
  ],
  stream: [
    { column: "rate", label: "tuples a second" },
    { column: "behind_seconds", label: "seconds behind" },
    { column: "kept_rows", label: "rows kept" },
    { column: "dead", label: "dead letters" },
  ],
  fragment: [
    { column: "rate_in", label: "rows in a second" },
    { column: "rate_out", label: "rows out a second" },
    { column: "waiting", label: "tuples that wait" },
    { column: "state_rows", label: "rows of state" },
  ],
};
const STREAMS = { query: "queries", stream: "streams", fragment: "fragments" };
const POINTS = 600;
const graphs = [];
const KEY = "headgate-graphs";

/** The query of a graph. */
export function cqlOf({ kind, name, column }) {
  const system = STREAMS[kind];
  return `SELECT ISTREAM(${column} AS value) FROM SYSTEM.${system} [NOW] WHERE ${kind} = '${name.replaceAll("'", "''")}'`;
}

export function start() {
  one("#graphs").append(
    element("div", { class: "bar" }, element("h2", {}, "Graphs"), element("span", { class: "faint" }, "each is a CQL query over a system stream")),
    element("div", { id: "graph-list" }, element("p", { class: "empty" }, "Select a query, a stream or a fragment, and add a graph under its properties.")),
  );
  let found = false;
  on("status", () => {
    if (found) return;
    found = true;
    for (const kept of JSON.parse(sessionStorage.getItem(KEY) ?? "[]")) open(kept);
  });
}

/** Add a graph of a figure of a query, stream or fragment. */
export async function add(kind, name, column) {
  const graph = { kind, name, column, query: `console_graph_${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}` };
  show("graphs");
  await open(graph);
}

const remember = () => sessionStorage.setItem(KEY, JSON.stringify(graphs.map(({ about }) => about)));

async function open(about) {
  if (!(about.query in state.status.queries)) {
    try {
      await api.execute(`CREATE QUERY ${named(about.query)} AS ${cqlOf(about)};`);
    } catch (error) {
      notice(`The graph could not be added: ${error.message}`, "mistake", cqlOf(about));
      return;
    }
  }
  const { default: UPlot } = await import("./vendor/uplot/uPlot.esm.js");
  const label = METRICS[about.kind].find((metric) => metric.column === about.column).label;
  const plot = element("div", { class: "plot" });
  const note = element("span", { class: "faint" }, "waiting for the first sample");
  const graph = { about, plot, times: [], values: [], chart: null };
  graph.card = element(
    "article",
    { class: "card", "data-query": about.query },
    element("div", { class: "bar" }, element("h3", {}, `${about.name}: ${label}`), note, element("span", { class: "spring" }),
      element("button", { class: "quiet", onclick: () => copy(`${cqlOf(about)};`) }, "Copy CQL"),
      element("button", { class: "quiet", "aria-label": "Close the graph", onclick: () => close(graph) }, "×")),
    plot,
    element("code", {}, cqlOf(about)),
  );
  one("#graph-list .empty")?.remove();
  one("#graph-list").append(graph.card);
  graphs.push(graph);
  remember();
  let asked = false;
  const draw = () => {
    asked = false;
    if (!graph.chart) graph.chart = chart(UPlot, graph, label);
    graph.chart.setData([graph.times, graph.values]);
    note.textContent = cell(graph.values.at(-1) ?? null);
  };
  graph.stop = api.follow(about.query, "beginning", {
    rows(rows) {
      for (const row of rows) {
        if (row.value === null && !graph.times.length) continue; // a rate needs two samples
        graph.times.push(Date.parse(row._time) / 1000);
        graph.values.push(row.value === null ? null : Number(row.value));
      }
      graph.times.splice(0, graph.times.length - POINTS);
      graph.values.splice(0, graph.values.length - POINTS);
      if (!asked && graph.times.length > 1) {
        asked = true;
        requestAnimationFrame(draw);
      }
    },
    restart() {
      graph.times = [];
      graph.values = [];
    },
    end: (error) => (note.textContent = error.message),
  });
}

function chart(UPlot, graph, label) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const made = new UPlot(
    {
      width: Math.max(240, graph.plot.clientWidth || 480),
      height: 180,
      legend: { show: false },
      cursor: { y: false },
      axes: [axis, { ...axis, size: 56 }],
      series: [{}, { label, stroke: colour("--accent"), width: 2, fill: colour("--accent-soft"), spanGaps: true }],
    },
    [graph.times, graph.values],
    graph.plot,
  );
  new ResizeObserver(() => graph.plot.clientWidth && made.setSize({ width: graph.plot.clientWidth, height: 180 })).observe(graph.plot);
  return made;
}

/** Draw all graphs anew, in the colours of the page. */
export function recolour() {
  for (const graph of graphs) {
    graph.chart?.destroy();
    graph.chart = null;
  }
}

async function close(graph) {
  graph.stop();
  graph.card.remove();
  graphs.splice(graphs.indexOf(graph), 1);
  remember();
  try {
    await api.execute(`DROP QUERY ${named(graph.about.query)};`);
  } catch (error) {
    notice(error.message, "mistake");
  }
}
