"""Windows over all rows in an order, by ranges of that order, so that more than one task has work.

    follower     the instant of the row so many rows further on: LEAD without PARTITION BY
    least        the smallest value so far: MIN without PARTITION BY
    running      sums and extremes so far, in order of time: SUM without PARTITION BY, and what reads it

Spark gives a window function without PARTITION BY to a single task. Here the rows are counted in pieces, narrow and of
equal width. Neighbouring pieces become a block of so many rows as a task should have, whatever their spread, and a
block is a partition. What a block needs of its neighbours is brought to it: a copy of the rows that follow, or what is
known of all blocks before it. Rows that are equal in the order are never parted.

A piece is found by arithmetic on doubles, which may round. It never puts a row before one that comes earlier in the
order, and that is all that is asked of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from headgate.delta.query import Alias, Joined, LateralView, Select, Subquery, Table, select, union
from headgate.plan.nodes import Dstream, Istream, Lives, Rstream, Sample, Scan, Stream
from headgate.sql import EMPTY, Sql, comma, listed

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

EXTREME_OF = {"MIN": Sql("LEAST"), "MAX": Sql("GREATEST")}

BEFORE = Sql("ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")


@dataclass(frozen=True, slots=True)
class Ranges:
    """Into how many pieces and blocks rows are cut."""

    pieces: int = 4096
    blocks: int = 64
    """So many there are at the most, about: enough for the tasks of a cluster to have equal shares."""

    own: int = 8
    """A block has at least so many times the rows that are copied to it. More copies would cost more than they save."""


def cheap(stream: Stream) -> bool:
    """True if the tuples of a stream can be read several times: they lie in a log, and are at most selected from it."""
    match stream:
        case Scan():
            return True
        case Sample(child):
            return cheap(child)
        case Istream() | Rstream():
            return stream.straight is not None and cheap(stream.straight)
        case Dstream() | Lives():
            return False
        case _:
            assert_never(stream)


def follower(
    lowering: Lowering, ranges: Ranges, rows: Table, columns: tuple[Sql, ...], order: Sql, count: int
) -> Table:
    """The rows with `_x`, the `_t` of the row that comes `count` rows later. The order begins with `_t`.

    A block gets a copy of the rows that follow it, up to the one that its last row looks for.
    """
    pieces = _pieces(lowering, ranges, rows, listed(columns), Sql("CAST(_t AS DOUBLE)"))
    placed = _placed(lowering, ranges, select(Sql("_piece, COUNT(*) AS _rows"), pieces, group_by=Sql("_piece")), count)
    starts = select(Sql("_block, MIN(_first) AS _start"), placed, group_by=Sql("_block"))
    ends = lowering.step("ends", select(Sql("_block, LEAD(_start) OVER (ORDER BY _block) AS _end"), starts))
    following = Joined(
        Alias(placed, "p"), Alias(ends, "b"), (Sql("p._block > b._block"), Sql(f"p._first < b._end + {count}"))
    )
    goes = lowering.step(
        "goes",
        union(
            select(Sql("_piece, _block, FALSE AS _copied"), placed),
            select(Sql("p._piece, b._block, TRUE AS _copied"), following),
        ),
    )
    spread = _spread(pieces, listed(columns, Sql("r")), goes, Sql("g._block, g._copied"))
    later = f"LEAD(_t, {count}) OVER (PARTITION BY _block ORDER BY {order}) AS _x"
    found = select(f"{listed(columns)}, _copied, {later}", spread)
    return lowering.step("followed", select(f"{listed(columns)}, _x", found, where=Sql("NOT _copied")))


def least(
    lowering: Lowering, ranges: Ranges, rows: Table, columns: tuple[Sql, ...], value: Sql, falling: Sql, ties: Sql
) -> Table:
    """The rows with `_x`, the smallest `value` from the first one on, where `falling` falls, and ties come in order.

    What is known of a block's predecessors is the smallest value of them all.
    """
    # Spark and DuckDB take a NaN for larger than everything.
    position = f"-GREATEST(LEAST(CAST({falling} AS DOUBLE), 1E300D), -1E300D)"
    pieces = _pieces(lowering, ranges, rows, listed(columns), position)
    counted = select(f"_piece, COUNT(*) AS _rows, MIN({value}) AS _least", pieces, group_by=Sql("_piece"))
    placed = _placed(lowering, ranges, counted, 0, f"MIN(_least) OVER (ORDER BY _piece {BEFORE}) AS _least")
    before = Sql("FIRST_VALUE(_least) OVER (PARTITION BY _block ORDER BY _piece) AS _before")
    goes = lowering.step("goes", select(f"_piece, _block, {before}", placed))
    spread = _spread(pieces, listed(columns, Sql("r")), goes, Sql("g._block, g._before"))
    walk = f"PARTITION BY _block ORDER BY {falling} DESC, {ties} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    found = f"LEAST(MIN({value}) OVER (\n  {walk}), _before) AS _x"
    return lowering.step("passed", select(f"{listed(columns)}, {found}", spread))


def running(lowering: Lowering, ranges: Ranges, moves: Table, terms: dict[Sql, Sql]) -> Table:
    """What `moves` add up to from each instant on, by ranges of time: `_range`, `_t`, `_next` and the terms.

    A term is a column, and how it is combined: SUM, MIN or MAX. `_next` is the instant of the next row of the range.
    Each range begins with what the ranges before it add up to, as an epoch begins with its state. So that it has a row
    for this, a row that adds nothing is put into each, an instant before `since`.
    """
    own = listed(terms)
    every = [select(Sql("_t"), Table(source.name)) for source in lowering.inputs_of_epoch()]
    extent = lowering.step(
        "extent", select(Sql("CAST(MIN(_t) AS DOUBLE) AS _low, CAST(MAX(_t) AS DOUBLE) AS _high"), union(*every))
    )
    at = Sql(f"(CAST(m._t AS DOUBLE) - x._low) * {ranges.pieces} / (x._high - x._low)")
    place = f"CAST(GREATEST(0D, LEAST({ranges.pieces - 1}D, {at})) AS BIGINT)"
    ranged = f"COALESCE(CASE WHEN x._high > x._low THEN {place} END, 0) AS _range"
    timed = f"/*+ BROADCAST(x) */ {ranged}, m._t, {listed(terms, Sql('m'))}"
    zeros = ", ".join(f"{'0' if combine == 'SUM' else 'NULL'} AS {term}" for term, combine in terms.items())
    numbers = Sql(f"EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST({ranges.pieces - 1} AS BIGINT))) e AS _range")
    beginnings = select(
        f"_range, CAST(:since - 1 AS BIGINT) AS _t, {zeros}", LateralView(Alias(select(Sql("1 AS _one")), "o"), numbers)
    )
    parts = union(select(timed, Joined(Alias(moves, "m"), Alias(extent, "x"), (Sql("TRUE"),))), beginnings)
    # one exchange serves the sums of the ranges and the walks through them
    spread = lowering.step("spread", select(f"/*+ REPARTITION(_range) */ _range, _t, {own}", parts))
    combined = ", ".join(f"{combine}({term}) AS {term}" for term, combine in terms.items())
    last = Sql("MAX(CASE WHEN _t >= :since THEN _t END) AS _last")
    sums = select(f"_range, {last}, {combined}", spread, group_by=Sql("_range"))
    earlier = f"OVER (ORDER BY _range {BEFORE})"
    known = ", ".join(f"{combine}({term}) {earlier} AS {term}" for term, combine in terms.items())
    before = lowering.step("before", select(f"_range, MAX(_last) {earlier} AS _last, {known}", sums))
    over = Sql("OVER (PARTITION BY _range ORDER BY _t)")
    walked = ", ".join(f"{combine}({term}) {over} AS {term}" for term, combine in terms.items())
    within = lowering.step("within", select(f"_range, _t, LEAD(_t) {over} AS _next, {walked}", spread))
    both = ", ".join(f"{_both(combine, f'w.{term}', f'b.{term}')} AS {term}" for term, combine in terms.items())
    return lowering.step(
        "swept",
        select(
            f"/*+ BROADCAST(b) */ w._range, w._t, w._next, {both}",
            Joined(Alias(within, "w"), Alias(before, "b"), (Sql("w._range = b._range"),)),
            where=Sql("(w._t >= :since OR b._last IS NOT NULL)"),
        ),
    )


def _both(combine: Sql, one: Sql, other: Sql) -> Sql:
    """Two partial aggregates as one; the other may be null, for none."""
    return f"{one} + COALESCE({other}, 0)" if combine == "SUM" else f"{EXTREME_OF[combine]}({one}, {other})"


def _pieces(lowering: Lowering, ranges: Ranges, rows: Table, columns: Sql, position: Sql) -> Table:
    """The rows with `_piece`, which grows with the position; 0 where all rows have one position."""
    width = select(f"NULLIF((MAX({position}) - MIN({position})) / {ranges.pieces}, 0)", rows)
    return lowering.step(
        "pieces", select(Subquery(f"{columns}, COALESCE(RINT({position} / ", width, Sql("), 0D) AS _piece")), rows)
    )


def _placed(lowering: Lowering, ranges: Ranges, counted: Select, copied: int, more: Sql = EMPTY) -> Table:
    """The pieces with the number of rows before each as `_first`, and the block of each."""
    first = f"COALESCE(SUM(_rows) OVER (ORDER BY _piece {BEFORE}), 0) AS _first"
    known = select(comma(Sql("_piece"), first, Sql("SUM(_rows) OVER () AS _all"), more), counted)
    size = Sql(f"GREATEST({ranges.own * copied}, _all DIV {ranges.blocks} + 1)")
    return lowering.step("placed", select(f"*, CAST(_first DIV {size} AS BIGINT) AS _block", known))


def _spread(pieces: Table, columns: Sql, goes: Table, more: Sql) -> Select:
    """The rows in their blocks. The few pieces are sent to where the rows are."""
    both = Joined(Alias(pieces, "r"), Alias(goes, "g"), (Sql("r._piece = g._piece"),))
    return select(f"/*+ BROADCAST(g) */ {columns}, {more}", both)
