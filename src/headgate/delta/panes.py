"""Aggregates over windows that slide: partial aggregates of panes, put together at each slide and never taken away.

    panes        the tuples of a group that begin and end to count together, as one row of accumulators
    timeline     at each slide, the panes that are shown there, combined
    slots        the timeline without the instants at which groups end: each row holds for one slide

All tuples of a window with SLIDE begin and end to count at multiples of the slide. A pane is complete as soon as it
begins, so between epochs only the panes that are still shown are kept, and nobody asks for what ends. Tumbling windows
have one pane at a time. Nothing is subtracted, so this serves extremes as well as sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.delta import running, sweep
from headgate.delta.accumulators import Accumulators
from headgate.delta.query import LateralView, Table, dealt_by, select, union
from headgate.plan import bounds
from headgate.plan.expressions import Call
from headgate.plan.nodes import Aggregate, Relation, domain
from headgate.plan.sums import additive, growing
from headgate.sql import Sql, comma, listed
from headgate.ticks import Tick

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

MOST = 13
"""So many slides may a window have. Beyond that, adding and taking away costs less than combining so many panes."""

SYNOPSIS = "panes"
"""How the names of the synopses begin, behind a prefix."""


def slide_of(node: Relation) -> Tick | None:
    """The slide at whose multiples all elements of a relation begin and end, if this rule can use it."""
    return node.slides[0] if node.slides is not None and node.slides[1] <= MOST else None


def keeps_panes(synopsis: str) -> bool:
    """True if a synopsis of this name holds panes."""
    return f"{SYNOPSIS}_" in synopsis


def mergeable(call: Call) -> bool:
    """True if the call's value over several panes follows from accumulators of each."""
    return additive(call) or (growing(call) and not call.distinct)


def timeline(lowering: Lowering, node: Aggregate, slide: Tick) -> Table:
    """Timeline: the panes kept at `since` and those of the epoch, combined at each slide at which they are shown.

    A pane is also looked at when it ends, where it adds nothing: a group without other panes has no row from there on.
    """
    accumulated, values = running.accumulators(lowering, node, once=True)
    hidden, own = sweep.group(node), accumulated.names()
    every = list(accumulated.terms.values())
    panes = _every_pane(lowering, node, accumulated)
    at = Sql(f"CASE WHEN _t + _slide * {slide} > :since THEN _t + _slide * {slide} ELSE :since END AS _at")
    shown = LateralView(panes, _slides(slide, Sql("_x")))
    looks = [select(comma(listed(hidden), at, f"_x, {listed(own)}"), shown)]
    if node.row_when_empty:
        origin = domain(node.child).origin
        nothing = ", ".join(f"{a.nothing} AS {a.name}" for a in every)
        begun = Sql(f"CAST(GREATEST({origin}, :since) AS BIGINT)")
        looks.append(select(f"{begun} AS _at, {begun} AS _x, {nothing}", where=Sql(f"{origin} <= :until")))
    looked = lowering.step("looked", union(*looks))
    combined = ", ".join(
        f"{a.combine}(CASE WHEN _at < _x THEN {a.name} ELSE {a.nothing} END) AS {a.name}" for a in every
    )
    at_slides = lowering.step(
        "at_slides",
        select(comma(listed(hidden), Sql("_at AS _t"), combined), looked, group_by=listed((*hidden, "_at"))),
    )
    living = Sql("TRUE") if node.row_when_empty else Sql("_rows > 0")
    row = comma(listed(hidden), listed(own), Sql("_t"), f"{living} AS _live")
    return running.finished(lowering, node, accumulated, values, select(row, at_slides))


def slots(lowering: Lowering, node: Aggregate, slide: Tick) -> Table:
    """Slots: the panes combined at each slide at which any is shown; nothing is said of the ends of groups."""
    accumulated, values = running.accumulators(lowering, node, once=True)
    hidden, own = sweep.group(node), accumulated.names()
    shown = _every_pane(lowering, node, accumulated)
    if node.child.slides is not None and node.child.slides[1] > 1:  # otherwise each pane is a slot
        if lowering.large and node.keys:  # then slots are put together and compared where their panes are
            shown = lowering.step("dealt", select(f"{dealt_by(hidden)}*", shown))
        at = Sql(f"_t + _slide * {slide} AS _t")
        looks = select(comma(listed(hidden), at, listed(own)), LateralView(shown, _slides(slide, Sql("_x - 1"))))
        looked = lowering.step("looked", looks)
        by = listed((*hidden, "_t"))
        shown = lowering.step("at_slides", select(f"{by}, {running.combined(accumulated)}", looked, group_by=by))
    row = select(comma(listed(hidden), listed(own), Sql("_t, TRUE AS _live")), shown)
    return running.finished(lowering, node, accumulated, values, row)


def _slides(slide: Tick, last: Sql) -> Sql:
    """The lateral view that gives a pane once for each slide from `since` on, up to the slide at or before `last`."""
    first = Sql(f"GREATEST(0, (:since - _t) DIV {slide})")
    end = f"(LEAST({last}, :until) - _t) DIV {slide}"
    return f"EXPLODE(SEQUENCE(CAST({first} AS BIGINT), CAST({end} AS BIGINT))) e AS _slide"


def _every_pane(lowering: Lowering, node: Aggregate, accumulated: Accumulators) -> Table:
    """The panes kept at `since`, and those of the epoch."""

    def make() -> Table:
        new = _panes(lowering, node, accumulated, lowering.born(node.child), "new_panes")
        state = lowering.fresh(SYNOPSIS)
        by = listed((*sweep.group(node), "_t", "_x"))
        columns = f"{by}, {listed(accumulated.names())}"
        held = f"{by}, {', '.join(accumulator.kept for accumulator in accumulated.terms.values())}"
        panes = lowering.step("every_pane", union(select(held, state), select(columns, new)))
        shown = lowering.step("shown", select(columns, panes, where=Sql("_x > :until")))
        alive = lowering.alive(node.child)
        again = _panes(lowering, node, accumulated, alive, "living_panes") if alive else None
        lowering.synopsis(state, shown, new, bounds.panes(node), again)
        lowering.note_expiry(node.child)
        lowering.has_panes = True
        return panes

    return lowering.once("panes", node, make)


def _panes(lowering: Lowering, node: Aggregate, accumulated: Accumulators, form: Table, hint: str) -> Table:
    """The panes of a form of the child: tuples of a group that begin and end to count together, as one row."""
    tuples = select(comma(sweep.keys(node), Sql("_t, _x"), accumulated.terms_sql()), accumulated.prepared(form))
    touched = lowering.step("touched", tuples, accumulated.may_not_fit())
    by = listed((*sweep.group(node), "_t", "_x"))
    return lowering.step(hint, select(f"{by}, {running.combined(accumulated)}", touched, group_by=by))
