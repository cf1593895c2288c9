"""Which fragment runs next: depth first, as soon as anything can get closer to the answer (Bai et al., section 3).

    Forward     a fragment has put something out: on to the one that reads it Encore      it has not, but there is more
    input that it can take: once more Backtrack   it has none: back to what an input that holds it up comes from. At a
    source there is no further back, so it is
                asked, now, up to when nothing will still come of it; the answer may enable whoever sent us

When the answer's fragment has run, control goes back to whoever delivers results and takes in what has arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Origin(Protocol):
    """A source, as the selection sees it."""

    def ask(self) -> bool:
        """Ask for an enabling timestamp; whether it moves anything."""


class Operator(Protocol):
    """A fragment, as the selection sees it."""

    @property
    def reader(self) -> Operator | None:
        """Who reads what it puts out; None for the one that gives the answer."""

    def more(self) -> bool:
        """Whether there is input that it can take."""

    def run(self) -> bool:
        """Take it; whether anything was put out: tuples, or how far they are complete."""

    def operators(self) -> Sequence[Operator]:
        """Fragments that it reads."""

    def origins(self) -> Sequence[Origin]:
        """Sources that it reads and that it would help to ask; none if nothing waits."""


def depth_first(root: Operator) -> None:
    """Run fragments until the answer's has, or nothing can be had any more. Nobody is asked, or gone back to in vain,
    twice.
    """
    here, tried, asked = root, set[int](), set[int]()
    while True:
        if here.more():
            if here.run() or here.reader is None:
                if here.reader is None:
                    return
                here = here.reader  # Forward
            continue  # Encore
        before = next((one for one in here.operators() if id(one) not in tried), None)
        if before is not None:
            tried.add(id(before))
            here = before  # Backtrack
            continue
        if _asked(here, asked):
            tried.clear()  # what moved may be of use to any of them
            continue
        if here.reader is None:
            return
        here = here.reader


def _asked(operator: Operator, asked: set[int]) -> bool:
    """Ask every source of the operator that was not asked yet; whether any answer moves anything."""
    moved = False
    for origin in operator.origins():
        if id(origin) not in asked:
            asked.add(id(origin))
            moved |= origin.ask()
    return moved
