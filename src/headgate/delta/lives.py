"""The lives of values, for constraints whose k is detected: k, the horizon and the life of each tuple, in one walk.

    tuples     the tuples of the stream, each with its life
    kept       the groups whose life is not over

`plan.lives` says what these words mean. Synopses have the k in force, the horizon and how many tuples came; the largest
distances of the last two blocks; and, as far back as k may reach, the last place and the life of each value
(clustered), or the values that were larger than all before them (ordered). Their rows follow from the tuples alone, and
not from how time is cut into epochs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.delta.query import Alias, Joined, Select, Subquery, Table, select, union
from headgate.delta.violations import counted, plain
from headgate.plan.constraints import named
from headgate.plan.limits import Limited
from headgate.plan.nodes import Constraint, Lives, names
from headgate.sql import NEVER, ONE, Sql, comma, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

BEFORE = Sql("ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")


@dataclass(frozen=True, slots=True)
class _Walked:
    """What is known of a stream at the end of an epoch."""

    lived: Table
    """The life of each tuple of the epoch, by `_t` and `_s`."""

    open: Table
    """Clustered: the values that can still come, each with its life. Ordered: the values that were the largest."""

    pace: Table
    """One row: `_h` is the horizon of the next tuple."""


def tuples(lowering: Lowering, node: Lives) -> Table:
    """Tuples: those of the stream, each with its life."""
    columns = comma(listed((*names(node.child), "_t", "_s"), Sql("t")), f"l._life AS {name(node.life)}")
    same = (Sql("t._t = l._t"), Sql("t._s = l._s"))
    rows, lived = Alias(lowering.tuples(node.child), "t"), Alias(_walked(lowering, node).lived, "l")
    return lowering.step("lives", select(columns, Joined(rows, lived, same, outer=True)))


def kept(lowering: Lowering, node: Lives, groups: Table, columns: Sql, value: Sql, life: Sql) -> Select:
    """The groups whose life is not over; their alias is g."""
    walked = _walked(lowering, node)
    if node.constraint.kind == "clustered":
        same = (f"{value} <=> o._v", f"{life} = o._life")
        return select(columns, Joined(Alias(groups, "g"), Alias(walked.open, "o"), same))
    passed = Subquery(Sql("_p <= "), select(Sql("_h"), walked.pace))
    bound = Subquery(f"COALESCE({value} >= ", select(Sql("MAX(_m)"), walked.open, where=passed), Sql(", TRUE)"))
    return select(columns, Alias(groups, "g"), where=(f"{life} IS NULL", bound))


def k_of(constraint: str) -> str:
    """How the name of the synopsis begins that has the k in force of a constraint."""
    return f"k_of_{plain(constraint)}"


def _walked(lowering: Lowering, node: Lives) -> _Walked:
    make = _clustered if node.constraint.kind == "clustered" else _ordered
    return lowering.once("lived", node, lambda: make(lowering, node))


def _arriving(lowering: Lowering, node: Lives, known: Table) -> Table:
    """The tuples of the epoch as value, timestamp, arrival and place in the order of the stream."""
    lowering.by_place = True
    row = (
        f"{name(node.constraint.column)} AS _v, _t, _s, CAST(ROW_NUMBER() OVER (ORDER BY _t, _s) AS BIGINT) + COALESCE("
    )
    last = Subquery(row, select(Sql("MAX(_p)"), known), Sql(", CAST(0 AS BIGINT)) AS _p"))
    return lowering.step("arriving", select(last, lowering.tuples(node.child)))


def _paced(
    lowering: Lowering, constraint: Constraint, known: Table, arriving: Table, distances: Select
) -> tuple[Table, Table]:
    """For each tuple of the epoch and for the next one `_k`, the k in force, and `_h`, the horizon; and the last row.

    `distances` has the place and the distance of each tuple of the epoch, null if it has none.
    """
    block, blocks = constraint.block, lowering.fresh("distances")
    of_next = select(
        f"COALESCE(MAX(_p), CAST(0 AS BIGINT)) + 1 AS _p, {NEVER} AS _d",
        union(select(Sql("_p"), known), select(Sql("_p"), arriving)),
    )
    every = lowering.step(
        "blocks",
        union(
            select(Sql(f"_block * {block} AS _p, _block, _d, FALSE AS _new"), blocks),
            select(Sql(f"_p, (_p - 1) DIV {block} AS _block, _d, TRUE AS _new"), union(distances, of_next)),
        ),
    )
    here = f"MAX(_d) OVER (PARTITION BY _block ORDER BY _p {BEFORE})"
    there = Sql("MAX(_d) OVER (ORDER BY _block RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING)")
    needed = f"GREATEST(COALESCE({here}, 0), COALESCE({there}, 0))"
    k = f"CASE WHEN _block = 0 THEN CAST({constraint.k} AS BIGINT) ELSE {needed} END AS _k"
    followed = lowering.step("followed", select(f"_p, _new, {k}", every))
    horizon = Sql("_p, _k, GREATEST(MAX(_p - _k - 1) OVER (ORDER BY _p), COALESCE(")
    reached = Subquery(horizon, select(Sql("MAX(_h)"), known), Sql(", CAST(0 AS BIGINT))) AS _h"))
    paced = lowering.step("paced", select(reached, followed, where=Sql("_new")))
    last = lowering.step(
        "pace", select(Sql("_p - 1 AS _p, _k, _h"), paced, where=Subquery(Sql("_p = "), select(Sql("MAX(_p)"), paced)))
    )
    lowering.synopsis(
        known, last, lowering.step("shape", select(f"{ONE} AS _p, {ONE} AS _k, {ONE} AS _h")), Limited("one row")
    )
    recent = Subquery(Sql("_block >= "), select(Sql("MAX(_block) - 1"), every))
    lowering.synopsis(
        blocks,
        lowering.step("recent", select(Sql("_block, MAX(_d) AS _d"), every, where=recent, group_by=Sql("_block"))),
        lowering.step("shape", select(f"{ONE} AS _block, {ONE} AS _d")),
        Limited("two rows"),
    )
    return paced, last


def _clustered(lowering: Lowering, node: Lives) -> _Walked:
    constraint = node.constraint
    known, places = lowering.fresh(k_of(constraint.name)), lowering.fresh("places")
    arriving = _arriving(lowering, node, known)
    every = union(
        select(f"_v, _p, {NEVER} AS _t, {NEVER} AS _s, _life, FALSE AS _new", places),
        select(f"_v, _p, _t, _s, {NEVER} AS _life, TRUE AS _new", arriving),
    )
    last = Sql("LAG(_p) OVER (PARTITION BY _v ORDER BY _p)")
    walked = lowering.step("walked", select(f"_v, _p, _t, _s, _life, _new, {last} AS _last", every))
    between, near = Sql("_p - _last - 1"), Sql(f"_p - _last - 1 <= {constraint.k}")
    distances = select(f"_p, CASE WHEN {near} THEN {between} END AS _d", walked, where=Sql("_new"))
    paced, pace = _paced(lowering, constraint, known, arriving, distances)
    columns = listed(("_v", "_p", "_t", "_s", "_new", "_life", "_last"), Sql("w"))
    at = Joined(Alias(walked, "w"), Alias(paced, "h"), (Sql("w._p = h._p"),), outer=True)
    judged = lowering.step("judged", select(f"{columns}, h._h", at))
    begins = Sql("CASE WHEN NOT _new THEN _life WHEN _last IS NULL OR _last < _h THEN _p END")
    life = f"MAX({begins}) OVER (PARTITION BY _v ORDER BY _p) AS _life"
    lived = lowering.step("lived", select(f"_v, _p, _t, _s, {life}", judged))
    broken = lowering.step("broken", select(Sql("_p"), judged, where=(Sql("_new"), Sql("_last < _h"), near)))
    latest = lowering.step("latest", select(Sql("_v, MAX(_p) AS _p, MAX(_life) AS _life"), lived, group_by=Sql("_v")))
    reach = Subquery(Sql("_p >= "), select(Sql(f"MAX(_p) - {constraint.k}"), latest))
    placed = lowering.step("placed", select(Sql("_v, _p, _life"), latest, where=reach))
    value = f"{name(constraint.column)} AS _v"
    lowering.synopsis(
        places,
        placed,
        lowering.step("shape", select(f"{value}, {ONE} AS _p, {ONE} AS _life", lowering.tuples(node.child))),
        Limited(f"limited by {named(constraint)}: the values of the last {constraint.k + 1} tuples"),
    )
    counted(lowering, constraint, broken)
    within = Subquery(Sql("_p >= "), select(Sql("_h"), pace))
    return _Walked(lived, lowering.step("open", select(Sql("_v, _life"), placed, where=within)), pace)


def _ordered(lowering: Lowering, node: Lives) -> _Walked:
    constraint = node.constraint
    known, largest = lowering.fresh(k_of(constraint.name)), lowering.fresh("largest")
    arriving = _arriving(lowering, node, known)
    every = union(
        select(f"_m AS _v, _p, {NEVER} AS _t, {NEVER} AS _s, FALSE AS _new", largest),
        select(Sql("_v, _p, _t, _s, TRUE AS _new"), arriving),
    )
    above = f"COALESCE(_v > MAX(_v) OVER (ORDER BY _p {BEFORE}), TRUE) AS _rises"
    rising = lowering.step("rising", select(f"_v, _p, _t, _s, _new, {above}", every, where=Sql("_v IS NOT NULL")))
    first = f"MIN(CASE WHEN _rises THEN _p END) OVER (ORDER BY _v DESC, _rises {BEFORE}) AS _first"
    walked = lowering.step("walked", select(f"_v, _p, _t, _s, _new, {first}", rising))
    near = Sql(f"_p - _first BETWEEN 1 AND {constraint.k}")
    distances = select(f"_p, CASE WHEN {near} THEN _p - _first END AS _d", walked, where=Sql("_new"))
    paced, pace = _paced(lowering, constraint, known, arriving, distances)
    at = Joined(Alias(walked, "w"), Alias(paced, "h"), (Sql("w._p = h._p"),))
    life = Sql("CASE WHEN w._first <= h._h THEN w._p END AS _life")
    lived = lowering.step("lived", select(f"w._t, w._s, {life}", at))
    broken = lowering.step("broken", select(Sql("_life"), lived, where=Sql("_life IS NOT NULL")))
    # The largest value up to the horizon is the one that rose last before it: it stays, however long ago that was.
    rose = select(
        Sql("MAX(_p)"),
        rising,
        where=(Sql("_rises"), Subquery(Sql("_p <= "), select(Sql(f"MAX(_p) - {constraint.k}"), pace))),
    )
    since = Subquery(Sql("_p >= COALESCE("), rose, Sql(", 0)"))
    last = lowering.step("last", select(Sql("_v AS _m, _p"), rising, where=(Sql("_rises"), since)))
    value = f"{name(constraint.column)} AS _m"
    lowering.synopsis(
        largest,
        last,
        lowering.step("shape", select(f"{value}, {ONE} AS _p", lowering.tuples(node.child))),
        Limited(f"limited by {named(constraint)}: the largest values of the last {constraint.k + 1} tuples"),
    )
    counted(lowering, constraint, broken)
    return _Walked(lived, last, pace)
