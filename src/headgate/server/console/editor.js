// The editor: CQL with completion, and errors at their place. What statements answer is shown below.

import * as api from "./api.js";
import { element, mark, one } from "./dom.js";
import { fill } from "./results.js";
import { refresh, select, show } from "./state.js";

const KEY = "headgate-editor";
let area, list, mistake, answers, backdrop;
let offered = [];
let chosen = 0;
let typed = "";
let asked = 0;

export function start() {
  area = element("textarea", { id: "cql", spellcheck: "false", autocapitalize: "off", "aria-label": "CQL", "aria-controls": "completions", placeholder: "CREATE STREAM sales (shop STRING, amount INT);", value: sessionStorage.getItem(KEY) ?? "" });
  backdrop = element("div", { class: "backdrop", "aria-hidden": "true" });
  list = element("ul", { id: "completions", role: "listbox", hidden: true });
  mistake = element("pre", { id: "mistake", role: "alert", hidden: true });
  answers = element("div", { id: "answers", "aria-live": "polite" });
  one("#editor").append(
    element("div", { class: "bar" }, element("h2", {}, "Editor"), element("span", { class: "faint wide-only" }, "Ctrl+Space completes, Ctrl+Enter runs"), element("span", { class: "spring" }), element("button", { class: "primary", id: "run", onclick: run }, "Run")),
    element("div", { class: "pad" }, backdrop, area, list),
    mistake,
    answers,
  );
  area.addEventListener("input", () => {
    clearMistake();
    sessionStorage.setItem(KEY, area.value);
    complete(false);
  });
  area.addEventListener("keydown", key);
  area.addEventListener("blur", () => setTimeout(hide, 150));
  area.addEventListener("scroll", () => (backdrop.scrollTop = area.scrollTop));
}

export function put(cql) {
  area.value = cql;
  sessionStorage.setItem(KEY, cql);
}

function key(event) {
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
    event.preventDefault();
    run();
  } else if (event.ctrlKey && event.key === " ") {
    event.preventDefault();
    complete(true);
  } else if (!list.hidden) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      chosen = (chosen + step + offered.length) % offered.length;
      mark_chosen();
    } else if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      take(offered[chosen]);
    } else if (event.key === "Escape") {
      hide();
    }
  }
}

async function complete(always) {
  const turn = ++asked;
  const at = area.selectionStart;
  const before = area.value.slice(0, at);
  if (!always && !/[\w.[]$/.test(before)) return hide();
  let found;
  try {
    found = await api.completions(before, area.value.slice(at));
  } catch {
    return hide(); // completion is a help: what is typed goes on without it
  }
  if (turn !== asked || area.selectionStart !== at) return;
  offered = found.candidates.filter((one) => one.text !== found.typed);
  typed = found.typed;
  chosen = 0;
  if (!offered.length) return hide();
  list.replaceChildren(
    ...offered.map((one) => element("li", { role: "option", onmousedown: (event) => (event.preventDefault(), take(one)) }, element("span", {}, one.text), element("span", { class: "faint" }, one.kind))),
  );
  const lines = before.split("\n");
  list.style.top = `${Math.min(area.clientHeight - 20, lines.length * 21 + 14 - area.scrollTop)}px`;
  list.style.left = `${Math.min(area.clientWidth - 200, Math.max(8, lines.at(-1).length * 8.2 - typed.length * 8.2 + 14))}px`;
  list.hidden = false;
  mark_chosen();
}

function mark_chosen() {
  [...list.children].forEach((item, at) => mark(item, "aria-selected", at === chosen));
  list.children[chosen]?.scrollIntoView({ block: "nearest" });
}

function take(candidate) {
  const at = area.selectionStart;
  area.setRangeText(candidate.text, at - typed.length, at, "end");
  sessionStorage.setItem(KEY, area.value);
  hide();
  area.focus();
}

function hide() {
  asked++;
  list.hidden = true;
}

function clearMistake() {
  mistake.hidden = true;
  backdrop.replaceChildren();
}

/** Run what is selected, or all of it. */
export async function run() {
  hide();
  clearMistake();
  const [begin, end] = area.selectionStart === area.selectionEnd ? [0, area.value.length] : [area.selectionStart, area.selectionEnd];
  const cql = area.value.slice(begin, end);
  if (!cql.trim()) return;
  mark(one("#run"), "disabled", true);
  try {
    answered(await api.execute(cql));
  } catch (error) {
    answered(error.answers ?? []);
    complain(error, begin);
  } finally {
    mark(one("#run"), "disabled", null);
    refresh();
  }
}

function complain(error, begin) {
  const caret = error.place?.caret ? `\n${error.place.caret}` : "";
  const more = [error.detail, error.hint].filter(Boolean).join("\n");
  mistake.textContent = `${error.code}: ${error.message}${caret}${more ? `\n${more}` : ""}`;
  mistake.hidden = false;
  if (error.place?.start === undefined) return;
  const [from, to] = [begin + error.place.start, begin + error.place.end];
  const text = area.value;
  backdrop.replaceChildren(text.slice(0, from), element("mark", {}, text.slice(from, to) || " "), text.slice(to));
  area.focus();
  area.setSelectionRange(to, to);
}

function answered(found) {
  answers.replaceChildren(...found.map(shown));
}

function shown(answer) {
  if (answer.kind === "listing") return table(answer.columns, answer.rows.map((row) => Object.fromEntries(answer.columns.map((column, at) => [column, row[at]]))));
  if (answer.kind === "snapshot") {
    return element("div", {}, ...Object.entries(answer.queries).flatMap(([name, rows]) => [element("h3", {}, `${name} at ${answer.at}`), table(Object.keys(rows[0] ?? {}), rows)]));
  }
  if (answer.text) return element("pre", {}, answer.text);
  const line = element("p", { class: "answer" }, `${answer.kind} ${answer.name ?? ""} ${answer.did ?? "set"}`);
  if (answer.kind === "query" && answer.did !== "dropped") {
    line.append(" ", element("button", { class: "quiet", onclick: () => refresh().then(() => (select("query", answer.name), show("results"))) }, "see its results"));
  }
  return line;
}

function table(columns, rows) {
  const body = element("tbody");
  fill(body, rows, columns);
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...columns.map((column) => element("th", {}, column)))), body));
}
