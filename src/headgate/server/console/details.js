// Properties of what is selected. Those that can be changed are fields; each change is a CQL statement that is shown.

import * as api from "./api.js";
import { copy, element, notice, one, soon, write } from "./dom.js";
import { behind, bytes, count, instant, named, rate, span } from "./format.js";
import { METRICS, add } from "./graphs.js";
import { on, refresh, select, state } from "./state.js";

let shown = "";
let values = new Map();

export function start() {
  for (const event of ["status", "selected"]) on(event, () => soon("details", draw));
}

/** Carry out statements, and say what was sent and what became of it. */
export async function send(cql) {
  try {
    const answers = await api.execute(cql);
    notice("Sent", "done", cql);
    refresh();
    return answers;
  } catch (error) {
    notice([error.message, error.detail, error.hint].filter(Boolean).join(" "), "mistake", cql);
    return null;
  }
}

function draw() {
  if (!state.status) return;
  const { kind, name } = state.selected;
  const found = rowsOf(kind, name);
  const key = `${kind}:${name}:${found.map(([label]) => label).join()}`;
  if (key !== shown) {
    shown = key;
    build(kind, name, found);
  }
  for (const [label, value] of found) write(values.get(label), value);
}

function build(kind, name, found) {
  values = new Map(found.map(([label]) => [label, element("dd")]));
  const list = element("dl", {}, ...found.flatMap(([label]) => [element("dt", {}, label), values.get(label)]));
  const title = kind === "engine" ? "Engine" : name;
  const back = kind === "engine" ? null : element("button", { class: "quiet", onclick: () => select("engine", "") }, "Engine settings");
  one("#details").replaceChildren(
    element("div", { class: "bar" }, element("h2", {}, title), element("span", { class: "faint" }, kind === "engine" ? "" : kind), element("span", { class: "spring" }), back),
    list,
    ...changes(kind, name),
    ...graphsOf(kind, name),
  );
}

function rowsOf(kind, name) {
  const { streams, relations, logs, fragments, queries, settings, version, uptime_seconds } = state.status;
  if (kind === "query" && queries[name]) {
    const one = queries[name];
    const lag = behind(one.complete, state.receivedAt);
    return [
      ["complete up to", instant(one.complete)],
      ["behind the clock", lag === null ? "–" : span(lag)],
      ["held back by", one.why.held_by || "nothing"],
      ["results", count(one.results)],
      ["rate", rate(one.results_rate)],
      ["latency", span(one.age_seconds)],
      ["epochs", count(one.epochs)],
      ["gives", one.kind === "stream" ? "a stream" : "a relation"],
      ["sink", `${one.sink.kind}, ${one.sink.guarantee}`],
      ["waiting for the sink", count(one.sink.waiting_rows)],
      ["fragments", one.fragments.join(", ")],
      ...(one.trouble || one.sink.trouble ? [["error", one.trouble ?? one.sink.trouble]] : []),
    ];
  }
  const source = kind === "stream" ? streams[name] : kind === "relation" ? relations[name] : null;
  if (source) {
    return [
      ["heartbeat", instant(source.heartbeat)],
      ["state", source.silent ? "silent" : "speaking"],
      ["tuples", count(source.taken)],
      ["rate", rate(source.taken_rate)],
      ["dead letters", Object.entries(source.dead).map(([why, n]) => `${n} ${why}`).join(", ") || "none"],
      ["from", source.connector ?? "rows that are pushed"],
      ["kept in its log", logs[name] ? `${count(logs[name].kept_rows)} rows, ${bytes(logs[name].kept_bytes)}` : "–"],
      ["columns", Object.entries(source.columns).map(([column, type]) => `${column} ${type}`).join(", ")],
      ...(source.trouble ? [["error", source.trouble]] : []),
    ];
  }
  if (kind === "fragment" && fragments[name]) {
    const one = fragments[name];
    return [
      ["queries", one.queries.join(", ")],
      ["complete up to", instant(one.complete)],
      ["rows in", `${count(one.rows_in)}, ${rate(one.rows_in_rate)}`],
      ["rows out", `${count(one.rows_out)}, ${rate(one.rows_out_rate)}`],
      ["rows that wait", Object.entries(one.reads).map(([log, n]) => `${count(n)} of ${log}`).join(", ")],
      ["epochs", count(one.epochs)],
      ...Object.entries(one.keeps).map(([synopsis, limit]) => [`keeps ${synopsis}`, limit]),
      ["failed", one.failed ? "yes" : "no"],
    ];
  }
  if (kind === "log" && logs[name]) {
    return [
      ["rows so far", `${count(logs[name].rows)}, ${rate(logs[name].rows_rate)}`],
      ["kept", `${count(logs[name].kept_rows)} rows, ${bytes(logs[name].kept_bytes)}, ${logs[name].chunks} files`],
      ["read by", logs[name].read_by.join(", ")],
    ];
  }
  const shownSettings = ["timeout", "epoch_rows", "flush_rows", "heartbeats", "scheduling", "failed_after"];
  return [["version", version], ["runs for", span(uptime_seconds)], ...shownSettings.map((setting) => [setting, settings[setting]])];
}

