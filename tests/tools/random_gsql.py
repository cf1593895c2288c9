"""Random GSQL: scripts of a few queries over two protocols, and rows for them.

All have the shape (t, n, s, i, b), where t grows with time, so every query can read every other. The first choice of
each draw is the plainest one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

PROTOCOLS = {
    name: {"t": "uint (increasing)", "n": "uint", "s": "string", "i": "IP", "b": "bool"} for name in ("P", "Q")
}
LAST = 14
ADDRESSES = ("9.0.0.1", "10.0.0.1", "10.0.0.2", "192.168.1.7")

rows = st.lists(
    st.fixed_dictionaries(
        {
            "t": st.integers(0, LAST),
            "n": st.integers(0, 6),
            "s": st.sampled_from(["x", "y", ""]),
            "i": st.sampled_from(ADDRESSES),
            "b": st.booleans(),
        }
    ),
    max_size=9,
).map(
    lambda found: sorted(({name: row[name] for name in "tnsib"} for row in found), key=lambda row: int(str(row["t"])))
)


@dataclass(frozen=True, slots=True)
class Script:
    """Queries by name, each behind those that it reads; the last is asked."""

    queries: dict[str, str]
    rows: dict[str, list[dict[str, Any]]]

    @property
    def asked(self) -> str:
        return list(self.queries)[-1]

    def case(self) -> dict[str, Any]:
        """As a case of `headgate test`."""
        return {"id": "drawn", "protocols": PROTOCOLS, "input": self.rows, "queries": self.queries, "query": self.asked}


@st.composite
def numbers(draw: st.DrawFn, of: str = "", depth: int = 1) -> str:
    """An expression that is a number."""
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from([f"{of}n", f"{of}t", "3", "HEX'5'"]))
    one, two = draw(numbers(of, depth - 1)), draw(numbers(of, depth - 1))
    forms = [f"({one} + {two})", f"{one} * {two}", f"({one} & {two})", f"({one} | {two})"]
    return draw(st.sampled_from([*forms, f"{one} / 2", f"({one} % 3)", f"({one} << 1)", f"({one} >> 1)"]))


@st.composite
def conditions(draw: st.DrawFn, of: str = "", depth: int = 1) -> str:
    """A condition on the attributes of a table."""
    if depth and draw(st.integers(0, 2)) == 0:
        one, two = draw(conditions(of, 0)), draw(conditions(of, 0))
        return draw(st.sampled_from([f"{one} and {two}", f"({one} or {two})", f"not ({one} or {two})"]))
    comparison = draw(st.sampled_from(["=", "<>", "<", ">", "<=", ">="]))
    ip = draw(st.sampled_from(ADDRESSES))
    return draw(
        st.sampled_from(
            [
                f"{of}n {comparison} {draw(numbers(of))}",
                f"{of}s {comparison} 'x'",
                f"{of}i {comparison} IP_VAL'{ip}'",
                f"{of}i & IP_VAL'255.0.0.0' = IP_VAL'10.0.0.0'",
                f"{of}b {comparison} FALSE",
                f"{of}n in [1, 2, 5]",
                f"{of}i in [IP_VAL'{ip}', IP_VAL'1.1.1.1']",
            ]
        )
    )


@st.composite
def wheres(draw: st.DrawFn) -> str:
    return f" where {draw(conditions())}" if draw(st.booleans()) else ""


@st.composite
def selections(draw: st.DrawFn, tables: list[str]) -> str:
    """A selection with the shape of a protocol."""
    time = draw(st.sampled_from(["t", "t + 1 as t", "t / 2 as t", "t * 2 as t"]))
    address = draw(st.sampled_from(["i", "i & IP_VAL'255.255.0.0' as i", "~i as i"]))
    number = draw(numbers())
    return f"select {time}, {number} as n, s, {address}, b from {draw(st.sampled_from(tables))}{draw(wheres())}"


@st.composite
def aggregations(draw: st.DrawFn, tables: list[str]) -> str:
    """An aggregation with the shape of a protocol."""
    key = draw(st.sampled_from(["t/4 as tb", "t as tb", "t/3 + 1 as tb", "t - t % 5 as tb"]))
    number = draw(
        st.sampled_from(
            ["count(*)", "sum(n)", "max(n)", "sum(b) + min(n)", "Or_Aggr(n)", "Xor_Aggr(n)", "And_Aggr(n) * 2"]
        )
    )
    condition = draw(st.sampled_from(["max(b)", "And_Aggr(b)", "Xor_Aggr(b)", "min(b)"]))
    address = draw(st.sampled_from(["min(i)", "max(i)", "Or_Aggr(i)"]))
    grouping = draw(st.sampled_from(["s", "s", "ROLLUP(s, n)", "CUBE(s, n)", "GROUPING_SETS((s), (s, n), ())"]))
    having = draw(st.sampled_from(["", " having count(*) > 1", " having sum(n) >= 2 and max(s) <> 'y'"]))
    supers = draw(st.booleans()) and grouping == "s"
    if supers:
        number = draw(st.sampled_from(["count$(*)", "sum$(n)", "max$(n)", "count_distinct$(*)"]))
        having = draw(st.sampled_from([having, " having count(*) * 2 >= count$(*)"]))
    table = draw(st.sampled_from(tables))
    group = f"group by {key}, {grouping}{' supergroup tb' if supers else ''}"
    return f"select tb as t, {number} as n, s, {address} as i, {condition} as b from {table}{draw(wheres())} {group}{having}"


@st.composite
def joins(draw: st.DrawFn, tables: list[str]) -> str:
    """A join with the shape of a protocol, as far as it has an order: that of t in an outer join is not used again."""
    kind = draw(st.sampled_from(["INNER_JOIN", "LEFT_OUTER_JOIN", "RIGHT_OUTER_JOIN", "OUTER_JOIN"]))
    one, two = draw(st.sampled_from(tables)), draw(st.sampled_from(tables))
    equal = draw(st.sampled_from(["A.t = B.t", "A.t/2 = B.t/2", "A.t/2 = B.t/3 + 1", "A.t = B.t + 1"]))
    more = draw(st.sampled_from(["", " and A.s = B.s", " and A.n = B.n and A.s = B.s", " and A.n > B.n"]))
    own = draw(st.sampled_from(["", " and A.n > 1", " and B.b = TRUE"]))
    shown = "A.t, A.n + B.n as n, B.s, A.i, B.b" if kind != "RIGHT_OUTER_JOIN" else "B.t, B.n, A.s, A.i, A.b"
    return f"select {shown} {kind} from {one} A, {two} B where {equal}{more}{own}"


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """A few queries, of which later ones may read earlier ones."""
    tables, queries = ["P", "Q"], {}
    for number in range(draw(st.integers(0, 2))):
        form = draw(st.sampled_from([selections, aggregations, merges, selections]))
        queries[f"f{number}"] = draw(form(tables))
        tables.append(f"f{number}")
    form = draw(st.sampled_from([selections, aggregations, joins, merges, joins, aggregations]))
    queries["asked"] = draw(form(tables))
    return Script(queries, {"P": draw(rows), "Q": draw(rows)})


@st.composite
def merges(draw: st.DrawFn, tables: list[str]) -> str:
    one, two = draw(st.sampled_from(tables)), draw(st.sampled_from(tables))
    return f"MERGE A.t : B.t FROM {one} A, {two} B"
