"""How much a query has to remember, however long it runs: limited by what, or growing because of what.

Streams are taken to bring a limited number of tuples in a limited time, and a relation that is put in and taken out of
to be as large as its owner wants it. Conservative: limited is proved, growing may be better in fact (a column may have
few values, or a join few partners). Every node says what limits its own rows; here are the bounds of what `delta` keeps
beside them.
"""

from __future__ import annotations

from headgate.plan.constraints import closed_groups, in_words
from headgate.plan.limits import Growing, Limited, StateBound, lasting, prefixed, unless_growing
from headgate.plan.nodes import Aggregate, Final, Node, Passed, Range, Window
from headgate.plan.temporal import groups_until


def accumulators(node: Aggregate, limited: bool = True, otherwise: StateBound | None = None) -> StateBound:
    """What is kept of groups to add to: not of those whose key says that nothing will come any more.

    Without `limited` the groups that a constraint would drop are kept. `otherwise` is the bound of rows that are kept
    as groups, if nothing drops any.
    """
    kept = node.rows if otherwise is None else otherwise
    closed = closed_groups(node) if limited else ()
    if isinstance(kept, Growing) and closed:
        lives = {one.life for one in closed if one.lives is not None}
        by = ", ".join(key.expression.sql for place, key in enumerate(node.keys) if place not in lives)
        return unless_growing(f"{in_words(closed)}: one row for each {by} that can still come", node.child.flow)
    if isinstance(kept, Growing) and groups_until(node, [key.name for key in node.keys]) is not None:
        by = ", ".join(key.expression.sql for key in node.keys)
        return unless_growing(f"one row for each {by} that can still change", node.child.flow)
    return kept


def panes(node: Aggregate) -> StateBound:
    """The panes of windows that slide: for each group, one row for each slide of its window."""
    by = ", ".join(["slide", *(key.expression.sql for key in node.keys)])
    return prefixed(f"one row for each {by} among", node.child.rows)


def leaders(node: Aggregate) -> StateBound:
    """The rows of a window that can still be the largest or smallest of their group."""
    return prefixed("rows that can still be the largest or smallest, among", node.child.rows)


def waiting(node: Window) -> StateBound:
    """The tuples of a stream that a window does not show yet."""
    if isinstance(node.frame, Final | Passed):
        return node.rows
    slide = node.frame.slide if isinstance(node.frame, Range) and node.frame.slide else 0
    return unless_growing(f"what came in the last {lasting(slide, node.time)}", node.child.flow)


def read_again(asking: Node, node: Window) -> StateBound:
    """The part of a base stream's log that must stay because of a window over it, which another operator looks into."""
    found = node.rows
    return found if isinstance(found, Limited) else Growing(found.operator, f"{found.reason}, and {asking.reads_again}")
