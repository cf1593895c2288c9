"""Random continuous queries and inputs, for the laws: every operator CQL has, nested, with nulls, duplicates and ties.

A query is built from the inside out: streams with windows, relations and views, then joins, groups and set operations
over them, then perhaps an operator that makes a stream of it, over which a window may stand again. The first choice of
every draw is the plainest one, which is where hypothesis shrinks to. What is drawn has one answer only: rows that LIMIT
or ROW_NUMBER could take in any order are ordered by all their columns, and a subquery that stands for a value has at
most one row.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from headgate.testing.cases import Case, NamedQuery, Row

STREAMS = {"S": {"A": "int", "B": "int", "D": "string"}, "T": {"A": "int", "C": "int"}}
RELATIONS = {"R": {"A": "int", "E": "int"}, "K": {"F": "int", "E": "int"}}
KEYS: dict[str, tuple[str, ...]] = {"K": ("F",)}
HORIZON = 14

small = st.one_of(st.none(), st.integers(0, 3))
numbers = st.one_of(st.none(), st.integers(-4, 9))
letters = st.sampled_from([None, "x", "y"])

row_s = st.tuples(small, numbers, letters)
row_t = st.tuples(small, numbers)


def seldom(times: int) -> st.SearchStrategy[bool]:
    """True about once in `times` draws; not at an end of the range, which hypothesis draws too often."""
    return st.integers(0, times - 1).map(lambda drawn: drawn == times // 2)


@st.composite
def inputs(draw: st.DrawFn, most: int = 10) -> dict[str, list[tuple[int, Row, str]]]:
    """Random rows for all streams and relations, in the order of arrival."""
    result = {}
    for name, rows in (("S", row_s), ("T", row_t)):
        entries = draw(st.lists(st.tuples(st.integers(0, HORIZON - 2), rows), max_size=most))
        result[name] = [(ts, row, "+") for ts, row in sorted(entries, key=lambda entry: entry[0])]
    lives = draw(st.lists(st.tuples(st.integers(0, HORIZON - 3), st.integers(1, 8), row_t), max_size=most // 2 + 1))
    put = [(start, row, "+") for start, _, row in lives]
    taken = [(start + length, row, "-") for start, length, row in lives if start + length < HORIZON]
    result["R"] = sorted([*put, *taken], key=lambda entry: (entry[0], entry[2]))
    changes = draw(
        st.lists(st.tuples(st.integers(0, HORIZON - 2), row_t, st.sampled_from("++-")), max_size=most // 2 + 1)
    )
    result["K"] = sorted(changes, key=lambda entry: entry[0])
    return result


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of an entry of FROM: those that are numbers, of which there is at least one, and the others."""

    numbers: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def first(self) -> str:
        """The first column that is a number."""
        return self.numbers[0]

    @property
    def last(self) -> str:
        """The last column that is a number."""
        return self.numbers[-1]

    @property
    def every(self) -> tuple[str, ...]:
        """All columns."""
        return (*self.numbers, *self.others)


SHAPES = {
    "S": Columns(("A", "B"), ("D",)),
    "T": Columns(("A", "C")),
    "R": Columns(("A", "E")),
    "K": Columns(("F", "E")),
}
Views = tuple[tuple[str, Columns], ...]


@st.composite
def windows(draw: st.DrawFn, columns: Columns) -> str:
    """A window in brackets."""
    length, slide, count, step = (draw(st.integers(low, high)) for low, high in ((0, 6), (1, 5), (1, 3), (1, 3)))
    by = draw(st.sampled_from([columns.first, ", ".join(columns.every[:2]), columns.last]))
    return draw(
        st.sampled_from(
            [
                "",
                " [Now]",
                " [Range Unbounded]",
                f" [Range {length}]",
                f" [Range {length}]",
                f" [Range {length} Slide {slide}]",
                f" [Range {count * slide} Slide {slide}]",
                f" [Rows {count}]",
                f" [Partition By {by} Rows {count}]",
                f" [Partition By {by} Rows {count} Range {length}]",
                f" [Rows {count} Slide {step}]",
                f" [Partition By {by} Rows {count} Slide {step}]",
                f" [Rows {count} Slide {slide} Seconds]",
                f" [Partition By {by} Rows {count} Range {length} Slide {slide}]",
                f" [Range {length} On {columns.last}]",
                " [Rows Unbounded]",
            ]
        )
    )


