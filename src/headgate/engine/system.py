"""Writes the system streams (`catalog.system`) that queries read: samples of the overview, and events.

A system stream has an inlet and a log as long as a query reads it, and not longer. Nothing is looked at for one that
nobody reads. `look` is called in every turn of the loop. It pushes rows as anybody pushes rows to a stream that the
engine stamps, so a system stream is complete as far as the engine's clock says.

A query that reads system streams only is left out of all of them, and so are its fragments. System streams, their logs
and the rows that wait in them are never reported. A query that also reads something else is reported as any other is,
but its failures are not in SYSTEM.errors if it reads that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from headgate.catalog import system
from headgate.catalog.entries import Query, Stream
from headgate.engine import inspection
from headgate.engine.core import Core
from headgate.engine.facts import SystemClosed, SystemOpened
from headgate.engine.overview import all_fragments, overview
from headgate.errors import UserError
from headgate.execute.fragment import Fragment
from headgate.heartbeat.clocks import base
from headgate.log.folders import fresh_folder
from headgate.observe.events import MOST_ROWS, Events
from headgate.observe.overview import FragmentView, Overview, QueryView
from headgate.observe.profile import Figures
from headgate.observe.rates import Rates
from headgate.plan.nodes import sources
from headgate.schedule.profiler import of_fragment
from headgate.sources.inlet import ticks
from headgate.sources.pushes import Push
from headgate.sources.verdict import HEARTBEAT, LATE, NOT_KEPT
from headgate.spark.failures import reason_of
from headgate.ticks import Tick

Row = dict[str, Any]

NO_FIGURES = (
    "rows_in",
    "rows_out",
    "rate_in",
    "rate_out",
    "selectivity",
    "seconds",
    "us_per_row",
    "state_rows",
    "state_bytes",
)
"""The columns that the profiler fills."""


class SystemStreams:
    """The system streams that queries read, and what is remembered between two looks at the engine."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.opened: dict[str, SystemOpened] = {}
        """Those that have an inlet, by name as in `catalog.system`."""
        self._sampled: dict[str, int] = {}
        """The interval in which each was last sampled."""
        self._rates = Rates()
        self._events = {name: Events(count) for name, count in COUNTED.items()}
        self._heartbeats: dict[str, Tick] = {}
        """How far each stream was complete at the last look, while SYSTEM.heartbeats is read."""
        self._dead: dict[str, Counter[tuple[str, str | None]]] = {}
        """The dead letters of each stream at the last look by reason and source, while SYSTEM.late is read."""
        self._begun: set[str] = set()
        core.inputs.on_failure = core.loop.on_failure = self.failed

    # coming and going

    def open_for(self, query: Query) -> None:
        """Make the inlets of the system streams that a new query reads."""
        for name in _system_streams(query):
            if name not in self.opened:
                folder = fresh_folder(self.core.directory / "streams", name)
                fact = SystemOpened(name, folder, self.core.clock.now_us())
                self.core.record(fact, then=_nothing, undo=partial(self.apply_closed, SystemClosed(name)))
                self.apply_opened(fact)
                self._begin(name)

    def apply_opened(self, fact: SystemOpened) -> None:
        """Make the inlet of a system stream, now or after a restart."""
        self.core.inputs.add(self.core.catalog.system[fact.stream.lower()], fact.folder)
        self.opened[fact.stream] = fact

    def apply_closed(self, fact: SystemClosed) -> None:
        """Drop the inlet of a system stream. Its files go when the engine tidies."""
        self.core.inputs.drop(fact.stream)
        self.core.asking.forget(fact.stream)
        self.opened.pop(fact.stream, None)
        self._begun.discard(fact.stream)
        self._sampled.pop(fact.stream, None)

    def close_unread(self) -> bool:
        """Drop the inlets of system streams that no query reads any more; say whether there were any."""
        if not self.opened:
            return False
        read = {name for query in self.core.catalog.queries.values() for name in _system_streams(query)}
        unread = [SystemClosed(name) for name in self.opened if name not in read]
        for fact in unread:
            self.core.record(fact, then=partial(self.apply_closed, fact))
        return bool(unread)

    # looking

    def next_us(self) -> int | None:
        """Return when the next sample is due; None if nobody reads any."""
        if not self.opened:
            return None
        interval_us = self._interval_us()
        return (self.core.clock.now_us() // interval_us + 1) * interval_us

    def look(self, running: bool) -> int:
        """Write the rows that are due: events since the last look, and a sample once an interval; how many."""
        if not self.opened:
            return 0
        interval, written = self.core.clock.now_us() // self._interval_us(), 0
        with self.core.journal.turn:
            self._look_for_events()
        for name, events in self._events.items():
            if name in self.opened:
                rows = events.taken(interval)
                try:
                    written += self._write(name, rows)
                except BaseException:
                    events.put_back(rows)
                    raise
        due = [name for name in self.opened if name in SAMPLED and self._sampled.get(name) != interval]
        if due:
            found = Sample(self.core, overview(self.core, running), self._rates)
            for name in due:
                written += self._write(name, list(SAMPLED[name](found)))
                self._sampled[name] = interval
        return written

    def _interval_us(self) -> int:
        return self.core.catalog.settings.system_interval_us

    def _write(self, name: str, rows: list[Row]) -> int:
        if not rows:
            return 0
        inlet, began_us = self.core.inputs.inlets[name], self.core.clock.now_us()
        self.core.inputs.pushes.take(Push(inlet, inlet.rows.read(rows), began_us))
        return len(rows)

    # events

    def failed(self, kind: str, name: str, error: Exception) -> None:
        """Take note of a failure for SYSTEM.errors, if that is read. Called by the thread that has failed."""
        if ERRORS not in self.opened or self._watches_errors(kind, name):
            return
        code, message = (error.code, error.message) if isinstance(error, UserError) else (None, reason_of(error))
        values = {"kind": kind, "name": name, "code": code, "message": message.splitlines()[0] if message else ""}
        self._events[ERRORS].add(tuple(values.values()), values)

    def _watches_errors(self, kind: str, name: str) -> bool:
        """Say whether this is a query, or the sink of one or of a group, whose failures would lead to more rows."""
        catalog = self.core.catalog
        group = catalog.groups.get(name.lower())
        names = group.queries if group is not None and kind == "sink" else (name,)
        queries = [catalog.queries[one.lower()] for one in names if one.lower() in catalog.queries]
        return kind != "stream" and any(only_system(one) or ERRORS in _system_streams(one) for one in queries)

    def _begin(self, name: str) -> None:
        """Begin to look for the events of a system stream: what was there before is not new."""
        self._begun.add(name)
        if name == HEARTBEATS:
            self._heartbeats = self._all_heartbeats()
        elif name == DEAD:
            self._dead = self._all_dead()

    def _look_for_events(self) -> None:
        for name in self.opened.keys() - self._begun:  # it was read before a restart
            self._begin(name)
        if HEARTBEATS in self.opened:
            before, self._heartbeats = self._heartbeats, self._all_heartbeats()
            for stream, tick in self._heartbeats.items():
                if before.get(stream) != tick:
                    moment = self.core.catalog.stream(stream).domain.moment(tick)
                    self._events[HEARTBEATS].add((stream,), {"stream": stream, **_instant("heartbeat", moment)})
        if DEAD in self.opened:
            earlier, self._dead = self._dead, self._all_dead()
            for stream, counts in self._dead.items():
                for (reason, source), count in _grown(earlier.get(stream, Counter()), counts).items():
                    values = {"stream": stream, "source": source, "reason": reason}
                    self._events[DEAD].add(tuple(values.values()), values, count)

    def _all_heartbeats(self) -> dict[str, Tick]:
        """How far each stream of the users is complete, as a tick."""
        known = ((name, inspection.heartbeat(self.core, name)) for name in _names(self.core))
        return {name: _tick(moment) for name, moment in known if moment is not None}

    def _all_dead(self) -> dict[str, Counter[tuple[str, str | None]]]:
        """How many dead letters each stream has had, by reason and, where that is known, by source."""
        return {name: _dead_of(self.core, name) for name in _names(self.core)}


class Sample:
    """One look at the engine, from which all rows of one sample are made."""

    def __init__(self, core: Core, seen: Overview, rates: Rates) -> None:
        self.core = core
        self.seen = seen
        self.rates = rates.sample(seen.counters(), seen.now_us)
        self.date = core.heartbeats.enabling.stamp(seen.now_us)
        known = core.catalog.queries
        self.queries = {
            name: view for name, view in seen.queries.items() if name.lower() in known and not _only_system(core, name)
        }
        running = all_fragments(core, core.queries())
        self.fragments = {
            name: (running[name], view)
            for name, view in seen.fragments.items()
            if name in running and not self._is_ours(running[name], view)
        }

    def _is_ours(self, fragment: Fragment, view: FragmentView) -> bool:
        """Say whether a fragment serves nothing but the reading of system streams."""
        read = set(map(base, fragment.part.streams))
        return bool(read and all(map(system.is_system, read))) or not any(one in self.queries for one in view.queries)

    def behind(self, moment: Any) -> float | None:
        """How many seconds an instant lies behind the date, if it has one."""
        return (self.date - ticks(moment)) / 1e6 if isinstance(moment, datetime) else None

    def waiting(self, fragments: Iterable[FragmentView]) -> int:
        """How many tuples of users' streams wait for some fragments that lead to one answer."""
        found = Counter[str]()
        for fragment in fragments:
            for log, count in fragment.reads.items():
                if log in self.seen.streams:
                    found[log] = max(found[log], count)
        return found.total()


def _streams(sample: Sample) -> Iterator[Row]:
    seen = sample.seen
    for name, view in (*seen.streams.items(), *seen.relations.items()):
        log = seen.logs.get(name)
        yield {
            "stream": name,
            "kind": view.kind,
            "connector": view.connector,
            "taken": view.taken,
            "rate": sample.rates.get(f"streams/{name}/taken"),
            "dead": sum(count for reason, count in view.dead.items() if reason != HEARTBEATS_SENT),
            "kept_rows": log.kept_rows if log is not None else 0,
            "kept_bytes": log.kept_bytes if log is not None else 0,
            **_instant("heartbeat", view.heartbeat),
            "behind_seconds": sample.behind(view.heartbeat),
            "silent": view.silent,
            "trouble": view.trouble,
        }


def _sources(sample: Sample) -> Iterator[Row]:
    core = sample.core
    with core.journal.turn:
        for name in _names(core):
            domain, found = core.catalog.stream(name).domain, core.heartbeats.stream(name).by_source(MOST_ROWS)
            for one in found:
                yield {
                    "stream": name,
                    "source": None if one.source is None else str(one.source),
                    "sources": one.sources,
                    **_instant("last", None if one.largest is None else domain.moment(one.largest)),
                    "late": one.late,
                }


def _queries(sample: Sample) -> Iterator[Row]:
    for name, view in sample.queries.items():
        yield {
            "query": name,
            "kind": view.kind,
            **_instant("complete", view.complete),
            "behind_seconds": sample.behind(view.complete),
            "waiting": sample.waiting(_fragments_of(sample, view)),
            "held_by": view.why.held_by or None,
            "results": view.results,
            "rate": sample.rates.get(f"queries/{name}/results"),
            "epochs": view.epochs,
            "age_seconds": view.age_seconds,
            "sink": view.sink.kind,
            "undelivered": view.sink.waiting_rows,
            "sink_trouble": view.sink.trouble,
            "trouble": view.trouble,
        }


def _fragments_of(sample: Sample, view: QueryView) -> list[FragmentView]:
    return [sample.seen.fragments[name] for name in view.fragments if name in sample.seen.fragments]


def _fragments(sample: Sample) -> Iterator[Row]:
    figures = {one.subject: one for one in inspection.profile(sample.core)}
    for name, (fragment, view) in sample.fragments.items():
        yield {
            "fragment": name,
            "query": None if view.shared else fragment.query,
            "queries": len(view.queries),
            **_instant("complete", view.complete),
            "epochs": view.epochs,
            "waiting": sample.waiting([view]),
            "failed": view.failed,
            **_profiled(figures.get(of_fragment(fragment))),
        }


def _operators(sample: Sample) -> Iterator[Row]:
    names = {(of.name, of.query): name for name, (one, _) in sample.fragments.items() if (of := of_fragment(one))}
    for one in inspection.profile(sample.core):
        name = names.get((one.subject.fragment, one.subject.query))
        if one.subject.kind == "operator" and name is not None:
            query = one.subject.query or None
            yield {"operator": one.subject.name, "fragment": name, "query": query, **_profiled(one)}


def _profiled(figures: Figures | None) -> Row:
    """The columns that the profiler fills; null if it has seen nothing, or is off."""
    if figures is None:
        return dict.fromkeys(NO_FIGURES)
    return {
        "rows_in": figures.rows_in,
        "rows_out": figures.rows_out,
        "rate_in": figures.rate_in,
        "rate_out": figures.rate_out,
        "selectivity": figures.selectivity,
        "seconds": figures.took_us / 1e6,
        "us_per_row": figures.us_per_row,
        "state_rows": figures.state_rows,
        "state_bytes": figures.state_bytes,
    }


SAMPLED = {
    "SYSTEM.streams": _streams,
    "SYSTEM.sources": _sources,
    "SYSTEM.queries": _queries,
    "SYSTEM.fragments": _fragments,
    "SYSTEM.operators": _operators,
}
"""What makes the rows of a sample."""

HEARTBEATS, DEAD, ERRORS = "SYSTEM.heartbeats", "SYSTEM.late", "SYSTEM.errors"

COUNTED = {HEARTBEATS: "moves", DEAD: "tuples", ERRORS: "failures"}
"""The streams of events, each with the column that says how many events a row sums up."""

HEARTBEATS_SENT = "heartbeats"
"""The word under which an inlet counts the heartbeats of its sources, which are no dead letters."""


def _nothing() -> None:
    """What a fact asks for is done already."""


def only_system(query: Query) -> bool:
    """True if a query reads system streams and nothing else."""
    return all(system.is_system(one.name) for one in sources(query.plan))


def _only_system(core: Core, query: str) -> bool:
    return only_system(core.catalog.queries[query.lower()])


def _system_streams(query: Query) -> list[str]:
    """The system streams that a query reads."""
    return sorted({one.name for one in sources(query.plan) if system.is_system(one.name)})


def _names(core: Core) -> list[str]:
    """The streams of the users, by name."""
    return [stream.name for stream in list(core.catalog.streams.values()) if isinstance(stream, Stream)]


def _tick(moment: Any) -> Tick:
    return ticks(moment) if isinstance(moment, datetime) else moment


def _instant(name: str, moment: Any) -> Row:
    """An instant of a stream as two columns: a TIMESTAMP, if it is one, and a number."""
    return {
        name: moment if isinstance(moment, datetime) else None,
        f"{name}_tick": None if moment is None else _tick(moment),
    }


def _dead_of(core: Core, stream: str) -> Counter[tuple[str, str | None]]:
    counts = inspection.counts(core, stream)
    found = Counter[tuple[str, str | None]]()
    for reason, count in counts.items():
        if reason not in ("taken", HEARTBEATS_SENT, HEARTBEAT, *NOT_KEPT) and count:
            found[reason, None] = count
    late = inspection.late(core, stream) if found[LATE, None] else {}
    for source, count in late.items():
        if source is not None:
            found[LATE, str(source)] += count
            found[LATE, None] -= count
    return +found


def _grown(before: Mapping[Any, int], now: Mapping[Any, int]) -> dict[Any, int]:
    """By how much counts have grown. One that is smaller than before has begun anew."""
    found = {key: count - before.get(key, 0) if count >= before.get(key, 0) else count for key, count in now.items()}
    return {key: count for key, count in found.items() if count}
