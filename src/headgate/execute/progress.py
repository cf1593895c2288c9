"""How far a fragment has come, and from where it can go on.

    since ............ after ............ until
    the synopses       what has been      the next epoch's end
    are as of here     put out so far

Small epochs do not move the synopses: they start again from `since` and put out only what lies behind `after`. Answers
do not depend on where epochs begin, so the output is the same, and a job is saved. What lies between is read from the
logs once more, so the synopses are moved forward when that has grown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.execute.position import Position
from headgate.ticks import Tick


@dataclass(slots=True)
class Progress:
    """The instants and positions a fragment has reached, as the journal knows them."""

    start: Tick | None
    """The fragment sees its streams from behind this instant on, as if they began there; None: from their beginning."""

    since: Tick
    after: Tick
    epochs: int = 0
    positions: Mapping[str, Position] = field(default_factory=dict)
    """By stream, for a fragment that reads in order of arrival."""

    tuples: Mapping[str, int] = field(default_factory=dict)
    """By stream and relation, for a fragment that reads by time: how many tuples had come when it got as far as it is.
    """

    def apply(self, fact: Mapping[str, Any]) -> None:
        """Take what the journal says."""
        self.start = fact.get("start", self.start)
        self.after = fact.get("after", self.after)
        self.since = fact.get("since", self.since)
        self.epochs = fact.get("epochs", self.epochs)
        if "taken" in fact:
            self.positions = {stream: Position(*position) for stream, position in fact["taken"].items()}
        self.tuples = fact.get("tuples", self.tuples)

    def state(self) -> dict[str, Any]:
        """Return the fact that `apply` takes."""
        fact: dict[str, Any] = {
            "start": self.start,
            "after": self.after,
            "since": self.since,
            "epochs": self.epochs,
        }
        fact |= {"taken": dict(self.positions)} if self.positions else {}
        return fact | ({"tuples": dict(self.tuples)} if self.tuples else {})
