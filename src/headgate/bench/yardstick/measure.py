"""Runs the questions of the yardstick in all ways, turn by turn, and compares the results."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

from headgate.bench.yardstick import processes
from headgate.bench.yardstick.compare import Agreement, compare
from headgate.bench.yardstick.flink import Flink
from headgate.bench.yardstick.results import read_results
from headgate.bench.yardstick.ways import Inputs, Way, complete_to, job_for, reason_against, worker_of
from headgate.bench.yardstick.worker import Worker, WorkerFailed
from headgate.bench.yardstick.workloads import Workload


@dataclass(slots=True)
class Measured:
    """What one way took for one question."""

    seconds: list[float] = field(default_factory=list)
    """Of each turn but the first, which warms up."""

    peak_bytes: int | None = None
    reason: str | None = None
    """Why there are no seconds."""

    failure: str | None = None
    """What went wrong, in full."""

    agreement: Agreement | None = None

    @property
    def median(self) -> float | None:
        """The seconds of the middle turn; None if there are none."""
        return median(self.seconds) if self.seconds else None

    @property
    def wrong(self) -> bool:
        """True if it failed or its results differ."""
        return self.failure is not None or (self.agreement is not None and not self.agreement.whole)


@dataclass(slots=True)
class Quiet:
    """How quiet the machine was while it was measured, in seconds of processor time."""

    clock_s: float = 0
    idle_workers_s: float = 0
    """Used by workers whose turn it was not."""

    others_s: float | None = 0
    """Used by whatever else ran on the machine; None if unknown."""


@dataclass(frozen=True, slots=True)
class Yardstick:
    """All that was measured."""

    rows: int
    turns: int
    cores: int
    found: dict[Workload, dict[Way, Measured]]
    quiet: Quiet
    flink: str
    """The version of Flink, or why there is none."""

    @property
    def wrong(self) -> bool:
        """True if a way failed or its results differ."""
        return any(one.wrong for ways in self.found.values() for one in ways.values())


@contextmanager
def workers_for(ways: Sequence[Way], folder: Path, flink: Flink | None) -> Iterator[dict[Way, Worker]]:
    """Workers that are ended, whatever happens."""
    folder.mkdir(parents=True, exist_ok=True)
    workers = {way: worker_of(way, folder / f"{way}.log", flink) for way in ways}
    try:
        yield workers
    finally:
        for worker in workers.values():
            worker.stop()


def measure(
    workload: Workload,
    workers: Mapping[Way, Worker],
    inputs: Inputs,
    turns: int,
    quiet: Quiet,
    now: Callable[[str], None],
) -> dict[Way, Measured]:
    """Times a question in each way, one after another in each turn; `now` hears what comes next."""
    found = {way: Measured(reason=reason_against(way, workload, inputs)) for way in workers}
    for turn in range(1 + turns):
        for way, one in found.items():
            now(f"{workload.name} {way}, {f'turn {turn} of {turns}' if turn else 'warm-up'}")
            if one.reason is None:
                _take_turn(workload, way, one, workers, inputs, turn > 0, quiet)
    now(f"{workload.name} results")
    _compare_all(workload, found, inputs)
    shutil.rmtree(inputs.folder / "out", ignore_errors=True)
    return found


def _take_turn(
    workload: Workload,
    way: Way,
    one: Measured,
    workers: Mapping[Way, Worker],
    inputs: Inputs,
    counts: bool,
    quiet: Quiet,
) -> None:
    out = _out(inputs, way)
    shutil.rmtree(out.parent, ignore_errors=True)
    out.parent.mkdir(parents=True)
    try:
        workers[way].start()
        with _watched(way, workers, quiet):
            answer = workers[way].do(job_for(way, workload, inputs, out))
    except WorkerFailed as error:
        one.failure = str(error)
        one.reason = f"failed: {one.failure.splitlines()[0][:80]}"
        one.seconds.clear()
        return
    if counts:
        one.seconds.append(answer["seconds"])
        one.peak_bytes = max(one.peak_bytes or 0, answer["peak_bytes"] or 0) or None


@contextmanager
def _watched(way: Way, workers: Mapping[Way, Worker], quiet: Quiet) -> Iterator[None]:
    """Adds up what the other workers, and whatever else is on the machine, use while a way has its turn."""
    own = workers[way].id
    others = [worker.id for other, worker in workers.items() if other != way and worker.id is not None]

    def used() -> tuple[float, float, float]:
        active = processes.processor_s(own) if own is not None else 0.0
        return active, sum(map(processes.processor_s, others)), processes.machine_busy_s() or 0.0

    begun, before = perf_counter(), used()
    try:
        yield
    finally:
        active, idle, machine = (after - earlier for after, earlier in zip(used(), before, strict=True))
        quiet.clock_s += perf_counter() - begun
        quiet.idle_workers_s += idle
        if machine and quiet.others_s is not None:
            quiet.others_s += max(0.0, machine - active - idle)
        else:
            quiet.others_s = None


def _compare_all(workload: Workload, ways: Mapping[Way, Measured], inputs: Inputs) -> None:
    """Compares the results of the last turn with those of the batch query, if that was asked too."""
    reference = ways.get("batch")
    if reference is None or not reference.seconds:
        return
    names = (*workload.compared.identity, *workload.compared.values)
    batch = read_results(_out(inputs, "batch"), names)
    for way, one in ways.items():
        if way != "batch" and one.seconds:
            results = read_results(_out(inputs, way), names)
            one.agreement = compare(results, batch, workload.compared, complete_to(way, workload, inputs.shape))


def _out(inputs: Inputs, way: Way) -> Path:
    """Where the results of a way go; beside them is what it keeps for itself."""
    return inputs.folder / "out" / way / "results"