@st.composite
def tables(draw: st.DrawFn, depth: int, views: Views = ()) -> tuple[str, Columns]:
    """An entry of FROM and its columns."""
    deeper = ["query", "query", "stream", "final"] if depth > 0 else []
    kinds = ["S", "S", "T", "R", "K", *(["view", "view"] if views else []), *deeper]
    kind = draw(st.sampled_from(kinds))
    if kind == "final":
        text, columns = draw(finals(depth - 1))
        return f"({text}){draw(windows(columns))}", columns
    if kind in RELATIONS:
        return kind, SHAPES[kind]
    if kind in STREAMS:
        sample = f" Sample {draw(st.integers(0, 100))} Percent Repeatable ({draw(st.integers(0, 3))})"
        return f"{kind}{sample if draw(seldom(8)) else ''}{draw(windows(SHAPES[kind]))}", SHAPES[kind]
    if kind == "view":
        return draw(st.sampled_from(views))
    text, columns = draw(selects(depth - 1, views))
    if kind == "stream":
        operator, every = draw(operators())
        return f"({operator}({text}){every}){draw(windows(columns))}", columns
    return f"({text})", columns


@st.composite
def paned(draw: st.DrawFn) -> tuple[str, Columns]:
    """An entry of FROM whose rows all begin and end to count at the multiples of one slide."""
    slide, several = draw(st.integers(1, 4)), st.integers(1, 3)
    one, two = (
        f"[Range {draw(st.one_of(several.map(lambda panes: panes * slide), st.integers(0, 7)))} Seconds Slide {slide} Seconds]"
        for _ in "12"
    )
    name, other = draw(st.sampled_from([("S", "T"), ("T", "S")]))
    shape, theirs = SHAPES[name], SHAPES[other]
    rows = f"Select i.{shape.first} As a, i.{shape.last} As b From {name} {one} i"
    kind = draw(st.sampled_from(["window", "window", "selection", "union", "lateral", "derived"]))
    if kind == "window":
        return f"{name} {one}", shape
    if kind == "selection":
        rows += f" Where {draw(st.sampled_from(CONDITIONS)).format(f'i.{shape.last}')}"
    if kind == "union":
        rows += f" Union All Select i.{theirs.first} As a, i.{theirs.last} As b From {other} {two} i"
    if kind == "lateral":
        rows = f"Select i.{shape.first} As a, e.v As b From {name} {one} i Lateral View Explode(Array(i.{shape.last}, 1)) e As v"
    if kind == "derived":
        rows = f"Select * From (Istream(Select i.{shape.first} As a, i.{shape.last} As b From {name} i)) {one}"
    return f"({rows})", Columns(("a", "b"))


@st.composite
def operators(draw: st.DrawFn) -> tuple[str, str]:
    """An operator that makes a stream, and what stands behind it."""
    operator = draw(st.sampled_from(["Istream", "Istream", "Dstream", "Rstream"]))
    every = f" Every {draw(st.integers(1, 4))}" if operator == "Rstream" and draw(st.booleans()) else ""
    return operator, every


CONDITIONS = [
    "{0} > 1",
    "{0} Is Not Null",
    "{0} <> 2 Or {0} Is Null",
    "Coalesce({0}, 0) < 4",
    "Not ({0} = 2)",
    "{0} In (1, 2, 3)",
    "{0} Between 0 And 2",
    "Case When {0} > 2 Then {0} < 5 Else {0} Is Null End",
]
VALUES = [
    "{0}",
    "{0} + 1",
    "Coalesce({0}, 0)",
    "{0} / 2",
    "10 / {0}",
    "{0} % 2",
    "10 % {0}",
    "10 Div {0}",
    "Mod(7, {0} - 2)",
    "Case When {0} > 1 Then 1 Else {0} End",
    "-{0}",
]


@st.composite
def conditions(draw: st.DrawFn, columns: Columns, depth: int, views: Views, alias: str = "x") -> str:
    """A condition over some columns, perhaps with a subquery."""
    first, last = f"{alias}.{columns.first}", f"{alias}.{columns.last}"
    if depth > 0 and draw(seldom(3)):
        return draw(predicates(first, last, depth, views))
    chosen = draw(st.sampled_from([first, last]))
    simple = draw(st.sampled_from(CONDITIONS)).format(chosen)
    return draw(st.sampled_from([simple, simple, f"{simple} And {first} Is Not Null", f"({simple}) Or {last} = 3"]))


@st.composite
def wheres(draw: st.DrawFn, columns: Columns, depth: int, views: Views) -> str:
    """A WHERE clause, or nothing."""
    return f" Where {draw(conditions(columns, depth, views))}" if draw(st.booleans()) else ""


