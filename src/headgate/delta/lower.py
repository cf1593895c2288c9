"""From a plan to a program: each node is asked for the forms that its parents need, and makes each form once.

A relation can be asked for in these forms, all for the epoch (since, until]:

    born      its elements with `_t` in the epoch
    live      its elements that live at `since`
    ends      those of them whose end falls into the epoch
    alive     its elements that live at `until`, read from the logs alone; None if the logs do not limit them
    timeline  for aggregates: one row for each group and instant at which it changes, and the row it had at `since`
    slots     for aggregates over windows that slide: a timeline in which each row holds for one slide
    inserts   the rows that come, less equal rows that go at the same instant; `deletes` are the rows that go, less
              equal rows that come

A stream is asked for its `tuples`. The rule of each operator stands in a module of its own; this one calls the right
rule. `None` instead of a table means that the form has no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar, assert_never, cast

from headgate.delta import (
    aggregate,
    beside,
    distinct,
    join,
    linear,
    moment,
    multiway,
    netting,
    partners,
    ranges,
    ranked,
    stored,
    stream,
    sweep,
    window,
)
from headgate.delta.assumptions import Assumption, Kind, origins
from headgate.delta.program import Counting, Edge, Input, Program, Step, Synopsis
from headgate.delta.query import Query, Table, select, union
from headgate.delta.ranges import Ranges
from headgate.plan import bounds
from headgate.plan.expressions import INTEGRAL, Expression
from headgate.plan.join_orders import Arrangement, as_written
from headgate.plan.limits import StateBound
from headgate.plan.multiway import Group
from headgate.plan.nodes import (
    Aggregate,
    Distinct,
    Exploded,
    Filter,
    Final,
    Join,
    Needed,
    Node,
    Now,
    Passed,
    Piped,
    Project,
    Range,
    Ranked,
    Relation,
    Rows,
    Scan,
    Stored,
    Stream,
    Unbounded,
    Union,
    Values,
    Weight,
    Window,
    domain,
    is_stream,
    names,
)
from headgate.plan.tree import parents
from headgate.sql import ALL, ONE, Sql, listed
from headgate.ticks import Tick

Form: TypeAlias = Table | None
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Way:
    """How a program is written. Programs of all ways give the same answers."""

    all_doubles: bool = False
    """True if it sums every double, by more steps and synopses. Otherwise it raises an error with
    `exact.DOES_NOT_FIT` at the first double that needs these.
    """

    by_panes: bool = True
    """False if sums over windows that slide are running sums: what earlier versions of headgate kept."""

    by_distance: bool = True
    """False if a side of a join is read from its log again, also where the join bounds how far apart rows begin.
    Earlier versions of headgate kept nothing of it.
    """

    by_leaders: bool = True
    """False if MIN and MAX over a moving window read all of it again in each epoch, as earlier versions did."""

    denied: frozenset[Assumption] | None = frozenset()
    """What it must not take for granted; None: nothing may be."""

    large: bool = True
    """True if epochs are so long that a job which looks at their rows first, or a shuffle, may save work."""

    by_ranges: Ranges | None = None
    """Into what windows over all rows are cut; None if they are not cut."""

    joins: tuple[Arrangement, ...] | None = None
    """How joins of several inputs are arranged, group by group; where it says nothing, as `caching` says. None: they
    are trees of joins of two for good.
    """

    caching: bool = True
    """Whether joins of several inputs begin as the trees in which they are written; otherwise they keep nothing in
    between.
    """

    counting: tuple[Counting, ...] = ()
    """What a program is to count, instead of giving the results."""


AS_USUAL = Way()


def lower(plan: Node, tiny: bool = False, as_elements: bool = False, way: Way = AS_USUAL) -> Program:
    """Make the program that keeps the plan's result up to date.

    With `tiny` it is a program for epochs of a few rows, which has the same synopses. With `as_elements` it puts out
    elements, for another fragment to read.
    """
    lowering = Lowering(domain(plan).origin, parents(plan), tiny, way)

    def again(**changed: Any) -> Callable[[], Program]:
        return partial(lower, plan, tiny, as_elements, replace(way, **changed))

    if as_elements:
        result = netting.elements(lowering, plan)  # type: ignore[arg-type]
    elif is_stream(plan):
        tuples = lowering.tuples(plan)
        result = lowering.step("result", select(f"{listed(names(plan))}, _t, {ONE} AS _n", tuples))
    else:
        result = netting.changes(lowering, plan)  # type: ignore[arg-type]
    if way.counting:
        result = lowering.counted(way.counting)
    return Program(
        columns=plan.columns,
        kind="elements" if as_elements else "stream" if is_stream(plan) else "relation",
        domain=domain(plan),
        inputs=tuple(lowering.inputs.values()),
        synopses=tuple(lowering.synopses),
        steps=lowering.steps,
        result=result.name,
        fallbacks=tuple(lowering.fallbacks),
        by_arrival=lowering.by_place or any(map(_looks_at_arrival, lowering.above)),
        acts_without_input=lowering.acts_without_input,
        expiring=tuple(Input("", *known, bound) for known, bound in lowering.expiring.items()),
        for_all_doubles=again(all_doubles=True) if any(step.may_not_fit for step in lowering.steps.values()) else None,
        without_panes=again(by_panes=False) if lowering.has_panes else None,
        assumed=frozenset(lowering.assumed),
        denying=lambda denied: again(denied=denied)(),
        for_small_epochs=again(large=False) if way.large else None,
        without_distances=again(by_distance=False) if lowering.has_distances else None,
        without_leaders=again(by_leaders=False) if lowering.has_leaders else None,
        by_ranges=(lambda by_ranges: again(by_ranges=by_ranges)()) if lowering.can_be_cut else None,
        groups=tuple(lowering.groups.values()),
        arrangements=lowering.arrangements,
        arranged=(lambda joins: again(joins=joins)()) if lowering.groups else None,
        as_tree=again(joins=None) if lowering.groups else None,
        counting=(lambda counting: again(counting=counting)()) if lowering.groups else None,
    )


def _looks_at_arrival(node: Node) -> bool:
    """True if the rule of a node looks at the order in which tuples arrived."""
    match node:
        case Window(frame=Rows() | Values() | Passed()) | Stored():
            return True
        case Window(arrival=arrival):
            return arrival is not None
        case _:
            return False


class Lowering:
    """The steps, inputs and synopses of one program while it is being made."""

    def __init__(
        self,
        origin: Tick,
        above: Mapping[Node, set[Node]],
        tiny: bool = False,
        way: Way = AS_USUAL,
    ) -> None:
        self.origin = origin
        self.above = above
        """The parents of each node."""
        self.tiny = tiny
        self.all_doubles = way.all_doubles
        self.by_panes = way.by_panes
        self.by_distance = way.by_distance
        self.by_leaders = way.by_leaders
        self.has_leaders = False
        """True if leaders are kept of a window."""
        self.has_distances = False
        """True if a side of a join is kept because of how far apart rows begin."""
        self.denied = way.denied
        self.assumed: set[Assumption] = set()
        """The assumptions about the numbers that are read."""
        self.large = way.large and not tiny
        self.by_ranges = way.by_ranges
        self.can_be_cut = False
        """True if there is a window over all rows that can be computed by ranges."""
        self.by_place = False
        """True if tuples are numbered in the order of their arrival, for a constraint."""
        self.ranged: set[Node] = set()
        """The aggregates whose timelines are walked range by range: these have a column `_range`."""
        self.touched_only: set[Node] = set()
        """The aggregates whose timelines leave out groups that do not change in the epoch."""
        self.has_panes = False
        """True if an aggregate keeps panes."""
        self.steps: dict[str, Step] = {}
        self.inputs: dict[tuple[str, Edge, tuple[Edge, ...]], Input] = {}
        self.synopses: list[Synopsis] = []
        self.fallbacks: list[str] = []
        self.acts_without_input = False
        """True if results may change at some instant by the passing of time alone, and no range of a log tells when."""
        self.expiring: dict[tuple[str, Edge, tuple[Edge, ...]], StateBound] = {}
        """Ranges of logs whose tuples leave a window in the epoch, and how much of the log they are."""
        self.groups: dict[Join, Group] = {} if way.joins is None else multiway.groups(above)
        """The joins of several inputs, by the top of each."""
        known, begin = way.joins or (), as_written if way.caching else lambda _: Arrangement()
        self.arrangements = (*known, *map(begin, list(self.groups.values())[len(known) :]))
        """How each of them is arranged."""
        self._kept_in_trees: dict[Node, str] = {}
        for number, (group, arrangement) in enumerate(zip(self.groups.values(), self.arrangements, strict=True)):
            self._kept_in_trees |= multiway.kept_in_tree(group, number) if arrangement.as_written else {}
        self._made: dict[tuple[str, Node], Any] = {}
        self._making: list[tuple[str, Node]] = []
        self._names: set[str] = set()
        self._prefix = ""

    # joins of several inputs

    def arranged(self, node: Relation) -> bool:
        """True if a node is a join of several inputs that is arranged otherwise than it is written."""
        return node in self.groups and not self.arrangements[list(self.groups).index(node)].as_written

    def joined(self, node: Join) -> Table:
        """What is born of a join of several inputs."""
        return multiway.born(self, *self._group(list(self.groups).index(node)))

    def counted(self, counting: tuple[Counting, ...]) -> Table:
        """The counts of one group."""
        return multiway.counted(self, *self._group(counting[0].group), counting)

    def _group(self, number: int) -> tuple[Group, int, Arrangement]:
        return list(self.groups.values())[number], number, self.arrangements[number]

    def name_kept(self, node: Relation) -> Table:
        """The synopsis of what lives of a relation.

        Within a join of several inputs its name says which of them it joins, so that no other name depends on how they
        are arranged.
        """
        name = self._kept_in_trees.get(node)
        return self.fresh("kept") if name is None else Table(name)

    # making steps

    @contextmanager
    def naming(self, prefix: str) -> Iterator[None]:
        """Begin the names that are made within with a prefix, so that they do not change the numbers of others."""
        before, self._prefix = self._prefix, prefix
        yield
        self._prefix = before

    def fresh(self, hint: str) -> Table:
        """A table with a name of its own: the hint and a number."""
        hint, number = f"{self._prefix}{hint}", 1
        while f"{hint}_{number}" in self._names:
            number += 1
        self._names.add(f"{hint}_{number}")
        return Table(f"{hint}_{number}")

    def step(self, hint: str, query: Query, may_not_fit: bool = False, alone: bool = False) -> Table:
        """Add a query to the program, and give the table that holds its rows.

        With `may_not_fit` the query raises an error with `exact.DOES_NOT_FIT` when it meets a double that does not fit.
        With `alone` a job of its own computes it first.
        """
        made = self.fresh(hint)
        self.steps[made.name] = Step(made.name, query, may_not_fit, alone)
        return made

    def input(self, stream_name: str, low: Edge, *high: Edge) -> Table:
        """The tuples of a log with timestamps from `low`, exclusive, to the earliest of `high`."""
        key = (stream_name, low, high)
        if key not in self.inputs:
            plain = "".join(letter if letter.isalnum() else "_" for letter in stream_name)
            self.inputs[key] = Input(self.fresh(f"log_{plain}").name, stream_name, low, high, self._log_bound(low))
        return Table(self.inputs[key].name)

    def synopsis(
        self,
        kept: Table,
        contents: Table,
        shape: Table,
        bound: StateBound | None = None,
        from_logs: Form = None,
    ) -> None:
        """Keep a table between epochs: as of `until` it holds `contents`, and its columns are those of `shape`.

        Without a bound, how much it holds follows from the node that is being made. `from_logs` has the rows of
        `contents` as well, without a look at what was kept.
        """
        known = self._synopsis_bound() if bound is None else bound
        again = from_logs.name if from_logs else None
        _, node = self._making[-1]
        self.synopses.append(Synopsis(kept.name, contents.name, shape.name, known, again, stored.at_rest(node)))

    def _synopsis_bound(self) -> StateBound:
        """How much is kept by the node that is being made."""
        form, node = self._making[-1]
        if form == "moves":  # for a timeline, also of DISTINCT; or for rows that look up a group
            form, node = self._making[-2] if self._making[-2][0] == "timeline" else ("timeline", node)
        assert not is_stream(node)
        if form == "born" and isinstance(node, Window):
            return bounds.waiting(node)
        if form == "timeline" and isinstance(node, Aggregate):
            return bounds.accumulators(node, limited=not self.looked_up(node))
        if form == "timeline" and isinstance(node, Distinct):
            return bounds.accumulators(distinct.groups(node), limited=not self.looked_up(node), otherwise=node.rows)
        return node.rows  # type: ignore[union-attr]

    def _log_bound(self, low: Edge) -> StateBound | None:
        """How much of a log must be kept for the node that is being made, and because of which operator."""
        _, node = self._making[-1]
        if low == Edge("since") or low.anchor == "until" or isinstance(node, Scan):
            return None  # or another input has what limits it
        if not isinstance(node, Window):
            return node.rows  # type: ignore[union-attr]
        return self._read_again(node)

    def _read_again(self, node: Window) -> StateBound:
        """How much of the log below a window must be kept, and because of which operator."""
        linear = Window | Filter | Project | Weight | Exploded | Union
        asking = next((above for _, above in reversed(self._making) if not isinstance(above, linear)), node)
        return bounds.read_again(asking, node)

    def holds(self, node: Relation, argument: Expression, kind: Kind) -> bool:
        """True if something may be taken for granted of an argument over a node; then it is noted that it was."""
        if argument.column is None or argument.type not in (*INTEGRAL, "FLOAT", "DOUBLE") or self.denied is None:
            return False
        if not node.in_logs or node.longest is None:
            return False  # rows may come from a synopsis, of which chunks say nothing
        found = origins(node, argument.column)
        assumed = {Assumption(stream, column, kind) for stream, column in found or ()}
        if found is None or assumed & self.denied:
            return False
        self.assumed |= assumed
        return True

    def fallback(self, what: str) -> None:
        """Note an operator that runs by the universal rule."""
        self.fallbacks.append(what)

    def once(self, form: str, node: Node, make: Callable[[], F]) -> F:
        """Make a form of a node, or give the one that was made before."""
        key = (form, node)
        if key not in self._made:
            self._making.append(key)
            self._made[key] = make()
            self._making.pop()
        return cast(F, self._made[key])

    def cut(self, rows: Stream) -> Ranges | None:
        """Into how many ranges a window over all tuples of a stream is cut; None if a single task walks through them.

        It reads the tuples three times, so that is done only where reading costs little.
        """
        if not ranges.cheap(rows):
            return None
        self.can_be_cut = True
        return self.by_ranges

    @contextmanager
    def uncut(self) -> Iterator[None]:
        """Cut no window into ranges that is made within."""
        before = self.by_ranges, self.can_be_cut
        self.by_ranges = None
        yield
        self.by_ranges, self.can_be_cut = before

    def inputs_of_epoch(self) -> list[Input]:
        """The inputs so far that hold the new tuples of the epoch, and no others."""
        return [source for source in self.inputs.values() if source.low == Edge("since")]

    # forms

    def born(self, node: Relation) -> Table:
        """The elements of a relation with `_t` in the epoch."""
        return self.once("born", node, lambda: self._born(node))

    def _born(self, node: Relation) -> Table:
        match node:
            case Window():
                return window.born(self, node)
            case Filter() | Project() | Weight() | Exploded():
                return linear.apply(self, node, self.born(node.child))
            case Union(left, right):
                return linear.both(self, node, self.born(left), self.born(right))
            case Join() if self.arranged(node):
                return self.joined(node)
            case Join():
                return join.born(self, node)
            case Aggregate() | Distinct() | Ranked() if node.momentary:
                return moment.born(self, node)
            case Aggregate() | Distinct():
                return sweep.born(self, node)
            case Ranked():
                return ranked.born(self, node)
            case Needed():
                return partners.born(self, node)
            case Stored():
                return stored.born(self, node)
            case Piped(log=log):
                return self.input(log, Edge("since"), Edge("until"))
            case _:
                assert_never(node)

    def live(self, node: Relation) -> Form:
        """The elements of a relation that live at `since`."""
        return self.once("live", node, lambda: self._live(node))

    def _live(self, node: Relation) -> Form:
        if not node.in_logs and not self.served(node):
            return netting.kept(self, node)
        match node:
            case Window():
                return window.live(self, node)
            case Filter() | Project() | Weight() | Exploded():
                child = self.live(node.child)
                return linear.apply(self, node, child) if child else None
            case Union(left, right):
                return linear.either(self, node, self.live(left), self.live(right))
            case Stored():
                return stored.live(self, node)
            case Needed() if node.by_distance and not self.by_distance:
                return self.live(node.child)
            case Needed():
                self.has_distances |= node.by_distance
                return netting.kept(self, node, partners.conditions(self, node))
            case Join() | Aggregate() | Distinct() | Ranked() | Piped():
                raise AssertionError(node)  # no log holds these, so they are kept
            case _:
                assert_never(node)

    def ends(self, node: Relation) -> Form:
        """The elements that live at `since` and end in the epoch."""
        return self.once("ends", node, lambda: self._ends(node))

    def _ends(self, node: Relation) -> Form:
        if node.open_ended:
            return None
        match node:
            case Window(Scan(), Now() | Unbounded() | Range() | Final(delay=int())):
                return window.ends(self, node)
            case Filter() | Project() | Weight() | Exploded() if node.in_logs or self.served(node):
                child = self.ends(node.child)
                return linear.apply(self, node, child) if child else None
            case Union(left, right) if node.in_logs:
                return linear.either(self, node, self.ends(left), self.ends(right))
            case _:  # right for every relation: the ends follow from what lives
                live = self.live(node)
                return (
                    self.step("ends", select(ALL, live, where=(Sql("_x > :since"), Sql("_x <= :until"))))
                    if live
                    else None
                )

    def alive(self, node: Relation) -> Form:
        """The elements that live at `until`, from the logs alone; None where the logs do not have them, or have no end.

        What a window shows at the end of a long epoch is a small part of the log. So a synopsis that follows from these
        elements costs less than one that follows from everything that came and went.
        """
        return self.once("alive", node, lambda: self._alive(node))

    def _alive(self, node: Relation) -> Form:
        match node:
            case Window(Scan(), Now() | Range() | Final(delay=int())):
                return window.alive(self, node)
            case Filter() | Project() | Weight() | Exploded():
                child = self.alive(node.child)
                return linear.apply(self, node, child) if child else None
            case Union(left, right):
                both = self.alive(left), self.alive(right)
                return linear.both(self, node, both[0], both[1]) if both[0] and both[1] else None
            case Join() if (lookup := node.lookup) is not None:
                return beside.alive(self, node, lookup)
            case _:  # kept by a synopsis, or without an end
                return None

    def served(self, node: Relation) -> bool:
        """True if the node reads what its child keeps, instead of keeping rows of its own.

        That is better if the node loses nothing of the child, or if other nodes need the child's rows as well.
        """
        if not isinstance(node, Project):
            return False
        return node.renames or (node.picks and len(self.above.get(node.child, ())) > 1)

    def looked_up(self, node: Relation) -> bool:
        """True if a join looks up groups of the node, so that its timeline needs those that do not change as well."""
        for parent in self.above.get(node, ()):
            if isinstance(parent, Join) and parent.lookup is not None and parent.lookup.groups == node:
                return True
            if isinstance(parent, Filter | Project) and self.looked_up(parent):
                return True
        return False

    def timeline(self, node: Relation) -> Form:
        """The timeline of an aggregate, also under selections and projections; None for other relations."""
        return self.once("timeline", node, lambda: self._timeline(node))

    def _timeline(self, node: Relation) -> Form:
        match node:
            case Aggregate():
                return aggregate.timeline(self, node)
            case Distinct():
                return distinct.timeline(self, node)
            case Filter() | Project():
                child = self.timeline(node.child)
                return sweep.carried(self, node, child) if child else None
            case Window() | Weight() | Exploded() | Union() | Join() | Ranked() | Needed() | Stored() | Piped():
                return None
            case _:
                assert_never(node)

    def slots(self, node: Relation) -> Form:
        """The slots of an aggregate, also under selections and projections; None for other relations.

        Slots are a timeline in which every row holds for one slide of the window. They say nothing of the instants at
        which a group has no row any more.
        """
        return self.once("slots", node, lambda: self._slots(node))

    def _slots(self, node: Relation) -> Form:
        match node:
            case Aggregate():
                return aggregate.slots(self, node)
            case Filter() | Project():
                child = self.slots(node.child)
                return sweep.carried(self, node, child) if child else None
            case (
                Window()
                | Weight()
                | Exploded()
                | Union()
                | Join()
                | Ranked()
                | Needed()
                | Stored()
                | Piped()
                | Distinct()
            ):
                return None
            case _:
                assert_never(node)

    def tuples(self, node: Stream) -> Table:
        """The tuples of a stream with timestamps in the epoch."""
        return self.once("tuples", node, lambda: stream.tuples(self, node))

    def note_expiry(self, node: Relation) -> None:
        """Note the ranges of logs that tell when elements of the node end, or that no range tells it.

        A rule that reads all elements finds the ends in them and does not ask for `ends`, so it is noted here.
        """
        match node:
            case Window(Scan(stream), Now() | Range() as frame):
                least, most = window.reach(frame)
                self.expiring[stream, Edge("since", -most), (Edge("until", -least), Edge("since"))] = self._read_again(
                    node
                )
            case Filter(child) | Project(child) | Weight(child) | Exploded(child) | Needed(child):
                self.note_expiry(child)
            case Union(left, right):
                self.note_expiry(left)
                self.note_expiry(right)
            case Window() | Join() | Aggregate() | Distinct() | Ranked() | Stored() | Piped():
                self.acts_without_input |= not node.open_ended
            case _:
                assert_never(node)

    def all_elements(self, node: Relation) -> Table:
        """The elements that live at some instant of the epoch, for a rule that also finds their ends in them."""
        return self.once("elements", node, lambda: self._all(node))

    def _all(self, node: Relation) -> Table:
        self.note_expiry(node)
        return self.passing(node)

    def passing(self, node: Relation) -> Table:
        """The elements that live at some instant of the epoch: `live` and `born` together."""
        return self.once("all", node, lambda: self._passing(node))

    def _passing(self, node: Relation) -> Table:
        live, born = self.live(node), self.born(node)
        if live is None:
            return born
        columns = listed((*names(node), "_t", "_x", "_n"))
        return self.step("all", union(select(columns, live), select(columns, born)))
