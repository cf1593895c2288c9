// The plan as a picture: streams, operators of each fragment, logs between them, sinks. Shared parts are drawn once.
// The layout is computed when the shape of the plan changes; figures are written into it in place.

import { element, mark, one, shape, soon, write } from "./dom.js";
import { count, instant, rate } from "./format.js";
import { isOwn, on, select, state } from "./state.js";

const WIDTH = 190;
const MOST = 40;
const drawn = { key: "", nodes: new Map(), edges: [], size: [0, 0] };
let scope = "query";
let zoom = 1;

export function start() {
  const scopes = element(
    "select",
    { "aria-label": "What is drawn", onchange: (event) => ((scope = event.target.value), soon("picture", draw)) },
    element("option", { value: "query" }, "This query"),
    element("option", { value: "all" }, "Everything"),
  );
  const zooming = (factor) => () => ((zoom = factor ? Math.min(3, Math.max(0.2, zoom * factor)) : fitting()), fit());
  one("#picture").append(
    element(
      "div",
      { class: "bar" },
      element("h2", { id: "picture-title" }, "Plan"),
      element("span", { class: "faint", id: "picture-note" }),
      element("span", { class: "spring" }),
      scopes,
      element("button", { class: "quiet", "aria-label": "Smaller", onclick: zooming(1 / 1.25) }, "−"),
      element("button", { class: "quiet", "aria-label": "Fit", onclick: zooming(0) }, "fit"),
      element("button", { class: "quiet", "aria-label": "Larger", onclick: zooming(1.25) }, "+"),
    ),
    element("div", { class: "canvas", id: "canvas" }, shape("svg", { id: "plan", role: "group", "aria-label": "Plan" })),
    element("pre", { id: "why", "aria-live": "polite", "aria-label": "Why it has come no further" }),
  );
  for (const event of ["status", "query", "selected", "view"]) on(event, () => soon("picture", draw));
}

async function draw() {
  if (!state.status || state.view !== "picture") return;
  const plan = planOf(state.status);
  const key = JSON.stringify([plan.nodes.map((node) => [node.id, node.title, node.lines]), plan.edges.map((e) => [e.from, e.to])]);
  if (key !== drawn.key) {
    drawn.key = key;
    const { default: dagre } = await import("./vendor/dagre/dagre.esm.js");
    layOut(plan, dagre);
    zoom = fitting();
    fit();
  }
  figures(plan);
}

/** The nodes and edges of the queries that are shown. */
function planOf(status) {
  const names = Object.keys(status.queries).filter((name) => !isOwn(name));
  const wanted = scope === "all" ? names.slice(0, MOST) : names.filter((name) => name === state.query);
  write(one("#picture-title"), scope === "all" ? "Plan of all queries" : (state.query ?? "Plan"));
  write(one("#picture-note"), scope === "all" && names.length > MOST ? `the first ${MOST} of ${names.length}` : "");
  const nodes = new Map();
  const edges = [];
  const fragments = new Set(wanted.flatMap((name) => status.queries[name].fragments));
  for (let grown = 0; grown !== fragments.size; ) {
    grown = fragments.size; // and the fragments that write what these read
    for (const [name, one] of Object.entries(status.fragments)) {
      if (one.writes && [...fragments].some((other) => one.writes in (status.fragments[other]?.reads ?? {}))) fragments.add(name);
    }
  }
  const held = new Set(wanted.flatMap((name) => status.queries[name].why.held_by.split(/, | and /)).filter(Boolean));
  const input = (log) => {
    const source = status.streams[log] ?? status.relations[log];
    const id = source ? `stream:${log}` : `log:${log}`;
    if (!nodes.has(id)) {
      const kind = source ? source.kind : "log";
      nodes.set(id, { id, kind, name: log, title: log, lines: [kind === "log" ? "log between fragments" : kind], held: held.has(log) });
    }
    return id;
  };
  for (const name of fragments) {
    const fragment = status.fragments[name];
    if (!fragment) continue;
    const operators = [];
    const walk = (plan, parent) => {
      const leaf = /^(stream|relation|log|read) (\S+)$/.exec(plan.operator);
      const log = leaf && leaf[2] in fragment.reads ? leaf[2] : plan.inputs.length === 0 ? Object.keys(fragment.reads).find((one) => plan.operator.endsWith(one)) : null;
      if (log && parent) {
        edges.push({ from: input(log), to: parent, log, fragment: name });
        return;
      }
      const id = `operator:${name}:${operators.length}`;
      operators.push(id);
      const [verb, ...rest] = plan.operator.split(" ");
      nodes.set(id, { id, kind: verb === "window" ? "window" : "operator", name, fragment: name, title: verb, lines: lines(rest.join(" ")), select: "fragment" });
      if (parent) edges.push({ from: id, to: parent, fragment: name });
      for (const one of plan.inputs) walk(one, id);
      if (log) edges.push({ from: input(log), to: id, log, fragment: name });
    };
    walk(fragment.plan, null);
    const kept = Object.keys(fragment.keeps);
    if (operators.length) {
      const top = nodes.get(operators[0]);
      top.answers = true;
      if (kept.length) {
        const id = `state:${name}`;
        nodes.set(id, { id, kind: "state", name, fragment: name, title: "synopses", lines: kept.slice(0, 3), select: "fragment" });
        edges.push({ from: id, to: operators[Math.min(1, operators.length - 1)], fragment: name, quiet: true });
      }
      if (fragment.writes) edges.push({ from: operators[0], to: input(fragment.writes), out: name, fragment: name });
      for (const query of fragment.queries) {
        const view = status.queries[query];
        if (fragment.writes || !wanted.includes(query) || !view) continue;
        const id = `sink:${query}`;
        nodes.set(id, { id, kind: "sink", name: query, title: query, lines: [`to ${view.sink.kind}`], select: "query" });
        edges.push({ from: operators[0], to: id, out: name, fragment: name });
      }
    }
  }
  return { nodes: [...nodes.values()], edges, fragments: [...fragments] };
}