@st.composite
def predicates(draw: st.DrawFn, first: str, last: str, depth: int, views: Views) -> str:
    """A condition with a subquery, correlated or not."""
    table, columns = draw(tables(depth - 1 if draw(st.booleans()) else 0, views))
    a, b = columns.first, columns.last
    further = f" And Exists (Select * From R w Where w.A = z.{a} And w.E < {last})"
    ties = [
        "",
        f" Where z.{a} = {first}",
        f" Where z.{b} < {last}",
        f" Where z.{b} > 1",
        f" Where z.{a} = {first}{further}",
    ]
    tie = draw(st.sampled_from(ties))
    inner = f"(Select z.{a} From {table} z{tie})"
    value = draw(scalars(table, columns, tie))
    grouped = f"(Select z.{a} From {table} z Group By z.{a} Having Count(*) > 1)"
    rows = f"(Select z.{a}, z.{b} From {table} z)"  # correlated, DuckDB cannot judge rows of values
    simple = draw(
        st.sampled_from(
            [
                f"{first} In {inner}",
                f"{first} Not In {inner}",
                f"Exists (Select * From {table} z{tie})",
                f"Not Exists (Select * From {table} z{tie})",
                f"{last} >= All {inner}",
                f"{last} = Any {inner}",
                f"{last} <> All {inner}",
                f"{last} < {value}",
                f"({first}, {last}) In {rows}",
                f"({first}, {last}) Not In {rows}",
                f"{first} In {grouped}",
                f"({first}, {last}) In (R)",
                f"({first}, {last}) Not In (R)",
            ]
        )
    )
    return draw(st.sampled_from([simple, simple, f"({simple} Or {last} = 3)", f"Not ({simple}) And {first} > 0"]))


@st.composite
def scalars(draw: st.DrawFn, table: str, columns: Columns, tie: str) -> str:
    """A subquery that stands for a value."""
    a, b = columns.first, columns.last
    total = draw(
        st.sampled_from([f"Max(z.{b})", "Count(*)", f"Sum(z.{b}) + 1", f"Avg(z.{a})", f"Count(Distinct z.{b})"])
    )
    return f"(Select {total} From {table} z{tie})"


AGGREGATES = [
    "Count(*)",
    "Count({0})",
    "Sum({0})",
    "Avg({0})",
    "Min({0})",
    "Max({0})",
    "Count(Distinct {0})",
    "Sum(Distinct {0})",
    "Sum({0} * 2)",
    "Sum({0} + {1})",
    "Count({0} > 1 Or {1} > 1)",
    "Sum({0}) / Count(*)",
    "Max({0}) - Min({0})",
    "Sum({0}) Filter (Where {0} > 1)",
    "Count(*) Filter (Where {1} = 1)",
    "Coalesce(Sum({0}), 0) + 1",
    "Median({0})",
    "Count_If({0} > 1)",
    "Max({1} + {0})",
    "First({0})",
    "Last({0})",
    "First({0}) Ignore Nulls",
    "Last_Value({0}) Ignore Nulls",
    "Any_Value({0})",
    "Max_By({0}, {1})",
    "Min_By({0}, {1})",
    "Last({0}) Filter (Where {1} > 0)",
]


@st.composite
def aggregates(draw: st.DrawFn, columns: Columns) -> tuple[str, ...]:
    """Some aggregate calls."""
    calls = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3))
    return tuple(call.format(f"x.{columns.last}", f"x.{columns.first}") for call in calls)


@st.composite
def groups(draw: st.DrawFn, depth: int, views: Views) -> tuple[str, Columns]:
    """A query with GROUP BY, and its columns."""
    table, columns = draw(paned() if draw(seldom(3)) else tables(depth, views))
    where = draw(wheres(columns, depth, views))
    calls = draw(aggregates(columns))
    first, last, names = f"x.{columns.first}", f"x.{columns.last}", tuple(f"v{i}" for i in range(len(calls)))
    chosen = ", ".join(f"{call} As {name}" for call, name in zip(calls, names, strict=True))
    having = draw(st.sampled_from(["", "", " Having Count(*) > 1", f" Having Sum({last}) > 2 Or Count(*) = 1"]))
    if depth > 0 and draw(seldom(6)):
        other, others = draw(tables(0, views))
        having = draw(
            st.sampled_from(
                [
                    f" Having Count(*) >= (Select Count(*) From {other} z)",
                    f" Having Exists (Select * From {other} z Where z.{others.first} = {first})",
                    f" Having {first} Not In (Select z.{others.first} From {other} z)",
                ]
            )
        )
    kind = draw(st.sampled_from(["key", "key", "total", "expression", "two", "without", "sets", "beside", "lists"]))
    if kind == "total":
        return f"Select {chosen} From {table} x{where}", Columns(names)
    if kind == "expression":
        key = draw(st.sampled_from(["{0} + 1", "Coalesce({0}, 0)", "{0} / 2"])).format(first)
        return f"Select {key} As k, {chosen} From {table} x{where} Group By {key}", Columns(("k", *names))
    if kind == "two":
        other = f"x.{columns.every[-1]}"
        text = f"Select {first} As k, {other} As l, {chosen} From {table} x{where} Group By {first}, {other}{having}"
        return text, Columns(("k", *names), ("l",))
    if kind == "without":  # without the key, rows of different groups may be equal
        return f"Select {chosen} From {table} x{where} Group By {first}{having}", Columns(names)
    if kind == "sets":
        sets = draw(
            st.sampled_from([f"Rollup ({first}, {last})", f"Cube ({first}, {last})", f"Grouping Sets (({first}), ())"])
        )
        plain = having if "(Select" not in having else ""
        text = f"Select {first} As k, Grouping({first}) As g, {chosen} From {table} x{where} Group By {sets}{plain}"
        return text, Columns(("k", "g", *names))
    if kind == "lists":
        lists = f"Collect_List({last}) As l, Collect_Set({last}) As m"
        return f"Select {first} As k, {lists} From {table} x{where} Group By {first}{having}", Columns(
            ("k",), ("l", "m")
        )
    if kind == "beside":
        other, others = draw(tables(0, views))
        value = draw(scalars(other, others, ""))
        return f"Select {first} As k, {chosen}, {value} As w From {table} x{where} Group By {first}", Columns(
            ("k", *names, "w")
        )
    return f"Select {first} As k, {chosen} From {table} x{where} Group By {first}{having}", Columns(("k", *names))


