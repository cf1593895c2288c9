// Elements made of plain calls, and changes that go to the screen once a frame. Data is only ever put in as text.

/** Make an element: `element("button", {class: "quiet", onclick: run}, "Run")`. */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Make an element of a picture. */
export function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "value") made.value = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Put a text into an element if it has another one: an equal text costs nothing, and nothing else moves. */
export function write(target, text) {
  const spelled = String(text);
  if (target.textContent !== spelled) target.textContent = spelled;
}

/** Set an attribute if it has another value; null takes it away. */
export function mark(target, name, value) {
  if (value === null || value === undefined || value === false) target.removeAttribute(name);
  else if (target.getAttribute(name) !== String(value)) target.setAttribute(name, value);
}

export const one = (selector) => document.querySelector(selector);

const waiting = new Map();

/** Do some work before the next frame. However often it is asked for under a key, it is done once a frame. */
export function soon(key, work) {
  if (waiting.size === 0) requestAnimationFrame(flush);
  waiting.set(key, work);
}

function flush() {
  const works = [...waiting.values()];
  waiting.clear();
  for (const work of works) work();
}

/** Show a message for some seconds, or until it is closed if it is a mistake. */
export function notice(text, kind = "done", more = "") {
  const box = element("div", { class: `notice ${kind}` }, element("span", {}, text), more && element("code", {}, more));
  box.append(element("button", { class: "quiet", "aria-label": "Close", onclick: () => box.remove() }, "×"));
  const all = one("#notices");
  all.append(box);
  while (all.children.length > 4) all.firstChild.remove();
  if (kind === "done") setTimeout(() => box.remove(), 6000);
}

/** Put a text on the clipboard, and say so. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    notice("Copied", "done", text);
  } catch {
    notice("The browser does not let this page copy. Here is the text:", "mistake", text);
  }
}
