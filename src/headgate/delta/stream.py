"""Streams: the tuples of a base stream, of a sample, of Istream, Dstream and Rstream, with `_t` as their timestamp."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, assert_never

from headgate.delta import linear, netting
from headgate.delta.instants import ceiling, stamp
from headgate.delta.program import Edge
from headgate.plan.nodes import (
    Dstream,
    Filter,
    Istream,
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
from headgate.sql import FOREVER, Column, comma, listed, name, union
from headgate.ticks import Tick, TimeDomain

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def tuples(lowering: Lowering, node: Stream) -> str:
    """The tuples of the stream in the epoch."""
    match node:
        case Scan():
            return lowering.input(node.stream, Edge("since"), Edge("until"))
        case Sample():
            return _sampled(lowering, node)
        case Istream(child) | Rstream(child) if node.straight is not None:
            return _selected(lowering, child, node.straight)
        case Istream(child):
            return netting.inserts(lowering, child)
        case Dstream(child):
            gone = netting.deletes(lowering, child)
            if gone is None:
                gone = lowering.step(
                    "nothing", f"SELECT {listed(names(child))}, _t FROM {lowering.born(child)} WHERE FALSE"
                )
            return gone
        case Rstream(child, every):
            return _everything(lowering, child, every or 1)
        case _:
            assert_never(node)


def _sampled(lowering: Lowering, node: Sample) -> str:
    """The tuples whose MD5, as hexadecimal digits, is below as large a part of all such numbers as the sample is.

    MD5 of a text, and the comparison of two texts, are the same in Spark, in DuckDB and in Python, so the reference
    evaluator draws the same sample; nulls are left out of the text by CONCAT_WS. Digits compare as numbers do."""
    values = comma(f"'{node.seed}'", "CAST(_t AS STRING)", *(_hashed(column) for column in node.columns))
    part = Fraction(node.percent) / 100
    limit = f"{int(part * 16**8):08x}" if part < 1 else "g"
    columns = comma(listed(names(node)), "_t", "_s" if node.arrival_ordered else "")
    drawn = f"MD5(CONCAT_WS('|', {values})) < '{limit}'"
    return lowering.step("sample", f"SELECT {columns} FROM {lowering.tuples(node.child)} WHERE {drawn}")


def _hashed(column: Column) -> str:
    """A column as text that does not depend on how an engine prints values."""
    value, kind = name(column.name), column.type.upper()
    if kind in ("FLOAT", "DOUBLE"):  # exact in every engine: a multiple of a power of two, and what is left of another
        whole = f"CAST({value} * 1048576E0 % 2147483648E0 AS BIGINT)"
        return f"CASE WHEN ABS({value}) < 1E300 THEN CAST({whole} AS STRING) END"
    if kind.startswith("TIMESTAMP"):
        return f"CAST(UNIX_MICROS(CAST({value} AS TIMESTAMP)) AS STRING)"
    return f"HEX({value})" if kind == "BINARY" else f"CAST({value} AS STRING)"


def _selected(lowering: Lowering, node: Relation, below: Stream) -> str:
    """A stream that only selects and projects from another: tuple by tuple, order of arrival kept."""
    match node:
        case Filter(child) | Project(child):
            order = "_t, _s" if below.arrival_ordered else "_t"
            return linear.apply(lowering, node, _selected(lowering, child, below), carried=order)
        case Window():
            tuples = lowering.tuples(below)
            if node.stamp is None and node.arrival is None:
                return tuples
            columns = comma(listed(names(below)), stamp(node), "_t", "_s" if below.arrival_ordered else "")
            return lowering.step("stamped", f"SELECT {columns} FROM {tuples}")
    raise AssertionError(node)  # `straight` leads through nothing else


def _everything(lowering: Lowering, node: Relation, every: Tick) -> str:
    """Rstream: each row at each instant of the epoch at which it lives, or at each multiple of `every` among them."""
    columns = listed(names(node))
    if node.instantaneous:
        rows = f"SELECT {columns}, _t, _n FROM {lowering.born(node)}"
        rows += f" WHERE PMOD(_t, {every}) = 0" if every > 1 else ""
    else:
        lowering.timed = True
        first, last = "GREATEST(_t, :since + 1)", f"LEAST(COALESCE(_x, {FOREVER}) - 1, :until)"
        spans = union(*(f"SELECT * FROM {form}" for form in (lowering.live(node), lowering.born(node)) if form))
        if domain(node) is TimeDomain.TIMESTAMP:
            first = "GREATEST(_t, _begin, :since + 1)"
            spans = (
                f"SELECT s.*, b._begin FROM (\n{spans}\n) AS s JOIN {_beginning(lowering, node)} AS b ON "
                "b._begin IS NOT NULL"
            )
        first = ceiling(first, every) if every > 1 else first
        # SEQUENCE counts downwards where the start is behind the stop, so such rows must go before it.
        rows = (
            f"SELECT {columns}, _i AS _t, _n FROM (\n"
            f"  SELECT {columns}, {first} AS _from, {last} AS _to, _n FROM (\n{spans}\n) WHERE {first} <= {last}\n"
            f") LATERAL VIEW EXPLODE(SEQUENCE(_from, _to{f', {every}' if every > 1 else ''})) e AS _i"
        )
    if node.retracts:
        counted = f"SELECT {columns}, _t, SUM(_n) AS _n FROM (\n{rows}\n)\nGROUP BY {columns}, _t HAVING SUM(_n) > 0"
        return netting.repeated(lowering, node, counted)
    return lowering.step("rstream", f"SELECT {columns}, _t FROM (\n{rows}\n)")


def _beginning(lowering: Lowering, node: Relation) -> str:
    """The timestamp of the first tuple of all: from there on Rstream speaks, and not for all the years before it."""

    def make() -> str:
        known = lowering.fresh("beginning")
        logs = sorted({source.name for source in sources(node) if source.domain is not None})
        arrived = [f"SELECT _t FROM {lowering.input(log, Edge('since'), Edge('until'))}" for log in logs]
        every = union(f"SELECT _begin AS _t FROM {known}", *arrived)
        begin = lowering.step("begin", f"SELECT MIN(_t) AS _begin FROM (\n{every}\n)")
        lowering.synopsis(
            known, begin, lowering.step("shape", f"SELECT MIN(_t) AS _begin FROM (\n{union(*arrived)}\n)")
        )
        return begin

    return lowering.once("beginning", node, make)
