"""Tells the profile what epochs did, when they are committed: numbers that are there anyway.

Of a stream: how many tuples came, what the statistics of their chunks say, and a sample now and then. Of a fragment:
rows in and out, how long its work took, and what it keeps. Of its operators: how many rows each input gave, and how
large each synopsis is. A k that is detected is noted when it has changed, as an adaptation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headgate.delta.lives import k_of
from headgate.execute.fragment import Fragment
from headgate.execute.prepared import Written
from headgate.log.chunk import Chunk
from headgate.log.log import Log
from headgate.log.statistics import Values, merged
from headgate.log.tail import TAIL
from headgate.observe.profile import Figures, Profile, Subject
from headgate.observe.samples import APART_US, Sample, sampled
from headgate.observe.series import Amounts
from headgate.observe.trace import Work
from headgate.plan.nodes import Constraint, Scan, is_part


def of_fragment(fragment: Fragment) -> Subject:
    """Return the subject of a fragment's figures."""
    name = f"{fragment.part.name} for group {fragment.group}" if fragment.group else fragment.part.name
    return Subject("fragment", name, query="" if fragment.shared else fragment.query)


def of_operator(fragment: Fragment, name: str) -> Subject:
    """Return the subject of the figures of an operator in a fragment."""
    whole = of_fragment(fragment)
    return Subject("operator", name, whole.name, whole.query)


class Profiler:
    """Fills the profile of an engine."""

    def __init__(self, logs: Mapping[str, Log]) -> None:
        self.profile = Profile()
        self.logs = logs
        """By name: the logs of streams and relations."""
        self._seen: dict[str, int] = {}
        """By stream: how many of its tuples are in the profile, or came before the engine was started."""
        self._sampled_us: dict[str, int] = {}
        """By stream: when it was last sampled."""
        self._synopses: dict[Fragment, int] = {}
        """By fragment: the version of the synopses whose sizes are in the profile."""
        self._ks: dict[tuple[Fragment, str], int] = {}
        """By fragment and constraint: the k in force that was last noted."""

    def begin(self) -> None:
        """Take what the logs hold to have come before."""
        self._seen = {name: log.rows for name, log in list(self.logs.items())}

    def committed(self, epochs: Sequence[tuple[Written, int]], work: Work, now_us: int) -> None:
        """Take note of epochs that ran together and were committed, each with how many rows it put out.

        What they took together is divided by the rows that they read.
        """
        took_us = max(work.job_us, work.written_us - work.began_us)  # a clock that is set by hand may stand
        whole = sum(_weight(written) for written, _ in epochs)
        streams = {stream for written, _ in epochs for stream in written.fragment.program.streams()}
        self.arrived(streams, now_us)
        for written, rows in epochs:
            fragment = written.fragment
            amounts = Amounts(1, written.rows_in, rows, took_us * _weight(written) // whole)
            kept = sum(chunk.size for chunks in fragment.synopses.files.values() for chunk in chunks)
            self.profile.record(
                of_fragment(fragment), now_us, amounts, state_rows=fragment.synopses.rows, state_bytes=kept
            )
            for name, read in written.read.items():
                self.profile.record(of_operator(fragment, name), now_us, Amounts(1, read, read))
            self._note_state(fragment, now_us)

    def arrived(self, streams: Iterable[str], now_us: int) -> None:
        """Take note of what has come on some streams since they were last looked at."""
        for stream in streams:
            log = self.logs.get(stream)
            before = self._seen.get(stream, 0)
            if log is None or is_part(stream) or log.rows == before:
                continue
            before = before if before < log.rows else 0  # another stream of that name was dropped
            self._seen[stream] = log.rows
            new = _chunks_after(log, before)
            amounts = Amounts(1, log.rows - before, 0, 0, _columns(new))
            self.profile.record(Subject("stream", stream), now_us, amounts, samples=self._sample(stream, new, now_us))

    def _sample(self, stream: str, chunks: Sequence[Chunk], now_us: int) -> Mapping[str, Sample] | None:
        """Return a sample of the newest of some chunks, if it lies in memory and the last sample is old enough."""
        last_us = self._sampled_us.get(stream)
        if not chunks or (last_us is not None and now_us - last_us < APART_US):
            return None
        known = TAIL.known(chunks[:1])
        if known is None:
            return None
        self._sampled_us[stream] = now_us
        return sampled(known[0])

    def look(self, now_us: int) -> None:
        """Take note of what has come on all streams."""
        self.arrived(list(self.logs), now_us)

    def _note_state(self, fragment: Fragment, now_us: int) -> None:
        """Take note of the sizes of a fragment's synopses, if they were moved."""
        synopses = fragment.synopses
        if self._synopses.get(fragment) == synopses.version or not synopses.version:
            return
        self._synopses[fragment] = synopses.version
        for name, chunks in synopses.files.items():
            rows, size = synopses.counts.get(name, 0), sum(chunk.size for chunk in chunks)
            self.profile.record(of_operator(fragment, name), now_us, Amounts(), state_rows=rows, state_bytes=size)
        for constraint in _detected(fragment):
            self._note_k(fragment, constraint, now_us)

    def _note_k(self, fragment: Fragment, constraint: Constraint, now_us: int) -> None:
        """Take note of the k in force of a constraint that is detected, if it is another one than before."""
        synopses = fragment.synopses
        for name in (one for one in synopses.files if one.rpartition("_")[0] == k_of(constraint.name)):
            (k,), (places,) = synopses.numbers(name, "_k"), synopses.numbers(name, "_p")
            before = self._ks.get((fragment, constraint.name))
            if k == before:
                continue
            self._ks[fragment, constraint.name] = k
            was = f", before that {before}" if before is not None else f", at most {constraint.k}"
            what = f"k of constraint {constraint.name} is {k}{was}"
            by = f"the distances in blocks of {constraint.block} tuples, after {places} tuples of {constraint.stream}"
            query = "" if fragment.shared else fragment.query
            self.profile.adaptations.note(now_us, "detection", query, what, by)

    def forget(self, fragments: Iterable[Fragment], query: str) -> None:
        """Drop what is known of a query that is gone, and of its fragments."""
        gone = set(fragments)
        for fragment in gone:
            self._synopses.pop(fragment, None)
        self._ks = {key: k for key, k in self._ks.items() if key[0] not in gone}
        self.profile.forget(query)

    def of(self, fragment: Fragment, now_us: int) -> Figures | None:
        """Return the figures of a fragment; None if it has not run since the engine was started."""
        return self.profile.of(of_fragment(fragment), now_us)


def _detected(fragment: Fragment) -> set[Constraint]:
    """Return the constraints on the streams of a fragment whose k is detected."""
    scans = (source for source in fragment.part.plan.sources if isinstance(source, Scan))
    return {one for scan in scans for one in scan.constraints if one.detected}


def _weight(written: Written) -> int:
    return written.rows_in + 1


def _chunks_after(log: Log, count: int) -> list[Chunk]:
    """Return the chunks that came behind the first so many tuples of a log."""
    found: list[Chunk] = []
    for chunk in reversed(log.chunks):
        if chunk.arrived <= count:
            break
        found.append(chunk)
    return found


def _columns(chunks: Sequence[Chunk]) -> tuple[tuple[str, Values], ...]:
    """Return what is known of all columns of numbers in some chunks; nothing of a column that one does not tell of."""
    known = merged(chunk.statistics for chunk in chunks) if chunks else None
    if known is None:
        return ()
    return tuple((name, values) for name, values in known.columns.items() if values is not None)
