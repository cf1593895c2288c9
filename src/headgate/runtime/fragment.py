"""A fragment: one compiled program, how far it has come, and from where it can go on.

    since ............ after ............ until
    the synopses       what has been      the next epoch's end
    are as of here     put out so far

Small epochs do not move the synopses: they start again from `since` and put out only what lies behind `after`. By
cut-independence that is the same output, and it saves a job. What lies between is read from the logs once more, so the
synopses are moved forward when that has grown.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.catalog import Tick
from headgate.delta.program import Program

MOVE_COST_ROWS = 50_000
"""A move costs about as much as reading this many tuples once more."""


@dataclass(slots=True)
class Fragment:
    name: str
    text: str
    program: Program
    brief: Program
    """The same on the same synopses for epochs of a few rows: rules that look at every row at every instant, in fewer steps."""

    start: Tick | None = None
    """The fragment sees its streams from behind this instant on, as if they began there; None: from their beginning."""

    whole: frozenset[str] = frozenset()
    """Of these it sees everything in any case: relations, whose rows were put in before and are still there."""

    since: Tick = field(init=False)
    after: Tick = field(init=False)
    synopsis_rows: int = 0
    reread: int = 0
    """How many tuples behind `since` the epochs after it have read, together."""

    epochs: int = 0
    failed: bool = False
    """An epoch failed. The same input fails again, so the query stands still and holds up no other."""

    def __post_init__(self) -> None:
        self.since = self.after = self.program.domain.origin - 1

    def due(self) -> bool:
        """Whether re-reading the tuples behind `since` has by now cost as much as moving the synopses would."""
        return bool(self.program.synopses) and self.reread > MOVE_COST_ROWS + self.synopsis_rows
