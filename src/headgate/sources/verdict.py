"""The verdict on each row that arrives: a tuple, a heartbeat of its source, or a dead letter, and why.

The rules stand here twice, as NumPy over pushed rows and as SQL over files; a test compares them. The first rule that
holds decides:

    malformed       the row could not be read
    no-timestamp    it has none
    before-origin   its timestamp lies before the first instant there is
    far-future      its timestamp, or the heartbeat it carries, lies so far ahead that it would make all others late
    heartbeat       its source only says that nothing up to this timestamp will still come
    check-failed    a value breaks the CHECK of its column
    late            readers that would see it were told already that the stream is complete up to this timestamp
    unneeded        a tuple that no query needs (see `low_part`): it counts for time, and is not kept
    tuple           none of these

A verdict needs nothing but the row and the limits for its batch. Those are the ones in force when it arrives, unless
the batch itself shows that what lies beyond the last of them is no mistake (see `future`): then it is judged once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.catalog.entries import Relation, Stream
from headgate.heartbeat.arrivals import NEVER, Ticks
from headgate.heartbeat.future import largest_of
from headgate.plan.prefilter import holds
from headgate.scope import Scope
from headgate.sql import EMPTY, FOREVER, Sql, literal, name
from headgate.ticks import Tick, TimeDomain

Verdicts: TypeAlias = NDArray[np.str_]

TUPLE, HEARTBEAT, LATE, FAR_FUTURE = "tuple", "heartbeat", "late", "far-future"
CHECK_FAILED = "check-failed"
UNNEEDED = "unneeded"
ALIKE = "alike"
"""Not a verdict: how tuples are counted that others in the log stand for."""

NOT_KEPT = (UNNEEDED, ALIKE)
"""How tuples are counted that were taken and are not in the log. They are no dead letters."""

MALFORMED = "malformed"
UNREADABLE = (MALFORMED, "no-timestamp", "before-origin")
UNTIMELY = (LATE, FAR_FUTURE)
"""Verdicts that the user's policy covers (LATE OF s KEEP, DROP or FAIL): these rows could be read."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The instants between which a timestamp is accepted at the moment."""

    origin: Tick = 0
    closed: Tick = NEVER
    """Timestamps up to here are late."""

    apart: Mapping[str, Tick] = field(default_factory=dict)
    """Limits of single sources that some readers know to be further, or less far, than the others."""

    ahead: Tick = int(FOREVER)
    """Timestamps beyond this lie too far in the future."""

    first_open: Tick = 0
    """The first instant that is not closed: dead letters are stamped with it, being found at that time."""


def sends_heartbeats(stream: Stream | Relation) -> bool:
    """True if the sources send heartbeats of their own, in a column."""
    return isinstance(stream, Stream) and stream.heartbeat is not None


def marks_rows(stream: Stream | Relation) -> bool:
    """True if that column marks rows that are nothing but heartbeats; otherwise it holds instants beside tuples."""
    marked = {column.name for column in stream.columns if column.type.upper() == "BOOLEAN"}
    return isinstance(stream, Stream) and stream.heartbeat in marked


def broken(stream: Stream | Relation) -> list[Sql]:
    """The conditions, in SQL, of which one holds for each row that breaks a CHECK. None holds where a value is null."""
    return [f"NOT ({column.check})" for column in stream.columns if column.check is not None]


# over pushed rows


def verdicts(stream: Stream | Relation, table: pa.Table, limits: Limits) -> Verdicts:
    """The verdict on each row of a table."""
    instants = table.column("_t").combine_chunks()
    missing = instants.is_null().to_numpy(zero_copy_only=False)
    own, carried = ticks_of(instants), promises(stream, table)
    beats = carried > NEVER if marks_rows(stream) else np.zeros(len(own), bool)
    failed = np.zeros(len(own), bool)
    for condition in broken(stream):
        failed |= holds(condition, table).to_numpy().astype(bool)
    closed = closed_at(stream, table, limits)
    rules = [missing, own < limits.origin, np.maximum(own, carried) > limits.ahead, beats, failed, own <= closed]
    return np.select(rules, ["no-timestamp", "before-origin", FAR_FUTURE, HEARTBEAT, CHECK_FAILED, LATE], TUPLE)


def tops(stream: Stream | Relation, table: pa.Table) -> Ticks:
    """The largest timestamps, or heartbeats that rows carry, in falling order."""
    reaching = np.maximum(ticks_of(table.column("_t").combine_chunks()), promises(stream, table))
    return largest_of(reaching[reaching > NEVER])


def closed_at(stream: Stream | Relation, table: pa.Table, limits: Limits) -> Ticks:
    """For each row, the timestamp up to which it would be late."""
    if not limits.apart or isinstance(stream, Relation) or stream.source is None:
        return np.full(table.num_rows, limits.closed)
    named = source_texts(stream.source, table).dictionary_encode()
    known = np.array([limits.apart.get(source, limits.closed) for source in named.dictionary.to_pylist()], np.int64)
    return known[named.indices.to_numpy(zero_copy_only=False)]


