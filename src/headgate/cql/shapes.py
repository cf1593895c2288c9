"""Queries of one shape: texts that differ only in the constants with which columns are compared.

    SELECT * FROM ticks WHERE symbol = 'A' AND price > 10
    SELECT * FROM ticks WHERE symbol = 'B' AND price > 12.5

Both are the shape `symbol = _members.c1 AND price > _members.c2`, the first with the constants 'A' and 10. A shape with
a relation of constants is a family (`families`): one query in the place of many, which differ in the row that they are.

Windows may differ in their lengths as well, if the family lists them (`with_lengths`): the length is one more constant
of the member, and its column has a CHECK with the list.

No value of a tuple makes a query of a family fail (`NEVER_FAIL`): if it could, one member would stop all others.

A constant is taken out of the text where it cannot decide about a type: where WHERE, HAVING or ON compare it with a
column, or a number with an aggregate, or compare a sum or a product of it and a double. Everything else that a query's
meaning depends on is part of the shape: the settings, the streams, relations and views as they are defined then, and
where its answers go.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection
from copy import copy
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, TypeAlias

from sqlglot import exp

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Family, Query, Relation, Stream, View
from headgate.cql.binder import BoundQuery, bind
from headgate.cql.families import Members, over_members
from headgate.cql.script import parse, spans
from headgate.cql.syntax import CreateQuery, StreamOf, StreamWindow
from headgate.cql.trees import unaliased
from headgate.errors import UserError
from headgate.plan.derived import fresh
from headgate.plan.lives import has_lives
from headgate.plan.nodes import MEMBERS, Now, Scan, Window, children, domain, names, sources
from headgate.plan.nodes import Node as Plan
from headgate.plan.scopes import scopes
from headgate.sql import BIGINT, Column, Sql, checked_type, name
from headgate.ticks import TimeDomain

MEMBER = "number"
"""The column of the relation that holds the number of a member."""

MOST_LENGTHS = 8
"""So many combinations of lengths may the windows of one family have."""

Entry: TypeAlias = Stream | Relation | View

Lengths: TypeAlias = tuple[tuple[int, ...], ...]
"""The combinations of lengths that the windows of a family may have, each with a number for each window."""

COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Between)
AROUND = (exp.And, exp.Or, exp.Not, exp.Paren)
"""What may stand between a comparison and the clause that it belongs to."""

DOUBLE, UNKNOWN = "DOUBLE", "unknown"
"""The type that arithmetic is done in, and that of an alias of which it is not known."""

NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)

NEVER_FAIL = (
    *(exp.Select, exp.From, exp.Join, exp.Where, exp.Having, exp.Group, exp.Order, exp.Ordered, exp.Limit, exp.Offset),
    *(exp.Distinct, exp.SetOperation, exp.Subquery, exp.Table, exp.TableAlias, exp.With, exp.CTE, exp.Exists),
    *(exp.Alias, exp.Identifier, exp.Column, exp.Star, exp.Literal, exp.Boolean, exp.Null, exp.Var, exp.Tuple),
    *(*AROUND, *COMPARISONS, exp.In, exp.Is, exp.Like, exp.Case, exp.If, exp.Coalesce, exp.Upper, exp.Lower),
    *(*AGGREGATES, exp.Filter, exp.Window, exp.WindowSpec, exp.RowNumber, StreamOf, StreamWindow),
)
"""What a query of a family may be made of: no value makes it fail, so that no member can stop the others."""

ARITHMETIC = (exp.Add, exp.Sub, exp.Mul)
"""Of doubles these do not fail either."""

DECIMAL, DECIMAL_DIGITS, DECIMAL_PLACES = "DECIMAL(20,6)", 14, 6
"""The type of constants with a decimal point, and how many digits they may have before and behind it."""


NAMED = re.compile(r"^\s*CREATE\s+QUERY\s+\S+", re.IGNORECASE)
CONSTANT = re.compile(r"\[[^][]*]|'[^']*'|\b[0-9][\w.]*")
"""A constant, or a window: queries whose windows differ are of different shapes."""

LENGTH = re.compile(r"\b(RANGE|ROWS)\s+[0-9]+(?![\w.])", re.IGNORECASE)
"""The length of a window."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What a query has in common with others, and the constants that are its own."""

    key: tuple[Any, ...]
    """Equal for queries of the same shape."""

    wide: tuple[Any, ...]
    """Equal for queries that differ in the lengths of windows too."""

    windows: tuple[int, ...]
    """The lengths of its windows that are whole numbers."""

    types: tuple[str, ...]
    """The types of its constants, in the order in which they stand in the text."""

    values: tuple[Any, ...]
    entries: tuple[Entry, ...]
    """What it reads; the key holds their identities."""

    catalog: Catalog = field(repr=False)
    """What was defined when the query was."""

    origin: str = ""
    lengths: Lengths = ()
    """The lengths that its family lists; empty if all have its own."""


