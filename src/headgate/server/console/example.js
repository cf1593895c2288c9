// The example: water at the gates of a canal. The page itself is the feeds: it pushes rows, and each can be silenced.

import * as api from "./api.js";
import { element, mark, notice, one, write } from "./dom.js";
import { put, run } from "./editor.js";
import { on, queries, refresh, show, state } from "./state.js";

const SCRIPT = `-- water at the gates of a canal: two meters and a rain gauge, pushed by this page
CREATE STREAM upstream   (gate STRING, flow DOUBLE, at TIMESTAMP) TIMESTAMP BY at DISORDER 500 MILLISECONDS;
CREATE STREAM downstream (gate STRING, flow DOUBLE, at TIMESTAMP) TIMESTAMP BY at DISORDER 1 SECOND;
CREATE STREAM rain       (gate STRING, mm   DOUBLE, at TIMESTAMP) TIMESTAMP BY at DISORDER 1 SECOND;

CREATE QUERY averages AS
  SELECT ISTREAM(gate, ROUND(AVG(flow), 1) AS flow, COUNT(*) AS readings)
  FROM upstream [RANGE 10 SECONDS SLIDE 2 SECONDS] GROUP BY gate;

CREATE QUERY losses AS
  SELECT ISTREAM(u.gate, ROUND(u.flow - d.flow, 1) AS lost, u.at AS above, d.at AS below)
  FROM upstream [RANGE 500 MILLISECONDS] AS u, downstream [RANGE 500 MILLISECONDS] AS d
  WHERE u.gate = d.gate AND u.flow - d.flow > 3;

CREATE QUERY merged AS
  SELECT ISTREAM(*) FROM (
    SELECT 'upstream' AS feed, gate, flow AS value FROM upstream [NOW]
    UNION ALL SELECT 'downstream', gate, flow FROM downstream [NOW]
    UNION ALL SELECT 'rain', gate, mm FROM rain [NOW]);
`;
const FEEDS = { upstream: "flow", downstream: "flow", rain: "mm" };
const GATES = { north: 42, middle: 38, south: 35 };
const PERIOD = 500;
const KEY = "headgate-example";
const silenced = new Set(JSON.parse(sessionStorage.getItem(KEY) ?? "[]"));
let timer = null;
let refused = "";

export function start() {
  one("#welcome").append(
    element("h1", {}, "Nothing is registered yet"),
    element("p", {}, "Ask a question once, and its answer is kept up to date. The example creates three streams and three queries. This page then pushes rows, so that answers come at once; a feed can be silenced by a click, and the plan shows who waits for it."),
    element("pre", {}, SCRIPT),
    element("div", { class: "buttons" }, element("button", { class: "primary", id: "run-example", onclick: begin }, "Run the example"), element("button", { onclick: () => show("editor") }, "Write your own")),
  );
  on("status", () => {
    const empty = queries().length === 0 && Object.keys(state.status.streams).length === 0;
    mark(one("#welcome"), "hidden", !empty || state.view === "editor" || null);
    if (!empty && sessionStorage.getItem(KEY) && timer === null && Object.keys(FEEDS).every((name) => name in state.status.streams)) feed();
    showFeeds();
  });
  on("view", () => state.status && mark(one("#welcome"), "hidden", queries().length > 0 || state.view === "editor" || Object.keys(state.status.streams).length > 0 || null));
}

async function begin() {
  put(SCRIPT);
  mark(one("#run-example"), "disabled", true);
  await run();
  await refresh();
  mark(one("#run-example"), "disabled", null);
  if ("merged" in state.status.queries) feed();
  else show("editor");
}

function feed() {
  remember();
  timer = setInterval(push, PERIOD);
  showFeeds();
}

const remember = () => sessionStorage.setItem(KEY, JSON.stringify([...silenced]));

/** Push what each feed says now. A server that does not answer is asked again in the next turn. */
function push() {
  for (const [name, column] of Object.entries(FEEDS)) {
    if (silenced.has(name)) continue;
    const now = Date.now();
    const rows = Object.entries(GATES).map(([gate, flow], at) => {
      const wave = 4 * Math.sin(now / 7000 + at) + Math.random();
      const value = name === "rain" ? Math.max(0, wave / 4) : name === "upstream" ? flow + wave : flow + wave - 2 - 2 * at;
      return { gate, [column]: Number(value.toFixed(2)), at: new Date(now - 100 * at).toISOString() };
    });
    api.push(name, rows).then(() => (refused = ""), (error) => {
      if (error.status !== 0 && error.status !== 503 && refused !== error.code) notice(`${name}: ${error.message}`, "mistake");
      refused = error.code; // said once, however often it happens
      if (error.code === "no-such-stream") end();
    });
  }
}

function end() {
  clearInterval(timer);
  timer = null;
  silenced.clear();
  sessionStorage.removeItem(KEY);
  showFeeds();
}

function showFeeds() {
  const bar = one("#feeds");
  mark(bar, "hidden", timer === null || null);
  if (timer === null) return;
  if (!bar.children.length) {
    bar.append(
      element("span", {}, "Feeds of the example"),
      ...Object.keys(FEEDS).map((name) => element("button", { "data-feed": name, onclick: () => toggle(name) })),
      element("button", { class: "quiet", onclick: end }, "stop all"),
    );
  }
  for (const button of bar.querySelectorAll("[data-feed]")) {
    const name = button.dataset.feed;
    mark(button, "aria-pressed", silenced.has(name));
    write(button, silenced.has(name) ? `${name} is silenced` : `silence ${name}`);
  }
}

function toggle(name) {
  if (!silenced.delete(name)) silenced.add(name);
  remember();
  showFeeds();
}
