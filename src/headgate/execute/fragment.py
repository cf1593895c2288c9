"""A fragment: a part of a query compiled into one program, how far it has come, and from where it can go on.

    since ............ after ............ until
    the synopses       what has been      the next epoch's end
    are as of here     put out so far

Small epochs do not move the synopses: they start again from `since` and put out only what lies behind `after`. By
cut-independence that is the same output, and it saves a job. What lies between is read from the logs once more, so the
synopses are moved forward when that has grown.

A fragment that handles each tuple by itself has no need to wait until an instant is complete. It reads in order of
arrival, and remembers for each stream how many tuples had come and up to which timestamp it has taken them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate.compile import Ahead
from headgate.delta.program import Program
from headgate.plan.fragments import Part
from headgate.ticks import Tick

MOVE_COST_ROWS = 50_000
"""A move costs about as much as reading this many tuples once more."""

MEASURED_ROWS = 100
"""So many tuples must have been taken before their number says something about how many are put out for each."""


class Taken(NamedTuple):
    """Of a stream, in order of arrival: the first `arrived` tuples were taken if they are stamped up to `upto`."""

    arrived: int
    upto: Tick


@dataclass(slots=True)
class Fragment:
    name: str
    """Of the query."""

    text: str
    part: Part
    program: Program
    brief: Program
    """The same on the same synopses for epochs of a few rows: rules that look at every row at every instant, in fewer
    steps.
    """

    start: Tick | None = None
    """The fragment sees its streams from behind this instant on, as if they began there; None: from their beginning."""

    whole: frozenset[str] = frozenset()
    """Of these it sees everything in any case: relations, whose rows were put in before and are still there."""

    ahead: Ahead = "nothing"
    sees: Mapping[str, str] = field(default_factory=dict)
    """By stream: which tuples it reads, in SQL, where it does not see all sources."""

    group: str = ""
    """Of a query that runs by groups: of which group it gives the answers."""

    since: Tick = field(init=False)
    after: Tick = field(init=False)
    taken: Mapping[str, Taken] = field(default_factory=dict)
    """By whom tuples are read in order of arrival: how far."""

    synopsis_rows: int = 0
    reread: int = 0
    """How many tuples behind `since` the epochs after it have read, together."""

    epochs: int = 0
    rows_in: int = 0
    rows_out: int = 0
    """What it has taken and put out since the engine was started."""

    failed: bool = False
    """An epoch failed. It stands still and holds up no other, until it is restarted."""

    def __post_init__(self) -> None:
        self.since = self.after = self.program.domain.origin - 1

    @property
    def called(self) -> str:
        """As errors and traces name it."""
        whole = self.name if self.part.log is None else f"{self.part.log} of {self.name}"
        return f"{whole} for group {self.group}" if self.group else whole

    @property
    def stop(self) -> str:
        """What it is called on the way of a heartbeat."""
        return self.part.log or self.name

    @property
    def begun(self) -> bool:
        """Whether it is complete up to any instant."""
        return self.after >= self.program.domain.origin

    def due(self) -> bool:
        """Whether re-reading the tuples behind `since` has by now cost as much as moving the synopses would."""
        return bool(self.program.synopses) and self.reread > MOVE_COST_ROWS + self.synopsis_rows

    def selectivity(self) -> float | None:
        """How many tuples it puts out for each that it takes; None while that is not known."""
        return self.rows_out / self.rows_in if self.rows_in >= MEASURED_ROWS else None
