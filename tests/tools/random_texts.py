"""Texts that look like CQL, for the test that every text gets an answer.

They are random words, sentences of a grammar that knows nothing of types and names, and real queries with words left
out, inserted, exchanged and doubled.
"""

from __future__ import annotations

import re

from hypothesis import strategies as st

from headgate.testing.cases import Case, read
from tools.places import CASES

WORDS = [
    "SELECT",
    "ISTREAM",
    "(",
    ")",
    "*",
    ",",
    "FROM",
    "ticks",
    "pos_speed",
    "[",
    "]",
    "RANGE",
    "ROWS",
    "5",
    "NOW",
    "SLIDE",
    "WHERE",
    "v",
    "speed",
    ">",
    "=",
    "1",
    "GROUP",
    "BY",
    "HAVING",
    "COUNT",
    "UNION",
    "ALL",
    "AS",
    "x",
    ".",
    "'a'",
    "PARTITION BY",
    "MINUTES",
    "CREATE",
    "STREAM",
    "QUERY",
    "VIEW",
    "INT",
    "TIMESTAMP",
    "DISTINCT",
    "IN",
    "NOT",
    "NULL",
    "-",
    "/",
    "CASE",
    "WHEN",
    "END",
    "OVER",
    "EVERY",
    "EMIT AT SLIDE",
    "EMIT FINAL",
    "LATERAL VIEW",
    "EXPLODE",
    "USING",
    "NATURAL",
    "JOIN",
    "ON",
    "QUALIFY",
    "WINDOW",
    "WITH",
    "EXISTS",
    "ANY",
    "ORDER BY",
    "LIMIT",
    "FILTER",
    "ELEMENT_TIME",
    "DROP",
    "SHOW",
    "RELATION",
    "KEY",
    "SET",
    ";",
    '"',
    "--",
    "{",
    "0.5",
]
random_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(" ".join)

NAMES = ["ticks"] * 8 + ["pos_speed"] * 3 + ["per_segment", "nothing", "x"]
COLUMNS = (
    ["v"] * 8
    + ["k"] * 4
    + ["speed", "vehicle", "at", "mean", "x.v", "y.speed", "x.k", "ELEMENT_TIME", "x.nothing", "rows"]
)
LITERALS = ["1", "0", "'a'", "NULL", "2.5", "TRUE", "INTERVAL 1 DAY", "DATE '2024-01-01'", "-1", "ARRAY(1, 2)"]
FUNCTIONS = [
    "COUNT",
    "SUM",
    "AVG",
    "MAX",
    "FIRST",
    "COLLECT_LIST",
    "RANK",
    "LAG",
    "COALESCE",
    "EXPLODE",
    "UPPER",
    "NO_SUCH",
    "STRUCT",
    "MAX_BY",
    "PERCENTILE",
    "ROW_NUMBER",
    "GROUPING",
    "ISTREAM",
    "CURRENT_TIMESTAMP",
    "RAND",
]
OPERATORS = ["+", "-", "*", "/", "%", "=", "<>", "<", ">=", "AND", "OR", "||", "LIKE", "IS NOT DISTINCT FROM", "<=>"]
WINDOWS = [
    "",
    "",
    " [NOW]",
    " [RANGE 5]",
    " [RANGE 5 MINUTES]",
    " [ROWS 2]",
    " [RANGE UNBOUNDED]",
    " [ROWS 3 SLIDE 2]",
    " [ROWS 0]",
    " [RANGE 5 SLIDE 0]",
    " [RANGE 2 ON v]",
    " [RANGE 1 MINUTE ON at]",
    " [PARTITION BY k ROWS 1]",
    " [RANGE -1]",
    " [PARTITION BY v ROWS 2 RANGE 3 SLIDE 2]",
    " [RANGE 1.5]",
    " [ROWS 2 SLIDE 1 MINUTE]",
    " [RANGE 2 ON k]",
]


@st.composite
def expressions(draw: st.DrawFn, depth: int) -> str:
    """An expression."""
    kinds = [
        "column",
        "literal",
        *(
            [
                "operation",
                "call",
                "case",
                "in",
                "scalar",
                "exists",
                "analytic",
                "filter",
                "all",
                "cast",
                "not",
                "between",
                "row",
            ]
            if depth > 0
            else []
        ),
    ]
    kind = draw(st.sampled_from(kinds))
    if kind == "column":
        return draw(st.sampled_from(COLUMNS))
    if kind == "literal":
        return draw(st.sampled_from(LITERALS))
    one = draw(expressions(depth - 1))
    if kind in ("operation", "between", "row", "case"):
        two = draw(expressions(depth - 1))
        operator = draw(st.sampled_from(OPERATORS))
        return {
            "operation": f"({one} {operator} {two})",
            "between": f"{one} BETWEEN {two} AND 3",
            "row": f"({one}, {two})",
            "case": f"CASE WHEN {one} THEN {two} END",
        }[kind]
    if kind in ("in", "scalar", "exists", "all"):
        query = draw(queries(depth - 1))
        return {
            "in": f"{one} {draw(st.sampled_from(['', 'NOT ']))}IN ({query})",
            "scalar": f"({query})",
            "exists": f"EXISTS ({query})",
            "all": f"{one} > ALL ({query})",
        }[kind]
    function = draw(st.sampled_from(FUNCTIONS))
    return {
        "call": f"{function}({draw(st.sampled_from(['', 'DISTINCT ']))}{one})",
        "cast": f"CAST({one} AS INT)",
        "not": f"NOT {one}",
        "analytic": f"{function}({one}) OVER (PARTITION BY v ORDER BY {one})",
        "filter": f"{function}({one}) FILTER (WHERE {one})",
    }[kind]


