// Numbers, instants and spans of time as people read them.

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function count(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) < 100_000 ? plain.format(value) : short.format(value);
}

export function rate(value) {
  if (value === null || value === undefined) return "–";
  return `${value !== 0 && value < 10 ? value.toFixed(1) : count(value)}/s`;
}

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  for (; value >= 1024 && power < units.length - 1; power++) value /= 1024;
  return `${power ? value.toFixed(1) : value} ${units[power]}`;
}

/** A span of time in seconds. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** The milliseconds of an instant that is a text in ISO 8601; null if time is a number. */
export function milliseconds(instant) {
  if (typeof instant !== "string") return null;
  const found = Date.parse(instant);
  return Number.isNaN(found) ? null : found;
}

/** An instant: the time of day if it is today's, else all of it; numbers as they are. */
export function instant(value) {
  if (value === null || value === undefined) return "–";
  const at = milliseconds(value);
  if (at === null) return String(value);
  const [day, time] = new Date(at).toISOString().replace("Z", "").split("T");
  const today = new Date().toISOString().slice(0, 10);
  return day === today ? time.slice(0, 12) : `${day} ${time.slice(0, 8)}`;
}

/** How many seconds an instant is behind the clock; null if time is a number, or lies in another age. */
export function behind(value, now = Date.now()) {
  const at = milliseconds(value);
  return at === null ? null : (now - at) / 1000;
}

/** A value of a row. */
export function cell(value) {
  if (value === null) return "null";
  if (typeof value === "object") return JSON.stringify(value);
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(8)));
  return String(value);
}

/** A name as CQL takes it. */
export function named(name) {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `\`${name.replaceAll("`", "``")}\``;
}
