"""A live view of a query: a picture in a notebook that is drawn anew as answers come.

The view has a thread of its own. It looks every so often, reads a bounded number of results from the log, and draws
what has changed; the engine never waits for it. A look that takes long is followed by a longer pause, so that a view
takes a tenth of a thread's time at the most.

In a notebook the picture is replaced in place, by the display handles that every front end of Jupyter has. Elsewhere
new results are printed as lines, and how far they are complete.

The view is over when it is stopped, when its time has passed, or when the query ends. The last picture stays.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from time import monotonic
from typing import Any, Protocol

from headgate.errors import UserError, first_line
from headgate.observe.picture import Current, Lately, Picture, Shown, drawn
from headgate.table import printable

LEAST_SECONDS = 0.1
"""The least pause between two looks."""

SHARE = 0.1
"""How much of its thread's time a view may take."""

MOST_SHOWN = 1_000
"""How many rows a view may show."""

LAST_SECONDS = 2.0
"""How long whoever ends a view waits for a picture that is being drawn."""


class Screen(Protocol):
    """Where pictures go."""

    changes: bool
    """Whether it shows changes, also of relations."""

    def show(self, picture: Picture, rows: Lately | Current | None) -> None:
        """Show a picture in place of the one before it."""

    def again(self) -> None:
        """Show the view once more, where the user asks for it by its name."""


class Notebook:
    """A cell's output in Jupyter. It can stand in several cells, and is replaced in all of them."""

    changes = False

    def __init__(self, shell: Any, display: Callable[..., Any]) -> None:
        self._shell, self._display = shell, display
        self._handle: Any = None
        self._bundle: dict[str, str] = {}
        self._cell = self._count()

    def _count(self) -> Any:
        return getattr(self._shell, "execution_count", None)

    def show(self, picture: Picture, rows: Lately | Current | None) -> None:
        """Draw the picture in the cell, or replace the one that is there."""
        self._bundle = {"text/plain": str(picture), "text/html": picture._repr_html_()}
        if self._handle is None:
            self._handle = self._display(self._bundle, raw=True, display_id=True)
        else:
            self._handle.update(self._bundle, raw=True)

    def again(self) -> None:
        """Show it in another cell too. In the cell that made it, it is there already."""
        if self._handle is not None and self._count() != self._cell:
            self._cell = self._count()
            self._display(self._bundle, raw=True, display_id=self._handle.display_id)


class Terminal:
    """Standard output: a line for each new result, and one when they are complete further."""

    changes = True

    def __init__(self) -> None:
        self._said: tuple[str, ...] = ()

    def show(self, picture: Picture, rows: Lately | Current | None) -> None:
        """Print what is new."""
        lines = []
        if isinstance(rows, Lately) and rows.fresh:
            name = rows.query.name
            lines += [f"{name} ... {rows.passed} results are not shown"] if rows.passed else []
            lines += [printable(f"{name} {result}") for result in rows.fresh]
            rows.fresh = []
        if (said := _steady(picture)) != self._said:
            lines.append("; ".join((picture.title, *picture.lines)))
            self._said = said
        if lines:
            print("\n".join(lines), flush=True)

    def again(self) -> None:
        """What was printed stays where it is."""


def _steady(picture: Picture) -> tuple[str, ...]:
    """What a picture says, without how long ago something was, which is something else each time."""
    return tuple(line.partition(", last heard of")[0] for line in picture.lines)


def screen() -> Screen:
    """Return where pictures go from here: to a notebook if this is one, otherwise to standard output."""
    try:
        from IPython.core.getipython import get_ipython
        from IPython.display import display
    except ImportError:
        raise UserError("no-module", "a live view needs IPython", hint="pip install 'headgate[notebook]'") from None
    shell = get_ipython()
    return Terminal() if getattr(shell, "kernel", None) is None else Notebook(shell, display)


