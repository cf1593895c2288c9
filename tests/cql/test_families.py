"""Families: the plain query that each form amounts to, which is what is run and what `explain` shows."""

from __future__ import annotations

import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query
from headgate.cql.binder import bind
from headgate.cql.definitions import Explanation, Listing, define
from headgate.cql.script import parse
from headgate.errors import UserError
from headgate.plan.nodes import Filter, Join, Node, Window, children

DEFINED = """
CREATE STREAM ticks (symbol STRING, price DOUBLE, n INT, time INT) TIMESTAMP BY time;
CREATE STREAM news (symbol STRING, text STRING, time INT) TIMESTAMP BY time;
CREATE RELATION subs (symbol STRING, threshold DOUBLE);
CREATE RELATION lasting (symbol STRING, n INT CHECK (n IN (1, 5, 60)), step BIGINT CHECK (step IN (2, 3) AND step > 0));
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
    "lasting AS SELECT AVG(s.price) AS a FROM ticks [RANGE lasting.n] s WHERE s.symbol = lasting.symbol",
    "lasting AS SELECT ISTREAM(*) FROM ticks SAMPLE 10 PERCENT [RANGE lasting.n SLIDE lasting.step] WHERE ELEMENT_TIME > 3",
    "lasting AS SELECT symbol, COUNT(*) AS c FROM ticks [ROWS lasting.n SLIDE lasting.step] GROUP BY 1",
    "lasting AS SELECT MAX(price) AS top FROM LATE(ticks) [RANGE lasting.n ON price] HAVING COUNT(*) > lasting.step",
    "lasting AS SELECT a.symbol, b.text FROM ticks [PARTITION BY symbol ROWS 2 RANGE lasting.n] a LEFT JOIN news [RANGE lasting.n] b "
    "ON a.symbol = b.symbol WHERE a.symbol = lasting.symbol",
    "lasting AS SELECT t.price FROM ticks [RANGE lasting.n] t WHERE EXISTS "
    "(SELECT * FROM news [RANGE lasting.step] n WHERE n.symbol = t.symbol)",
    "lasting AS WITH late AS (SELECT ISTREAM(symbol, n) FROM ticks [NOW]) SELECT * FROM late [ROWS lasting.n] x (a, b) "
    "WHERE a = lasting.symbol ORDER BY b, a LIMIT 2",
    "lasting AS (SELECT ISTREAM(symbol, price) FROM ticks [NOW]) [ROWS lasting.n]",
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


def written(rest: str) -> str:
    query, _ = family(f"lasting AS {rest}")
    assert query.family is not None
    return " ".join(query.family.text.split())


def test_a_window_with_the_length_of_the_member_is_the_union_of_those_of_each_length() -> None:
    text = written("SELECT symbol, price FROM ticks [RANGE lasting.n SLIDE 5] t WHERE symbol = lasting.symbol")
    for length in (1, 5, 60):
        assert f"SELECT *, {length} AS window_n FROM ticks [RANGE {length} SLIDE 5]" in text
    assert text.count("UNION ALL") == 2
    assert "t.window_n = member.member_n" in text


def test_lengths_are_one_more_equality_of_the_join_and_selections_stand_below_each_window() -> None:
    query, _ = family(
        "lasting AS SELECT price FROM ticks [RANGE lasting.n] WHERE symbol = lasting.symbol AND price > 3"
    )
    (join,) = [node for node in every(query.plan) if isinstance(node, Join)]
    assert len(join.equalities) == 2
    assert join.condition is None
    windows = [node for node in every(query.plan) if isinstance(node, Window)]
    above = [node for node in every(query.plan) if isinstance(node, Filter) and isinstance(node.child, Window)]
    assert (len(windows), len(above)) == (3, 3)


def test_members_of_one_length_share_the_groups() -> None:
    text = written(
        "SELECT symbol, SUM(price) AS s FROM ticks [RANGE lasting.n] GROUP BY symbol HAVING SUM(price) > lasting.n"
    )
    below = text.partition("CROSS JOIN")[0]
    assert "GROUP BY symbol, ticks.window_n" in below
    assert "FROM lasting" not in below
    text = written("SELECT COUNT(*) AS c FROM ticks [RANGE lasting.n] WHERE price > 3")
    assert "GROUP BY ticks.window_n" in text
    assert text.count("FROM lasting") == 1, "no tuple meets a member below the groups"


def test_two_windows_of_one_length_are_joined_by_it() -> None:
    text = written("SELECT t.price FROM ticks [RANGE lasting.n] t, news [RANGE lasting.n] n WHERE t.symbol = n.symbol")
    assert "n.window_n_2 = t.window_n" in text
    assert "n.window_n_2 = member" not in text


def test_what_tells_windows_apart_is_not_shown() -> None:
    query, _ = family("lasting AS SELECT *, ELEMENT_TIME AS t FROM ticks [ROWS lasting.n] x")
    own = ["symbol", "price", "n", "time"]
    assert [column.name for column in query.plan.columns] == ["lasting_symbol", "lasting_n", "step", *own, "t"]


@pytest.mark.parametrize(("values", "accepted"), [(range(1, 33), True), (range(1, 34), False)])
def test_a_window_stands_for_so_many_windows_at_the_most(values: range, accepted: bool) -> None:
    catalog = Catalog()
    define(f"{DEFINED} CREATE RELATION many (n INT CHECK (n IN ({', '.join(map(str, values))})));", catalog)
    text = "CREATE QUERIES f FOR EACH ROW OF many AS SELECT price FROM ticks [ROWS many.n]"
    if accepted:
        define(text, catalog)
        return
    with pytest.raises(UserError, match="stands for 33 windows"):
        define(text, catalog)


@pytest.mark.parametrize(
    ("check", "shown"),
    [
        ("n IN (1, 2)", "n IN (1, 2)"),
        ("N in (1,2) AND NOT (n = 2)", "n IN (1, 2) AND NOT (n = 2)"),
        ("n BETWEEN -5 AND 7 OR n IS NULL", "n BETWEEN -5 AND 7 OR n IS NULL"),
    ],
)
def test_describe_shows_the_check_of_a_column(check: str, shown: str) -> None:
    catalog = Catalog()
    define(f"CREATE RELATION r (n INT CHECK ({check}), s STRING) KEY (n)", catalog)
    (listing,) = define("DESCRIBE r", catalog)
    assert isinstance(listing, Listing)
    assert listing.rows == (("n", "INT", f"key, CHECK ({shown})"), ("s", "STRING", ""))


def every(plan: Node) -> list[Node]:
    """All nodes of a plan."""
    return [plan, *(node for child in children(plan) for node in every(child))]
