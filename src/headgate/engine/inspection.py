"""What an engine answers when it is asked how things stand: nothing here changes anything."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow.compute as pc

from headgate.cql.constraints import users
from headgate.cql.definitions import Listing
from headgate.deliver.reflects import in_words
from headgate.delta.lives import k_of
from headgate.delta.violations import violations_of
from headgate.engine.core import Core
from headgate.engine.left_out import skipped
from headgate.engine.whole_plan import drawn
from headgate.execute.fragment import RESTARTS
from headgate.heartbeat import in_force
from headgate.heartbeat.why import Why
from headgate.masking import masked
from headgate.observe.profile import Figures
from headgate.observe.profile_table import adapted, lines
from headgate.schedule.profiler import of_fragment
from headgate.schedule.query import RunningQuery
from headgate.spark.failures import reason_of
from headgate.sql import spelled
from headgate.ticks import UNLIMITED, TimeDomain

SHOWN = 5
"""How many adaptations of a query WHY tells of: the last ones."""


def heartbeat(core: Core, stream: str) -> Any:
    """The instant up to which a stream is known to be complete; None while that is unknown."""
    found = core.catalog.stream(stream)
    time = core.heartbeats.stream(found.name)
    instants = time.promised(), time.complete(core.clock.now_us())
    known = [tick for tick in instants if tick is not None and tick != UNLIMITED]
    return found.domain.moment(max(known)) if known else None


def silent(core: Core, stream: str) -> bool:
    """True if nothing came from the stream for the timeout, so that it no longer holds queries back."""
    return core.heartbeats.stream(core.catalog.stream(stream).name).is_silent(core.clock.now_us())


def bounds(core: Core) -> Listing:
    """The bounds in force, where each came from, and the line of CQL that would declare it."""
    return Listing(in_force.HEADINGS, core.heartbeats.bounds_in_force())


def constraints(core: Core) -> Listing:
    """The constraints, the queries that rely on each, its k, and how many tuples broke it as far as the state has come.

    A k that is detected is the one in force; queries that have come further may have another, and the largest is shown.
    """
    rows = []
    for one in core.catalog.constraints.values():
        using = [query for query in core.loop.queries.values() if query.name in users(one.name, core.catalog)]
        broken = max((sum(_kept(query, violations_of(one.name), "_broken")) for query in using), default=0)
        ks = [k for query in using for k in _kept(query, k_of(one.name), "_k")] if one.detected else []
        policy = "count" if one.counts else "fail"
        known = (one.name, one.stream, one.promise, policy, ", ".join(query.name for query in using))
        rows.append((*known, str(max(ks, default=one.k)), str(broken)))
    return Listing(("constraint", "on", "promise", "on violation", "used by", "k", "violations"), tuple(rows))


def _kept(query: RunningQuery, synopsis: str, column: str) -> list[int]:
    """The numbers in a column of the synopses of a query whose names begin like that."""
    stores = [fragment.synopses for fragment in query.fragments]
    return [
        number
        for store in stores
        for name in store.files
        if name.rpartition("_")[0] == synopsis
        for number in store.numbers(name, column)
    ]


def plan(core: Core) -> Listing:
    """The plan of all queries: what each stream, shared fragment and query reads, computes and keeps, line by line."""
    return Listing(("plan",), tuple((masked(line),) for line in drawn(core)))


def why(core: Core, query: RunningQuery) -> Why:
    """Which source holds a query back, since when, by which bound, and what would release it."""
    streams = query.streams()
    waiting = {stream: query.waiting(stream) for stream in streams}
    least = min(query.answers, key=lambda fragment: fragment.after)
    found = core.heartbeats.explain(
        query.name,
        streams,
        query.reached if query.begun else None,
        waiting,
        core.clock.now_us(),
        least.part.scopes,
    )
    now_us, notes = core.clock.now_us(), core.loop.profiler.profile.adaptations.of(query.name)
    groups = {group: "no instant yet" if upto is None else str(upto) for group, upto in query.complete_by_group.items()}
    reflects = in_words(query.reflects) if query.begun else ""
    return replace(
        found,
        groups=groups,
        reflects=reflects,
        adapted=tuple(adapted(notes[-SHOWN:], now_us)),
        trouble=_standing_still(query),
        skipped=skipped(core, query),
    )


def _standing_still(query: RunningQuery) -> str:
    """The error with which a query stands still, and what to do about it; empty if it goes on."""
    if query.trouble is None or not query.failed:
        return ""
    if not query.given_up:
        return f"{query.trouble.render()}\nIt is restarted from where it was in a while."
    return (
        f"{query.trouble.render()}\nIt failed {RESTARTS + 1} times in a row, and is not restarted any more. "
        f"ALTER QUERY {spelled(query.name)} AS ... ON ERROR SKIP leaves out rows that cannot be evaluated; DROP QUERY "
        "ends it. When the engine is started again, it is tried again from where it was."
    )


def profile(core: Core, query: str | None = None) -> list[Figures]:
    """What streams, fragments and operators were seen to do lately; of one query, if its name is given."""
    profiler, now_us = core.loop.profiler, core.clock.now_us()
    with core.journal.turn:
        if core.catalog.settings.profile == "on":
            profiler.look(now_us)
        running = [core.query(query)] if query is not None else core.programs()
        fragments = {of_fragment(one): one for each in running for one in each.fragments}
        streams = {stream for each in running for stream in each.streams()}
        found = profiler.profile.figures(now_us)
        waiting = {subject: sum(map(one.inputs.waiting, one.program.logs())) for subject, one in fragments.items()}
    whole = {(subject.name, subject.query) for subject in fragments}
    return [
        replace(one, waiting=waiting.get(one.subject, 0))
        for one in found
        if query is None
        or (one.subject.kind == "stream" and one.subject.name in streams)
        or (one.subject.kind == "fragment" and one.subject in fragments)
        or (one.subject.fragment, one.subject.query) in whole
    ]


def shown_profile(core: Core, query: str | None) -> Listing:
    """The answer to SHOW PROFILE, line by line."""
    if core.catalog.settings.profile == "off":
        return Listing(("profile",), (("no figures are kept: SET profile = 'on'",),))
    notes = core.loop.profiler.profile.adaptations.of(query)
    shown = lines(profile(core, query), notes, core.clock.now_us())
    return Listing(("profile",), tuple((masked(line),) for line in shown))


def reasons(core: Core) -> dict[str, Why]:
    """Why each query has come no further. Members of a family have come as far as the family."""
    families = {id(query.fragments): query.why() for query in core.programs() if query.hidden}
    known = ((query, families.get(id(query.fragments))) for query in core.queries())
    return {query.name: query.why() if found is None else replace(found, query=query.name) for query, found in known}


def troubles(core: Core) -> dict[str, dict[str, str]]:
    """What has failed and is tried again or stands still: streams, queries and sinks by name; what is in quarantine."""
    queries = core.queries()
    sinks = [(one.name, one.outbox.trouble) for one in core.outlets()]
    return {
        "streams": {name: error.render() for name, error in list(core.inputs.troubles.items())},
        "queries": {query.name: query.trouble.render() for query in queries if query.trouble is not None},
        "sinks": {name: reason_of(error) for name, error in sinks if error is not None},
        "quarantine": {
            f"{one.kind} {one.name}": f"{one.why.rstrip('.')}. {one.mend}"
            for one in list(core.catalog.quarantine.values())
        },
    }


def late(core: Core, stream: str) -> dict[Any, int]:
    """How many tuples came late, by source; None stands for a stream's only source, or for forgotten ones."""
    return core.heartbeats.stream(core.catalog.stream(stream).name).late_by_source()


def counts(core: Core, stream: str) -> dict[str, int]:
    """How many tuples went to the log, and how many to the dead letters, by reason."""
    inlet = core.inputs.inlet(stream)
    return {"taken": inlet.log.rows, **inlet.counts}


def worst(core: Core, stream: str) -> timedelta | int | None:
    """The largest lateness among the late tuples that are kept; None if there are none."""
    inlet = core.inputs.inlet(stream)
    kept = (chunk.table(["_reason", "_behind"]) for chunk in inlet.dead.chunks)
    found = [pc.max(one.filter(pc.equal(one["_reason"], "late"))["_behind"]).as_py() for one in kept]
    most = max((ticks for ticks in found if ticks is not None), default=None)
    if most is None or inlet.stream.domain is not TimeDomain.TIMESTAMP:
        return most
    return timedelta(microseconds=most)


def dead_letters(core: Core, stream: str) -> list[dict[str, Any]]:
    """The tuples that came late or could not be read, with the reason."""
    inlet = core.inputs.inlet(stream)
    columns = inlet.dead_schema.names
    return [row for chunk in inlet.dead.chunks for row in chunk.table(columns).to_pylist()]
