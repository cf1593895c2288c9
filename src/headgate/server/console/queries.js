// The list of queries: how far each is complete, how far behind, its rate, its state. Only visible rows are drawn.

import { element, mark, one, soon, write } from "./dom.js";
import { behind, count, instant, rate, span } from "./format.js";
import { isOwn, on, queries, select, state } from "./state.js";

const HEIGHT = 76;
const rows = [];
let names = [];

/** In a word or two, how a query is, and how bad that is: "failed", "held", "behind" or "good". */
export function condition(query) {
  if (query.trouble) return { kind: "failed", text: "failed" };
  if (query.sink.trouble) return { kind: "failed", text: "sink fails" };
  const waits = query.why.inputs.some((input) => input.waiting > 0);
  if (query.why.held_by && waits) {
    const silent = query.why.held_by.split(", ").some((name) => state.status.streams[name]?.silent);
    if (silent || query.why.since_s > 3) return { kind: "held", text: `waits for ${query.why.held_by}` };
  }
  if (query.complete === null) return { kind: "idle", text: "nothing yet" };
  return { kind: "good", text: "runs" };
}

export function start() {
  const list = one("#query-list");
  one("#filter").addEventListener("input", () => {
    list.scrollTop = 0;
    soon("queries", draw);
  });
  list.addEventListener("scroll", () => soon("queries", draw), { passive: true });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || names.length === 0) return;
    event.preventDefault();
    const at = Math.max(0, Math.min(names.length - 1, Math.max(0, names.indexOf(state.query)) + step));
    select("query", names[at]);
    list.scrollTop = Math.max(Math.min(list.scrollTop, at * HEIGHT), (at + 1) * HEIGHT - list.clientHeight);
  });
  new ResizeObserver(() => soon("queries", draw)).observe(list);
  for (const event of ["status", "query", "view"]) on(event, () => soon("queries", draw));
}

function draw() {
  if (!state.status) return;
  const wanted = one("#filter").value.trim().toLowerCase();
  const all = state.status.queries;
  names = Object.keys(all).filter((name) => !isOwn(name) && (!wanted || matches(name, all[name], wanted)));
  const total = queries().length;
  write(one("#count"), wanted ? `${names.length} of ${total}` : `${total}`);
  const list = one("#query-list");
  const space = one("#query-space");
  const height = `${names.length * HEIGHT}px`;
  if (space.style.height !== height) space.style.height = height;
  const first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 1);
  const shown = names.slice(first, first + Math.ceil(list.clientHeight / HEIGHT) + 2);
  while (rows.length < shown.length) rows.push(space.appendChild(row()));
  while (rows.length > shown.length) rows.pop().remove();
  shown.forEach((name, index) => fill(rows[index], name, all[name], (first + index) * HEIGHT));
}

function matches(name, query, wanted) {
  return (
    name.toLowerCase().includes(wanted) ||
    query.text.toLowerCase().includes(wanted) ||
    condition(query).text.toLowerCase().includes(wanted)
  );
}

function row() {
  const parts = ["name", "state", "complete", "lag", "rate", "latency"].map((what) => element("span", { class: what }));
  const made = element("div", { class: "query", role: "option" }, ...parts);
  made.parts = Object.fromEntries(parts.map((part) => [part.className, part]));
  made.addEventListener("click", () => select("query", made.dataset.name));
  return made;
}

function fill(made, name, query, top) {
  const how = condition(query);
  const lag = behind(query.complete, state.receivedAt);
  made.dataset.name = name;
  const place = `translateY(${top}px)`;
  if (made.style.transform !== place) made.style.transform = place;
  mark(made, "aria-selected", name === state.query);
  mark(made, "data-condition", how.kind);
  mark(made, "title", query.trouble ?? query.why.text);
  write(made.parts.name, name);
  write(made.parts.state, how.text);
  write(made.parts.complete, `up to ${instant(query.complete)}`);
  write(made.parts.lag, lag === null ? "" : `${span(lag)} behind`);
  write(made.parts.rate, query.results === null ? "in a family" : `${rate(query.results_rate)} · ${count(query.results)}`);
  write(made.parts.latency, query.age_seconds === null ? "" : `latency ${span(query.age_seconds)}`);
}
