// What the page knows: the last status of the server, what is selected, which view is shown. Others are told of changes.

import * as api from "./api.js";

const PERIOD = 1000;

export const state = {
  status: null,
  receivedAt: 0,
  connected: false,
  /** {kind: "query" | "stream" | "relation" | "fragment" | "log" | "sink" | "engine", name} */
  selected: { kind: "engine", name: "" },
  /** The query whose plan and results are shown. */
  query: null,
  view: "picture",
};

const listeners = { status: [], selected: [], query: [], view: [], connection: [] };

export const on = (event, listener) => listeners[event].push(listener);

function tell(event) {
  for (const listener of listeners[event]) listener(state);
}

/** Select a part of the picture; a query becomes the one that is shown. */
export function select(kind, name) {
  state.selected = { kind, name };
  if (kind === "query" && state.query !== name) {
    state.query = name;
    tell("query");
  }
  tell("selected");
}

export function show(view) {
  state.view = view;
  document.body.dataset.view = view;
  tell("view");
}

/** Names of queries that serve graphs are the console's own, and not listed. */
export const isOwn = (name) => name.startsWith("console_graph_");

export function queries() {
  return Object.entries(state.status?.queries ?? {}).filter(([name]) => !isOwn(name));
}

let timer = null;

/** Ask for the status now, and again and again; while the page is hidden, not at all. */
export async function refresh() {
  clearTimeout(timer);
  let pause = PERIOD;
  try {
    state.status = await api.status();
    state.receivedAt = Date.now();
    connection(true);
    settle();
    tell("status");
  } catch (error) {
    connection(false, error);
    pause = PERIOD;
  }
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(refresh, pause);
}

function connection(connected, error = null) {
  if (state.connected !== connected || error) {
    state.connected = connected;
    state.error = error;
    tell("connection");
  }
}

/** Keep what is selected among what there is. */
function settle() {
  const known = queries();
  if (state.query !== null && !(state.query in state.status.queries)) {
    state.query = null;
    if (state.selected.kind === "query") state.selected = { kind: "engine", name: "" };
  }
  if (state.query === null && known.length > 0) {
    select("query", known[0][0]);
  }
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});
