"""Random continuous queries and inputs, for the laws: every operator headgate has, nested, with nulls, duplicates and ties.

A query is built from the inside out: streams with windows, then joins, groups and unions over them, then perhaps an operator that
makes a stream of it, over which a window may stand again.
"""

from __future__ import annotations

from hypothesis import strategies as st

from headgate.testing.cases import Case, Row

STREAMS = {"S": {"A": "int", "B": "int", "D": "string"}, "T": {"A": "int", "C": "int"}}
RELATIONS = {"R": {"A": "int", "E": "int"}}
HORIZON = 14

small = st.one_of(st.none(), st.integers(0, 3))
numbers = st.one_of(st.none(), st.integers(-4, 9))
letters = st.sampled_from([None, "x", "y"])

row_s = st.tuples(small, numbers, letters)
row_t = st.tuples(small, numbers)


@st.composite
def inputs(draw: st.DrawFn) -> dict[str, list[tuple[int, Row, str]]]:
    result = {}
    for name, rows in (("S", row_s), ("T", row_t)):
        entries = draw(st.lists(st.tuples(st.integers(0, HORIZON - 2), rows), max_size=10))
        result[name] = [(ts, row, "+") for ts, row in sorted(entries, key=lambda entry: entry[0])]
    lives = draw(st.lists(st.tuples(st.integers(0, HORIZON - 3), st.integers(1, 8), row_t), max_size=6))
    put = [(start, row, "+") for start, _, row in lives]
    taken = [(start + length, row, "-") for start, length, row in lives if start + length < HORIZON]
    result["R"] = sorted([*put, *taken], key=lambda entry: (entry[0], entry[2]))
    return result


