"""From elements to changes instant by instant, and what is kept of a relation between epochs.

    inserts    Istream(R)(t) = R(t) - R(t-1)
    deletes    Dstream(R)(t) = R(t-1) - R(t)
    live       of a relation that no log holds: a synopsis of the elements that outlive the epoch

At each instant the rows that begin are set off against equal rows that end. That is a grouping of everything by row and
instant, so it is left out where no equal row can end at the instant at which one begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import buckets, join, linear, sweep, twins
from headgate.delta.query import LateralView, Select, Table, Text, select, union
from headgate.plan.nodes import Filter, Join, Project, Relation, names
from headgate.sql import ALL, NEVER, ONE, Sql, listed

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

COPIES = Sql("EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy")
"""The lateral view that repeats a row as often as its count `_n` says."""


def changes(lowering: Lowering, node: Relation) -> Table:
    """The result of a query that gives a relation: inserts counted 1 and deletes counted -1."""
    columns = listed(names(node))
    if node.group_key is not None:
        if slots := lowering.slots(node):
            return lowering.step("result", select(ALL, sweep.changes(lowering, node, slots, sweep.slot_of(node))))
        if timeline := lowering.timeline(node):
            return lowering.step("result", select(ALL, sweep.changes(lowering, node, timeline)))
    come, go = inserts(lowering, node), deletes(lowering, node)
    parts = [select(f"{columns}, _t, {ONE} AS _n", come)]
    if go is not None:
        parts.append(select(f"{columns}, _t, CAST(-1 AS BIGINT) AS _n", go))
    return lowering.step("result", union(*parts))


def elements(lowering: Lowering, node: Relation) -> Table:
    """The relation for another fragment to read, such that any cut of time gives the same elements.

    Where nothing is taken back, an element and its end follow from the input alone. Elsewhere the end of a row is known
    or not depending on where the epoch ends, so the rows are put out as they come and go.
    """
    columns = listed(names(node))
    if not node.retracts:
        return lowering.step("result", select(f"{columns}, _t, _x, _n", lowering.born(node)))
    return lowering.step("result", select(f"{columns}, _t, {NEVER} AS _x, _n", changes(lowering, node)))


def inserts(lowering: Lowering, node: Relation) -> Table:
    """Inserts: the rows that come in the epoch, one by one, as their columns and `_t`."""
    columns = listed(names(node))
    if node.group_key is not None:
        if slots := lowering.slots(node):
            return sweep.inserts(lowering, node, slots, sweep.slot_of(node))
        if timeline := lowering.timeline(node):
            return sweep.inserts(lowering, node, timeline)
    if unmatched(node):
        return lowering.born(node)
    if node.instantaneous and not node.retracts:
        return repeated(lowering, node, _more_than_before(lowering, node))
    come = repeated(lowering, node, select(f"{columns}, _t, _n", netted(lowering, node), where=Sql("_n > 0")))
    if not (divided := twins.divided(lowering, node)):
        return come
    alone = select(f"{columns}, _t", divided.alone)
    return lowering.step("come", union(alone, select(f"{columns}, _t", come)))


def _more_than_before(lowering: Lowering, node: Relation) -> Select:
    """The rows of a relation whose rows live for one instant, by how much each is there more often than an instant ago.

    Equal rows of one instant are numbered, and only those beyond the number of an instant ago are new. This looks at
    each row once, where `netted` looks at its start and at its end; and Spark need not shuffle rows again that are
    already grouped by some of their columns.
    """
    columns = listed(names(node))
    rows = [select(f"{columns}, _t, _n", lowering.born(node))]
    ends = lowering.ends(node)
    if ends is not None:
        rows.append(select(f"{columns}, CAST(:since AS BIGINT) AS _t, _n", ends))
    # The wider window comes first: rows that lie together by all columns also do so by these and the instant.
    an_instant_ago = f"(PARTITION BY {columns} ORDER BY _t RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING)"
    before = select(f"{columns}, _t, _n, COALESCE(SUM(_n) OVER {an_instant_ago}, 0) AS _before", union(*rows))
    at_once = f"(PARTITION BY {columns}, _t ORDER BY _t ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    more = lowering.step("more", select(f"*, SUM(_n) OVER {at_once} AS _there", lowering.step("before", before)))
    return select(
        f"{columns}, _t, LEAST(_n, _there - _before) AS _n", more, where=(Sql("_t > :since"), Sql("_there > _before"))
    )


def deletes(lowering: Lowering, node: Relation) -> Table | None:
    """Deletes: the rows that go in the epoch, one by one, as their columns and `_t`; None if none ever goes."""
    columns = listed(names(node))
    if node.group_key is not None:
        if slots := lowering.slots(node):
            return sweep.deletes(lowering, node, slots, sweep.slot_of(node))
        if timeline := lowering.timeline(node):
            return sweep.deletes(lowering, node, timeline)
    if node.endless:
        return None
    if unmatched(node):
        gone = [select(f"{columns}, _x AS _t", lowering.born(node), where=Sql("_x <= :until"))]
        ends = lowering.ends(node)
        if ends is not None:
            gone.append(select(f"{columns}, _x AS _t", ends))
        return lowering.step("gone", union(*gone))
    go = repeated(lowering, node, select(f"{columns}, _t, -_n AS _n", netted(lowering, node), where=Sql("_n < 0")))
    if not (divided := twins.divided(lowering, node)):
        return go
    alone = select(f"{columns}, _x AS _t", divided.alone, where=Sql("_x <= :until"))
    return lowering.step("go", union(alone, select(f"{columns}, _t", go)))


def unmatched(node: Relation) -> bool:
    """True if no equal row ends when one begins, and nothing is taken back: such elements need no netting."""
    return not node.retracts and (node.endless or node.stamped_by is not None)


def netted(lowering: Lowering, node: Relation) -> Table:
    """For each row and instant of change, by how much its count changes there.

    Rows without a twin are left out, where these are known: nothing can be set off against them.
    """

    def make() -> Table:
        columns = listed(names(node))
        divided = twins.divided(lowering, node)
        born = divided.twinned if divided else lowering.born(node)
        events = [
            select(f"{columns}, _t, _n", born),
            select(f"{columns}, _x AS _t, -_n AS _n", born, where=Sql("_x <= :until")),
        ]
        if node.instantaneous:  # each row ends in the epoch, or with it: then it is computed once
            sides = Sql("CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _n ELSE -_n END AS _n")
            both = LateralView(born, Sql("EXPLODE(ARRAY(1, -1)) e AS _side"))
            events = [select(f"{columns}, {sides}", both, where=Sql("(_side = 1 OR _x <= :until)"))]
        ends = lowering.ends(node)
        if ends is not None:
            events.append(select(f"{columns}, _x AS _t, -_n AS _n", ends))
        by = f"{columns}, _t"
        return lowering.step(
            "netted", select(f"{by}, SUM(_n) AS _n", union(*events), group_by=by, having=Sql("SUM(_n) <> 0"))
        )

    return lowering.once("netted", node, make)


def repeated(lowering: Lowering, node: Relation, counted: Select) -> Table:
    """Every row as often as its count `_n` says."""
    return lowering.step("repeated", select(f"{listed(names(node))}, _t", LateralView(counted, COPIES)))


def kept(lowering: Lowering, node: Relation, needed: tuple[Text, ...] = ()) -> Table:
    """Live, of a relation that no log holds: a synopsis of what outlives the epoch, net of what is taken back.

    With conditions, only the elements that are still needed after the epoch.
    """
    columns = listed(names(node))
    born = lowering.born(node)
    held = lowering.name_kept(node)
    lowering.acts_without_input |= not node.open_ended
    outlives = (join.OUTLIVES, *needed)
    row, new = f"{columns}, _x", _outliving(lowering, node)
    both = union(select(f"{row}, _n", held, where=outlives), select(f"{row}, _n", new, where=outlives))
    if node.retracts:
        both = select(f"{row}, SUM(_n) AS _n", both, group_by=row, having=Sql("SUM(_n) <> 0"))
    shape = lowering.step("shape", select(f"{row}, _n", born))
    contents = lowering.step("keep", both)
    alive = lowering.alive(node) if not needed and not node.retracts else None
    again = lowering.step("keep_alive", select(f"{row}, _n", alive)) if alive else None
    lowering.synopsis(held, contents, shape, from_logs=again)
    return lowering.step("live", select(f"{columns}, CAST(:since AS BIGINT) AS _t, _x, _n", held))


def _outliving(lowering: Lowering, node: Relation) -> Table:
    """Elements that are born in the epoch, with all that outlive it: fewer than all, where these are easy to find."""
    if isinstance(node, Join) and not lowering.arranged(node) and buckets.apply(node):
        return join.outliving(lowering, node)
    if isinstance(node, Filter | Project) and (below := _outliving(lowering, node.child)) != lowering.born(node.child):
        return linear.apply(lowering, node, below)
    return lowering.born(node)