function lines(text) {
  const words = text.split(" ");
  const made = [""];
  for (const word of words) {
    if ((made.at(-1) + word).length > 26 && made.at(-1)) made.push("");
    made[made.length - 1] += `${made.at(-1) ? " " : ""}${word}`;
  }
  const short = made.map((line) => (line.length > 28 ? `${line.slice(0, 27)}…` : line));
  return short.length > 3 ? [...short.slice(0, 2), `${short[2].slice(0, 26)}…`] : short.filter(Boolean);
}

/** Lay the plan out from left to right and from top to bottom, and take the one that can be drawn larger. */
function layOut(plan, dagre) {
  const canvas = one("#canvas");
  const scale = (graph) => Math.min(canvas.clientWidth / graph.graph().width, canvas.clientHeight / graph.graph().height);
  const [across, down] = ["LR", "TB"].map((direction) => placed(plan, dagre, direction));
  const graph = scale(down) > scale(across) ? down : across;
  const svg = one("#plan");
  drawn.nodes.clear();
  drawn.edges = [];
  drawn.size = [graph.graph().width || 10, graph.graph().height || 10];
  const boxes = plan.fragments.map((name) => box(name, plan.nodes.filter((node) => node.fragment === name).map((node) => graph.node(node.id))));
  const edges = plan.edges.map((edge, index) => {
    const { points, x, y } = graph.edge({ v: edge.from, w: edge.to, name: String(index) });
    const text = shape("text", { class: "on-edge", x: x ?? points[1].x, y: (y ?? points[1].y) - 3, "text-anchor": "middle" });
    const waits = shape("text", { class: "waiting", x: x ?? points[1].x, y: (y ?? points[1].y) + 12, "text-anchor": "middle" });
    const path = shape("path", { d: curve(points), class: edge.quiet ? "edge quiet" : "edge", "marker-end": "url(#arrow)" });
    drawn.edges.push({ path, text, waits });
    return shape("g", {}, path, text, waits);
  });
  const nodes = plan.nodes.map((node) => {
    const { x, y, width, height } = graph.node(node.id);
    const group = shape(
      "g",
      { class: `node ${node.kind}`, transform: `translate(${x - width / 2},${y - height / 2})`, tabindex: 0, role: "button", "aria-label": `${node.kind} ${node.title} ${node.lines.join(" ")}` },
      shape("rect", { width, height, rx: node.kind === "log" ? 14 : 7 }),
      shape("text", { class: "title", x: 12, y: 22 }, node.title.length > 22 ? `${node.title.slice(0, 21)}…` : node.title),
      ...node.lines.map((line, at) => shape("text", { class: "line", x: 12, y: 39 + 15 * at }, line)),
    );
    const live = shape("text", { class: "live", x: 12, y: 39 + 15 * node.lines.length });
    group.append(live);
    const pick = () => select(node.select ?? node.kind, node.name);
    group.addEventListener("click", pick);
    group.addEventListener("keydown", (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), pick()));
    drawn.nodes.set(node.id, { group, live });
    return group;
  });
  const arrow = shape("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, shape("path", { d: "M0 0L8 4L0 8z" }));
  svg.replaceChildren(shape("defs", {}, arrow), ...boxes, ...edges, ...nodes);
}