JOINS = [
    "",
    "Join",
    "Left Join",
    "Right Join",
    "Full Join",
    "Left Semi Join",
    "Left Anti Join",
    "Cross Join",
    "Using",
    "Natural",
]


@st.composite
def joins(draw: st.DrawFn, depth: int, views: Views) -> tuple[str, Columns]:
    """A query with a join, and its columns."""
    (table, columns), (other, others) = draw(tables(depth, views)), draw(tables(depth - 1 if depth > 0 else 0, views))
    first, last, theirs = f"x.{columns.first}", f"x.{columns.last}", f"y.{others.first}"
    on = draw(st.sampled_from([f"{first} = {theirs}", f"{first} = {theirs}", f"{first} < y.{others.last}"]))
    on += draw(
        st.sampled_from(["", f" And {last} <> {theirs}", f" And {last} > 0", f" And y.{others.last} Is Not Null"])
    )
    chosen, result = f"{first} As p, {last} As q, {theirs} As r", Columns(("p", "q", "r"))
    kind = draw(st.sampled_from(JOINS))
    shared = [name for name in columns.every if name.lower() in {their.lower() for their in others.every}]
    where = draw(wheres(columns, depth, views))
    if kind in ("Using", "Natural") and shared and set(shared) <= set(columns.numbers) & set(others.numbers):
        side = draw(st.sampled_from(["", "Left ", "Full "]))
        tie = f" Using ({shared[0]})" if kind == "Using" else ""
        natural = "Natural " if kind == "Natural" else ""
        one = shared[0]
        text = f"Select {one} As p, {last} As q, y.{others.last} As r From {table} x {natural}{side}Join {other} y{tie}"
        return text, result
    if kind in ("Left Semi Join", "Left Anti Join"):
        return f"Select {first} As p, {last} As q From {table} x {kind} {other} y On {on}{where}", Columns(("p", "q"))
    if kind == "Cross Join":
        return f"Select {chosen} From {table} x Cross Join {other} y{where}", result
    if kind not in ("", "Using", "Natural"):
        third = " Join R z On z.A = x." + columns.first if draw(seldom(5)) else ""
        return f"Select {chosen} From {table} x {kind} {other} y On {on}{third}{where}", result
    return f"Select {chosen} From {table} x, {other} y Where {on}", result


@st.composite
def set_operations(draw: st.DrawFn, depth: int, views: Views) -> tuple[str, Columns]:
    """A query with UNION, EXCEPT or INTERSECT, and its columns."""
    left, columns = draw(selects(depth - 1 if depth > 0 else 0, views))
    table, others = draw(tables(depth, views))
    kept = Columns(columns.numbers)
    chosen = ", ".join(f"y.{others.numbers[i % len(others.numbers)]} As {name}" for i, name in enumerate(kept.numbers))
    operator = draw(st.sampled_from(["Union All", "Union", "Except", "Except All", "Intersect", "Intersect All"]))
    text = f"(Select {', '.join(kept.numbers)} From ({left}) l) {operator} (Select {chosen} From {table} y)"
    if draw(seldom(6)):
        text += f" Order By {', '.join(kept.numbers)} Limit {draw(st.integers(1, 3))}"
    return text, kept


@st.composite
def analytics(draw: st.DrawFn, depth: int, views: Views) -> tuple[str, Columns]:
    """A query with analytic functions, and its columns."""
    table, columns = draw(tables(depth, views))
    where = draw(wheres(columns, depth, views))
    first, last, everything = (
        f"x.{columns.first}",
        f"x.{columns.last}",
        ", ".join(f"x.{name}" for name in columns.every),
    )
    by = f"Partition By {first}"
    function = draw(
        st.sampled_from(
            [
                f"Rank() Over ({by} Order By {last})",
                f"Sum({last}) Over ({by})",
                f"Dense_Rank() Over (Order By {last} Desc)",
                "Count(*) Over ()",
                f"Row_Number() Over ({by} Order By {everything})",
                f"Lag({last}) Over ({by} Order By {everything})",
                f"Lead({last}, 1, 0) Over (Order By {everything})",
                f"Sum({last}) Over (Order By {last})",
                f"Max({last}) Over w",
                f"Sum({last}) Over ({by} Order By {everything} Rows Between 1 Preceding And Current Row)",
                f"First_Value({last}) Over ({by} Order By {everything})",
            ]
        )
    )
    named = f" Window w As ({by})" if function.endswith("w") else ""
    qualify = (
        draw(st.sampled_from(["", "", f" Qualify Row_Number() Over ({by} Order By {everything}) = 1"]))
        if not named
        else ""
    )
    text = f"Select {first} As p, {last} As q, {function} As r From {table} x{where}{qualify}{named}"
    return text, Columns(("p", "q", "r"))