@st.composite
def tables(draw: st.DrawFn, depth: int) -> str:
    """An entry of FROM."""
    alias = draw(st.sampled_from(["", " x", " AS y", " x (a, b)"]))
    window = draw(st.sampled_from(WINDOWS))
    if depth > 0 and draw(st.booleans()):
        return f"({draw(queries(depth - 1))}){window}{alias}"
    return f"{draw(st.sampled_from(NAMES))}{window}{alias}"


@st.composite
def queries(draw: st.DrawFn, depth: int) -> str:
    """A query."""
    kind = draw(st.sampled_from(["select", "select", "select", "select", "set", "operator", "with", "arithmetic"]))
    if kind != "select" and depth > 0:
        one, two = draw(queries(depth - 1)), draw(queries(depth - 1))
        word = draw(st.sampled_from(["UNION", "UNION ALL", "EXCEPT", "INTERSECT ALL", "MINUS"]))
        every = draw(st.sampled_from(["", " EVERY 2", " EVERY 0", " EVERY 1 MINUTE", " EMIT AT SLIDE"]))
        operator = draw(st.sampled_from(["ISTREAM", "DSTREAM", "RSTREAM"]))
        return {
            "set": f"{one} {word} {two}",
            "operator": f"{operator}({one}){every}",
            "with": f"WITH x AS ({one}) {two}",
            "arithmetic": f"({one}) {draw(st.sampled_from('+-*/'))} ({two})",
        }[kind]
    items = draw(st.sampled_from(["*", "x.*", "", "", "", ""])) or ", ".join(
        draw(st.lists(expressions(depth), min_size=1, max_size=3))
    )
    items = draw(st.sampled_from(["{}", "{}", "ISTREAM({})", "DISTINCT {}", "RSTREAM(DISTINCT {})", "{} AS a"])).format(
        items
    )
    text = f"SELECT {items} FROM {draw(tables(depth))}"
    if draw(st.booleans()):
        join = draw(
            st.sampled_from(
                [",", "JOIN", "LEFT JOIN", "NATURAL JOIN", "LEFT SEMI JOIN", "FULL JOIN", "CROSS JOIN", "ASOF JOIN"]
            )
        )
        tie = draw(st.sampled_from(["", f" ON {draw(expressions(depth))}", " USING (v)", " USING (nothing)"]))
        text += f" {join} {draw(tables(depth))}{tie}"
    clauses = {
        " LATERAL VIEW EXPLODE({}) l AS e": 6,
        " WHERE {}": 2,
        " GROUP BY {}": 3,
        " GROUP BY ROLLUP ({})": 8,
        " HAVING {}": 5,
        " QUALIFY {}": 8,
        " WINDOW w AS (ORDER BY {})": 9,
        " ORDER BY {}": 5,
        " LIMIT {}": 7,
        " OFFSET {}": 9,
    }
    clauses[" EMIT FINAL -- {}"] = 9
    for clause, times in clauses.items():
        if draw(st.integers(0, times)) == times // 2:
            text += clause.format(draw(expressions(depth)))
    return text


@st.composite
def statements(draw: st.DrawFn) -> str:
    """A statement of any kind."""
    query = draw(queries(draw(st.integers(0, 2))))
    name = draw(st.sampled_from(NAMES))
    kind = draw(
        st.sampled_from(
            [
                "{query}",
                "{query}",
                "{query}",
                "CREATE QUERY q AS {query}",
                "CREATE VIEW w AS {query}",
                "CREATE VIEW w (a, b) AS {query}",
                "CREATE STREAM w AS {query}",
                "CREATE RELATION w AS {query}",
                "EXPLAIN {query}",
                "w: {query}",
                "w(a, b): {query}",
                "DROP VIEW {name}",
                "DROP STREAM {name}",
                "SHOW QUERIES",
                "DESCRIBE {name}",
                "CREATE FUNCTION f(x INT) RETURN {query}",
                "vquery: {query}; {query}",
                "CREATE VIEW w AS {query}; SELECT * FROM w{window}; DROP VIEW w",
                "CREATE QUERY q AS {query} INTO console",
            ]
        )
    )
    return kind.format(query=query, name=name, window=draw(st.sampled_from(WINDOWS)))


REAL = [case for case in read(CASES / "cql.jsonl") if not case.query.startswith("?")]
PIECES = re.compile(r"\w+|'[^']*'|<=|>=|<>|!=|[^\s\w]")


@st.composite
def mutated(draw: st.DrawFn) -> tuple[Case, str]:
    """A real query in which some words were changed, and the case whose streams it reads."""
    case = draw(st.sampled_from(REAL))
    words = PIECES.findall(case.query)
    pool = [*PIECES.findall(draw(st.sampled_from(REAL)).query), *WORDS]
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(0, len(words) - 1)))
        match draw(st.sampled_from(["leave out", "put in", "exchange", "double", "swap", "cut"])):
            case "leave out":
                words = words[:place] + words[place + 1 :]
            case "put in":
                words = [*words[:place], draw(st.sampled_from(pool)), *words[place:]]
            case "exchange":
                words = [*words[:place], draw(st.sampled_from(pool)), *words[place + 1 :]]
            case "double":
                words = words[: place + 1] + words[place:]
            case "swap":
                other = draw(st.integers(0, max(0, len(words) - 1)))
                if words:
                    words[place], words[other] = words[other], words[place]
            case _:
                words = words[place:] if draw(st.booleans()) else words[: place + 1]
    return case, " ".join(words)
