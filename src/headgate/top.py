"""`headgate top`: the queries and streams of a running engine in a terminal.

A `Look` is what was read last, from a server's `/status` or from the status file in an engine's directory. `View` is
what the user has chosen; `pressed` says what a key makes of it. `picture` draws both as lines of text. None of these
needs a terminal; `watch` has one. No JVM is started.
"""

from __future__ import annotations

import json
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from rich.cells import set_cell_size
from rich.console import Console
from rich.live import Live
from rich.text import Text

from headgate.errors import UserError
from headgate.observe import status
from headgate.table import printable

ASK_SECONDS = 3.0
LOOK_SECONDS = 1.0
SORTS = ("name", "state", "behind", "waiting", "rate", "latency")
PANELS = {"w": "why", "t": "trace", "p": "plan"}
KEYS = "↑↓ move  s sort  r reverse  / filter  w why  t trace  p plan  q quit"


@dataclass(frozen=True, slots=True)
class QueryLine:
    """What is shown of a query."""

    name: str
    complete: str
    behind: float | None
    """How far behind the furthest of its streams: in seconds, or in units of integer time."""

    rate: float | None
    latency_s: float | None
    waiting: int
    state: str
    held_by: str


@dataclass(frozen=True, slots=True)
class Look:
    """An engine as it was read last; `away` says why it cannot be read now."""

    queries: tuple[QueryLine, ...] = ()
    streams: tuple[tuple[str, str, str], ...] = ()
    """The name of each, up to when it is complete, and its state."""

    away: str = ""
    why: Mapping[str, str] = field(default_factory=dict)


class Place(Protocol):
    """Where a running engine is read."""

    def look(self) -> Look: ...

    def trace(self, query: str) -> str: ...

    def plan(self, query: str) -> str: ...


class Server:
    """An engine behind `headgate serve`."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url, self.token = url.rstrip("/"), token
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise UserError("bad-url", f'"{url}" is no address of a server', hint="http://127.0.0.1:8080")

    def _ask(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            with urlopen(Request(self.url + path, headers=headers), timeout=ASK_SECONDS) as answer:
                return json.load(answer)
        except HTTPError as error:
            hint = "--token, or HEADGATE_TOKEN" if error.code == 401 else ""
            raise UserError("server-refused", f"{self.url} answers {error.code}", hint=hint) from None
        except (URLError, OSError, ValueError) as error:
            raise UserError("server-away", f"{self.url} does not answer", detail=str(error)) from None

    def look(self) -> Look:
        """Read the status of everything."""
        said = self._ask("/status")
        lines, waits = [], {name: sum(one["reads"].values()) for name, one in said["fragments"].items()}
        for name, one in said["queries"].items():
            waiting = sum(waits.get(fragment, 0) for fragment in one["fragments"])
            lines.append(_line(name, one["why"], one.get("results_rate"), one["age_seconds"], waiting, one["trouble"]))
        streams = [
            (
                name,
                _or_dash(one["heartbeat"]),
                "failed" if one["trouble"] else "silent" if one["silent"] else "speaking",
            )
            for name, one in said["streams"].items()
        ]
        return Look(tuple(lines), tuple(streams), "", {name: q["why"]["text"] for name, q in said["queries"].items()})

    def trace(self, query: str) -> str:
        """Read the last heartbeats of a query, a line for each."""
        return _traced(self._ask(f"/queries/{quote(query, safe='')}/trace")["heartbeats"])

    def plan(self, query: str) -> str:
        """Read how a query is computed."""
        return str(self._ask(f"/queries/{quote(query, safe='')}/explain")["text"])


class Directory:
    """An engine that leaves its status in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def look(self) -> Look:
        """Read the last status; one that is old is said to be."""
        said = status.last(self.directory)
        if remark := said.note():
            raise UserError("no-engine", remark)
        lines, streams = [], dict[str, tuple[str, str, str]]()
        failed = said.status["troubles"].get("queries", {})
        for name, why in said.status["queries"].items():
            ages = [sum(age.values()) for age in status.read_traces(self.directory, name)[0].ages()]
            latency_s = sum(ages) / len(ages) / 1e6 if ages else None
            waiting = sum(one["waiting"] for one in why["inputs"])
            lines.append(_line(name, why, None, latency_s, waiting, failed.get(name)))
            streams |= {
                one["stream"]: (one["stream"], _or_dash(one["complete"]), one["state"]) for one in why["inputs"]
            }
        return Look(
            tuple(lines), tuple(streams.values()), "", {name: q["text"] for name, q in said.status["queries"].items()}
        )

    def trace(self, query: str) -> str:
        """Read the last heartbeats of a query, a line for each."""
        return _traced(status.read_traces(self.directory, query)[0].rows())

    def plan(self, query: str) -> str:
        """Plans are not in the status file."""
        raise UserError("no-plan", "the plan is shown by a server", hint="headgate top URL")


