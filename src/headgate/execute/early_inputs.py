"""The inputs of a fragment that answers early, at a pace of its own.

It reads each stream as far as it has taken it, in order of arrival. Of a fragment below it, it reads what is settled,
and behind that what that one has put out early.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.delta.program import Input
from headgate.execute.inputs import FragmentInputs, has_visible_rows
from headgate.execute.workspace import Slice
from headgate.log.chunk import Chunk
from headgate.log.log import Chunks
from headgate.ticks import Tick


@dataclass(frozen=True, slots=True)
class EarlyOutput:
    """What a fragment has put out early: elements behind the instant up to which it is settled."""

    settled: Tick
    chunks: Sequence[Chunk]


class EarlyInputs(FragmentInputs):
    """The logs of a fragment, each as far as it is taken, and what the fragments that it reads have put out early."""

    def __init__(self, inputs: FragmentInputs, taken: Mapping[str, int], early: Mapping[str, EarlyOutput]) -> None:
        logs = inputs.logs
        self.__dict__.update(inputs.__dict__)
        self.logs = {name: logs[name].up_to(count) for name, count in taken.items()} | {
            name: Chunks([*logs[name].chunks, *one.chunks]) for name, one in early.items()
        }
        self._settled_logs = {name: logs[name] for name in early}
        self._early = early

    def happens(self, after: Tick, until: Tick) -> bool:
        """Say whether anything begins or ends to count in (after, until]."""
        visible = lambda log, low, high: has_visible_rows(self.part, log, self.logs[log], low, high)  # noqa: E731
        return self.program.happens(after, until, visible)

    def _range(self, source: Input, until: Tick) -> list[Slice]:
        if source.stream not in self._early:
            return super()._range(source, until)
        low, high = source.range(self.progress.since, until)
        one = self._early[source.stream]
        behind = one.settled if low is None else max(low, one.settled)
        settled = Slice(self._settled_logs[source.stream].overlapping(low, high), low, high)
        early = [chunk for chunk in one.chunks if chunk.high > behind and (high is None or chunk.low <= high)]
        return [settled, Slice(early, behind, high)] if low is None or high is None or low < high else [settled]