function placed(plan, dagre, direction) {
  const graph = new dagre.graphlib.Graph({ compound: true, multigraph: true });
  graph.setGraph({ rankdir: direction, nodesep: 22, ranksep: 34, marginx: 16, marginy: 16 });
  for (const name of plan.fragments) graph.setNode(`fragment:${name}`, {});
  for (const node of plan.nodes) {
    const live = node.kind === "operator" || node.kind === "window" || node.kind === "state" ? 0 : 1;
    graph.setNode(node.id, { width: WIDTH, height: 36 + 15 * (node.lines.length + live) });
    if (node.fragment) graph.setParent(node.id, `fragment:${node.fragment}`);
  }
  plan.edges.forEach((edge, index) => {
    const label = edge.log || edge.out ? { width: 64, height: 30, labelpos: "c" } : { width: 0, height: 0 };
    graph.setEdge(edge.from, edge.to, label, String(index));
  });
  dagre.layout(graph);
  return graph;
}

function box(name, places) {
  const left = Math.min(...places.map((p) => p.x - p.width / 2)) - 9;
  const top = Math.min(...places.map((p) => p.y - p.height / 2)) - 9;
  const width = Math.max(...places.map((p) => p.x + p.width / 2)) - left + 9;
  const height = Math.max(...places.map((p) => p.y + p.height / 2)) - top + 9;
  if (!Number.isFinite(left) || scope === "all") return shape("g");
  const shared = state.status.fragments[name].queries.length;
  const title = shared > 1 ? `fragment ${name}, shared by ${shared} queries` : `fragment ${name}`;
  return shape("g", { class: "fragment" }, shape("title", {}, title), shape("rect", { x: left, y: top, width, height, rx: 12 }));
}

function curve(points) {
  const [first, ...rest] = points;
  let path = `M${first.x},${first.y}`;
  for (let i = 0; i < rest.length - 1; i++) {
    const next = i === rest.length - 2 ? rest[i + 1] : { x: (rest[i].x + rest[i + 1].x) / 2, y: (rest[i].y + rest[i + 1].y) / 2 };
    path += `Q${rest[i].x},${rest[i].y} ${next.x},${next.y}`;
  }
  return rest.length === 1 ? `${path}L${rest[0].x},${rest[0].y}` : path;
}

/** Write what changes into the picture: rates, waiting rows, what holds queries back, what is selected. */
function figures(plan) {
  const { streams, relations, logs, fragments, queries } = state.status;
  for (const node of plan.nodes) {
    const made = drawn.nodes.get(node.id);
    if (!made) continue;
    const source = streams[node.name] ?? relations[node.name];
    const silent = node.kind === "stream" && source?.silent;
    mark(made.group, "data-held", node.held || null);
    mark(made.group, "data-failed", (node.fragment && fragments[node.fragment]?.failed) || (source && node.kind !== "sink" && source.trouble) || null);
    const chosen = state.selected.kind === (node.select ?? node.kind) && state.selected.name === node.name;
    mark(made.group, "aria-pressed", chosen);
    if (node.kind === "stream" || node.kind === "relation") {
      write(made.live, silent ? "silent" : node.held ? `holds back · ${rate(source.taken_rate)}` : rate(source.taken_rate));
    } else if (node.kind === "sink") write(made.live, `up to ${instant(queries[node.name]?.complete)}`);
    else if (node.kind === "log") write(made.live, `${count(logs[node.name]?.kept_rows ?? 0)} rows kept`);
  }
  plan.edges.forEach((edge, index) => {
    const made = drawn.edges[index];
    if (!made) return;
    const waiting = edge.log ? fragments[edge.fragment]?.reads[edge.log] : 0;
    mark(made.path, "data-waiting", waiting > 0 || null);
    write(made.waits, waiting > 0 ? `${count(waiting)} wait` : "");
    if (edge.log) write(made.text, rate(logs[edge.log]?.rows_rate ?? 0));
    if (edge.out) write(made.text, rate(fragments[edge.out]?.rows_out_rate ?? 0));
  });
  write(one("#why"), queries[state.query]?.why.text ?? "");
  mark(one("#why"), "data-held", Boolean(queries[state.query]?.why.held_by) || null);
}

function fitting() {
  const canvas = one("#canvas");
  const whole = Math.min((canvas.clientWidth - 4) / drawn.size[0], (canvas.clientHeight - 4) / drawn.size[1]);
  return Math.min(1.15, Math.max(0.5, whole));
}

function fit() {
  const svg = one("#plan");
  svg.setAttribute("viewBox", `0 0 ${drawn.size[0]} ${drawn.size[1]}`);
  svg.setAttribute("width", drawn.size[0] * zoom);
  svg.setAttribute("height", drawn.size[1] * zoom);
}