@st.composite
def windows(draw: st.DrawFn, partition: str) -> str:
    kind = draw(st.sampled_from(["now", "unbounded", "range", "range", "slide", "rows", "partition", "lasting", "default"]))
    length, slide, count = draw(st.integers(0, 6)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    return {
        "now": " [Now]",
        "unbounded": " [Range Unbounded]",
        "range": f" [Range {length}]",
        "slide": f" [Range {length} Slide {slide}]",
        "rows": f" [Rows {count}]",
        "partition": f" [Partition By {partition} Rows {count}]",
        "lasting": f" [Partition By {partition} Rows {count} Range {length}]",
        "default": "",
    }[kind]


AGGREGATES = ["Count(*)", "Count({0})", "Sum({0})", "Avg({0})", "Min({0})", "Max({0})", "Count(Distinct {0})", "Sum({0} * 2)"]
CONDITIONS = ["{0} > 1", "{0} Is Not Null", "{0} <> 2 Or {0} Is Null", "Coalesce({0}, 0) < 4"]


@st.composite
def tables(draw: st.DrawFn, depth: int) -> tuple[str, list[str]]:
    """An entry of FROM and its columns."""
    kind = draw(st.sampled_from(["S", "S", "T", "R", "query", "stream"] if depth > 0 else ["S", "S", "T", "R"]))
    if kind in RELATIONS:
        return kind, list(RELATIONS[kind])
    if kind in STREAMS:
        columns = list(STREAMS[kind])
        return f"{kind}{draw(windows(columns[0]))}", columns
    text, columns = draw(selects(depth - 1))
    if kind == "stream":
        operator = draw(st.sampled_from(["Istream", "Istream", "Dstream", "Rstream"]))
        return f"({operator}({text})){draw(windows(columns[0]))}", columns
    return f"({text})", columns


@st.composite
def predicates(draw: st.DrawFn, first: str, last: str) -> str:
    """A condition with a subquery, correlated or not."""
    table, columns = draw(tables(0))
    a, b = columns[0], columns[-1] if columns[-1] != "D" else columns[1]
    tie = draw(st.sampled_from(["", f" Where z.{a} = {first}", f" Where z.{b} < {last}", f" Where z.{b} > 1"]))
    inner = f"(Select z.{a} From {table} z{tie})"
    total = draw(st.sampled_from([f"Max(z.{b})", "Count(*)", f"Sum(z.{b}) + 1", f"Avg(z.{a})"]))
    value = f"(Select {total} From {table} z{tie})"
    simple = draw(st.sampled_from([
        f"{first} In {inner}", f"{first} Not In {inner}", f"Exists (Select * From {table} z{tie})",
        f"Not Exists (Select * From {table} z{tie})", f"{last} >= All {inner}", f"{last} = Any {inner}", f"{last} < {value}",
        f"({first}, {last}) In (Select z.{a}, z.{b} From {table} z)",  # correlated, DuckDB cannot judge it
        f"({first}, {last}) Not In (Select z.{a}, z.{b} From {table} z)",
    ]))  # fmt: skip
    return draw(st.sampled_from([simple, simple, f"({simple} Or {last} = 3)", f"Not ({simple}) And {first} > 0"]))


@st.composite
def selects(draw: st.DrawFn, depth: int) -> tuple[str, list[str]]:
    """A relational query and the names of its columns."""
    kinds = ["filter", "filter", "group", "group", "total", "join", "join", "distinct", "union", "ranked", "limit"]
    kind = draw(st.sampled_from(kinds))
    if kind == "union":
        left, columns = draw(selects(0))
        table, others = draw(tables(depth))
        chosen = ", ".join(f"y.{others[i % len(others)]} As {name}" for i, name in enumerate(columns))
        operator = draw(st.sampled_from(["Union All", "Union", "Except", "Except All", "Intersect", "Intersect All"]))
        return f"({left}) {operator} (Select {chosen} From {table} y)", columns
    table, columns = draw(tables(depth))
    first, last = columns[0], columns[-1] if columns[-1] != "D" else columns[1]
    where = f" Where {draw(st.sampled_from(CONDITIONS)).format(f'x.{last}')}" if draw(st.booleans()) else ""
    if depth > 0 and draw(st.integers(0, 2)) == 0:
        where = f" Where {draw(predicates(f'x.{first}', f'x.{last}'))}"
    if kind in ("filter", "distinct"):
        distinct = "Distinct " if kind == "distinct" else ""
        if draw(st.booleans()):
            return f"Select {distinct}* From {table} x{where}", columns
        return f"Select {distinct}x.{last} As p, x.{first} As q From {table} x{where}", ["p", "q"]
    if kind == "ranked":
        function = draw(st.sampled_from([f"Rank() Over (Partition By x.{first} Order By x.{last})", f"Sum(x.{last}) Over (Partition By x.{first})",
                                         f"Dense_Rank() Over (Order By x.{last})", "Count(*) Over ()"]))  # fmt: skip
        return f"Select x.{first} As p, x.{last} As q, {function} As r From {table} x{where}", ["p", "q", "r"]
    if kind == "limit":
        order = draw(st.sampled_from([f"x.{last}, x.{first}", f"x.{first} Desc, x.{last}"]))
        return f"Select x.{first} As p, x.{last} As q From {table} x{where} Order By {order} Limit {draw(st.integers(1, 3))}", [
            "p",
            "q",
        ]
    if kind == "join":
        other, others = draw(tables(depth - 1 if depth > 0 else 0))
        on = draw(st.sampled_from([f"x.{first} = y.{others[0]}", f"x.{first} = y.{others[0]}", f"x.{first} < y.{others[-1]}"]))
        if others[-1] == "D":
            on = f"x.{first} = y.{others[0]}"
        more = f" And x.{last} <> y.{others[0]}" if draw(st.booleans()) else ""
        side = draw(st.sampled_from(["", "", "Left", "Right", "Full"]))
        if side:
            chosen = f"x.{first} As p, x.{last} As q, y.{others[0]} As r"
            return f"Select {chosen} From {table} x {side} Join {other} y On {on}{more}{where}", ["p", "q", "r"]
        return f"Select x.{first} As p, x.{last} As q, y.{others[0]} As r From {table} x, {other} y Where {on}{more}", [
            "p",
            "q",
            "r",
        ]
    calls = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3))
    chosen = ", ".join(f"{call.format(f'x.{last}')} As v{i}" for i, call in enumerate(calls))
    if kind == "total":
        return f"Select {chosen} From {table} x{where}", [f"v{i}" for i in range(len(calls))]
    having = " Having Count(*) > 1" if draw(st.booleans()) else ""
    names = [f"v{i}" for i in range(len(calls))]
    if draw(st.integers(0, 5)) == 0:
        sets = draw(
            st.sampled_from([f"Rollup (x.{first}, x.{last})", f"Cube (x.{first}, x.{last})", f"Grouping Sets ((x.{first}), ())"])
        )
        return f"Select x.{first} As k, {chosen} From {table} x{where} Group By {sets}{having}", ["k", *names]
    if draw(st.integers(0, 4)) == 0:  # without the key, rows of different groups may be equal
        return f"Select {chosen} From {table} x{where} Group By x.{first}{having}", names
    return f"Select x.{first} As k, {chosen} From {table} x{where} Group By x.{first}{having}", ["k", *names]


@st.composite
def queries(draw: st.DrawFn, depth: int = 2) -> str:
    text, _ = draw(selects(depth))
    operator = draw(st.sampled_from(["", "", "Istream", "Istream", "Dstream", "Rstream"]))
    return f"{operator}({text})" if operator else text


@st.composite
def cases(draw: st.DrawFn, depth: int = 2) -> Case:
    return Case(
        id="random",
        query=draw(queries(depth)),
        streams=STREAMS,
        relations=RELATIONS,
        views=(),
        input=draw(inputs()),
        horizon=HORIZON,
        range=draw(st.sampled_from(["closed", "closed", "half-open"])),
        empty_aggregate="row",
    )


@st.composite
def cuttings(draw: st.DrawFn, horizon: int = HORIZON) -> tuple[list[int], list[bool]]:
    """Ends of epochs, and after which of them the state moves."""
    ends = sorted(draw(st.sets(st.integers(0, horizon - 1), max_size=3)) | {horizon})
    return ends, draw(st.lists(st.booleans(), min_size=len(ends), max_size=len(ends)))
