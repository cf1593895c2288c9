"""Every plan node answers every question, and nothing outside its class guesses an answer.

A node class that forgets a question, an expression or a column fails here, and not with a wrong plan.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from tools.as_sql import sql

import headgate
from headgate.plan import nodes
from headgate.plan.expressions import Call, Expression, Named
from headgate.plan.nodes import (
    Aggregate,
    Compared,
    Constraint,
    Distinct,
    Dstream,
    Equality,
    Exploded,
    Filter,
    Frame,
    Istream,
    Join,
    Lives,
    Needed,
    Node,
    Now,
    Ordered,
    Passed,
    Piped,
    Project,
    Range,
    Ranked,
    Relation,
    Rows,
    Rstream,
    Sample,
    Scan,
    Stored,
    Stream,
    Unbounded,
    Union,
    Values,
    Weight,
    Window,
    names,
)
from headgate.plan.nodes.frames import Final, FrameTraits
from headgate.plan.nodes.operator import Operator, RelationOperator, StreamOperator, column_of
from headgate.plan.rewrites.common import anonymous, renamed
from headgate.plan.tree import complete
from headgate.sql import Column, Sql
from headgate.ticks import TimeDomain

SOURCE = Path(headgate.__file__).parent
DISPATCH = SOURCE / "delta" / "lower.py"

S = Scan("s", (Column("k", Sql("STRING")), Column("v", Sql("INT"))), TimeDomain.INTEGER, None)
T = Scan("t", (Column("a", Sql("STRING")), Column("b", Sql("INT"))), TimeDomain.INTEGER, None)
K, V = column_of("k", Sql("STRING")), column_of("v", Sql("INT"))
POSITIVE = Expression(Sql("v > 0"), Sql("BOOLEAN"), frozenset({"v"}))
TOTAL = Call("total", "sum", Sql("SUM(v)"), Sql("BIGINT"), (V,), False, Sql("k = 'x'"), frozenset({"k", "v"}))
BEHIND = Compared(V, Ordered(T, "b", Sql("b"), True))


def over(below: Relation) -> dict[type, Node]:
    """An example of each class of nodes above a relation with the columns k and v; each field is in use."""
    other = Window(T, Unbounded())
    equal = (Equality(K, column_of("a", Sql("STRING"))),)
    stream = Istream(below)
    found: list[Node] = [
        S,
        Sample(stream, "10", 7),
        Lives(stream, Constraint("c", "clustered", "s", "k", 10, True, confidence="0.9")),
        stream,
        Dstream(below),
        Rstream(below, 5),
        Window(stream, Rows(1, ("k",)), "stamp", "nth"),
        Filter(below, POSITIVE),
        Project(below, (Named("x", K), Named("y", Expression(Sql("v + 1"), Sql("INT"), frozenset({"v"}))))),
        Join(below, other, equal, Expression(Sql("v < b"), Sql("BOOLEAN"), frozenset({"v", "b"}))),
        Union(below, other),
        Weight(below, V),
        Exploded(below, Expression(Sql("EXPLODE(SEQUENCE(1, v))"), Sql("INT"), frozenset({"v"})), False, ("one",)),
        Ranked(
            below, ("k",), (Named("place", Expression(Sql("RANK() OVER (ORDER BY v)"), Sql("INT"), frozenset({"v"}))),)
        ),
        Aggregate(below, (Named("g", K),), (TOTAL,), False),
        Distinct(below),
        Needed(below, "k = a", until=V, behind=BEHIND, checked=BEHIND),
        Stored("r", (Column("k", Sql("STRING")), Column("v", Sql("INT"))), TimeDomain.INTEGER, False, ("k",)),
        Piped(below, "part(1)"),
    ]
    return {type(node): node for node in found}


EXAMPLES = over(Window(S, Unbounded()))
CLASSES: tuple[type[Operator], ...] = (*get_args(nodes.Stream), *get_args(nodes.Relation))
FRAMES: tuple[type[FrameTraits], ...] = get_args(Frame)


def test_every_class_of_nodes_has_an_example() -> None:
    assert set(EXAMPLES) == set(CLASSES)


@pytest.mark.parametrize("kind", [*CLASSES, *FRAMES], ids=lambda kind: kind.__name__)
def test_no_class_forgets_a_question(kind: type[Operator] | type[FrameTraits]) -> None:
    assert not kind.__abstractmethods__
    if issubclass(kind, Operator):
        assert isinstance(kind.inputs, tuple)
        assert issubclass(kind, StreamOperator) == (kind in get_args(Stream))


QUESTIONS = sorted(
    name
    for asked in (Operator, StreamOperator, RelationOperator)
    for name in asked.__abstractmethods__
    if isinstance(getattr(asked, name), property)
)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_question_has_an_answer(kind: type[Operator]) -> None:
    node = EXAMPLES[kind]
    for question in QUESTIONS:
        if hasattr(kind, question):
            getattr(node, question)
    assert len(node.carried) == len(node.children)
    assert node.label
    assert node.shown_at(7, lambda sql, instant: None) >= 7
    assert node.with_own_names(node.own_names) == node
    assert names(node)[len(names(node)) - len(node.own_names) :] == node.own_names
    assert node.with_outputs({name.lower() for name in names(node)}, lambda expression: True) == node


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_names_of_columns_do_not_tell_nodes_apart(kind: type[Operator]) -> None:
    """Every expression and column that a node reads is renamed in its anonymous form, so none is forgotten."""
    node = EXAMPLES[kind]
    if not node.children:
        return
    plain = Window(S, Unbounded())
    under = {"k": "p", "v": "q"}
    renaming = _Renamed(under)
    again = _with_stream_below(kind, renamed(plain, ("p", "q")))
    same = node.reading(renaming).over(again)
    assert names(same) != names(node) or not set(names(node)) & set(under)
    assert anonymous(same, {}) == anonymous(node, {})


def _with_stream_below(kind: type[Operator], below: Relation) -> tuple[Node, ...]:
    return over(below)[kind].children


class _Renamed(nodes.operator.Change):
    """Columns under other names, word by word: the texts of the examples allow it."""

    def __init__(self, under: dict[str, str]) -> None:
        self.under = under

    def __call__(self, value):  # type: ignore[no-untyped-def]
        columns = frozenset(self.under.get(name, name) for name in value.columns)
        words = {old: new for old, new in self.under.items() if old in value.columns}
        if isinstance(value, Call):
            condition = sql(_worded(value.condition or "", words))
            arguments = tuple(map(self, value.arguments))
            return replace(
                value, sql=sql(_worded(value.sql, words)), columns=columns, condition=condition, arguments=arguments
            )
        column = None if value.column is None else self.under.get(value.column, value.column)
        return replace(value, sql=sql(_worded(value.sql, words)), columns=columns, column=column)


def _worded(sql: str, words: dict[str, str]) -> str:
    return re.sub(r"\b[a-z]+\b", lambda word: words.get(word[0], word[0]), sql)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_plan_that_reads_a_missing_column_is_not_complete(kind: type[Operator]) -> None:
    node = EXAMPLES[kind]
    assert complete(node)
    for found in node.expressions:
        assert found.columns <= {"k", "v", "a", "b"}
    missing = _Renamed({"k": "nowhere", "v": "nothing"})
    if node.expressions:
        assert not complete(node.reading(missing))


def test_the_columns_that_a_frame_reads_are_named() -> None:
    swap = {"k": "p"}.get
    for frame in (Rows(1, ("k",)), Values("k", Sql("k"), Sql("1"), True), Passed("k", Sql("k"), True)):
        assert frame.deciding == {"k"}
        assert frame.renamed(lambda name: swap(name, name)) != frame
    final = Final((), Sql("k"), frozenset({"k"}), None)
    assert final.renamed(lambda name: swap(name, name)) is None
    for still in (Now(), Unbounded(), Range(1, None, True)):
        assert still.renamed(lambda name: swap(name, name)) == still


# no guessing


def node_classes() -> set[str]:
    return {kind.__name__ for kind in CLASSES}


def silent(tree: ast.AST) -> list[int]:
    """The lines of `match`es over plan nodes whose last case takes anything and does not say that it never happens."""
    found = []
    for match in (one for one in ast.walk(tree) if isinstance(one, ast.Match)):
        patterns = [part for case in match.cases for part in ast.walk(case.pattern) if isinstance(part, ast.MatchClass)]
        over_nodes = {one.cls.id for one in patterns if isinstance(one.cls, ast.Name)} & node_classes()
        anything = [
            case
            for case in match.cases
            if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None
        ]
        if over_nodes and any("assert_never" not in ast.unparse(case) for case in anything):
            found.append(match.lineno)
    return found


def test_no_match_over_nodes_has_a_silent_default() -> None:
    wrong = [
        f"{file.relative_to(SOURCE)}:{line}"
        for file in sorted(SOURCE.rglob("*.py"))
        if file != DISPATCH and "exp.Select" not in (text := file.read_text(encoding="utf-8"))
        for line in silent(ast.parse(text))
    ]
    assert not wrong, wrong


def test_a_silent_default_would_be_found() -> None:
    assert silent(ast.parse("match node:\n    case Filter():\n        pass\n    case _:\n        pass")) == [1]
    assert not silent(
        ast.parse("match node:\n    case Filter():\n        pass\n    case _:\n        assert_never(node)")
    )
