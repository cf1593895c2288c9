"""Families: the plain query that each form amounts to, which is what is run and what `explain` shows."""

from __future__ import annotations

import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query
from headgate.cql.binder import bind
from headgate.cql.definitions import Explanation, define
from headgate.cql.script import parse

DEFINED = """
CREATE STREAM ticks (symbol STRING, price DOUBLE, n INT, time INT) TIMESTAMP BY time;
CREATE STREAM news (symbol STRING, text STRING, time INT) TIMESTAMP BY time;
CREATE RELATION subs (symbol STRING, threshold DOUBLE);
CREATE RELATION watch (id INT, threshold DOUBLE, at INT, op STRING) KEY (id) TIMESTAMP BY at CHANGE BY op;
"""
FORMS = [
    "subs AS SELECT ISTREAM s.symbol, s.price FROM ticks [NOW] s WHERE s.symbol = subs.symbol AND s.price > subs.threshold",
    "watch AS SELECT ISTREAM * FROM ticks [NOW] WHERE price > watch.threshold",
    "subs AS SELECT COUNT(*) AS n, SUM(price) / COUNT(*) AS m FROM ticks [RANGE 10] WHERE symbol = subs.symbol",
    "subs AS SELECT symbol, AVG(price) AS a FROM ticks [RANGE 10] GROUP BY symbol HAVING AVG(price) > subs.threshold",
    "subs AS SELECT n, COUNT(*) AS c FROM ticks [RANGE 10] WHERE symbol = subs.symbol GROUP BY 1",
    "subs AS SELECT symbol, MAX(n) AS m FROM ticks [RANGE 10] WHERE symbol <> subs.symbol AND n > 0 GROUP BY symbol",
    "subs AS SELECT t.price FROM ticks [NOW] t, (SELECT AVG(price) AS m FROM ticks [RANGE 10]) a "
    "WHERE t.price > a.m + subs.threshold",
    "subs AS SELECT time / 60 AS tb, COUNT(*) AS c FROM ticks WHERE symbol = subs.symbol GROUP BY tb EMIT FINAL",
    "subs AS SELECT symbol, price FROM ticks [RANGE 10] WHERE price > subs.threshold ORDER BY price DESC, n LIMIT 3",
    "subs AS SELECT symbol FROM ticks [RANGE 9] WHERE price > subs.threshold "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY price) = 1",
    "subs AS SELECT symbol FROM ticks [RANGE 10] WHERE price > subs.threshold EXCEPT SELECT symbol FROM news [RANGE 5]",
    "subs AS SELECT * FROM (SELECT symbol, SUM(n) AS t FROM ticks [RANGE 10] WHERE price > subs.threshold GROUP BY symbol) x",
    "subs AS WITH h AS (SELECT symbol, n FROM ticks [RANGE 5] WHERE price > subs.threshold) "
    "SELECT a.symbol, COUNT(*) AS c FROM h a, h b WHERE a.n = b.n GROUP BY a.symbol",
    "subs AS SELECT t.symbol, n.text FROM ticks [RANGE 5] t LEFT JOIN news [RANGE 5] n "
    "ON t.symbol = n.symbol AND t.price > subs.threshold WHERE t.symbol = subs.symbol",
    "subs AS SELECT symbol FROM ticks [RANGE 5] t WHERE EXISTS "
    "(SELECT * FROM news [RANGE 5] n WHERE n.symbol = t.symbol AND n.time > subs.threshold)",
    "subs AS RSTREAM(SELECT symbol, COUNT(*) AS c FROM ticks SAMPLE 10 PERCENT [RANGE 5 SLIDE 5] "
    "WHERE price > subs.threshold GROUP BY symbol) EVERY 5",
    "subs AS SELECT symbol, w FROM ticks [PARTITION BY symbol ROWS 2] LATERAL VIEW EXPLODE(ARRAY(price, subs.threshold)) e AS w",
]


def family(rest: str) -> tuple[Query, Catalog]:
    catalog = Catalog()
    define(DEFINED, catalog)
    (query,) = define(f"CREATE QUERIES f FOR EACH ROW OF {rest}", catalog)
    assert isinstance(query, Query)
    return query, catalog


@pytest.mark.parametrize("rest", FORMS)
def test_a_family_is_the_query_that_explain_shows(rest: str) -> None:
    query, catalog = family(rest)
    assert query.family is not None
    text = query.family.text
    assert bind(parse(text)[0], text, catalog).plan == query.bound


@pytest.mark.parametrize("rest", [FORMS[3], FORMS[5]])
def test_groups_of_which_only_members_choose_some_are_computed_once(rest: str) -> None:
    query, _ = family(rest)
    assert query.family is not None
    below = query.family.text.partition("CROSS JOIN")[0]
    assert "GROUP BY" in below
    assert "subs" not in below.partition("FROM")[2]


@pytest.mark.parametrize(
    "rest",
    [
        "subs AS SELECT symbol AS s, MAX(n) AS symbol FROM ticks [RANGE 9] WHERE symbol <> subs.symbol GROUP BY ticks.symbol",
        "subs AS SELECT symbol, MAX(n) AS m FROM ticks [RANGE 9] WHERE symbol = subs.symbol GROUP BY symbol",
        "subs AS SELECT symbol, MAX(n) AS m FROM ticks [RANGE 9] WHERE n > subs.threshold GROUP BY symbol",
        "subs AS SELECT symbol, n FROM ticks [RANGE 9] WHERE symbol <> subs.symbol GROUP BY GROUPING SETS ((symbol), (n))",
    ],
)
def test_other_conditions_on_members_stay_below_the_groups(rest: str) -> None:
    query, _ = family(rest)
    assert query.family is not None
    assert "WHERE" in query.family.text.partition("GROUP BY")[0]


def test_names_that_both_have_get_the_relation_in_front() -> None:
    query, _ = family(FORMS[0])
    assert query.family is not None
    assert query.family.shown == ("subs_symbol", "threshold")
    assert [column.name for column in query.plan.columns] == ["subs_symbol", "threshold", "symbol", "price"]


def test_what_says_when_a_row_comes_is_no_part_of_a_member() -> None:
    query, _ = family(FORMS[1])
    assert query.family is not None
    assert query.family.columns == ("id", "threshold")
    assert "DISTINCT" not in query.family.text, "a key tells the rows apart"


def test_explain_takes_a_family() -> None:
    catalog = Catalog()
    define(DEFINED, catalog)
    (explained,) = define(f"EXPLAIN FOR EACH ROW OF {FORMS[0]}", catalog)
    assert isinstance(explained, Explanation)
    assert explained.query.family is not None
