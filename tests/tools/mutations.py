"""Statements with something wrong in them, as an attacker would send them: a million of them in some minutes.

A statement of the corpus is changed in one to four places: quotes, backquotes, comments, brackets, letters of all
kinds, pieces of SQL, nesting. Most of what comes out is refused; what is not must stay within the lists of `sql.nodes`
and `sql.functions`, whatever became of it on its way to Spark.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

from tools.attacks import ALWAYS

STREAMS = (
    "CREATE STREAM s (k STRING, x INT, y DOUBLE, at TIMESTAMP) TIMESTAMP BY at;"
    "CREATE RELATION r (k STRING, v INT) KEY (k);"
)

HONEST = [
    "SELECT k, x FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] WHERE x > 1 AND k <> 'it''s'",
    "SELECT k, COUNT(*) AS n, SUM(x) FILTER (WHERE y > 0.5) AS t FROM s [RANGE 1 HOUR] GROUP BY k HAVING COUNT(*) > 2",
    "SELECT EXTRACT(YEAR FROM at) AS y1, DATEDIFF(DAY, at, at) AS d, DATEADD(HOUR, x, at) AS h FROM s [NOW]",
    "SELECT CAST(k AS DECIMAL(10, 2)) AS a, TRY_CAST(k AS STRUCT<`a b`: INT, c: ARRAY<STRING>>) AS b FROM s [NOW]",
    "SELECT TRANSFORM(ARRAY(x, 1), e -> e + 1) AS t, NAMED_STRUCT('a', x, 'b', k).a AS z FROM s [NOW]",
    "SELECT a.k, b.x FROM s [RANGE 10 SECONDS] AS a JOIN s [ROWS 3] AS b ON a.k = b.k AND a.x + b.x > 3",
    "SELECT ISTREAM(UPPER(TRIM(BOTH 'a' FROM k)) AS u, SUBSTRING(k FROM 2 FOR 3) AS v) FROM s [NOW]",
    "SELECT CASE WHEN x > 1 THEN 'a' WHEN x IS NULL THEN NULL ELSE k || 'b' END AS c FROM s [NOW]",
    "SELECT k, RANK() OVER (PARTITION BY k ORDER BY x DESC) AS n FROM s [RANGE 1 MINUTE]",
    "SELECT FROM_JSON(k, 'a INT, b STRING', MAP('mode', 'PERMISSIVE')).a AS j FROM s [NOW]",
    "SELECT DATE_TRUNC('MINUTE', at) + INTERVAL '1' DAY AS m, at - INTERVAL 5 MINUTES AS n FROM s [NOW]",
    "SELECT k FROM s [NOW] WHERE k LIKE 'a%' OR k RLIKE '[a-z]+' OR k IN ('a', 'b') OR x BETWEEN 1 AND 2",
    "SELECT k FROM s [NOW] WHERE EXISTS (SELECT 1 FROM r WHERE r.k = s.k AND r.v > 1) AND x NOT IN (1, 2)",
    "SELECT x, COLLECT_LIST(k) AS ks FROM s [ROWS 5] GROUP BY CUBE(x, y)",
    "CREATE FUNCTION f(a INT, b INT) RETURN COALESCE(a, b) * 2; SELECT f(x, 1) AS g FROM s [NOW]",
    "CREATE VIEW v AS SELECT k, MAX(x) AS m FROM s [RANGE 1 DAY] GROUP BY k; SELECT m FROM v WHERE m > 3",
    "CREATE QUERY q AS SELECT `k` AS `odd ``name`, X'00FF' AS b, 1.5e3 AS c, r'raw\\' AS d FROM s [NOW]",
    "SELECT k FROM s [NOW] LATERAL VIEW EXPLODE(ARRAY(1, 2)) t AS z WHERE z = x UNION ALL SELECT k FROM s [NOW]",
    "CREATE STREAM t (a INT CHECK (a IN (1, 2)), b DECIMAL(5, 1), c MAP<STRING, INT>) TIMESTAMP BY a",
    "SELECT PERCENTILE(y, 0.5) AS p, MAX_BY(k, x) AS b, LISTAGG(k, ',') AS l FROM s [RANGE 1 MINUTE]",
]

PIECES = [
    "'", "''", "`", "``", '"', "\\", "\\'", "--", "-- x\n", "/*", "*/", "/* ", "(", ")", "((", "))", "[", "]", "{", "}", "<", ">",
    ",", ";", ".", ":", "::", "@", "@@", "?", "#", "$", "${", "}", "!", "|", "||", "->", "=>", "0x", "1e", "9" * 50, "\n", "\t", "\x00",
    "\u00a0", "\u2028", "\u212a", "\ufeff", "\uff07", "\u02bc", "\ud800", "\U0001f600", "r'", "X'", "N'", "b'", "u&'",
    " FROM ", " SELECT ", "(SELECT 1)", "(SELECT MAX(x) FROM s)", " UNION ", " USING 'id' ", "TRANSFORM(", "text.`/etc/passwd`",
    "reflect('a','b')", "`reflect`", "xpath(k, 'a')", "IDENTIFIER('x')", "CAST(", " AS ", " OVER (", "EXTRACT(", "INTERVAL ", "/*+ ",
    " COLLATE ", " TABLESAMPLE (", " LATERAL VIEW ", " PIVOT (", " WINDOW ", "DECIMAL(", "STRUCT<", " WITHIN GROUP (", "CURRENT_USER",
    "system.builtin.", " NOT ", "NOT NOT NOT ", "- - ", "CASE WHEN ", " END ", "NULL", "*", "VALUES (1)", "MAP('a','b')", "e -> e",
]  # fmt: skip


def mutated(seed: int) -> Iterator[str]:
    """Statements without end, always the same for a seed."""
    chosen = random.Random(seed)
    corpus = [*HONEST, *HONEST, *(text for text in ALWAYS if len(text) < 400)]
    tokens = re.compile(r"\w+|\s+|.", re.DOTALL)
    while True:
        parts = tokens.findall(chosen.choice(corpus))
        for _ in range(chosen.choice((1, 1, 1, 2, 2, 3, 4))):
            chosen.choice(CHANGES)(parts, chosen)
        yield "".join(parts)


Change = Callable[[list[str], random.Random], None]


def _insert(parts: list[str], chosen: random.Random) -> None:
    parts.insert(chosen.randrange(len(parts) + 1), chosen.choice(PIECES))


def _replace(parts: list[str], chosen: random.Random) -> None:
    if parts:
        parts[chosen.randrange(len(parts))] = chosen.choice(PIECES)


def _quote(parts: list[str], chosen: random.Random) -> None:
    """Words become a quoted name, with something that may end the quotes in it."""
    if parts:
        start = chosen.randrange(len(parts))
        stop = min(len(parts), start + chosen.randint(1, 12))
        mark = chosen.choice("`'\"")
        parts[start:stop] = [
            mark + "".join(parts[start:stop]).replace(mark, chosen.choice((mark, mark * 2, ""))) + mark
        ]


def _exchange(parts: list[str], chosen: random.Random) -> None:
    if parts:
        one, other = chosen.randrange(len(parts)), chosen.randrange(len(parts))
        parts[one], parts[other] = parts[other], parts[one]


def _leave_out(parts: list[str], chosen: random.Random) -> None:
    if parts:
        start = chosen.randrange(len(parts))
        del parts[start : start + chosen.randint(1, 3)]


def _nest(parts: list[str], chosen: random.Random) -> None:
    if parts:
        place, deep = chosen.randrange(len(parts)), chosen.choice((1, 2, 5, 40))
        opening, closing = chosen.choice(
            (("(", ")"), ("ABS(", ")"), ("ARRAY(", ")[0]"), ("NOT (", ")"), ("(SELECT ", ")"))
        )
        parts[place] = opening * deep + parts[place] + closing * deep


def _graft(parts: list[str], chosen: random.Random) -> None:
    """A piece of another statement comes in."""
    other = chosen.choice(ALWAYS + HONEST)[:400]
    start = chosen.randrange(len(other))
    parts.insert(chosen.randrange(len(parts) + 1), other[start : start + chosen.randint(1, 60)])


CHANGES: list[Change] = [_insert, _insert, _replace, _quote, _quote, _exchange, _leave_out, _nest, _graft]
