"""Up to when streams that are read together are complete: the heartbeat (watermark) of a query.

The heartbeat is that of the stream that is complete least far. Streams that are silent or finished do not hold the
others back, unless something else is known to say how far they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from headgate.heartbeat.clocks import Clocks
from headgate.heartbeat.enabling import EnablingTimestamps
from headgate.heartbeat.instants import later
from headgate.heartbeat.waiting import Standing, Waiting
from headgate.scope import Scopes
from headgate.ticks import UNLIMITED, Tick


class Completeness:
    """Finds the heartbeat of streams that are read together."""

    def __init__(self, clocks: Clocks, waiting: Waiting, enabling: EnablingTimestamps) -> None:
        self.clocks = clocks
        self.waiting = waiting
        self.enabling = enabling
        self.asked_us: int | None = None
        """When a heartbeat was first asked for. Streams that have not spoken by then are waited for from then on."""

    def complete(
        self,
        streams: Iterable[str],
        now_us: int,
        answers: Mapping[str, Tick] | None = None,
        scopes: Scopes | None = None,
    ) -> Tick | None:
        """The instant up to which all of these streams are complete now; None while that is unknown.

        `answers` are what the clock would say of some of them, if it were asked; `scopes` are the sources that the
        reader can see.
        """
        if self.asked_us is None:
            self.asked_us = now_us
            for clock in self.clocks:
                self.clocks.restart_timeout_of_unheard(clock, now_us)
        self.clocks.generator.settle(now_us)
        return self.foretell(streams, now_us, now_us, answers, scopes)

    def foretell(
        self,
        streams: Iterable[str],
        at_us: int,
        silent_us: int,
        answers: Mapping[str, Tick] | None = None,
        scopes: Scopes | None = None,
    ) -> Tick | None:
        """The heartbeat as it will be at an instant if nothing comes until then; silence is judged at `silent_us`.

        Nothing is changed by asking. Silent streams follow the slowest that is not silent. If one of those, or the
        clock, is declared to say how far a silent stream is, that holds it back as well. If all streams are silent or
        finished, everything that came is complete.
        """
        answers, scopes = answers or {}, scopes or {}
        inputs = self.clocks.of(streams)
        standings = self.standings(inputs, at_us, silent_us, answers, scopes)
        speaking = [standings[name].complete for name in self.holding_back(standings)]
        if speaking:
            known = [complete for complete in speaking if complete is not None]
            reached = min(known) if len(known) == len(speaking) else None
        else:
            reached = max((clock.largest for clock in inputs.values() if clock.largest is not None), default=None)
        own = [
            later(standing.complete, inputs[name].promises.limit(scopes.get(name)))
            for name, standing in standings.items()
        ]
        if own and all(instant is not None for instant in own):
            reached = later(reached, min(instant for instant in own if instant is not None))
        return reached

    def standings(
        self, streams: Collection[str], at_us: int, silent_us: int, answers: Mapping[str, Tick], scopes: Scopes
    ) -> dict[str, Standing]:
        """How each of the streams stands that is neither finished nor complete for ever, where they are read
        together.
        """
        going_on = [name for name in streams if not self.clocks[name].finished]
        found = {
            name: self.waiting.standing(name, at_us, streams, answers.get(name), silent_us, scopes.get(name))
            for name in going_on
        }
        return {name: standing for name, standing in found.items() if standing.complete != UNLIMITED}

    def holding_back(self, standings: Mapping[str, Standing]) -> list[str]:
        """The streams that hold the others back: those that speak, and silent ones of which others that speak, or the
        clock, say how far they are.
        """
        return [
            name
            for name, one in standings.items()
            if not one.silent or one.spoken_for or self.enabling.would_answer(name)
        ]