RISING = ["{0}", "{0} / 2", "{0} / 4", "{0} + 3", "{0} * 2", "({0} + 1) / 3", "{0} - {0} % 4"]
FALLING = ["-{0}", "10 - {0} / 2", "{0} / -3"]
temporal = st.sampled_from([*RISING, *RISING, *FALLING])
"""What grows or falls with time."""


@st.composite
def timed(draw: st.DrawFn, alias: str) -> tuple[str, str, Columns]:
    """An entry of FROM whose first column is bound to time: a stream, a selection of it, a merge, or a final result."""
    name, other = draw(st.sampled_from([("S", "T"), ("T", "S")]))
    shape, last = SHAPES[name], SHAPES[other].last
    kind = draw(st.sampled_from(["stream", "stream", "stream", "query", "merge", "derived", "final"]))
    if kind == "stream":
        return f"{name} {alias}", f"{alias}.ELEMENT_TIME", shape
    way = draw(st.sampled_from([RISING, RISING, FALLING]))
    value, again = (draw(st.sampled_from(way)).format("i.ELEMENT_TIME") for _ in "12")
    rows = f"Select {value} As m, i.{shape.first} As a, i.{shape.last} As b From {name} i"
    if kind == "merge":
        rows = f"{rows} Union All Select {again} As m, i.A As a, i.{last} As b From {other} i"
    if kind == "derived":
        rows = f"Istream({rows} Where i.{shape.last} > 0)"
    if kind == "final":
        rows = f"Select {value} As m, i.{shape.first} As a, Count(*) As b From {name} i Group By {value}, i.{shape.first} Emit Final"
    return f"({rows}) {alias}", f"{alias}.m", Columns(("a", "b"))


@st.composite
def finals(draw: st.DrawFn, depth: int) -> tuple[str, Columns]:
    """A query with EMIT FINAL, which gives a stream, and its columns."""
    table, time, columns = draw(timed("x"))
    where = f" Where {draw(conditions(columns, 0, ()))}" if draw(seldom(3)) else ""
    value = draw(temporal).format(time)
    if draw(st.booleans()):
        calls = draw(aggregates(columns))
        if "Emit Final" in table:  # tuples that are final at one instant have no order
            calls = tuple("Count(*)" if call.startswith(("First", "Last", "Any")) else call for call in calls)
        names = tuple(f"v{i}" for i in range(len(calls)))
        chosen = ", ".join(f"{call} As {name}" for call, name in zip(calls, names, strict=True))
        keys = draw(st.sampled_from(["", f", x.{columns.first}", ", " + draw(temporal).format(time)]))
        having = draw(st.sampled_from(["", "", " Having Count(*) > 1", f" Having Max(x.{columns.last}) > 1"]))
        text = f"Select {value} As k, {chosen} From {table}{where} Group By {value}{keys}{having} Emit Final"
        return text, Columns(("k", *names))
    other, their_time, others = draw(timed("y"))
    theirs = draw(temporal).format(their_time)
    on = f"{value} = {theirs}" + draw(st.sampled_from(["", f" And x.{columns.first} = y.{others.first}"]))
    side = draw(st.sampled_from(["Join", "Left Join", "Right Join", "Full Join"]))
    if draw(seldom(3)):
        key = draw(st.sampled_from(["{0}", "({0}) / 2", "-({0})"])).format(value)
        where = where if side in ("Join", "Left Join") else ""
        side = side if side in ("Join", "Left Join") else "Join"
        text = f"Select {key} As k, Count(*) As n, Max(y.{others.last}) As l From {table} {side} {other} On {on}{where} Group By {key} Emit Final"
        return text, Columns(("k", "n", "l"))
    text = f"Select {value} As k, x.{columns.last} As p, y.{others.last} As q From {table} {side} {other} On {on} Emit Final"
    return text, Columns(("k", "p", "q"))


