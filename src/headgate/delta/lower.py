"""From a plan to a program: each node asked for the form its parent needs, each form made once.

A relation can be asked for in these forms, all for the epoch (since, until]:

    born      its elements with `_t` in the epoch
    live      its elements that live at `since`
    ends      those of them whose end falls into the epoch
    timeline  for aggregates: one row for each group and instant at which it changes, and the row it had at `since`
    inserts   the rows that come and are not among those that go, instant by instant; deletes the other way round

A stream is asked for its `tuples`. The rule of each operator stands in a module of its own; this one only asks the
right one. `None` instead of a step means that there is nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias, TypeVar, assert_never

from headgate.delta import (
    aggregate,
    distinct,
    join,
    linear,
    moment,
    netting,
    partners,
    ranked,
    stored,
    stream,
    sweep,
    window,
)
from headgate.delta.exact import BEYOND
from headgate.delta.program import Edge, Input, Program, Step, Synopsis, read_names
from headgate.plan import bounds
from headgate.plan.fragments import Part, Splitting, all_parts, split
from headgate.plan.limits import StateBound
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
    Piped,
    Project,
    Range,
    Ranked,
    Relation,
    Scan,
    Stored,
    Stream,
    Unbounded,
    Union,
    Weight,
    Window,
    domain,
    is_stream,
    names,
)
from headgate.plan.tree import parents
from headgate.sql import listed, union
from headgate.ticks import Tick

Form: TypeAlias = str | None
F = TypeVar("F", str, Form)


def lower(plan: Node, few: bool = False, piped: bool = False, wild: bool = False) -> Program:
    """The program that keeps the plan's result up to date; with `few`, one for epochs of a few rows, on the same
    synopses.

    With `piped` it puts out elements, for another fragment to read. With `wild` it sums every double there is, by some
    more steps and synopses; without, the program raises an error with `exact.BEYOND` in it when it would need them."""
    lowering = Lowering(domain(plan).origin, parents(plan), few, wild)
    if piped:
        result = netting.elements(lowering, plan)  # type: ignore[arg-type]
    elif is_stream(plan):
        tuples = lowering.tuples(plan)
        result = lowering.step("result", f"SELECT {listed(names(plan))}, _t, CAST(1 AS BIGINT) AS _n FROM {tuples}")
    else:
        result = netting.changes(lowering, plan)  # type: ignore[arg-type]
    return Program(
        columns=plan.columns,
        kind="elements" if piped else "stream" if is_stream(plan) else "relation",
        domain=domain(plan),
        inputs=tuple(lowering.inputs.values()),
        synopses=tuple(lowering.synopses),
        steps=lowering.steps,
        result=result,
        fallbacks=tuple(lowering.fallbacks),
        timed=lowering.timed,
        ending=tuple(Input("", *known) for known in lowering.ending),
        beyond=partial(lower, plan, few, piped, True)
        if any(BEYOND in step.sql for step in lowering.steps.values())
        else None,
    )


def in_parts(plan: Node, how: Splitting = "query") -> list[tuple[Part, Program]]:
    """The programs of the fragments that the plan is cut into, each behind those it reads."""
    return [(part, lower(part.plan, piped=part.log is not None)) for part in all_parts(split(plan, how))]


class Lowering:
    """The steps of one program while it is being made."""

    def __init__(self, origin: Tick, above: Mapping[Node, set[Node]], few: bool = False, wild: bool = False) -> None:
        self.origin = origin
        self.above = above
        self.few = few
        self.wild = wild
        self.steps: dict[str, Step] = {}
        self.inputs: dict[tuple[str, Edge, tuple[Edge, ...]], Input] = {}
        self.synopses: list[Synopsis] = []
        self.fallbacks: list[str] = []
        self.timed = False
        """Something may happen by the passing of time alone that no range of a log tells of."""
        self.ending: set[tuple[str, Edge, tuple[Edge, ...]]] = set()
        self._made: dict[tuple[str, Node], Form] = {}
        self._making: list[tuple[str, Node]] = []
        self._taken: set[str] = set()
        self._prefix = ""

    # making steps

    @contextmanager
    def naming(self, prefix: str) -> Iterator[None]:
        """Names made within begin with the prefix, so that all others are what they would be without."""
        before, self._prefix = self._prefix, prefix
        yield
        self._prefix = before

    def fresh(self, hint: str) -> str:
        hint, number = f"{self._prefix}{hint}", 1
        while f"{hint}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{hint}_{number}")
        return f"{hint}_{number}"

    def step(self, hint: str, sql: str) -> str:
        """A named part of the statement; what it reads follows from its text."""
        name = self.fresh(hint)
        self.steps[name] = Step(name, sql, read_names(sql, self._taken - {name}))
        return name

    def input(self, stream_name: str, low: Edge, *high: Edge) -> str:
        key = (stream_name, low, high)
        if key not in self.inputs:
            plain = "".join(letter if letter.isalnum() else "_" for letter in stream_name)
            self.inputs[key] = Input(self.fresh(f"log_{plain}"), stream_name, low, high, self._log_bound(low))
        return self.inputs[key].name

    def synopsis(self, name: str, contents: str, shape: str) -> None:
        """What the node that is being made keeps between epochs."""
        form, node = self._making[-1]
        assert not is_stream(node)
        if form == "born" and isinstance(node, Window):
            self.synopses.append(Synopsis(name, contents, shape, bounds.waiting(node)))
        elif form == "timeline" and isinstance(node, Aggregate):
            self.synopses.append(Synopsis(name, contents, shape, bounds.accumulators(node)))
        else:
            self.synopses.append(Synopsis(name, contents, shape, node.rows))  # type: ignore[union-attr]

    def _log_bound(self, low: Edge) -> StateBound | None:
        """How much of a log must stay for the node that is being made, and because of which operator."""
        _, node = self._making[-1]
        if low == Edge("since") or isinstance(node, Scan):
            return None
        if not isinstance(node, Window):
            return node.rows  # type: ignore[union-attr]
        linear = Window | Filter | Project | Weight | Exploded | Union
        asking = next((above for _, above in reversed(self._making) if not isinstance(above, linear)), node)
        return bounds.read_again(asking, node)

    def fallback(self, what: str) -> None:
        self.fallbacks.append(what)

    def once(self, form: str, node: Node, make: Callable[[], F]) -> F:
        key = (form, node)
        if key not in self._made:
            self._making.append(key)
            self._made[key] = make()
            self._making.pop()
        return self._made[key]  # type: ignore[return-value]

    # forms

    def born(self, node: Relation) -> str:
        return self.once("born", node, lambda: self._born(node))

    def _born(self, node: Relation) -> str:
        match node:
            case Window():
                return window.born(self, node)
            case Filter() | Project() | Weight() | Exploded():
                return linear.apply(self, node, self.born(node.child))
            case Union(left, right):
                return linear.both(self, node, self.born(left), self.born(right))
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
            case Needed():
                return netting.kept(self, node, partners.condition(self, node))
            case _:
                raise AssertionError(node)

    def ends(self, node: Relation) -> Form:
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
            case _:
                live = self.live(node)
                return self.step("ends", f"SELECT * FROM {live} WHERE _x > :since AND _x <= :until") if live else None

    def served(self, node: Relation) -> bool:
        """Whether what is kept of the child serves for the node too: it loses nothing, or others need the child as
        well.
        """
        if not isinstance(node, Project):
            return False
        return node.renames or (node.picks and len(self.above.get(node.child, ())) > 1)

    def timeline(self, node: Relation) -> Form:
        """The node as a timeline, if it is an aggregate under selections and projections."""
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
            case _:
                return None

    def tuples(self, node: Stream) -> str:
        return self.once("tuples", node, lambda: stream.tuples(self, node))

    def expires(self, node: Relation) -> None:
        """Who reads what lives finds out from it what ends: note the ranges of logs from which that can be foreseen."""
        match node:
            case Window(Scan(stream), Now() | Range() as frame):
                least, most = window.reach(frame)
                self.ending.add((stream, Edge("since", -most), (Edge("until", -least), Edge("since"))))
            case Filter(child) | Project(child) | Weight(child) | Exploded(child) | Needed(child):
                self.expires(child)
            case Union(left, right):
                self.expires(left)
                self.expires(right)
            case _:
                self.timed |= not node.open_ended

    def all_elements(self, node: Relation) -> str:
        """Live and born together: everything that lives at some instant of the epoch."""
        return self.once("all", node, lambda: self._all(node))

    def _all(self, node: Relation) -> str:
        live, born = self.live(node), self.born(node)
        self.expires(node)
        if live is None:
            return born
        columns = listed((*names(node), "_t", "_x", "_n"))
        return self.step("all", union(f"SELECT {columns} FROM {live}", f"SELECT {columns} FROM {born}"))