/** A field with a button: what is typed in is made a statement. */
function change(label, example, statement, clear = null) {
  const field = element("input", { "aria-label": label, placeholder: example, autocomplete: "off", spellcheck: "false" });
  const set = (event) => {
    event.preventDefault();
    if (field.value.trim()) send(statement(field.value.trim())).then((done) => done && (field.value = ""));
  };
  return element(
    "form",
    { class: "change", onsubmit: set },
    element("label", {}, label),
    field,
    element("button", {}, "Set"),
    clear && element("button", { type: "button", class: "quiet", onclick: () => send(clear) }, "Clear"),
  );
}

const quoted = (text) => (/^\d+$/.test(text) ? text : `'${text.replaceAll("'", "''")}'`);

function changes(kind, name) {
  const cql = named(name);
  if (kind === "stream") {
    return [
      element("h3", {}, "Change"),
      change("Disorder bound", "2 SECONDS", (value) => `DISORDER OF ${cql} ${value};`, `DROP DISORDER OF ${cql};`),
      change("Heartbeats", "ON DEMAND WITHIN 5 SECONDS", (value) => `HEARTBEAT OF ${cql} ${value};`, `DROP HEARTBEAT OF ${cql};`),
      change("Timeout, of all streams", "2 SECONDS", (value) => `TIMEOUT ${value};`, "DROP TIMEOUT;"),
    ];
  }
  if (kind === "query") {
    const text = state.status.queries[name].text;
    const area = element("textarea", { rows: 7, spellcheck: "false", "aria-label": `CQL of ${name}`, value: text });
    const alter = () => send(`ALTER QUERY ${cql} AS ${area.value.trim().replace(/;$/, "")};`);
    const drop = (event) => {
      if (event.target.dataset.sure) send(`DROP QUERY ${cql};`);
      else {
        event.target.dataset.sure = "yes";
        event.target.textContent = "Drop it for good";
      }
    };
    return [
      element("h3", {}, "CQL"),
      area,
      element("div", { class: "buttons" }, element("button", { onclick: alter }, "Alter"), element("button", { class: "quiet", onclick: () => copy(area.value) }, "Copy"), element("span", { class: "spring" }), element("button", { class: "danger", onclick: drop }, "Drop")),
    ];
  }
  if (kind === "engine") {
    return [
      element("h3", {}, "Change"),
      change("Timeout", "2 SECONDS", (value) => `TIMEOUT ${value};`, "DROP TIMEOUT;"),
      change("Epoch rows", "auto, or 10000", (value) => `SET epoch_rows = ${quoted(value)};`, "SET epoch_rows = 'auto';"),
      change("Flush rows", "none, or 1000", (value) => `SET flush_rows = ${quoted(value)};`, "SET flush_rows = 'none';"),
      change("Heartbeats of new queries", "query, operator, memory-aware", (value) => `SET heartbeats = ${quoted(value)};`),
      change("Scheduling", "fifo, greedy, chain", (value) => `SET scheduling = ${quoted(value)};`, "SET scheduling = 'fifo';"),
      change("Skew bound", "FROM a TO b (WITHIN 5 SECONDS)", (value) => `SKEW ${value};`),
    ];
  }
  return [];
}

function graphsOf(kind, name) {
  const metrics = METRICS[kind] ?? [];
  if (!metrics.length) return [];
  const buttons = metrics.map((metric) => element("button", { class: "quiet", onclick: () => add(kind, name, metric.column) }, `+ ${metric.label}`));
  return [element("h3", {}, "Graph over time"), element("div", { class: "buttons" }, ...buttons)];
}