@st.composite
def temporal_joins(draw: st.DrawFn) -> str:
    """An inner join of streams by values bound to time; rows are kept as long as they can find a partner."""
    (table, time, columns), (other, their_time, others) = draw(timed("x")), draw(timed("y"))
    value, theirs = (draw(temporal).format(one) for one in (time, their_time))
    more = draw(
        st.sampled_from(["", f" And x.{columns.first} = y.{others.first}", f" And x.{columns.last} < y.{others.last}"])
    )
    chosen = f"{value} As k, x.{columns.last} As p, y.{others.last} As q"
    text = f"Select {chosen} From {table}, {other} Where {value} = {theirs}{more}"
    counted = f"Select {value} As k, Count(*) As n, Max(x.{columns.last}) As l From {table}, {other} Where {value} = {theirs}{more} Group By {value}"
    return draw(st.sampled_from([text, text, f"Istream({text})", f"Dstream({text})", counted, f"Istream({counted})"]))


NEAR = [
    "Abs({0} - {1}) <= {2}",
    "{0} Between {1} And {1} + {2}",
    "{1} Between {0} - {2} And {0} + {3}",
    "{0} >= {1} - {2} And {0} <= {1}",
    "{0} - {1} < {2} And {0} > {1} - {3}",
    "-{2} < {0} - {1} And {1} >= {0}",
    "{0} - {1} Between -{2} And -1",
    "{0} <= {1}",
    "{1} - {0} > {2}",
    "{0} - {2} = {1}",
]
"""How far apart two times may lie, over both and two small numbers."""


@st.composite
def near_tables(draw: st.DrawFn, name: str, alias: str) -> tuple[str, str]:
    """An entry of FROM for a join by time, and the column that holds its time."""
    length, slide, last = draw(st.integers(0, 6)), draw(st.integers(1, 4)), SHAPES[name].last
    window = draw(
        st.sampled_from(
            [
                "",
                f" [Range {length}]",
                f" [Range {length}]",
                f" [Range {length + 6}]",
                " [Now]",
                f" [Range {length} Slide {slide}]",
                " [Range Unbounded]",
            ]
        )
    )
    kind = draw(st.sampled_from(["stream", "stream", "stream", "query", "derived"]))
    rows = f"Select i.A As A, i.{last} As {last}, i.ELEMENT_TIME As m From {name}{window} i"
    if kind == "query":
        return f"({rows} Where {draw(st.sampled_from(CONDITIONS)).format(f'i.{last}')}) {alias}", f"{alias}.m"
    if kind == "derived":
        return f"(Istream({rows})){window} {alias}", f"{alias}.m"
    return f"{name}{window} {alias}", f"{alias}.ELEMENT_TIME"


@st.composite
def near_joins(draw: st.DrawFn) -> str:
    """An inner join of time windows, perhaps of different lengths, perhaps with bounds of how far apart rows begin."""
    one, other = draw(st.sampled_from([("S", "T"), ("T", "S"), ("S", "S")]))
    (table, time), (second, theirs) = draw(near_tables(one, "x")), draw(near_tables(other, "y"))
    last, their_last = f"x.{SHAPES[one].last}", f"y.{SHAPES[other].last}"
    parts = draw(st.sampled_from([["x.A = y.A"], ["x.A = y.A"], [], [f"{last} < {their_last}"]]))
    if draw(st.booleans()):
        bounds = draw(st.integers(0, 4)), draw(st.integers(0, 3))
        parts = [*parts, draw(st.sampled_from(NEAR)).format(time, theirs, *bounds)]
    chosen = draw(
        st.sampled_from(
            [
                f"x.A As p, {last} As q, {their_last} As r",
                f"x.A As p, {last} As q, {their_last} As r",
                f"{last} As q, y.A As r",
                f"{last} + 1 As q, {their_last} As r",
                f"{time} As p, {their_last} As r",
            ]
        )
    )
    where = f" Where {' And '.join(parts)}" if parts else ""
    text = f"Select {chosen} From {table}, {second}{where}"
    counted = f"Select x.A As k, Count(*) As n, Max({their_last}) As l From {table}, {second}{where} Group By x.A"
    side = draw(st.sampled_from(["Left Join", "Left Semi Join", "Left Anti Join"]))
    outer = f"Select x.A As p, {last} As q From {table} {side} {second} On {' And '.join(parts) or 'True'}"
    outer = outer if "ELEMENT_TIME" not in " ".join(parts) else text  # a window's own time is known in WHERE only
    return draw(
        st.sampled_from(
            [text, text, f"Istream({text})", f"Istream({text})", f"Dstream({text})", f"Rstream({text})", counted, outer]
        )
    )


