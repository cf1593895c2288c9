"""The promises that readers of one stream were given, and the lateness limits that follow from them.

A promise is a watermark that was handed out: the reader was told that the stream is complete up to an instant. A tuple
that arrives afterwards with a timestamp at or before that instant is late. A reader that sees only some sources of the
stream (see `scope`) is promised something about these alone, so a tuple is late by the promises about its own source.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.heartbeat.arrivals import NEVER
from headgate.scope import Scope
from headgate.ticks import Tick


@dataclass(slots=True)
class Promises:
    """What readers of one stream were promised."""

    whole: Tick | None = None
    """The last promise to a reader of the whole stream; None: there was none."""

    by_scope: dict[Scope, Tick] = field(default_factory=dict)
    """Promises about some sources only, where they go further than the one about the whole stream."""

    def add(self, heartbeat: Tick, scope: Scope | None) -> None:
        """Remember that the sources in the scope were promised to be complete; None: all sources."""
        if scope is None:
            self.whole = heartbeat if self.whole is None else max(self.whole, heartbeat)
        else:
            self.by_scope[scope] = max(heartbeat, self.by_scope.get(scope, heartbeat))
        common = NEVER if self.whole is None else self.whole
        self.by_scope = {one: tick for one, tick in self.by_scope.items() if tick > common}

    def limit(self, scope: Scope | None = None) -> Tick | None:
        """The last instant up to which all sources in the scope were promised to be complete; None: nothing was."""
        further = [tick for one, tick in self.by_scope.items() if scope is not None and scope <= one]
        return max((tick for tick in (self.whole, *further) if tick is not None), default=None)

    def limits(self) -> tuple[Tick | None, dict[str, Tick]]:
        """The instants up to which tuples are late: in general, and by source where it is another instant."""
        known = list(self.by_scope.items())
        common = max(
            (tick for tick in (self.whole, *(tick for one, tick in known if one.others)) if tick is not None),
            default=None,
        )
        named = {source for one, _ in known for source in one.sources}
        by_source = {source: [tick for one, tick in known if source in one] for source in named}
        own = NEVER if self.whole is None else self.whole
        return common, {
            source: max([own, *ticks]) for source, ticks in by_source.items() if max([own, *ticks]) != common
        }
