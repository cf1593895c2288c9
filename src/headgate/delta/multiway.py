"""Inner joins of several inputs, each of which has an order of its own.

    born     Δ(R1 ⋈ ... ⋈ Rn) = Σ ΔRi ⋈ (the inputs before i, as they lived at `since`) ⋈ (those behind i, old and new)

Each combination with a new row is counted once: for the last of its inputs that is new. A combination counts as often
as the product of its rows, from the latest of their starts to the earliest of their ends. In which order ΔRi goes
through the others does not matter for that, so the arrangement of the group says it (`plan/join_orders`), and programs
for all arrangements give the same answers.

Where there are two inputs or caches and all rows have an end, both are paired at once by buckets of time, as in a join
of two (`buckets`). A group that is arranged as it is written does not come here: each of its joins has its own rule.
All arrangements have the same synopses for the inputs, under the same names.

Nothing of what lies in between is kept, but for caches. A cache is a join of some inputs that stands in the sum like an
input: what is new of it is this same sum over its members; what lived at `since` is a synopsis. A cache that is not in
use yet is filled from what lives by the logs.

    counted  of some new rows of an input, how many rows they give with which others
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from headgate.delta import as_of, buckets, stored
from headgate.delta.program import Counting
from headgate.delta.query import Alias, Joined, Select, Table, select, union
from headgate.plan.constraints import referenced as constrained
from headgate.plan.derived import kept
from headgate.plan.join_orders import Arrangement, members, order, whole
from headgate.plan.multiway import Group, Inputs, group_of
from headgate.plan.nodes import Join, Node, Relation, names
from headgate.sql import ALL, FOREVER, Sql, listed, literal

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

CACHE = re.compile(r"(cache|tree)_(\d+)((?:_\d+)+)")
"""The name of a cache, or of what the tree of joins keeps as it is written: the number of its group and those of its
inputs.
"""

OUTLIVES = Sql("(_x IS NULL OR _x > :until)")


@dataclass(frozen=True, slots=True)
class Rows:
    """A table with the rows of some inputs joined, and the relation that says which columns it has."""

    table: Table
    node: Relation
    inputs: Inputs


def groups(above: Mapping[Node, set[Node]]) -> dict[Join, Group]:
    """The joins of a plan that are the tops of groups, in the order of the plan."""
    found = {
        node: group for node in above if isinstance(node, Join) and (group := group_of(node, above, _has_own_rule))
    }
    inside = {id(one) for group in found.values() for one in _joins_inside(group)}
    return {node: group for node, group in found.items() if id(node) not in inside}


def _joins_inside(group: Group) -> list[Node]:
    """The nodes between the top of a group and its inputs."""
    found, waiting = list[Node](), [child for child in group.node.children if child not in group.inputs]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting += [child for child in node.children if child not in group.inputs]
    return found


def _has_own_rule(node: Join) -> bool:
    return as_of.sides(node) is not None or constrained(node) is not None


def cache_name(group: int, inputs: Inputs, kind: Literal["cache", "tree"] = "cache") -> str:
    """The name of the synopsis of a cache, or of what a tree of joins keeps in its place."""
    return "_".join(map(str, (kind, group, *sorted(inputs))))


def kept_in_tree(group: Group, number: int) -> dict[Node, str]:
    """The names of the synopses of a group as it is written, by the nodes between its top and its inputs."""

    def below(node: Node) -> Inputs:
        if node in group.inputs:
            return frozenset({group.inputs.index(node)})
        return frozenset().union(*map(below, node.children))

    return {node: cache_name(number, below(node), "tree") for node in _joins_inside(group)}


def caches_named(synopses: Iterable[str]) -> tuple[dict[int, frozenset[Inputs]], frozenset[int]]:
    """By group: the caches among some synopses; and the groups that keep something as they are written."""
    caches: dict[int, frozenset[Inputs]] = {}
    trees: set[int] = set()
    for one in synopses:
        if named := CACHE.fullmatch(one):
            group, inputs = int(named[2]), frozenset(map(int, named[3].strip("_").split("_")))
            if named[1] == "tree":
                trees.add(group)
            else:
                caches[group] = caches.get(group, frozenset()) | {inputs}
    return caches, frozenset(trees)


class _Joining:
    """One group while its steps are written."""

    def __init__(self, lowering: Lowering, group: Group, number: int, arrangement: Arrangement) -> None:
        self.lowering, self.group, self.number, self.arrangement = lowering, group, number, arrangement
        self.by_time = group.ending(whole(group))
        self._ask(group.node)
        for one in group.inputs:
            if not one.instantaneous:
                lowering.passing(one) if self.by_time else lowering.all_elements(one)

    def _ask(self, node: Relation) -> None:
        """Ask the inputs below a node for their forms as joins of two do: synopses have their names by this order."""
        if node in self.group.inputs:
            self.lowering.born(node)
            return
        for side in node.children:
            self._ask(cast(Relation, side))
        for side in reversed(node.children):
            if side in self.group.inputs and not side.instantaneous:
                self.lowering.live(side)

    # forms of inputs and caches

    def new(self, some: Inputs) -> Rows:
        """What is born of an input, of a cache or of the whole group."""
        return self.lowering.once(f"new {sorted(some)}", self.group.node, lambda: self._new(some))

    def _new(self, some: Inputs) -> Rows:
        if len(some) == 1:
            node = self._input(some)
            return Rows(self.lowering.born(node), node, some)
        beside = members(some, self.arrangement.caches)
        columns = self._columns(some)
        parts: list[Select] = []
        if len(beside) == 2 and self.group.ending(some):
            both = self.paired(self.all(beside[0]), self.all(beside[1]))
            return Rows(
                self.lowering.step("joined", select(f"{listed(columns)}, _t, _x, _n", both.table)), both.node, some
            )
        for place, one in enumerate(beside):
            joined: Rows | None = self.new(one)
            for other in order(self.group, self.arrangement, one, some):
                rows = self.old(other) if beside.index(other) < place else self.all(other)
                joined = None if joined is None or rows is None else self.paired(joined, rows)
            if joined is not None:
                parts.append(select(f"{listed(columns)}, _t, _x, _n", joined.table))
        return Rows(self.lowering.step("joined", union(*parts)), self._node(some), some)

    def old(self, some: Inputs) -> Rows | None:
        """What lives at `since`; None if none of it can meet anything new."""
        node = self._node(some)
        if len(some) > 1:
            return Rows(self.cache(some), node, some)
        live = None if node.instantaneous else self.lowering.live(node)
        return Rows(live, node, some) if live is not None else None

    def all(self, some: Inputs) -> Rows:
        """What is new and what lives at `since`."""
        node = self._node(some)
        if len(some) > 1:
            return self.lowering.once(f"all {sorted(some)}", self.group.node, lambda: self._all(some, node))
        if node.instantaneous:  # what lives for one instant only cannot meet anything that begins after it
            return self.new(some)
        every = self.lowering.passing(node) if self.by_time else self.lowering.all_elements(node)
        return Rows(every, node, some)

    def _all(self, some: Inputs, node: Relation) -> Rows:
        columns = f"{listed(names(node))}, _t, _x, _n"
        both = union(select(columns, self.cache(some)), select(columns, self.new(some).table))
        return Rows(self.lowering.step("all", both), node, some)

    # caches

    def cache(self, some: Inputs) -> Table:
        """What lives of a cache at `since`; asking for it makes sure that it is kept up to date."""
        return self.lowering.once(f"cache {sorted(some)}", self.group.node, lambda: self._cache(some))

    def _cache(self, some: Inputs) -> Table:
        node, held = self._node(some), Table(cache_name(self.number, some))
        row = f"{listed(names(node))}, _x, _n"
        alive = self.lowering.step("cache_alive", select(row, self._alive(some).table))
        contents = alive
        if some in self.arrangement.caches:
            new = self.new(some).table
            both = union(select(row, held, where=OUTLIVES), select(row, new, where=OUTLIVES))
            contents = self.lowering.step("cache_keep", both)
        self.lowering.synopsis(held, contents, alive, node.rows, alive)
        self.lowering.acts_without_input |= not node.open_ended
        return self.lowering.step(
            "cached", select(f"{listed(names(node))}, CAST(:since AS BIGINT) AS _t, _x, _n", held)
        )

    def _alive(self, some: Inputs) -> Rows:
        """What lives of some inputs at `until`, joined, by the logs alone."""
        joined: Rows | None = None
        for number in self._as_connected(some):
            node = self._input(frozenset({number}))
            alive = self.lowering.alive(node)
            assert alive is not None, node
            rows = Rows(alive, node, frozenset({number}))
            joined = rows if joined is None else self.paired(joined, rows, at_one_instant=True)
        assert joined is not None
        return joined

    # pairing

    def paired(self, left: Rows, right: Rows, at_one_instant: bool = False, few: bool = False) -> Rows:
        """The rows of both that agree in all that can be compared now, and live at a common instant.

        With `few`, the left side is so small that each task can have all of it, or a single task a table of it.
        """
        node = self.group.joined(left.node, left.inputs, right.node, right.inputs)
        both, met, by_time = (left.table, right.table), (), False
        if not at_one_instant and buckets.apply(node):
            both, met, by_time = buckets.split(self.lowering, node, *both), (buckets.MET,), True  # type: ignore[assignment]
        on = [one.sql for one in node.equalities]
        on += [*met, f"l._t < COALESCE(r._x, {FOREVER})", f"r._t < COALESCE(l._x, {FOREVER})"]
        on += [f"({node.condition.sql})"] if node.condition is not None else []
        uneven = bool(node.equalities or met) and stored.at_rest(left.node) != stored.at_rest(right.node)
        inputs = left.inputs | right.inputs
        hashed = "l" if few and not self.lowering.large else ""
        feeds, sent = inputs != whole(self.group), "l" if few and not hashed else ""
        source = Joined(
            Alias(both[0], "l"), Alias(both[1], "r"), tuple(on), False, by_time, uneven, hashed, feeds, sent
        )
        columns = self._columns(inputs)
        stamps = Sql("GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n")
        made = self.lowering.step("join", select(f"{listed(columns)},\n  {stamps}", source))
        return Rows(made, kept(node, columns), inputs)

    def _columns(self, some: Inputs) -> tuple[str, ...]:
        """The columns of some inputs joined, at least one; all of them together have those of the result."""
        if some == whole(self.group):
            return names(self.group.node)
        needed = self.group.needed(some)
        have = [name for number in sorted(some) for name in names(self.group.inputs[number])]
        return tuple(name for name in have if name.lower() in needed) or tuple(have[:1])

    def _input(self, some: Inputs) -> Relation:
        (number,) = some
        return self.group.inputs[number]

    def _node(self, some: Inputs) -> Relation:
        """A relation with the columns and the lifetimes of some inputs joined."""
        first, *rest = self._as_connected(some)
        node: Relation = self.group.inputs[first]
        have = frozenset({first})
        for number in rest:
            node = self.group.joined(node, have, self.group.inputs[number], frozenset({number}))
            have |= {number}
        return kept(node, self._columns(some)) if rest else node

    def _as_connected(self, some: Inputs) -> list[int]:
        """Some inputs in an order in which each is equated with one before it, as far as that goes."""
        found = [min(some)]
        while rest := sorted(some - set(found)):
            able = [one for one in rest if self.group.connected(frozenset(found), frozenset({one}))]
            found.append((able or rest)[0])
        return found

    # counting

    def sizes(self) -> list[Select]:
        """How many rows of each input come, and how many are there when the epoch begins."""
        each = [frozenset({number}) for number in range(len(self.group.inputs))]
        came = [self._count(one, Sql("came"), self.new(one).table) for one in each]
        return came + [self._count(one, Sql("stood"), old.table) for one in each if (old := self.old(one)) is not None]

    def counted(self, counting: Counting) -> list[Select]:
        """How many rows of an input are looked at, and how many these give with others."""
        start = self.new(frozenset({counting.number}))
        looked_at = f"PMOD(XXHASH64({listed((*names(start.node), '_t'))}), {counting.one_in}) = 0"
        some = self.lowering.step("sample", select(ALL, start.table, where=looked_at if counting.one_in > 1 else ()))
        made: dict[Inputs, Rows] = {frozenset(): Rows(some, start.node, start.inputs)}
        said = [self._count(start.inputs, "", some)]
        for one in sorted(counting.sets, key=lambda one: (len(one), sorted(one))):
            last = next((number for number in sorted(one) if one - {number} in made), None)
            before = one - {last} if last is not None else max((known for known in made if known < one), key=len)
            rows = made[before]
            for number in sorted(one - before):
                rows = self.paired(rows, self.all(frozenset({number})), few=rows.table == some)
            made[one] = rows
            said.append(self._count(start.inputs, " ".join(map(str, sorted(one))), rows.table))
        return said

    def _count(self, some: Inputs, what: str, rows: Table) -> Select:
        return select(
            f"{self.number} AS _group, {min(some)} AS _input, {literal(what)} AS _with, COUNT(*) AS _rows", rows
        )


def born(lowering: Lowering, group: Group, number: int, arrangement: Arrangement) -> Table:
    """Born: the sum over all inputs, each in its order."""
    joining = _joining(lowering, group, number, arrangement)
    for cache in sorted(arrangement.caches | arrangement.filling, key=sorted):
        joining.cache(cache)
    return joining.new(whole(group)).table


def counted(lowering: Lowering, group: Group, number: int, arrangement: Arrangement, some: Iterable[Counting]) -> Table:
    """What the counts of a group are: a row for each set of inputs."""
    joining = _joining(lowering, group, number, arrangement)
    return lowering.step("counted", union(*joining.sizes(), *(part for one in some for part in joining.counted(one))))


def _joining(lowering: Lowering, group: Group, number: int, arrangement: Arrangement) -> _Joining:
    return lowering.once("joining", group.node, lambda: _Joining(lowering, group, number, arrangement))