@dataclass(frozen=True, slots=True)
class Alike:
    """The statements of a script that are like one of them."""

    same: int = 1
    """How many differ from it in constants only, with itself."""

    similar: int = 1
    """How many differ from it in constants and lengths of windows only, with itself; 1 if the lengths are too many."""

    texts: tuple[str, ...] = ()
    """One of them for each combination of lengths; none if there is one only, or too many."""

    def lengths(self) -> set[tuple[int, ...]]:
        """The lengths of the windows in each of the texts."""
        found = set()
        for text in self.texts:
            try:
                tree = parse(text)[0]
            except UserError:
                continue  # it is said when it is compiled
            query = tree.args["query"] if isinstance(tree, CreateQuery) else tree
            found.add(tuple(int(window.args[part]) for window, part in lengths_in(query)))
        return found


class Script:
    """The statements of a script, by what they have in common."""

    def __init__(self, text: str) -> None:
        self._same: Counter[str] = Counter()
        self._similar: Counter[str] = Counter()
        self._texts: dict[str, dict[str, str]] = {}
        """By the words without constants and lengths: by the words without constants, one of the texts."""
        try:
            statements = [text[place.start : place.end] for place in spans(text)]
        except UserError:
            statements = []  # what is wrong with it is said when it is compiled
        for statement in statements:
            words = without_constants(statement)
            wide = _without_lengths(words)
            self._same[words] += 1
            self._similar[wide] += 1
            self._texts.setdefault(wide, {}).setdefault(words, statement)

    def alike(self, statement: str) -> Alike:
        """The statements that are like one of them."""
        words = without_constants(statement)
        wide = _without_lengths(words)
        texts = self._texts.get(wide, {})
        if not 1 < len(texts) <= MOST_LENGTHS:
            return Alike(self._same[words])
        return Alike(self._same[words], self._similar[wide], tuple(texts.values()))


def found(
    tree: exp.Expression, created: CreateQuery | None, catalog: Catalog, origin: str
) -> tuple[Shape, exp.Expression] | None:
    """The shape of a query, and its tree with columns of the member in the place of constants; None if it has none."""
    if "early" in tree.meta or catalog.settings.families == "off" or catalog.settings.heartbeats != "query":
        return None
    entries = _entries(tree, catalog)
    if entries is None:
        return None
    types = _types(tree, entries)
    if any(
        kind.startswith("DECIMAL") and _precision(kind) > DECIMAL_DIGITS for some in types.values() for kind in some
    ):
        return None
    if not all(_never_fails(node, types) for node in tree.walk()):
        return None
    slotted = tree.copy()
    constants: list[tuple[str, Any]] = []
    for node in list(slotted.find_all(*COMPARISONS)):
        if _is_condition(node):
            _take_out(node, types, constants)
    if not constants:
        return None
    kinds, values = tuple(kind for kind, _ in constants), tuple(value for _, value in constants)
    into = (
        (created.args.get("format"), bool(created.args.get("from_beginning"))) if created is not None else (None, False)
    )
    windows = lengths_in(slotted)
    numbers = [window.args[part] for window, part in windows]
    for window, part in windows:
        window.set(part, "0")
    wide = (
        slotted.sql("cql"),
        kinds,
        catalog.settings,
        tuple(map(id, catalog.functions.values())),
        tuple(map(id, entries)),
        into[0].name.lower() if into[0] is not None else "",
        into[1],
        tuple(sorted(catalog.declarations.groupings)),
    )
    for (window, part), number in zip(windows, numbers, strict=True):
        window.set(part, number)
    own = tuple(map(int, numbers))
    return Shape((*wide, own), wide, own, kinds, values, entries, catalog, origin), slotted


def without_constants(statement: str) -> str:
    """The words of a statement without the name of its query and without constants."""
    return CONSTANT.sub(_kind_of, NAMED.sub("", statement)).strip()


