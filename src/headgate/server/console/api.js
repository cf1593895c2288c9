// Requests to the server: statements, status, rows, and results as they come. The token is kept for this tab alone.

const KEY = "headgate-token";

/** A refusal of the server: `code`, `message`, `place`, `detail`, `hint`; or that it does not answer. */
export class Refused extends Error {
  constructor(said, status) {
    super(said.message);
    Object.assign(this, { code: said.code, place: said.place, detail: said.detail, hint: said.hint, status });
    this.answers = said.answers ?? [];
  }
}

let wantToken = null;

/** Say what asks the user for the token: it returns a promise of it. */
export function onTokenWanted(ask) {
  wantToken = ask;
}

let asking = null;

async function request(path, options = {}, again = true) {
  const token = sessionStorage.getItem(KEY);
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused({ code: "no-answer", message: "the server does not answer", hint: "" }, 0);
  }
  if (answer.status === 401 && again) {
    asking ??= wantToken(Boolean(token)).finally(() => (asking = null)); // many requests, one question
    sessionStorage.setItem(KEY, await asking);
    return request(path, options);
  }
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({ code: "broken", message: `the server answered ${answer.status}` }));
    throw new Refused(said, answer.status);
  }
  return answer;
}

async function get(path) {
  return (await request(path)).json();
}

async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return (await request(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

const encoded = (name) => encodeURIComponent(name.toWellFormed?.() ?? name); // half a character has no code
const query = (name) => `/queries/${encoded(name)}`;

export const status = () => get("/status");
export const execute = async (cql) => (await post("/statements", { cql })).answers;
export const why = (name) => get(`${query(name)}/why`);
export const explain = (name) => get(`${query(name)}/explain`);
export const about = (name) => get(query(name));
export const results = (name, after, limit) => get(`${query(name)}/results?limit=${limit}&after=${after}`);
export const push = (stream, rows) => post(`/streams/${encoded(stream)}`, rows);
export const completions = (before, after) => post("/completions", { before, after });

/**
 * Follow the results of a query, from a position on, and come back when the connection breaks: every result once.
 *
 * `on.rows(rows, complete)` gets results, `on.restart()` is called when the query has other results now, `on.end(error)`
 * when there is nothing more to follow, `on.state(text)` whenever it changes how it is. Returns what stops it.
 */
export function follow(name, after, on) {
  const stop = new AbortController();
  let position = after;
  let pause = 250;

  async function read() {
    const headers = position.includes("-") ? { "Last-Event-ID": position } : {};
    const answer = await request(`${query(name)}/live?after=${position}`, { headers, signal: stop.signal });
    on.state?.("live");
    pause = 250;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      const blocks = text.split("\n\n");
      text = blocks.pop();
      for (const block of blocks) take(fields(block));
    }
  }

  function take({ event, data }) {
    if (event === "results") {
      const said = JSON.parse(data);
      position = said.position;
      on.rows(said.rows, said.complete);
    } else if (event === "end") {
      throw new Refused(JSON.parse(data), 0);
    }
  }

  async function run() {
    while (!stop.signal.aborted) {
      try {
        await read();
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error.code === "results-changed") {
          position = "beginning";
          on.restart?.();
        } else if (error.status === 404 || error.code === "no-such-query" || error.code === "results-elsewhere") {
          on.end?.(error);
          return;
        }
      }
      if (stop.signal.aborted) return;
      on.state?.("reconnecting");
      await new Promise((done) => setTimeout(done, pause));
      pause = Math.min(pause * 2, 4000);
    }
  }

  run();
  return () => stop.abort();
}

function fields(block) {
  const found = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) found[line.slice(0, colon)] = line.slice(colon + 2);
  }
  return found;
}