@st.composite
def moment_joins(draw: st.DrawFn) -> str:
    """Tuples of one instant beside what is there at that instant: an aggregate, the last rows, a relation."""
    name, other = draw(st.sampled_from([("S", "T"), ("T", "S")]))
    last, their_last = SHAPES[name].last, SHAPES[other].last
    window, length = draw(windows(SHAPES[other])), draw(st.integers(0, 6))
    calls = draw(aggregates(SHAPES[other]))
    names = [f"v{number}" for number in range(len(calls))]
    chosen = ", ".join(f"{call} As {name}" for call, name in zip(calls, names, strict=True))
    having = draw(st.sampled_from(["", "", " Having Count(*) > 1", " Having x.A > 0"]))
    kind = draw(st.sampled_from(["aggregate", "aggregate", "aggregate", "rows", "stored", "renamed", "total"]))
    shown, on = ", ".join(f"r.{name}" for name in names), "n.A = r.A"
    beside = f"(Select x.A, {chosen} From {other}{window} x Group By x.A{having}) r"
    if kind == "rows":
        beside, shown = f"{other} [Partition By A Rows 1] r", f"r.{their_last}"
    if kind == "stored":
        beside, shown, on = "K r", "r.E", "n.A = r.F"
    if kind == "renamed":
        beside = f"(Select A As A, {', '.join(names)}, {names[0]} As w From {beside[:-2]} i) r"
        shown += ", r.w"
    if kind == "total":
        beside, on = f"(Select {chosen} From {other}{window} x) r", "True"
    more = draw(
        st.sampled_from(["", "", f" And n.{last} > 0", f" And ({shown.split(', ')[0]} Is Not Null Or n.A = 1)"])
    )
    now = draw(st.sampled_from(["[Now]", "[Now]", "[Now]", f"[Range {length}]"]))
    text = f"Select n.A As p, n.{last} As q, {shown} From {name} {now} n, {beside} Where {on}{more}"
    turned = f"Select n.A As p, n.{last} As q, {shown} From {beside}, {name} {now} n Where {on}{more}"
    outer = f"Select n.A As p, n.{last} As q, {shown} From {name} {now} n Left Join {beside} On {on}{more}"
    return draw(st.sampled_from([text, f"Istream({text})", f"Istream({text})", f"Rstream({text})", turned, outer]))


@st.composite
def threshold_joins(draw: st.DrawFn) -> str:
    """Tuples beside a relation with which their numbers are compared, and nothing is equated."""
    name, relation = draw(st.sampled_from(["S", "T"])), draw(st.sampled_from(["R", "K"]))
    one, two = (f"n.{column}" for column in SHAPES[name].numbers)
    low, high = (f"r.{column}" for column in SHAPES[relation].numbers)
    on = draw(
        st.sampled_from(
            [
                f"{two} > {high}",
                f"{two} <= {low}",
                f"{two} Between {low} And {high}",
                f"{low} Between {one} And {two}",
                f"{two} >= {low} And {two} < {high} And {one} <> 2",
                f"{one} < {low} And {two} > {high}",
                f"{two} > {high} Or {one} = 1",
            ]
        )
    )
    window, twice = draw(windows(SHAPES[name])), draw(st.booleans())
    beside = f"(Select Distinct * From {relation}) r" if twice else f"{relation} r"
    shown = f"Select {one} As p, {two} As q, {low} As low"
    text = f"{shown} From {name}{window} n, {beside} Where {on}"
    turned = f"{shown} From {beside}, {name}{window} n Where {on}"
    outer = f"{shown} From {name}{window} n Left Join {beside} On {on}"
    return draw(st.sampled_from([text, text, turned, f"Istream({text})", f"Dstream({text})", outer]))


