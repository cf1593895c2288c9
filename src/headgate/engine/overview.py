"""Looks at everything that an engine runs, and makes the model of `observe.overview` of it."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.catalog.entries import Group, Relation, Stream
from headgate.deliver.outbox import Outbox
from headgate.engine import inspection
from headgate.engine.core import Core
from headgate.execute.fragment import Fragment
from headgate.heartbeat.why import Why
from headgate.log.log import Log
from headgate.masking import masked
from headgate.observe.overview import (
    FragmentView,
    GroupSinkView,
    GroupView,
    LogView,
    Overview,
    PlanView,
    QueryView,
    SinkView,
    StreamView,
)
from headgate.plan.nodes import Node, children
from headgate.schedule.common import common_instant
from headgate.schedule.query import RunningQuery
from headgate.settings import listed
from headgate.sources.verdict import NOT_KEPT
from headgate.spark.failures import reason_of
from headgate.sql import Column


def overview(core: Core, running: bool) -> Overview:
    """Return how everything is at this moment; nothing is committed meanwhile."""
    with core.journal.turn:
        queries = core.queries()
        fragments = all_fragments(core, queries)
        names = {fragment: name for name, fragment in fragments.items()}
        written = {one.part.name: one.output for one in fragments.values() if one.output is not None}
        logs = {**core.inputs.logs, **written}
        reasons = inspection.reasons(core)
        return Overview(
            core.clock.now_us(),
            running,
            {name: value for name, value, _ in listed(core.catalog.settings)},
            {one.name: _stream(core, one) for one in core.catalog.streams.values()},
            {one.name: _stream(core, one) for one in core.catalog.relations.values()},
            {name: _log(name, log, fragments) for name, log in logs.items() if log.rows or name in core.inputs.inlets},
            {name: _fragment(core, one) for name, one in fragments.items()},
            {query.name: _query(query, names, reasons[query.name]) for query in queries},
            {group.name: _group(core, group) for group in core.catalog.groups.values()},
            {kind: failed for kind, failed in inspection.troubles(core).items() if failed},
        )


def all_fragments(core: Core, queries: list[RunningQuery]) -> dict[str, Fragment]:
    """Every fragment once, by a name that no other has."""
    everything = [*core.loop.shared(), *(one for query in queries for one in query.own)]
    return {one.full_name: one for one in dict.fromkeys(everything)}


def _stream(core: Core, one: Stream | Relation) -> StreamView:
    inlet, trouble = core.inputs.inlets[one.name], core.inputs.troubles.get(one.name)
    counts = inspection.counts(core, one.name)
    is_stream = isinstance(one, Stream)
    return StreamView(
        "stream" if is_stream else "relation",
        _types(one.columns),
        one.connector.format if one.connector is not None else None,
        inlet.log.rows,
        {reason: count for reason, count in counts.items() if reason not in ("taken", *NOT_KEPT)},
        inspection.heartbeat(core, one.name) if is_stream else None,
        inspection.silent(core, one.name) if is_stream else False,
        trouble.render() if trouble is not None else None,
    )


def _types(columns: tuple[Column, ...]) -> dict[str, str]:
    return {column.name: column.type for column in columns}


def _log(name: str, log: Log, fragments: Mapping[str, Fragment]) -> LogView:
    chunks = list(log.chunks)
    read_by = tuple(other for other, fragment in fragments.items() if name in fragment.program.logs())
    rows, size = sum(chunk.rows for chunk in chunks), sum(chunk.size for chunk in chunks)
    return LogView(log.rows, rows, size, len(chunks), read_by)


def _fragment(core: Core, one: Fragment) -> FragmentView:
    domain = one.program.domain
    return FragmentView(
        tuple(query.name for query in core.queries() if one in query.fragments),
        one.shared,
        _plan(one.part.plan),
        {log: one.inputs.waiting(log) for log in sorted(one.program.logs())},
        one.part.log,
        {synopsis.name: str(synopsis.bound) for synopsis in one.program.synopses},
        domain.moment(one.after) if one.begun else None,
        one.epochs,
        one.rows_in,
        one.rows_out,
        one.failed,
    )


def _plan(node: Node) -> PlanView:
    return PlanView(masked(node.label), tuple(map(_plan, children(node))))


def _group(core: Core, group: Group) -> GroupView:
    instant = common_instant(queries := [core.query(name) for name in group.queries])
    complete = None if instant is None else queries[0].domain.moment(instant)
    if group.connector is None:
        return GroupView(group.queries, complete, None)
    running = core.group(group.name)
    outbox = running.outbox
    sink = GroupSinkView(
        group.connector.format, running.guarantee, running.delivered, bool(outbox.waiting), _reason(outbox)
    )
    return GroupView(group.queries, complete, sink)


def _reason(outbox: Outbox) -> str | None:
    """Why a sink takes nothing, if it does not."""
    return reason_of(outbox.trouble) if outbox.trouble is not None else None


def _query(query: RunningQuery, names: Mapping[Fragment, str], why: Why) -> QueryView:
    outbox = query.outbox
    ages = [sum(age.values()) for age in query.traces.ages()]
    connector = query.definition.connector
    waiting = list(outbox.waiting)
    sink = SinkView(
        connector.format if connector is not None else "memory" if outbox.kept else "console",
        query.guarantee,
        query.delivered,
        len(waiting),
        sum(delivery.rows for delivery in waiting),
        _reason(outbox),
    )
    return QueryView(
        masked(query.definition.text),
        query.kind,
        tuple(query.columns),
        tuple(names[one] for one in query.fragments if one in names),
        query.complete,
        None if query.shares_outbox else query.last_position,
        query.epochs,
        why,
        why.reflects,
        sink,
        sum(ages) / len(ages) / 1e6 if ages else None,
        query.trouble.render() if query.trouble is not None else None,
        why.skipped if query.definition.skips else None,
    )
