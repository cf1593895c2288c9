"""Partners by time: of a join that equates temporal attributes, a row is needed no longer than it can find a partner.

    L ⋈ R = N L ⋈ N R       where a row of L with value v is needed until no row of R with that value can begin any more

That is known by a clock where the value follows from R's timestamp. The same holds where the join does not equate the
values but bounds their difference: then the last value counts that a partner may have. Where it was declared to be
ordered, a row of L is needed until a tuple of R has gone beyond its value, and rows of R that are behind are an error.

A pair begins when the later of its two rows does, so until then the earlier one is there. Only sides whose rows never
end are changed, or end long after they can find a partner: others end by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.plan.distances import distances, reach
from headgate.plan.expressions import Expression
from headgate.plan.nodes import Compared, Equality, Join, Needed, Node, Relation
from headgate.plan.nodes.operator import RowByRow
from headgate.plan.temporal import partner_behind, partner_until, partners_outrun, windows
from headgate.plan.tree import everywhere
from headgate.ticks import Tick

LATER = 2
"""How many times as long as it can find a partner a row must live, for it to be worth letting it go before its end."""


def limited(plan: Node) -> Node:
    return everywhere(plan, _change)


def _change(node: Node) -> Node | None:
    if not isinstance(node, Join) or _marked(node.left) or _marked(node.right):
        return None
    left, right = partner_until(node)
    for_left, for_right = partner_behind(node)
    because = ", ".join([*map(_shown, node.equalities), *map(str, distances(node))])
    outrun = partners_outrun(node)
    equated, near = partner_until(node, by_distance=False), reach(node)
    one = _Side(node.left, left, for_left[0] if left is None else None, outrun[0], near[0], equated[0] is None)
    other = _Side(node.right, right, for_right[0] if right is None else None, outrun[1], near[1], equated[1] is None)
    return Join(
        one.needed(because, for_right[1] if other.relies else None),
        other.needed(because, for_left[1] if one.relies else None),
        node.equalities,
        node.condition,
    )


@dataclass(frozen=True, slots=True)
class _Side:
    node: Relation
    until: Expression | None
    behind: Compared | None
    grows: bool
    reach: Tick | None
    """For how many instants a row finds partners, where time bounds that from both sides."""

    by_distance: bool
    """Whether nothing that is equated says until when a row can find a partner."""

    @property
    def ends(self) -> bool:
        """Whether it is worth saying when a row can go: its rows do not end by themselves, or much later."""
        longest = self.node.longest
        later = self.reach is not None and longest is not None and longest > LATER * self.reach
        return (self.node.endless or later) and bool(windows(self.node))

    @property
    def relies(self) -> bool:
        """Whether it goes by the order of the other side's tuples."""
        return self.ends and self.behind is not None

    def needed(self, because: str, checked: Compared | None) -> Relation:
        until, behind = (self.until, self.behind) if self.ends else (None, None)
        if until is None and behind is None and checked is None:
            return self.node
        by_distance = checked is None and behind is None and (self.by_distance or not self.node.endless)
        return Needed(self.node, because, until, behind, checked, self.grows and until is not None, by_distance)


def _marked(side: Relation) -> bool:
    """Whether it has been said already, below selections, how long its rows are needed."""
    while isinstance(side, RowByRow) and side.selects:
        side = side.child
    return isinstance(side, Needed)


def _shown(equality: Equality) -> str:
    return f"{equality.left.sql} = {equality.right.sql}"
