"""Streams.

    tuples    of a base stream a range of its log; of a sample, the tuples that a hash picks; lives are told by `lives`
              Istream(R): the inserts of R; Dstream(R): its deletes; Rstream(R): each row at each instant of its life

The timestamp of a tuple is `_t`. A stream that only selects and projects from another passes its tuples on one by one,
and keeps their order of arrival.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, assert_never

from headgate.delta import linear, lives, netting
from headgate.delta.instants import ceiling, stamp
from headgate.delta.program import Edge
from headgate.delta.query import Alias, Joined, LateralView, Query, Table, select, union
from headgate.plan.nodes import (
    Dstream,
    Filter,
    Istream,
    Lives,
    Project,
    Relation,
    Rstream,
    Sample,
    Scan,
    Stream,
    Window,
    domain,
    names,
    sources,
)
from headgate.sql import ALL, EMPTY, FOREVER, Column, Sql, comma, listed, literal, name
from headgate.ticks import Tick, TimeDomain

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def tuples(lowering: Lowering, node: Stream) -> Table:
    """Tuples: of a base stream a range of its log, of other streams by their operator.

    A stream that only selects and projects from another passes its tuples on one by one.
    """
    match node:
        case Scan():
            return lowering.input(node.stream, Edge("since"), Edge("until"))
        case Sample():
            return _sampled(lowering, node)
        case Lives():
            return lives.tuples(lowering, node)
        case Istream(child) | Rstream(child) if node.straight is not None:
            return _selected(lowering, child, node.straight)
        case Istream(child):
            return netting.inserts(lowering, child)
        case Dstream(child):
            gone = netting.deletes(lowering, child)
            if gone is None:
                nothing = select(f"{listed(names(child))}, _t", lowering.born(child), where=Sql("FALSE"))
                gone = lowering.step("nothing", nothing)
            return gone
        case Rstream(child, every):
            return _everything(lowering, child, every or 1)
        case _:
            assert_never(node)


def _sampled(lowering: Lowering, node: Sample) -> Table:
    """The tuples whose MD5, as hexadecimal digits, is below as large a part of all such numbers as the sample is.

    MD5 of a text, and the comparison of two texts, are the same in Spark, in DuckDB and in Python, so the reference
    evaluator draws the same sample; nulls are left out of the text by CONCAT_WS. Digits compare as numbers do.
    """
    values = comma(Sql(f"'{node.seed}'"), Sql("CAST(_t AS STRING)"), *(_hashed(column) for column in node.columns))
    part = Fraction(node.percent) / 100
    limit = f"{int(part * 16**8):08x}" if part < 1 else "g"
    columns = comma(listed(names(node)), Sql("_t"), Sql("_s") if node.arrival_ordered else EMPTY)
    drawn = f"MD5(CONCAT_WS('|', {values})) < {literal(limit)}"
    return lowering.step("sample", select(columns, lowering.tuples(node.child), where=drawn))


def _hashed(column: Column) -> Sql:
    """A column as text that does not depend on how an engine prints values."""
    value, kind = name(column.name), column.type.upper()
    if kind in ("FLOAT", "DOUBLE"):  # exact in every engine: a multiple of a power of two, and what is left of another
        whole = f"CAST({value} * 1048576E0 % 2147483648E0 AS BIGINT)"
        return f"CASE WHEN ABS({value}) < 1E300 THEN CAST({whole} AS STRING) END"
    if kind.startswith("TIMESTAMP"):
        return f"CAST(UNIX_MICROS(CAST({value} AS TIMESTAMP)) AS STRING)"
    return f"HEX({value})" if kind == "BINARY" else f"CAST({value} AS STRING)"


def _selected(lowering: Lowering, node: Relation, below: Stream) -> Table:
    """Tuples of a stream that only selects and projects from another, with their order of arrival."""
    if isinstance(node, Window):
        tuples = lowering.tuples(below)
        if node.stamp is None and node.arrival is None:
            return tuples
        columns = comma(listed(names(below)), stamp(node), Sql("_t"), Sql("_s") if below.arrival_ordered else EMPTY)
        return lowering.step("stamped", select(columns, tuples))
    assert isinstance(node, Filter | Project), node  # `straight` finds nothing else above the window
    order = Sql("_t, _s") if below.arrival_ordered else Sql("_t")
    return linear.apply(lowering, node, _selected(lowering, node.child, below), carried=order)


def _everything(lowering: Lowering, node: Relation, every: Tick) -> Table:
    """Rstream: each row at each instant of the epoch at which it lives, or at each multiple of `every` among them."""
    columns = listed(names(node))
    if node.instantaneous:
        rows = select(
            f"{columns}, _t, _n", lowering.born(node), where=Sql(f"PMOD(_t, {every}) = 0") if every > 1 else EMPTY
        )
    else:
        lowering.acts_without_input = True
        first, last = Sql("GREATEST(_t, :since + 1)"), f"LEAST(COALESCE(_x, {FOREVER}) - 1, :until)"
        spans: Query = union(*(select(ALL, form) for form in (lowering.live(node), lowering.born(node)) if form))
        if domain(node) is TimeDomain.TIMESTAMP:
            first = Sql("GREATEST(_t, _begin, :since + 1)")
            begin = Alias(_beginning(lowering, node), "b")
            spans = select(Sql("s.*, b._begin"), Joined(Alias(spans, "s"), begin, (Sql("b._begin IS NOT NULL"),)))
        first = ceiling(first, every) if every > 1 else first
        # SEQUENCE counts downwards where the start is behind the stop, so such rows must go before it.
        bounded = select(f"{columns}, {first} AS _from, {last} AS _to, _n", spans, where=f"{first} <= {last}")
        instants = Sql(f"EXPLODE(SEQUENCE(_from, _to{f', {every}' if every > 1 else ''})) e AS _i")
        rows = select(f"{columns}, _i AS _t, _n", LateralView(bounded, instants))
    if node.retracts:
        by = f"{columns}, _t"
        return netting.repeated(
            lowering, node, select(f"{by}, SUM(_n) AS _n", rows, group_by=by, having=Sql("SUM(_n) > 0"))
        )
    return lowering.step("rstream", select(f"{columns}, _t", rows))


def _beginning(lowering: Lowering, node: Relation) -> Table:
    """The timestamp of the first tuple of all, from which on Rstream speaks, and not for all the years before it."""

    def make() -> Table:
        known = lowering.fresh("beginning")
        logs = sorted({source.name for source in sources(node) if source.domain is not None})
        arrived = [select(Sql("_t"), lowering.input(log, Edge("since"), Edge("until"))) for log in logs]
        every = union(select(Sql("_begin AS _t"), known), *arrived)
        begin = lowering.step("begin", select(Sql("MIN(_t) AS _begin"), every))
        lowering.synopsis(known, begin, lowering.step("shape", select(Sql("MIN(_t) AS _begin"), union(*arrived))))
        return begin

    return lowering.once("beginning", node, make)
