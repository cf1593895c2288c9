// Starts the page: views, keys, theme, token, connection.

import * as api from "./api.js";
import * as details from "./details.js";
import { element, one, write } from "./dom.js";
import * as editor from "./editor.js";
import * as example from "./example.js";
import * as graphs from "./graphs.js";
import * as picture from "./picture.js";
import * as queries from "./queries.js";
import * as results from "./results.js";
import { on, refresh, show, state } from "./state.js";

const VIEWS = ["picture", "results", "graphs", "editor"];

function startViews() {
  for (const tab of document.querySelectorAll("nav [role=tab]")) {
    tab.addEventListener("click", () => show(tab.dataset.view));
  }
  one("nav").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const tabs = [...document.querySelectorAll("nav [role=tab]")].filter((tab) => tab.offsetParent !== null);
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    next.focus();
    show(next.dataset.view);
  });
  on("view", () => {
    for (const tab of document.querySelectorAll("nav [role=tab]")) {
      const chosen = tab.dataset.view === state.view;
      tab.setAttribute("aria-selected", chosen);
      tab.tabIndex = chosen ? 0 : -1;
    }
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, dialog");
    if (event.altKey && VIEWS[Number(event.key) - 1]) {
      event.preventDefault();
      show(VIEWS[Number(event.key) - 1]);
    } else if (event.key === "/" && !typing) {
      event.preventDefault();
      if (matchMedia("(max-width: 900px)").matches) show("queries");
      one("#filter").focus();
    }
  });
}

function startTheme() {
  const chosen = localStorage.getItem("headgate-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
  one("#theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("headgate-theme", root.dataset.theme);
    graphs.recolour();
  });
}

/** Ask for the token in a dialog. */
function askToken(wrong) {
  const dialog = one("#token-dialog");
  return new Promise((answered) => {
    const field = element("input", { type: "password", "aria-label": "Token", autocomplete: "off", required: true });
    const form = element(
      "form",
      { method: "dialog" },
      element("h2", { id: "token-title" }, "This server wants a token"),
      element("p", {}, wrong ? "It did not take the one it was given." : "It is the text in its HEADGATE_TOKEN."),
      field,
      element("p", { class: "faint" }, "It is kept until this tab is closed, and sent to this server only."),
      element("button", { class: "primary" }, "Go on"),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      dialog.close();
      answered(field.value.trim());
    });
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.replaceChildren(form);
    if (!dialog.open) dialog.showModal();
    field.focus();
  });
}

function showConnection() {
  const place = one("#connection");
  const trouble = Object.values(state.status?.troubles ?? {}).reduce((sum, one) => sum + Object.keys(one).length, 0);
  const how = !state.connected ? "lost" : trouble ? "trouble" : state.status?.running ? "live" : "still";
  place.dataset.state = how;
  place.title = state.error?.message ?? "";
  const words = { lost: "no answer, trying again", trouble: `${trouble} in trouble`, live: "live", still: "not running" };
  write(place, words[how]);
}

api.onTokenWanted(askToken);
startTheme();
startViews();
for (const part of [queries, picture, details, results, graphs, editor, example]) part.start();
on("connection", showConnection);
on("status", showConnection);
show("picture");
refresh();
