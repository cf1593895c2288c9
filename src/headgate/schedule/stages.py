"""The stages of a query that answers early in fragments: each runs at its own pace, and the answer says if it fits.

A stage is a fragment while it answers early. What it puts out early lies behind what it has settled; its readers read
both. In a turn, every stage that has something to take runs once, all of them side by side: none waits for another. So
the answer may have tuples that came on one path and not yet on another. `consistency` tells by labels or tokens
whether it does. Draining takes the stages in turn instead, each when those that it reads have nothing left to do.

When heartbeats have settled tuples that a stage had not taken early, what it has put out does not fit any more behind
what is settled. Then all stages are drained once, over all that has come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count as numbers

import pyarrow as pa

from headgate.catalog.entries import Early
from headgate.consistency.events import Taken
from headgate.consistency.flow import Flow
from headgate.consistency.heeding import Multiset, QueueScan, input_prefix, still_shown, update_complete
from headgate.consistency.tokens import TokenClock
from headgate.execute.early_inputs import EarlyInputs, EarlyOutput
from headgate.execute.fragment import Fragment
from headgate.execute.prepared import PreparedEpoch, Written
from headgate.log.chunk import Chunk, described
from headgate.log.tail import TAIL
from headgate.plan.nodes import is_part
from headgate.schedule.versions import Version, same, synchronized
from headgate.ticks import Tick

FOLDER = ".early"
"""Where the files of early outputs lie, in the folder of their fragment. Nothing in it counts after a crash."""


@dataclass(eq=False, slots=True)
class Stage:
    """A fragment while it answers early: how much of its inputs it has taken, and what it has put out."""

    fragment: Fragment
    version: Version
    read: dict[str, Version]
    """What it has taken of the stages that it reads."""

    void: bool = True
    """Whether what it has put out does not fit, and has to be computed again before anything else."""

    @property
    def name(self) -> str:
        """The name of its part of the plan."""
        return self.fragment.part.name

    @property
    def until(self) -> Tick:
        """The instant up to which its output needs no further run for the sake of time."""
        return max(self.version.until, self.fragment.after)


@dataclass(frozen=True, slots=True)
class Shown:
    """What the stages have come to: the answer, and whether it is known to be consistent."""

    version: Version
    upto: Tick
    tuples: Mapping[str, int]
    """How many tuples of each stream it reflects; empty if it reflects no one prefix."""

    consistent: bool


@dataclass(slots=True)
class _Run:
    """A run of a stage that is under way."""

    stage: Stage
    taken: Taken
    version: Version
    """What comes of it, yet without rows."""


Pace = Callable[[Sequence[str]], Sequence[str]]
"""Chooses, of the stages that could run side by side now, those that do."""


class Stages:
    """The stages of one query."""

    def __init__(self, fragments: Sequence[Fragment], early: Early, pace: Pace = lambda stages: stages) -> None:
        self.early = early
        self.pace = pace
        self.stages = {one.part.name: Stage(one, Version(one, one.after), {}) for one in fragments}
        self.multiset = Multiset() if early.method == "heeding" and early.level != "none" else None
        self.flow = Flow({one.part.name: one.program.logs() for one in fragments}, self.multiset)
        self.under_way = self.multiset or QueueScan(self.flow)
        self.tokens = TokenClock(early.tokens) if early.method == "tokens" and early.level != "none" else None
        self.runs = 0
        """How many epochs its stages have run."""
        self._versions: dict[int, Version] = {}
        """Those that events stand for, by number."""
        self._numbers = numbers(1)
        self._running: dict[Fragment, _Run] = {}
        self._files: set[Chunk] = set()
        self._newest: Tick | None = None
        self.given: Shown | None = None
        """What the last turn has given; None if it was held back."""
        for stage in self.stages.values():
            stage.read = {name: self.stages[name].version for name in self.flow.stages[stage.name] if is_part(name)}

    @property
    def answer(self) -> Stage:
        """The stage that gives the answer."""
        return self.stages[self.flow.answer]

    @property
    def void(self) -> bool:
        """Whether some stage has to be computed again before anything else."""
        return any(stage.void for stage in self.stages.values())

    @property
    def drains(self) -> bool:
        """Whether stages run in turn, and not side by side."""
        return self.void or (self.early.method == "draining" and self.early.level != "none")

    def has_work(self) -> bool:
        """Say whether something is under way, or has yet to be confirmed."""
        newest = self._look()
        if newest is None:
            return not self.flow.at_rest or self.flow.reflects != self.flow.came or self._has_come()
        waits = any(stage.void or stage.until < newest for stage in self.stages.values())
        unconfirmed = self.tokens is not None and self.flow.confirmed != self.flow.came
        return waits or not self.flow.at_rest or self._has_come() or unconfirmed

    # one turn

    def begin(self, now_us: int) -> list[PreparedEpoch]:
        """Let what has come go into the queues, and begin the turn. The caller holds the journal's turn."""
        self._newest, come = self._look(), self._has_come()
        if not all(stage.void or stage.version.fits() for stage in self.stages.values()) or not self._queued_fit():
            for stage in self.stages.values():
                stage.void = True
        for stream in self.flow.streams:
            self.flow.arrive(stream, self._log_rows(stream))
        if self._newest is None:
            self._all_settled()
            return []
        if self.void:
            self.flow.restart(self.flow.came)
            if self.tokens is not None:
                self.tokens.forget()
        if self.tokens is not None:
            pending = self.flow.came not in (self.flow.confirmed, *self.flow.cuts.values())
            if pending and (now_us >= self.tokens.due_us() or (self.flow.at_rest and not come)):
                self.tokens.injected(self.flow.inject(), now_us, self.flow.came)
        return self._prepared()

    def _all_settled(self) -> None:
        """Let all stages have taken what has come: nothing of it is left in the logs, so it is settled, and over."""
        self.flow.restart(self.flow.came)
        if self.tokens is not None:
            self.tokens.forget()
        for stage in self.stages.values():
            stage.void = True
            self._put_out(stage, Taken(), self._next(stage, Taken()))

    def more(self) -> list[PreparedEpoch]:
        """Return the epochs that are to run in this turn when those before them have; none if it is over."""
        self._pass_for_free()
        return self._prepared() if self.drains else []

    def take(self, written: Written, table: pa.Table | None) -> None:
        """Take what a run has given; `table` are its rows, which still lie in its files; None if none or too many."""
        run = self._running.pop(written.fragment)
        self.runs += 1
        version = run.version
        version.table = table
        if run.stage is not self.answer:
            version.chunks = self._kept(written)
        self._put_out(run.stage, run.taken, version)

    def drop_runs(self) -> None:
        """Let the runs of this turn have never begun, because one of them has failed."""
        self._running.clear()

    def end(self, now_us: int) -> Shown | None:
        """End a turn: return the answer as it is to be given; None if it is held back."""
        self.given = self._given(now_us)
        return self.given

    def _given(self, now_us: int) -> Shown | None:
        for token in self.flow.arrived:
            if self.tokens is not None and token in self.tokens.put_in:
                waiting = sum(self.flow.came.values()) - sum(self.flow.confirmed.values())
                self.tokens.arrived(token, now_us, waiting)
        self.flow.arrived.clear()
        self._delete_files()
        if self.void or not any(self.flow.came.values()):
            return None
        version, reflects, newest = self.answer.version, self.flow.reflects, self.answer.until
        newest = newest if self._newest is None else max(self._newest, newest)
        if self.early.level == "none":
            return Shown(version, newest, {}, consistent=False)
        exact = self._is_prefix(reflects)
        if exact or (self.early.level == "update-complete" and self._is_update_complete()):
            upto = version.right_up_to()
            if self.early.level == "synchronized":
                upto = min(upto, synchronized(self.answer.fragment, reflects, self._logs()))
            return Shown(version, upto, reflects if exact else {}, consistent=True)
        return Shown(version, newest, {}, consistent=False) if self.early.marked else None

    def positions(self, stream: str) -> set[int]:
        """Return the points of a stream's order of arrival at which its log may be cut to be read."""
        found = {stage.version.taken.get(stream, 0) for stage in self.stages.values()}
        found |= {event.seen[stream] for event in self.flow.events() if stream in event.seen}
        return found | {self.flow.came.get(stream, 0)}

    # whether it is consistent

    def _is_prefix(self, reflects: Mapping[str, int]) -> bool:
        """Say whether the answer is known to be the one over just the tuples of its label."""
        if self.tokens is not None:
            return all(self.flow.confirmed[stream] == count for stream, count in reflects.items())
        if self.early.method == "draining":
            return self.flow.at_rest
        return input_prefix(reflects, self.under_way)

    def _is_update_complete(self) -> bool:
        self.flow.shown = still_shown(self.flow.shown, self.under_way)
        return update_complete(self.flow.shown, self.under_way)

    # runs

    def _prepared(self) -> list[PreparedEpoch]:
        """Prepare the runs that can be side by side now."""
        self._pass_for_free()
        ready = [(stage, taken) for stage in self.stages.values() if (taken := self._ready(stage)) is not None]
        if not self.drains:
            chosen = set(self.pace([stage.name for stage, _ in ready]))
            ready = [(stage, taken) for stage, taken in ready if stage.name in chosen]
        found = []
        for stage, taken in ready:
            epoch = self._prepare(stage, taken)
            if epoch is not None:
                found.append(epoch)
        return found or (self._prepared() if ready and self.drains else [])

    def _ready(self, stage: Stage) -> Taken | None:
        """Return what a stage is to run over now; None if it need not or must not run."""
        below = [self.stages[name] for name in stage.read]
        if stage.void:
            return Taken() if not any(one.void for one in below) else None
        if self.void:
            return None
        taken = self.flow.take(stage.name)
        if self.drains and (
            any(self.flow.take(one.name) for one in below) or any(self._is_behind(one) for one in below)
        ):
            return None
        if taken is not None and taken.changes:
            return taken
        return (taken or Taken()) if self._is_behind(stage) else None

    def _is_behind(self, stage: Stage) -> bool:
        return self._newest is not None and stage.until < self._newest

    def _prepare(self, stage: Stage, taken: Taken) -> PreparedEpoch | None:
        """Prepare a run of a stage; None if it is over at once, because nothing is to be said."""
        version = self._next(stage, taken)
        inputs = stage.fragment.inputs
        start = inputs.progress.start
        low = stage.fragment.after if start is None else max(stage.fragment.after, start)
        version.until = max(version.until, self._end())
        if self._end() <= low:
            self._put_out(stage, taken, version)
            return None
        self._running[stage.fragment] = _Run(stage, taken, version)
        return stage.fragment.prepare(self._end(), self._inputs(stage, version))

    def _next(self, stage: Stage, taken: Taken) -> Version:
        """Return what a stage would put out next, yet without rows: what it comes from."""
        if stage.void:
            came = {stream: self.flow.came[stream] for stream in stage.fragment.program.streams()}
            return Version(stage.fragment, stage.until, came, {name: self.stages[name].version for name in stage.read})
        tuples, read = dict(stage.version.taken), dict(stage.read)
        for origin, events in taken.events.items():
            if origin in read:
                read[origin] = self._versions[events[-1].version]
            else:
                tuples[origin] = events[-1].seen[origin]
        return Version(stage.fragment, stage.until, tuples, read)

    def _inputs(self, stage: Stage, version: Version) -> EarlyInputs:
        early = {name: EarlyOutput(one.stage.after, one.chunks) for name, one in version.inputs.items()}
        streams = {stream: version.taken.get(stream, 0) for stream in stage.fragment.program.streams()}
        return EarlyInputs(stage.fragment.inputs, streams, early)

    def _put_out(self, stage: Stage, taken: Taken, version: Version) -> None:
        """Let a version be what the stage has put out, and its readers take it when they run."""
        changed = not same(version, stage.version)
        number = next(self._numbers)
        self._versions[number] = version
        if not stage.void:
            self.flow.put_out(stage.name, taken, number, changed)
        stage.version, stage.read, stage.void = version, dict(version.inputs), False

    def _pass_for_free(self) -> None:
        """Let stages take what changes nothing, and tokens, and let time pass where nothing happens."""
        going = not self.void
        while going:
            going = False
            for stage in self.stages.values():
                if self._is_behind(stage) and not self._inputs(stage, stage.version).happens(stage.until, self._end()):
                    stage.version.until = self._end()
                taken = self.flow.take(stage.name)
                if taken is not None and not taken.changes and not self._is_behind(stage):
                    self._relabel(stage, taken)
                    going = True

    def _relabel(self, stage: Stage, taken: Taken) -> None:
        """Let a stage take events that change nothing, without a run."""
        if not taken.events:
            self.flow.put_out(stage.name, taken, 0, changed=False)
            return
        old, version = stage.version, self._next(stage, taken)
        self._put_out(stage, taken, replace(version, until=old.until, chunks=old.chunks, table=old.table))

    def _end(self) -> Tick:
        assert self._newest is not None
        return self._newest

    # logs and files

    def _logs(self) -> dict[str, Fragment]:
        """The streams, each with a fragment that reads it."""
        return {stream: stage.fragment for stage in self.stages.values() for stream in stage.fragment.program.streams()}

    def _look(self) -> Tick | None:
        """Return the newest timestamp that has come; None if nothing has."""
        logs = [one.inputs.logs[stream] for stream, one in self._logs().items()]
        return max((chunk.high for log in logs for chunk in log.chunks), default=None)

    def _log_rows(self, stream: str) -> int:
        return self._logs()[stream].inputs.logs[stream].rows

    def _has_come(self) -> bool:
        return any(self._log_rows(stream) > count for stream, count in self.flow.came.items())

    def _queued_fit(self) -> bool:
        """Say whether what is under way still fits behind what is settled."""
        return all(self._versions[one.version].fits() for one in self.flow.events() if one.version in self._versions)

    def _kept(self, written: Written) -> list[Chunk]:
        """Keep the files of an early output for the readers of the stage."""
        folder, kept = written.fragment.directory / FOLDER, list[Chunk]()
        folder.mkdir(exist_ok=True)
        for file in written.files:
            path = folder / f"{next(self._numbers):012d}.parquet"
            file.rename(path)
            chunk = described(path)
            if chunk is None:
                path.unlink()
            else:
                kept.append(chunk)
        self._files |= set(kept)
        return kept

    def _delete_files(self) -> None:
        """Delete the files that no stage will read again, and forget what no event stands for."""
        waiting = {one.version for one in self.flow.events()}
        self._versions = {number: one for number, one in self._versions.items() if number in waiting}
        known = [*self._versions.values(), *(stage.version for stage in self.stages.values())]
        needed = {chunk for version in known for chunk in version.all_chunks()}
        for chunk in self._files - needed:
            chunk.path.unlink(missing_ok=True)
        TAIL.drop(self._files - needed)
        self._files &= needed