def _without_lengths(words: str) -> str:
    return LENGTH.sub(r"\1 0", words)


def _kind_of(found: re.Match[str]) -> str:
    """What stands for a constant: a text, a whole number or another number. With other types, shapes are others too."""
    text = found[0]
    return text if text[0] == "[" else "''" if text[0] == "'" else "0" if text.isdigit() else "0.0"


def kept(shape: Shape) -> Shape:
    """The shape with what is defined now, whatever is defined later."""
    now = copy(shape.catalog)
    now.streams, now.relations, now.views = dict(now.streams), dict(now.relations), dict(now.views)
    now.functions, now.permissions = dict(now.functions), None
    return replace(shape, catalog=now)


def with_lengths(shape: Shape, lengths: Lengths) -> Shape:
    """The shape for a family that lists the lengths of windows: those that differ are constants of the member."""
    own = values_of(shape, lengths)
    more = ("INT",) * (len(own) - len(shape.values))
    return replace(shape, key=shape.wide, types=(*shape.types, *more), values=own, lengths=lengths)


def values_of(shape: Shape, lengths: Lengths) -> tuple[Any, ...]:
    """The constants of a query as a member of a family that lists the lengths of windows."""
    return (*shape.values, *(shape.windows[windows[0]] for windows, _ in _slots(lengths)))


def may_be_listed(lengths: Collection[tuple[int, ...]]) -> bool:
    """Whether a family may list these lengths."""
    if len({len(one) for one in lengths}) != 1:
        return False
    return math.prod(len(values) for _, values in _slots(tuple(sorted(lengths)))) <= MOST_LENGTHS


