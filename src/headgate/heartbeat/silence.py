"""Who speaks and who is silent: sources that have sent nothing for the timeout, and what others say about them.

A silent source is not waited for. But silence is only a guess: if sources that do speak are declared to say how far the
silent one is, that is known, and the silent one is waited for as far as they say.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headgate.heartbeat.arrivals import NEVER
from headgate.heartbeat.clocks import Clocks
from headgate.heartbeat.groups import arriving
from headgate.heartbeat.source_table import Members
from headgate.heartbeat.stream_clock import StreamClock
from headgate.scope import Scope
from headgate.ticks import Tick

SETTLED = 5
"""A stream has settled when so many tuples a source came since the last new source was heard of."""

SETTLED_US = 5_000_000
"""A stream has settled in any case when its first tuple came so long ago."""


class Silence:
    """Judges silence. `silent_us` is the instant at which it is judged: now, or a later one when it is foretold."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks

    def heard(self, number: int, chosen: Members | None = None) -> NDArray[np.bool_]:
        """Which sources of a cohort, or which chosen ones, have ever spoken."""
        cohort = self.clocks.cohort(number)
        heard: NDArray[np.bool_] = cohort.heard_us[: cohort.size] > NEVER
        return heard if chosen is None else heard & chosen[number]

    def is_overdue(self, heard_us: int, silent_us: int) -> bool:
        """True if a source that last spoke then is silent."""
        timeout_us = self.clocks.timeout_us
        return heard_us <= NEVER or (timeout_us is not None and heard_us <= silent_us - timeout_us)

    def is_spoken_for(self, number: int, silent_us: int) -> bool:
        """True if others that speak are declared to say, after some time, how far the sources of a cohort are.

        A bound after so many tuples says nothing of a source that sends none.
        """
        declared = self.clocks.generator.towards[number].items()
        return any(
            any(not bound.tuples for bound in bounds) and self.speaks(first, silent_us) for first, bounds in declared
        )

    def speaks(self, number: int, silent_us: int) -> bool:
        """True if a source of the cohort has spoken, and not all of them are silent."""
        owner, cohort, timeout_us = self.clocks.owner(number), self.clocks.cohort(number), self.clocks.timeout_us
        if owner.finished or cohort.maxima.latest.largest <= NEVER:
            return False
        last_us = int(cohort.heard_us[: cohort.size].max(initial=NEVER))
        return owner.paused or timeout_us is None or last_us > silent_us - timeout_us

    def complete_unheard(
        self, clock: StreamClock, now_us: int, silent_us: int, scope: Scope | None
    ) -> tuple[Tick | None, bool]:
        """Up to when sources are complete of which none has spoken yet, by what others are declared to say of them;
        and whether others that speak are declared to say so, now or later, of each of them.
        """
        declarations = self.clocks.declarations
        found, spoken_for, missing = [], False, False
        for kind in clock.table.all_kinds(scope):
            known, others_speak = [NEVER], False
            for number, cohort in self.clocks.generator.cohorts.items():
                other = self.clocks.owner(number)
                comparable = other.domain is clock.domain
                declared = kind.after(other.table.kind_of[number], declarations)
                for bound in arriving(declared, kind.latency_us(declarations)) if comparable else ():
                    if not bound.tuples:
                        cohort.maxima.horizon_us = max(cohort.maxima.horizon_us, bound.after_us)
                        known.append(cohort.maxima.ago(bound.after_us, now_us).largest - bound.within)
                        others_speak |= self.speaks(number, silent_us)
            found.append(max(known))
            spoken_for |= others_speak
            missing |= max(known) <= NEVER // 2 and not others_speak
        return min(found) if min(found) > NEVER // 2 else None, spoken_for and not missing

    def is_settling(self, clock: StreamClock, now_us: int, scope: Scope | None = None) -> bool:
        """True while a stream with many sources has just begun, so that sources may be missing of which nobody knows
        how far behind they are.

        It has settled once all known sources could have spoken a few times since the last new one, or after a while.
        """
        if not (clock.many and self.clocks.is_estimated(clock.name)) or clock.first_us is None:
            return False
        sources = clock.table.sources
        if clock.promises.limit(scope) is not None or clock.table.knows_all(scope):
            return False
        if (clock.table.punctuated[: len(sources)] > NEVER).any():
            return False  # sources send heartbeats, so they know how far they are
        again = clock.tuples - clock.newest_at
        return again < SETTLED * len(sources) and now_us - clock.first_us < SETTLED_US