def source_texts(column: str, table: pa.Table) -> pa.StringArray:
    """The source of each row: its column as text."""
    return table.column(column).combine_chunks().cast(pa.string()).fill_null("")


def promises(stream: Stream | Relation, table: pa.Table) -> Ticks:
    """The instant up to which each row's source promises, with this row, that nothing will still come; NEVER without
    one.
    """
    if isinstance(stream, Relation) or stream.heartbeat is None:
        return np.full(table.num_rows, NEVER)
    column = table.column(stream.heartbeat).combine_chunks()
    if not marks_rows(stream):
        return ticks_of(column)
    marked = column.fill_null(False).to_numpy(zero_copy_only=False)
    return np.where(marked, ticks_of(table.column("_t").combine_chunks()), NEVER)


def behind(stream: Stream | Relation, table: pa.Table, carried: Ticks, found: Verdicts, limits: Limits) -> pa.Array:
    """By how much each row missed the limit that it was refused for; null if it was refused for another reason."""
    own = ticks_of(table.column("_t").combine_chunks())
    distances = np.where(found == LATE, closed_at(stream, table, limits) - own, np.maximum(own, carried) - limits.ahead)
    return pa.array(distances, pa.int64(), mask=~np.isin(found, UNTIMELY))


def ticks_of(column: pa.Array) -> Ticks:
    """A column of instants as ticks; NEVER where there is none."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us"))
    return column.cast(pa.int64()).fill_null(NEVER).to_numpy(zero_copy_only=False)


# over files


def verdict_sql(stream: Stream | Relation, limits: Limits, needed: Sql | None = None) -> Sql:
    """The verdict on a row in SQL, over `_raw`, `_n`, `_t` and `_upto`. `needed` is the condition for tuples that any
    query needs, if there is one.
    """
    good = literal(TUPLE) if needed is None else f"IF({needed}, {literal(TUPLE)}, {literal(UNNEEDED)})"
    beats = f"WHEN _upto IS NOT NULL THEN {literal(HEARTBEAT)}" if marks_rows(stream) else EMPTY
    checks = f"WHEN {' OR '.join(broken(stream))} THEN {literal(CHECK_FAILED)}" if broken(stream) else EMPTY
    return f"""CASE WHEN _raw IS NOT NULL OR _n IS NULL THEN 'malformed'
        WHEN _t IS NULL THEN 'no-timestamp'
        WHEN _t < {limits.origin} THEN 'before-origin'
        WHEN GREATEST(_t, _upto) > {limits.ahead} THEN {literal(FAR_FUTURE)}
        {beats}
        {checks}
        WHEN _t <= {closed_sql(stream, limits)} THEN {literal(LATE)}
        ELSE {good} END"""


def closed_sql(stream: Stream | Relation, limits: Limits) -> Sql:
    """The timestamp up to which a row would be late, in SQL."""
    if not limits.apart or isinstance(stream, Relation) or stream.source is None:
        return Sql(f"{limits.closed}")
    alike: dict[Tick, list[str]] = {}
    for source, tick in limits.apart.items():
        alike.setdefault(tick, []).append(source)
    cases = " ".join(
        f"WHEN {Scope(frozenset(some)).condition(stream.source)} THEN {tick}" for tick, some in alike.items()
    )
    return f"CASE {cases} ELSE {limits.closed} END"


def promise_sql(stream: Stream | Relation, instant: Sql) -> Sql:
    """The heartbeat that a row carries, in ticks, in SQL; `instant` is the row's own timestamp."""
    if isinstance(stream, Relation) or stream.heartbeat is None:
        return Sql("CAST(NULL AS BIGINT)")
    if not marks_rows(stream):
        return instant_sql(stream, stream.heartbeat)
    return f"CASE WHEN {name(stream.heartbeat)} THEN {instant} END"


def behind_sql(stream: Stream | Relation, limits: Limits) -> Sql:
    """By how much a row missed its limit, in SQL, over `_verdict`, `_t` and `_upto`."""
    return f"""CASE _verdict WHEN {literal(LATE)} THEN {closed_sql(stream, limits)} - _t
        WHEN {literal(FAR_FUTURE)} THEN COALESCE(TRY_SUBTRACT(GREATEST(_t, _upto), {limits.ahead}), {FOREVER}) END"""


def instant_sql(stream: Stream | Relation, column: str) -> Sql:
    """A column of instants as ticks, in SQL."""
    if stream.domain is TimeDomain.TIMESTAMP:
        return f"UNIX_MICROS(CAST({name(column)} AS TIMESTAMP))"
    return f"CAST({name(column)} AS BIGINT)"