def looked(place: Place, before: Look) -> Look:
    """Look again; while that fails, what was read before stays, with the reason."""
    try:
        return place.look()
    except UserError as error:
        return replace(before, away=" ".join(filter(None, (error.message, error.detail, error.hint))))


def _line(
    name: str, why: Mapping[str, Any], rate: float | None, latency_s: float | None, waiting: int, trouble: str | None
) -> QueryLine:
    own, others = _number(why["complete"]), [_number(one["complete"]) for one in why["inputs"]]
    known = [one for one in others if one is not None]
    behind = max(max(known) - own, 0.0) if own is not None and known else None
    state = "failed" if trouble else "held" if why["held_by"] else "ok"
    return QueryLine(name, _or_dash(why["complete"]), behind, rate, latency_s, waiting, state, why["held_by"])


def _number(instant: Any) -> float | None:
    """Return an instant as a number: of seconds if it is one of the calendar."""
    try:
        return float(int(instant))
    except (TypeError, ValueError):
        pass
    try:
        return datetime.fromisoformat(str(instant)).timestamp()
    except ValueError:
        return None


def _or_dash(value: Any) -> str:
    return "-" if value in (None, "") else str(value)


def _traced(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        f"{row['instant']}  {row['took_us'] / 1e6:.3f} s  "
        + "  ".join(f"{stop} {one['at_us'] / 1e6:.3f}" for stop, one in row["stops"].items())
        for row in rows[-20:]
    ]
    return "\n".join(["heartbeats, how long each took, and when each stop was through", *lines])


# what the user has chosen


@dataclass(frozen=True, slots=True)
class View:
    """What the user has chosen."""

    selected: str = ""
    sort: str = "name"
    down: bool = False
    filter: str = ""
    typing: bool = False
    panel: str = ""
    over: bool = False


def chosen(look: Look, view: View) -> list[QueryLine]:
    """Return the queries that the filter lets through, in order. What is not known comes last."""
    found = [one for one in look.queries if view.filter.lower() in one.name.lower()]

    def value(one: QueryLine) -> Any:
        return {"latency": one.latency_s}.get(view.sort, getattr(one, view.sort, None))

    known = sorted((one for one in found if value(one) is not None), key=value, reverse=view.down)
    return known + [one for one in found if value(one) is None]


def pressed(view: View, key: str, look: Look) -> View:
    """Return what a key makes of what was chosen."""
    if view.typing:
        if key in ("enter", "escape"):
            return replace(view, typing=False, filter=view.filter if key == "enter" else "")
        if key == "backspace":
            return replace(view, filter=view.filter[:-1])
        return replace(view, filter=view.filter + key) if len(key) == 1 and key.isprintable() else view
    names = [one.name for one in chosen(look, view)]
    at = names.index(view.selected) if view.selected in names else 0
    moves = {
        "up": -1,
        "k": -1,
        "down": 1,
        "j": 1,
        "page up": -10,
        "page down": 10,
        "home": -len(names),
        "end": len(names),
    }
    if key in moves and names:
        at = at + moves[key] if view.selected in names else 0
        return replace(view, selected=names[min(max(at, 0), len(names) - 1)])
    if key in PANELS:
        selected = view.selected if view.selected in names else (names or [""])[0]
        return replace(view, selected=selected, panel="" if view.panel == PANELS[key] else PANELS[key])
    match key:
        case "s":
            return replace(view, sort=SORTS[(SORTS.index(view.sort) + 1) % len(SORTS)])
        case "r":
            return replace(view, down=not view.down)
        case "/":
            return replace(view, typing=True, filter="")
        case "escape":
            return replace(view, panel="", filter="")
        case "q":
            return replace(view, over=True)
        case _:
            return view