class LiveView:
    """A picture of a query that is drawn anew as answers come, until it is stopped."""

    def __init__(
        self,
        query: Shown,
        turn: AbstractContextManager[bool],
        *,
        seconds: float | None = None,
        rows: int = 20,
        every: float = 0.5,
        changes: bool = False,
        on: Screen | None = None,
    ) -> None:
        _check(seconds, rows, every)
        self.query = query
        self.picture: Picture | None = None
        """The last one that was drawn."""
        self.ended = ""
        """Why it is over; empty while it goes on."""
        self._screen = on or screen()
        self._turn = turn
        self._seconds, self._every, self._most = seconds, every, rows
        in_changes = changes or self._screen.changes or query.kind == "stream"
        kind = Lately if in_changes else Current
        self._rows: Lately | Current | None = kind(query, rows) if query.elsewhere is None else None
        self._drawing = threading.Lock()
        self._over = threading.Event()
        self._draw()
        threading.Thread(target=self._watch, name=f"live {query.name}", daemon=True).start()

    def __repr__(self) -> str:
        return f"LiveView({self.query.name}: {self.ended or 'goes on'})"

    def _ipython_display_(self) -> None:
        self._screen.again()

    def __enter__(self) -> LiveView:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    @property
    def going_on(self) -> bool:
        """Whether it is still drawn anew."""
        return not self._over.is_set()

    def stop(self) -> None:
        """Draw it once more, and not again."""
        self.end("stopped")

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is over, but no longer than that; say whether it is. An interrupt stops it."""
        try:
            return self._over.wait(seconds)
        except KeyboardInterrupt:
            self.stop()
            raise

    def end(self, reason: str) -> None:
        """Draw the last picture, which says why it is over. Called by whoever ends it, also by the query."""
        if not self._over.is_set():
            self._draw(reason)
            self.ended = self.ended or reason
            self._over.set()

    # in its own thread

    def _watch(self) -> None:
        began_s = monotonic()
        pause_s = self._every
        while not self._over.wait(pause_s):
            look_s = monotonic()
            if self._seconds is not None and look_s - began_s >= self._seconds:
                return self.end(f"{self._seconds:g} seconds are over")
            self._draw()
            now_s = monotonic()
            catching_up = self._rows is not None and self._rows.behind > 0
            pause_s = max(LEAST_SECONDS if catching_up else self._every, (now_s - look_s) * (1 / SHARE - 1))
            if self._seconds is not None:
                pause_s = min(pause_s, max(began_s + self._seconds - now_s, 0))
        return None

    def _draw(self, ending: str = "") -> None:
        """Look, and draw what has changed. The journal's turn and the lock of the view are never held together."""
        try:
            with self._turn:
                why = self.query.why()
        except Exception as error:  # the query is going, or has failed badly
            return self._note(f"cannot be looked at: {first_line(error)}", ending)
        with self._alone() as mine:
            if mine:
                self._show(self._pictured(why, ending))
                self.ended = self.ended or ending
        return None

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """In here nobody else draws; false if the last picture is drawn, or another one does not come to an end."""
        if not self._drawing.acquire(timeout=LAST_SECONDS):
            yield False
            return
        try:
            yield not self.ended
        finally:
            self._drawing.release()

    def _pictured(self, why: Any, ending: str) -> Picture:
        notes = [f"this view is over: {ending}"] if ending else []
        try:
            if self._rows is not None:
                self._rows.read()
        except Exception as error:  # files that are gone, or cannot be read now; the next look may find them
            notes.insert(0, f"results cannot be read: {first_line(error)}")
        return drawn(self.query, why, self._rows, self._most, notes)

    def _note(self, note: str, ending: str) -> None:
        """Say something below the last picture."""
        with self._alone() as mine:
            if mine and self.picture is not None:
                notes = (note, f"this view is over: {ending}") if ending else (note,)
                kept = tuple(line for line in self.picture.lines if line != note)
                self._show(replace(self.picture, lines=(*kept, *notes)))
                self.ended = self.ended or ending

    def _show(self, picture: Picture) -> None:
        if picture == self.picture and not (isinstance(self._rows, Lately) and self._rows.fresh):
            return
        self.picture = picture
        try:
            self._screen.show(picture, self._rows)
        except Exception as error:  # the front end has gone: nobody sees it any more
            self.ended = f"it could not be shown: {first_line(error)}"
            self._over.set()


def _check(seconds: float | None, rows: int, every: float) -> None:
    """Refuse what a view cannot do."""
    if seconds is not None and not seconds > 0:
        raise UserError("bad-parameter", f"a view goes on for more than 0 seconds, not {seconds!r}")
    if not 1 <= rows <= MOST_SHOWN:
        raise UserError("bad-parameter", f"a view shows 1 to {MOST_SHOWN} rows, not {rows!r}")
    if not every >= LEAST_SECONDS:
        raise UserError("bad-parameter", f"a view is drawn every {LEAST_SECONDS} seconds at the most, not {every!r}")
