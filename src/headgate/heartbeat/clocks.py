"""The clocks of all streams by name, and what they share: the declarations, the generator, the timeout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.catalog.declarations import Declarations, Estimation
from headgate.catalog.entries import Stream
from headgate.heartbeat.arrivals import NEVER
from headgate.heartbeat.cohort import Cohort
from headgate.heartbeat.generator import Generator
from headgate.heartbeat.stream_clock import StreamClock

LATE = "late("
"""`late(s)` is the stream of the dead letters of s. They are stamped with the first open instant of s, so `late(s)` is
complete where s is.
"""


def base(stream: str) -> str:
    """The stream whose heartbeats count for this one: of `late(s)` it is s, of any other stream itself."""
    return stream[len(LATE) : -1] if stream.startswith(LATE) else stream


class Clocks:
    """All stream clocks. Iterating gives the clocks; `clocks[name]` is the clock of one stream."""

    def __init__(self, declarations: Declarations) -> None:
        self.declarations = declarations
        self.by_name: dict[str, StreamClock] = {}
        self.generator = Generator()
        self.timeout_us: int | None = None
        """A source that sends nothing for so long is silent, and no longer waited for; None: it is waited for ever."""
        self.estimating = True
        """True if bounds are learnt where nothing is declared."""
        self._owners: dict[int, StreamClock] = {}

    def __getitem__(self, stream: str) -> StreamClock:
        return self.by_name[stream]

    def __iter__(self) -> Iterator[StreamClock]:
        return iter(self.by_name.values())

    def of(self, streams: Iterable[str]) -> dict[str, StreamClock]:
        """The clocks that count for streams, each once, by name."""
        return {name: self.by_name[name] for name in map(base, streams)}

    def cohort(self, number: int) -> Cohort:
        """A cohort of the generator by its number."""
        return self.generator.cohorts[number]

    def owner(self, number: int) -> StreamClock:
        """The clock of the stream that a cohort belongs to."""
        if number not in self._owners:
            self._owners = {cohort: clock for clock in self for cohort in clock.table.cohorts.values()}
        return self._owners[number]

    def forget_owners(self) -> None:
        """All cohorts were replaced: find their owners anew when they are asked for."""
        self._owners = {}

    def is_estimated(self, stream: str) -> bool:
        """True if the bounds of the stream are learnt from what arrives."""
        return stream in self.declarations.estimations or (self.estimating and not self.is_declared(stream))

    def is_declared(self, stream: str) -> bool:
        """True if the user said how far behind the stream may be, or that it sends heartbeats itself."""
        defined = self.by_name[stream].stream
        return self.declarations.about(stream) or (isinstance(defined, Stream) and defined.heartbeat is not None)

    def estimation(self, stream: str) -> Estimation:
        """How the bounds of the stream are learnt."""
        return self.declarations.estimations.get(stream, Estimation())

    def numbers(self, clock: StreamClock, sources: Sequence[Any]) -> NDArray[np.intp]:
        """The numbers of sources in the table of their stream. A source that was never heard of gets one."""
        known = len(clock.table.sources)
        numbers = clock.table.numbers(sources, self.generator, self.declarations)
        if len(clock.table.sources) > known:
            clock.newest_at = clock.tuples
        return numbers

    def expect_named(self, clock: StreamClock, now_us: int) -> None:
        """Make places for sources that a declaration names: they are waited for from now on, before they speak."""
        if not clock.external or clock.finished:
            return
        table = clock.table
        self.numbers(clock, list(table.kinds) if clock.many else [None])
        named = self.declarations.named(clock.name) if clock.many else set()
        table.named_us = {source: table.named_us.get(source, now_us) for source in named}
        for number in table.cohorts.values():
            self.cohort(number).awaited_us[:] = NEVER
        for source, us in table.named_us.items():
            number, member = table.places[table.sources[source]].tolist()
            awaited_us = self.cohort(number).awaited_us
            awaited_us[member] = max(int(awaited_us[member]), us)

    def restart_timeout_of_unheard(self, clock: StreamClock, now_us: int) -> None:
        """Let the timeout of a stream that has sent nothing begin now."""
        if not clock.tuples:
            clock.since_us = now_us
            for number in clock.table.cohorts.values() if not clock.many else ():
                self.cohort(number).heard_us[:] = now_us