ESCAPES = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[5~": "page up", "\x1b[6~": "page down", "\x1b[H": "home", "\x1b[F": "end",
    "\x1b": "escape", "\r": "enter", "\n": "enter", "\x7f": "backspace",
}  # fmt: skip


def keys_in(text: str) -> list[str]:
    """Return the keys that a terminal has sent."""
    keys = []
    while text:
        known = next((one for one in ESCAPES if text.startswith(one)), text[0])
        keys.append(ESCAPES.get(known, known))
        text = text[len(known) :]
    return keys


# the picture


def picture(look: Look, view: View, panel: str, width: int, height: int | None = None) -> Text:
    """Return the lines of the picture; with a height, as many as fit, around the query that is selected."""
    queries = chosen(look, view)
    title = (
        f"{len(look.queries)} queries, {len(look.streams)} streams; by {view.sort}{', falling' if view.down else ''}"
    )
    title += f"; filter: {view.filter}{'_' if view.typing else ''}" if view.filter or view.typing else ""
    head = [(title, "bold")] + ([(f"away: {look.away}", "bold red")] if look.away else [])
    streams = [
        ("", ""),
        *((f"stream {name}  complete up to {upto}, {state}", "") for name, upto, state in look.streams),
    ]
    below = [("", ""), *((line, "") for line in panel.splitlines())] if panel else []
    foot = [] if height is None else [(KEYS, "dim")]
    if height is not None:
        streams, below = streams[: max(height // 5, 2)], below[: height // 2]
        room = max(height - len(head) - len(streams) - len(below) - len(foot) - 1, 1)
        names = [one.name for one in queries]
        at = names.index(view.selected) if view.selected in names else 0
        first = min(max(at - room // 2, 0), max(len(queries) - room, 0))
        queries = queries[first : first + room]
    columns = _columns(width)
    lines = [*head, ("".join(set_cell_size(name, size) for name, size, _ in columns), "underline")]
    for one in queries:
        style = (
            "reverse"
            if one.name == view.selected and height is not None
            else {"failed": "red", "held": "yellow"}.get(one.state, "")
        )
        lines.append(("".join(set_cell_size(printable(cell(one)), size - 1) + " " for _, size, cell in columns), style))
    text = Text(no_wrap=True, overflow="crop")
    for line, style in [*lines, *streams, *below, *foot]:
        text.append(set_cell_size(printable(line), width).rstrip() + "\n", style)
    return text


def _columns(width: int) -> list[tuple[str, int, Callable[[QueryLine], str]]]:
    """Return the columns that a width has room for: heading, size, and what stands there."""
    name = min(max(width - 62, 18), 40)
    found: list[tuple[str, int, Callable[[QueryLine], str]]] = [
        ("query", name, lambda one: one.name),
        ("state", 7, lambda one: one.state),
        ("complete up to", 27, lambda one: one.complete),
        ("behind", 9, lambda one: _short(one.behind)),
        ("waiting", 9, lambda one: str(one.waiting)),
        ("rate", 9, lambda one: _short(one.rate)),
        ("latency", 9, lambda one: _short(one.latency_s)),
        ("held back by", 24, lambda one: one.held_by),
    ]
    while sum(size for _, size, _ in found) > width and len(found) > 5:
        found.pop()
    return found


def _short(number: float | None) -> str:
    return "-" if number is None else f"{number:.3g}" if number < 1000 else f"{number:.0f}"


def panel_of(place: Place, look: Look, view: View) -> str:
    """Return what stands in the panel; an error there is shown as one."""
    try:
        match view.panel:
            case "why":
                return look.why.get(view.selected, "")
            case "trace":
                return place.trace(view.selected)
            case "plan":
                return place.plan(view.selected)
            case _:
                return ""
    except UserError as error:
        return error.render()


def once(place: Place, console: Console) -> None:
    """Print one picture; an engine that cannot be read is an error."""
    console.print(picture(place.look(), View(), "", console.width))


def watch(place: Place, console: Console) -> None:
    """Show the engine until the user quits. When it is away, this says so, and looks again every second."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    look, view = looked(place, Look()), View()
    panel, next_s = "", time.monotonic() + LOOK_SECONDS
    try:
        tty.setcbreak(keyboard)
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while not view.over:
                live.update(picture(look, view, panel, console.width, console.height - 1), refresh=True)
                if select.select([keyboard], [], [], 0.2)[0]:
                    old = view
                    for key in keys_in(os.read(keyboard, 100).decode(errors="replace")):
                        view = pressed(view, key, look)
                    if (view.panel, view.selected) != (old.panel, old.selected):
                        panel = panel_of(place, look, view)
                if time.monotonic() >= next_s:
                    look = looked(place, look)
                    panel, next_s = panel_of(place, look, view), time.monotonic() + LOOK_SECONDS
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