def _slots(lengths: Lengths) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The windows that have the same length in every combination, if it is not always one, and which it can be."""
    windows: dict[tuple[int, ...], list[int]] = {}
    for window, own in enumerate(zip(*lengths, strict=True)):
        windows.setdefault(own, []).append(window)
    return [(tuple(same), tuple(sorted(set(own)))) for own, same in windows.items() if len(set(own)) > 1]


def lengths_in(tree: exp.Expression) -> list[tuple[StreamWindow, str]]:
    """Where a query says the length of a window by a whole number."""
    return [
        (window, part)
        for window in tree.find_all(StreamWindow)
        for part in ("amount", "range")
        if window.args["kind"] in ("RANGE", "ROWS")
        and window.args.get("on") is None
        and isinstance(number := window.args.get(part), str)
        and number.isdigit()
        and int(number) < 2**31
    ]


def _with_slots(tree: exp.Expression, shape: Shape) -> tuple[exp.Expression, dict[str, Sql]]:
    """The tree with columns of the member in the place of lengths, and the CHECKs of these columns."""
    tree, checks = tree.copy(), dict[str, Sql]()
    windows, slots = lengths_in(tree), _slots(shape.lengths)
    for number, (same, values) in enumerate(slots, len(shape.types) - len(slots) + 1):
        checks[f"c{number}"] = f"{name(f'c{number}')} IN ({', '.join(Sql(f'{value}') for value in values)})"
        for position in same:
            window, part = windows[position]
            window.set(part, exp.column(f"c{number}", MEMBERS))
    return tree, checks


def fits(query: Query) -> bool:
    """Whether a query can be one of a family: it sees all sources of its streams, and waits for all of them.

    One with a constraint that is detected has answers of its own where a tuple breaks it.
    """
    return not query.by_groups and query.family is None and not scopes(query.plan) and not has_lives(query.plan)


def bind_found(tree: exp.Expression, query: Query, shape: Shape) -> tuple[BoundQuery, Family] | None:
    """Bind the family of a shape; None if its queries have to run alone. `query` is one of them, bound by itself."""
    tree, checks = _with_slots(tree, shape)
    named = [(f"c{number}", kind) for number, kind in enumerate(shape.types, 1)]
    columns = (
        Column(MEMBER, BIGINT),
        *(Column(name, checked_type(kind), check=checks.get(name)) for name, kind in named),
    )
    catalog = copy(shape.catalog)
    catalog.relations = {**catalog.relations, MEMBERS: Relation(MEMBERS, columns, domain(query.plan))}
    catalog.permissions = None
    flowing = query.ordering == "needed" and query.plan.flowing and len(sources(query.plan)) == 1
    if query.plan.flowing and not _show_one_instant(tree):
        return None
    outputs = {name.lower() for name in names(query.plan)}
    shown = tuple(fresh(f"member_{column.name}", outputs) for column in columns)
    members = Members(MEMBERS, columns, repeated=False)
    try:
        written = over_members(tree, query.text, catalog, shape.origin, members, shown)
        bound = bind(written, query.text, catalog, shape.origin)
    except UserError:
        return None
    if names(bound.plan) != (*shown, *names(query.plan)) or domain(bound.plan) is TimeDomain.ARRIVAL:
        return None
    text = written.sql("cql", pretty=True)
    return bound, Family(MEMBERS, tuple(column.name for column in columns), shown, text, flowing)


def takes_later(plan: Plan) -> bool:
    """Whether a member that comes later answers as it would alone: it depends on no tuple of before, and on no row that
    was there before it.
    """
    if plan.opens or any(not isinstance(source, Scan) and source.name != MEMBERS for source in sources(plan)):
        return False
    return all(
        isinstance(above, Window) and isinstance(above.frame, Now)
        for above, below in _edges(plan)
        if isinstance(below, Scan)
    )


def _edges(plan: Plan) -> list[tuple[Plan, Plan]]:
    """Every node of a plan with each of its children."""
    return [edge for child in children(plan) for edge in ((plan, child), *_edges(child))]


def _entries(tree: exp.Expression, catalog: Catalog) -> tuple[Entry, ...] | None:
    """The streams, relations and views that a query names; None if one is unknown, or a name is its own."""
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    found: dict[str, Entry] = {}
    for table in tree.find_all(exp.Table):
        name = table.name.lower()
        if name in own:
            continue
        if not name or not isinstance(table.this, exp.Identifier) or not catalog.has_source(name):
            return None
        found[name] = catalog.source(name)
        if name in catalog.system:
            return None  # few queries read what the engine says of itself, and they must be told apart
    return tuple(found.values()) or None


def _columns(entry: Entry) -> tuple[Column, ...]:
    return entry.plan.columns if isinstance(entry, View) else entry.columns


def _types(tree: exp.Expression, entries: tuple[Entry, ...]) -> dict[str, set[str]]:
    """The types that a column may have, by its name: those of what is read, and of aliases that are known."""
    types: dict[str, set[str]] = {}
    for column in (column for entry in entries for column in _columns(entry)):
        types.setdefault(column.name.lower(), set()).add(column.type.upper())
    read = {name: frozenset(kinds) for name, kinds in types.items()}
    for alias in tree.find_all(exp.Alias):
        of = alias.this
        below = read.get(of.this.name.lower(), frozenset()) if isinstance(of, exp.Avg | exp.Sum) else frozenset[str]()
        is_double = below == {DOUBLE} or (isinstance(of, exp.Avg) and bool(below) and below <= set(NUMBERS))
        known = read.get(of.name.lower()) if isinstance(of, exp.Column) else None
        types.setdefault(alias.alias.lower(), set()).update({DOUBLE} if is_double else known or {UNKNOWN})
    return types


def _precision(kind: str) -> int:
    digits = kind.removeprefix("DECIMAL").strip("() ").partition(",")[0]
    return int(digits) if digits.isdigit() else 10


def _never_fails(node: exp.Expression, types: dict[str, set[str]]) -> bool:
    """Whether a node of a query computes something for every value there is."""
    if isinstance(node, exp.Neg):
        return isinstance(node.this, exp.Literal)
    if isinstance(node, ARITHMETIC):
        return all(types.get(column.name.lower()) == {DOUBLE} for column in node.find_all(exp.Column))
    if isinstance(node, (*COMPARISONS, exp.In)):
        compared = {kind for side in node.iter_expressions() if (kind := _kind(side, types)) is not None}
        return len(compared) <= 1  # otherwise one is read as the other
    return isinstance(node, NEVER_FAIL)


def _kind(node: exp.Expression, types: dict[str, set[str]]) -> str | None:
    """What kind of value a constant or a column is; None if that is not known."""
    if isinstance(node, exp.Neg | exp.Literal):
        return "STRING" if node.is_string else "a number"
    if not isinstance(node, exp.Column):
        return None
    found = types.get(node.name.lower(), set())
    return "a number" if all(kind in NUMBERS or kind.startswith("DECIMAL") for kind in found) else "/".join(found)


def _is_condition(node: exp.Expression) -> bool:
    """Whether a comparison is a condition of WHERE, HAVING or ON, or one of several joined by AND, OR and NOT."""
    below, above = node, node.parent
    while isinstance(above, AROUND):
        below, above = above, above.parent
    return isinstance(above, exp.Where | exp.Having) or (isinstance(above, exp.Join) and below.arg_key == "on")


def _take_out(node: exp.Expression, types: dict[str, set[str]], constants: list[tuple[str, Any]]) -> None:
    """Put columns of the member in the place of the constants of a comparison."""
    if isinstance(node, exp.Between):
        sides = [(node.args["low"], node.this), (node.args["high"], node.this)]
    else:
        sides = [(node.this, node.expression), (node.expression, node.this)]
    for literal, other in sides:
        constant = _constant(literal, other, types)
        if constant is not None:
            constants.append(constant)
            literal.replace(exp.column(f"c{len(constants)}", MEMBERS))
        elif isinstance(literal, ARITHMETIC):
            _take_out_of_arithmetic(literal, types, constants)


def _take_out_of_arithmetic(node: exp.Expression, types: dict[str, set[str]], constants: list[tuple[str, Any]]) -> None:
    """Put columns of the member in the place of numbers that are added to doubles, or multiplied with them."""
    for number in list(node.find_all(exp.Literal)):
        above = number.parent
        if number.is_string or not isinstance(above, ARITHMETIC):
            continue
        other = above.expression if above.this is number else above.this
        constant = _number(str(number.this), 1, as_double=True)
        if constant is not None and _is_double(other, types):
            constants.append(constant)
            number.replace(exp.column(f"c{len(constants)}", MEMBERS))


def _is_double(node: exp.Expression, types: dict[str, set[str]]) -> bool:
    """Whether an expression is known to give a double."""
    if isinstance(node, exp.Paren):
        return _is_double(node.this, types)
    if isinstance(node, ARITHMETIC):
        return _is_double(node.this, types) or _is_double(node.expression, types)
    return isinstance(node, exp.Column) and types.get(node.name.lower()) == {DOUBLE}


def _constant(literal: exp.Expression, other: exp.Expression, types: dict[str, set[str]]) -> tuple[str, Any] | None:
    """The type and the value of a constant that is compared with something; None if it has to stay where it is."""
    sign = -1 if isinstance(literal, exp.Neg) else 1
    literal = literal.this if isinstance(literal, exp.Neg) else literal
    if not isinstance(literal, exp.Literal):
        return None
    against = types.get(other.name.lower(), set()) if isinstance(other, exp.Column) else set()
    if literal.is_string:
        return ("STRING", literal.this) if against == {"STRING"} and sign > 0 else None
    if not (against and all(kind in NUMBERS or kind.startswith("DECIMAL") for kind in against)) and not isinstance(
        other, AGGREGATES
    ):
        return None
    return _number(str(literal.this), sign, against == {DOUBLE})


def _number(text: str, sign: int, as_double: bool) -> tuple[str, Any] | None:
    """The type and the value of a number, as Spark reads it."""
    if not all(letter.isdigit() or letter in ".eE+-" for letter in text):
        return None
    if as_double or "e" in text.lower():
        return "DOUBLE", sign * float(text)
    if "." not in text:
        value = sign * int(text)
        if -(2**31) < value < 2**31:
            return "INT", value
        return ("BIGINT", value) if -(2**63) < value < 2**63 else None
    whole, _, places = text.partition(".")
    if len(whole) > DECIMAL_DIGITS or len(places) > DECIMAL_PLACES:
        return None
    return DECIMAL, sign * Decimal(text)


def _show_one_instant(tree: exp.Expression) -> bool:
    """Let a query that puts out each tuple by itself show it for its instant only; False if its form is not known.

    ISTREAM over all tuples and RSTREAM over those of this instant put out the same.
    """
    select = tree.args.get("query") if isinstance(tree, StreamOf) else tree
    if tree is not select or not isinstance(select, exp.Select) or select.args.get("joins"):
        return False
    table = select.args["from_"].this if select.args.get("from_") else None
    if not isinstance(table, exp.Table):
        return False
    only = unaliased(select.expressions[0])
    items = only.expressions if isinstance(only, StreamOf) else select.expressions
    table.set("window", StreamWindow(kind="NOW"))
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("window"):
        alias.set("window", None)
    select.set("expressions", [StreamOf(kind="RSTREAM", expressions=[item.copy() for item in items])])
    return True