@st.composite
def selects(draw: st.DrawFn, depth: int, views: Views = ()) -> tuple[str, Columns]:
    """A relational query and its columns."""
    kind = draw(
        st.sampled_from(
            [
                "filter",
                "project",
                "group",
                "group",
                "group",
                "join",
                "join",
                "join",
                "set",
                "set",
                "distinct",
                "analytic",
                "limit",
                "with",
                "lateral",
                "scalar",
                "time",
            ]
        )
    )
    if kind == "group":
        return draw(groups(depth, views))
    if kind == "join":
        return draw(joins(depth, views))
    if kind == "set":
        return draw(set_operations(depth, views))
    if kind == "analytic":
        return draw(analytics(depth, views))
    if kind == "with":
        inside, common = draw(selects(depth - 1 if depth > 0 else 0, views))
        name = f"c{len(views)}"
        text, columns = draw(selects(0, (*views, (name, common))))
        more = text.removeprefix("With ")  # the query may have expressions of its own
        return f"With {name} As ({inside}){', ' if more != text else ' '}{more}", columns
    if kind == "time":
        name = draw(st.sampled_from(list(STREAMS)))
        if draw(seldom(3)):
            other = draw(st.sampled_from(["", ", R y", " Left Join R y On x.A = y.A"]))
            where = draw(wheres(SHAPES[name], depth, views))
            return f"Select x.{SHAPES[name].first} As p, CURRENT_TIME As q From {name} [Now] x{other}{where}", Columns(
                ("p", "q")
            )
        table, columns = f"{name}{draw(windows(SHAPES[name]))}", SHAPES[name]
        return (
            f"Select x.{columns.first} As p, x.ELEMENT_TIME As q From {table} x{draw(wheres(columns, depth, views))}",
            Columns(("p", "q")),
        )
    table, columns = draw(tables(depth, views))
    where = draw(wheres(columns, depth, views))
    first, last = f"x.{columns.first}", f"x.{columns.last}"
    if kind == "filter":
        return f"Select * From {table} x{where}", columns
    if kind == "distinct" and draw(st.booleans()):
        return f"Select Distinct * From {table} x{where}", columns
    if kind in ("project", "distinct"):
        value = draw(st.sampled_from(VALUES)).format(last)
        distinct = "Distinct " if kind == "distinct" else ""
        return f"Select {distinct}{value} As p, {first} As q From {table} x{where}", Columns(("p", "q"))
    if kind == "limit":
        order = draw(
            st.sampled_from([f"{last}, {first}", f"{first} Desc, {last}", f"{last} Desc Nulls First, {first}"])
        )
        offset = draw(st.sampled_from(["", " Offset 1"]))
        text = f"Select {first} As p, {last} As q From {table} x{where} Order By {order} Limit {draw(st.integers(1, 3))}{offset}"
        return text, Columns(("p", "q"))
    if kind == "lateral":
        values = draw(st.sampled_from([f"Array({last}, 1)", f"Array({first}, {last}, {first})"]))
        return f"Select {first} As p, e.v As q From {table} x Lateral View Explode({values}) e As v{where}", Columns(
            ("p", "q")
        )
    other, others = draw(tables(0, views))
    value = draw(scalars(other, others, draw(st.sampled_from(["", f" Where z.{others.first} = {first}"]))))
    held = f"(Select z.E From K z Where z.F = {first})"  # at most one row, by the key
    value = draw(st.sampled_from([value, value, held, f"{value} + {last}"]))
    return f"Select {first} As p, {value} As q From {table} x{where}", Columns(("p", "q"))


@st.composite
def queries(draw: st.DrawFn, depth: int = 2, views: Views = ()) -> str:
    """A whole query: relational, or with an operator that makes a stream of it."""
    if draw(seldom(30)):
        (one, _), (two, _) = draw(tables(0, views)), draw(tables(0, views))
        return f"(Select Count(*) From {one} x) {draw(st.sampled_from('+-/*'))} (Select Count(*) From {two} y)"
    if draw(seldom(12)):  # not where a last digit could make a difference to what stands above
        table, columns = draw(tables(depth, views))
        chosen = ", ".join(f"{call}(x.{columns.last})" for call in ("Stddev", "Variance", "Var_Pop"))
        return f"Select x.{columns.first} As k, {chosen} From {table} x Group By x.{columns.first}"
    if draw(seldom(9)):
        return draw(st.one_of(finals(depth).map(lambda drawn: drawn[0]), temporal_joins()))
    if draw(seldom(7)):
        return draw(st.one_of(near_joins(), moment_joins(), threshold_joins()))
    text, _ = draw(selects(depth, views))
    if draw(st.booleans()):
        return text
    operator, every = draw(operators())
    return f"{operator}({text}){every}"


@st.composite
def view_lists(draw: st.DrawFn, depth: int) -> tuple[tuple[NamedQuery, ...], Views]:
    """Views, each over those before it."""
    named: list[NamedQuery] = []
    known: Views = ()
    for number in range(draw(st.sampled_from([0, 0, 1, 2]))):
        text, columns = draw(selects(depth, known))
        if draw(seldom(3)):
            operator, every = draw(operators())
            text = f"{operator}({text}){every}"
        named.append(NamedQuery(f"V{number}", text))
        known = (*known, (f"V{number}", columns))
    return tuple(named), known


@st.composite
def cases(draw: st.DrawFn, depth: int = 2, most: int = 10) -> Case:
    """A case: views, a query and input."""
    views, known = draw(view_lists(min(depth, 1))) if depth > 0 else ((), ())
    return Case(
        id="random",
        query=draw(queries(depth, known)),
        streams=STREAMS,
        relations=RELATIONS,
        views=views,
        input=draw(inputs(most)),
        horizon=HORIZON,
        range=draw(st.sampled_from(["closed", "closed", "half-open"])),
        empty_aggregate="row",
        keys=KEYS,
    )


@st.composite
def cuttings(draw: st.DrawFn, horizon: int = HORIZON, most: int = 4) -> tuple[list[int], list[bool]]:
    """The ends of epochs, and for each whether the state moves after it."""
    ends = sorted(draw(st.sets(st.integers(0, horizon - 1), max_size=most - 1)) | {horizon})
    return ends, draw(st.lists(st.booleans(), min_size=len(ends), max_size=len(ends)))


def described(case: Case, cutting: object) -> str:
    """A case and its cutting as text, to be shown when a law fails."""
    views = "".join(f"{view.name}: {view.query}\n" for view in case.views)
    return f"{views}{case.query}\nrange {case.range}, cut at {cutting}\n{case.input}"
