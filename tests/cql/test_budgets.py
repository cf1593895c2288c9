"""What is counted before it is made: no text is too large or too deep to be refused, and nothing crashes on the way."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

import pytest

from headgate.catalog.catalog import Catalog
from headgate.compile import compile_query, compile_script, explanation
from headgate.cql import grouping, inputs, script
from headgate.cql.names import DASHED
from headgate.errors import UserError
from headgate.plan.size import MOST_DEEP, size
from headgate.sql import reading

STREAMS = "CREATE STREAM s (k STRING, n INT);"


def catalog_with(text: str = "") -> Catalog:
    catalog = Catalog()
    compile_script(STREAMS + text, catalog)
    return catalog


def refused(text: str, catalog: Catalog | None = None) -> UserError:
    with pytest.raises(UserError) as error:
        compile_script(text, catalog or catalog_with())
    assert error.value.place is not None
    assert error.value.render()
    return error.value


def keys(count: int) -> str:
    return ", ".join(f"n + {number}" for number in range(count))


def joined(count: int) -> str:
    return "SELECT a0.n FROM " + ", ".join(f"s [RANGE 10] AS a{number}" for number in range(count))


# counted before it is made


@pytest.mark.parametrize(
    "group",
    [
        f"CUBE({keys(14)})",
        f"CUBE({keys(40)})",
        f"ROLLUP({keys(70)})",
        f"CUBE({keys(4)}), CUBE({keys(4)})",
        f"GROUPING SETS ({', '.join(f'(n + {number})' for number in range(65))})",
        f"{keys(30)} WITH CUBE",
    ],
)
def test_grouping_sets_are_counted(group: str) -> None:
    error = refused(f"SELECT COUNT(*) AS x FROM s [NOW] GROUP BY {group}")
    assert (error.code, str(grouping.MOST_SETS) in error.message) == ("too-large", True)


def test_as_many_grouping_sets_as_are_allowed_work() -> None:
    catalog = catalog_with(f"CREATE QUERY q AS SELECT COUNT(*) AS x FROM s [NOW] GROUP BY CUBE({keys(6)})")
    assert compile_query(catalog.query("q"), catalog)


def test_inputs_are_counted() -> None:
    catalog = catalog_with(f"CREATE QUERY q AS {joined(inputs.MOST_INPUTS)}")
    assert compile_query(catalog.query("q"), catalog)
    assert refused(joined(inputs.MOST_INPUTS + 1)).code == "too-large"


def test_joins_that_equate_take_no_longer_with_each_input() -> None:
    equal = " AND ".join(f"a{number}.n = a{number + 1}.n" for number in range(inputs.MOST_INPUTS - 1))
    catalog, before = catalog_with(), time.process_time()
    compile_script(f"CREATE QUERY q AS {joined(inputs.MOST_INPUTS)} WHERE {equal}", catalog)
    compile_query(catalog.query("q"), catalog)
    assert time.process_time() - before < 10


@pytest.mark.parametrize(
    "text",
    [
        "".join(
            f"CREATE VIEW v{number + 1} AS SELECT a.n FROM v{number} a, v{number} b WHERE a.n = b.n;"
            for number in range(40)
        ),
        "".join(
            f"CREATE VIEW v{number + 1} AS SELECT n FROM v{number} UNION ALL SELECT n FROM v{number};"
            for number in range(40)
        ),
        "SELECT a0.n FROM v0 a0" + "".join(f" FULL JOIN v0 a{one} ON a0.n = a{one}.n" for one in range(1, 20)),
        "WITH w0 AS (SELECT n FROM v0)"
        + "".join(f", w{one + 1} AS (SELECT a.n FROM w{one} a, w{one} b)" for one in range(40))
        + " SELECT n FROM w40",
    ],
    ids=["views joined", "views united", "outer joins", "with"],
)
def test_what_views_and_outer_joins_multiply_is_counted(text: str) -> None:
    before = time.process_time()
    error = refused(text, catalog_with("CREATE VIEW v0 AS SELECT n FROM s [RANGE 10];"))
    assert error.code == "too-large"
    assert time.process_time() - before < 20


def test_functions_that_double_are_counted() -> None:
    catalog = catalog_with("CREATE FUNCTION twice(a INT) RETURN a + a;")
    assert refused(f"SELECT {'twice(' * 40}n{')' * 40} AS x FROM s [NOW]", catalog).code == "too-large"
    compile_script(f"SELECT {'twice(' * 5}n{')' * 5} AS x FROM s [NOW]", catalog)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT n FROM s [NOW] WHERE n = {}",
        "SELECT n FROM s [NOW] LIMIT {}",
        "SELECT n FROM s [RANGE {}]",
        "SELECT n FROM s [NOW] ORDER BY n LIMIT 1 OFFSET {}",
        "SELECT n FROM s [NOW] GROUP BY {}",
        "SET flush_rows = '{}'",
        "SET time_unit = '{} seconds'",
        "SET flush_rows = {}",
    ],
)
@pytest.mark.parametrize("number", ["9" * 5_000, "1e999999999"])
def test_long_numbers_are_refused(text: str, number: str) -> None:
    with pytest.raises(UserError) as error:
        compile_script(text.format(number), catalog_with())
    assert error.value.place is not None


def test_long_numbers_of_gsql_are_refused() -> None:
    error = refused(f"SET dialect = 'gsql'; SELECT n FROM s WHERE n = {'9' * 5_000};")
    assert error.code in ("too-large", "too-deep", "syntax", "wrong-type")


@pytest.mark.parametrize("name", ["x" * 256, "ä" * 50, "." * 90], ids=["long", "umlauts", "dots"])
@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM `{}` (n INT);",
        "CREATE VIEW `{}` AS SELECT n FROM s [NOW];",
        "CREATE QUERY `{}` AS SELECT n FROM s [NOW];",
        "CREATE QUERY q AS SELECT n FROM s [NOW]; CREATE GROUP `{}` OF q;",
    ],
)
def test_names_are_as_long_as_folders_take(text: str, name: str) -> None:
    catalog = catalog_with()
    with pytest.raises(UserError) as error:
        compile_script(text.format(name), catalog)
    assert error.value.code == "too-large"
    assert name.lower() not in {**catalog.streams, **catalog.views, **catalog.queries, **catalog.groups}


def test_what_was_carried_out_before_a_restart_is_not_counted_again() -> None:
    text = f"CREATE QUERY q AS {joined(inputs.MOST_INPUTS + 1)}; CREATE VIEW `{'x' * 256}` AS SELECT n FROM s [NOW]"
    catalog = catalog_with()
    assert refused(text, catalog).code == "too-large"
    catalog.permissions = None
    compile_script(text, catalog)


def test_statements_and_their_letters_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "MOST_STATEMENTS", 3)
    assert refused("SHOW QUERIES;" * 4).message == "a text may have 3 statements"
    monkeypatch.setattr(script, "LONGEST_STATEMENT", 50)
    assert "51 letters" in refused(f"SELECT n FROM s [NOW] WHERE k = '{'x' * 17}'").message


# linear


def seconds(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def test_a_long_text_beside_an_unknown_column_takes_no_time() -> None:
    text = f"SELECT frobnicated FROM s [NOW] WHERE k = '{'x' * 64_000}'"
    assert seconds(lambda: refused(text)) < 5
    assert DASHED.match("a-b-c + 1").group() == "a-b-c"  # type: ignore[union-attr]


def test_a_name_with_dashes_is_still_found() -> None:
    error = refused("SELECT first-name FROM s [NOW]")
    assert (error.code, "first-name" in error.message) == ("foreign-construct", True)


def test_statements_under_gsql_take_as_long_as_they_are() -> None:
    text = "SET dialect = 'gsql';" + "SHOW QUERIES;\n" * 4_000
    assert seconds(lambda: compile_script(text, catalog_with())) < 20


def test_places_under_gsql_are_in_the_whole_script() -> None:
    text = "SET dialect = 'gsql';\nSHOW QUERIES;\n  SHOW SETTINGS; DESCRIBE nothing;"
    error = refused(text)
    assert error.place is not None
    assert (error.place.text, error.place.line) == (text, 3)
    assert text[error.place.start : error.place.end] == "nothing"


# deep


def nested(count: int) -> dict[str, str]:
    return {
        "parentheses": "(" * count + "n" + ")" * count,
        "sums": "1 + (" * count + "n" + ")" * count,
        "calls": "abs(" * count + "n" + ")" * count,
        "arrays": "size(" + "array(" * count + "n" + ")" * count + ")",
        "casts": "CAST(" * count + "n" + " AS BIGINT)" * count,
        "cases": "CASE WHEN k = 'a' THEN " * count + "n" + " END" * count,
        "nots": "CASE WHEN " + "NOT " * count + "k = 'a' THEN 1 END",
        "not in brackets": "CASE WHEN " + "NOT (" * count + "k = 'a'" + ")" * count + " THEN 1 END",
        "brackets": "array(n)" + "[0]" * count,
        "minus": "- " * count + "n",
        "chain": " + ".join(["n"] * count),
        "aggregate": "SUM(" + "1 + (" * count + "n" + ")" * count + ")",
        "braces": "{" * count,
        "lambdas": "transform(array(1), x -> " * count + "x" + ")" * count,
        "types": "CAST(n AS " + "ARRAY<" * count + "INT" + ">" * count + ")",
        "conditions": "CASE WHEN " + "(k = 'a' AND k <> 'b' OR " * count + "k = 'a'" + ")" * count + " THEN 1 END",
    }


def queries(count: int) -> dict[str, str]:
    some = {name: f"SELECT {text} AS x FROM s [NOW]" for name, text in nested(count).items()}
    exists = " WHERE EXISTS (SELECT 1 FROM s [NOW] b{} WHERE b{}.n = b{}.n"
    return {
        **some,
        "queries": "SELECT * FROM " + "(SELECT * FROM " * count + "s [NOW]" + ")" * count,
        "unions": " UNION ALL ".join(["SELECT n FROM s [RANGE 5]"] * count),
        "unions in brackets": "(SELECT n FROM s [NOW]) UNION ALL (" * count + "SELECT n FROM s [NOW]" + ")" * count,
        "exists": "SELECT b0.n FROM s [NOW] b0"
        + "".join(exists.format(one, one, one - 1) for one in range(1, count))
        + ")" * (count - 1),
        "in": "SELECT n FROM s [NOW] WHERE n IN (" * count + "1" + ")" * count,
        "scalars": "SELECT (" * count + "SELECT MAX(n) FROM s [NOW]" + ") AS x FROM s [NOW]" * count,
        "with": "WITH w AS (" * count + "SELECT n FROM s [NOW]" + ") SELECT n FROM w" * count,
    }


def from_deep_down(calls: int, work: Callable[[], object]) -> object:
    """Do some work where much is on the stack, as in a notebook."""
    return work() if calls == 0 else from_deep_down(calls - 1, work)


@pytest.mark.parametrize("count", [30, 90, 199, 500, 3_000])
@pytest.mark.parametrize("form", queries(1))
def test_nothing_is_too_deep_to_be_answered(form: str, count: int) -> None:
    """Each text is planned, or refused by name: no RecursionError, whoever asks."""

    def ask() -> None:
        catalog = catalog_with()
        try:
            compile_script(f"CREATE QUERY q AS {queries(count)[form]}", catalog)
            explanation(catalog.query("q"), catalog)
        except UserError as error:
            assert error.place is not None
            if count > 200 and form not in ("brackets",):
                assert error.code in ("too-deep", "syntax", "not-yet", "too-large")

    limit = sys.getrecursionlimit()
    from_deep_down(150, ask)
    assert sys.getrecursionlimit() == limit


def test_a_text_takes_no_more_stacks_than_are_allowed() -> None:
    assert refused(f"SELECT {nested(50_000)['nots']} AS x FROM s [NOW]").code == "too-deep"
    assert refused("SELECT " + "NOT " * 50_000).code == "too-deep"


@pytest.mark.parametrize("form", ["parentheses", "chain", "minus", "nots"])
def test_what_may_be_nested_two_hundred_deep(form: str) -> None:
    catalog = catalog_with(f"CREATE QUERY q AS SELECT {nested(190)[form]} AS x FROM s [NOW]")
    assert explanation(catalog.query("q"), catalog)


@pytest.mark.parametrize("form", ["sums", "calls", "arrays", "casts", "cases", "not in brackets", "aggregate"])
def test_what_may_be_nested_almost_a_hundred_deep(form: str) -> None:
    catalog = catalog_with(f"CREATE QUERY q AS SELECT {nested(90)[form]} AS x FROM s [NOW]")
    assert explanation(catalog.query("q"), catalog)


def test_views_on_views_are_refused_where_they_get_too_deep() -> None:
    text = "CREATE VIEW v0 AS SELECT n FROM s [RANGE 5];" + "".join(
        f"CREATE VIEW v{one} AS SELECT n + 1 AS n FROM v{one - 1} WHERE n > {one};" for one in range(1, 500)
    )
    catalog = catalog_with()
    assert refused(text, catalog).code == "too-deep"
    deepest = max(catalog.views.values(), key=lambda view: size(view.plan).deep)
    assert MOST_DEEP - 4 < size(deepest.plan).deep <= MOST_DEEP

    def ask() -> None:
        compile_script(f"CREATE QUERY q AS SELECT n, COUNT(*) AS c FROM {deepest.name} GROUP BY n", catalog)

    with pytest.raises(UserError):
        from_deep_down(150, ask)
    below = f"v{int(deepest.name[1:]) - 5}"
    compile_script(f"CREATE QUERY q AS SELECT n, COUNT(*) AS c FROM {below} GROUP BY n", catalog)
    from_deep_down(150, lambda: compile_query(catalog.query("q"), catalog))


def test_two_threads_read_deep_texts() -> None:
    failed: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(5):
                catalog_with(f"CREATE QUERY q AS SELECT {nested(90)['cases']} AS x FROM s [NOW]")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


# what is kept


def test_trees_of_texts_are_kept_within_bounds() -> None:
    for number in range(3_000):
        reading.parsed(f"a + {number}")
    for number in range(30):
        reading.parsed(f"a = '{'x' * 5_000}{number}'")
        reading.parsed(f"a = '{'x' * reading.LONG}{number}'")
    short, long = reading._of_short.cache_info(), reading._of_long.cache_info()
    assert (short.currsize, long.currsize) == (1_000, 8)
    assert reading.parsed("a + 1") is reading.parsed("a + 1")
    assert reading.parsed("a +") is None
    assert reading.exactly("a  +  1") is None
