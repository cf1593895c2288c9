"""What is remembered of a statement can be read again, and then means the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tools.places import CASES, ROOT

from headgate.catalog.catalog import Catalog
from headgate.compile import compile_statements
from headgate.cql.definitions import Definition, Setting
from headgate.engine.facts import Statement
from headgate.engine.registry import ANSWERS
from headgate.engine.statements import Statements, refuse_unreadable, words_again
from headgate.errors import UserError
from headgate.testing import gsql_cases, texts
from headgate.testing.cases import from_json

STREAMS = "CREATE STREAM s (n INT, k STRING); CREATE STREAM t (n INT, k STRING); CREATE RELATION r (n INT, k STRING);"

FORMS = [
    "query : SELECT ISTREAM(n) FROM s [NOW]",
    "table : SELECT n FROM s [NOW]",
    "query : table : /* a */ SELECT n -- b\n FROM s [NOW]",
    "query : CREATE QUERY x AS SELECT n FROM s [NOW]",
    "table : register stream z (n integer, c byte)",
    "CREATE QUERY x AS SELECT n FROM s [NOW]; query : ALTER QUERY X AS SELECT k FROM s [NOW]",
    "CREATE QUERY x AS SELECT n FROM s [NOW]; alter\n query x AS SELECT k FROM s [NOW]; ALTER QUERY x AS SELECT n FROM t",
    "CREATE QUERY `x y;z` AS SELECT ISTREAM(n) FROM s [NOW] WHERE k = 'a;b''c'",
    "CREATE QUERY `größer` AS SELECT ISTREAM(n AS `né`) FROM s [NOW] WHERE k = '日本; \\' -- no comment'",
    "SELECT ISTREAM(n) FROM s [NOW] EMIT EARLY EVERY 1 SECOND",
    "SELECT n FROM s [NOW] /* trailing */ -- and more",
    "(SELECT n FROM s [NOW]) UNION ALL (SELECT n FROM t [NOW])",
    "WITH w AS (SELECT n FROM s [NOW]) SELECT n FROM w",
    "ISTREAM(SELECT n FROM s [NOW])",
    "v: SELECT n FROM s [NOW]; SELECT n FROM v",
    "v(a): SELECT n FROM s [NOW]; SELECT a FROM v; ALTER VIEW v AS SELECT k FROM s [NOW]",
    "vquery : SELECT n FROM s [NOW]; vtable : register relation w (n integer); SELECT n FROM w",
    "query : DISORDER OF s 5; query : DROP DISORDER OF s",
    "SKEW FROM s TO t (WITHIN 5); LATENCY OF s 1 SECOND; DROP SKEW FROM s TO t; DROP LATENCY OF s",
    "CREATE QUERIES x FOR EACH ROW OF r AS SELECT s.n, r.k FROM s [NOW] WHERE s.n = r.n",
    "CREATE QUERY x FROM BEGINNING AS SELECT ISTREAM(n) FROM s [NOW] INTO json OPTIONS ('path' = '/tmp/a;b')",
    "CREATE QUERY x AS SELECT n FROM s [NOW]; CREATE QUERY y AS SELECT k FROM s [NOW]; CREATE GROUP g OF x, y;"
    "DROP GROUP g; DROP QUERY x",
    "CREATE FUNCTION f(a INT) RETURN a + 1; CREATE QUERY x AS SELECT f(n) AS v FROM s [NOW]; DROP QUERY x",
    "ALTER STREAM s ADD COLUMN m INT; SELECT m FROM s [NOW]",
    "SET time_unit = '2 seconds'; SET heartbeats = 'operator'; SELECT n FROM s [RANGE 4 SECONDS]",
    "CREATE STREAM c (v INT CHECK (v IN (1, 5)), at TIMESTAMP, k STRING) TIMESTAMP BY at SOURCE BY k DISORDER 2 SECONDS",
    "SET dialect = 'gsql'; DEFINE { query_name 'big'; } select n from s where n > 5;"
    "SET dialect = 'cql'; CREATE QUERY large AS SELECT ISTREAM(n) FROM big [NOW] WHERE n > 85",
    "SET dialect = 'gsql'; query : SELECT ISTREAM(n) FROM s [NOW]; select n from s where k = 'a;b'",
]


def checked(catalog: Catalog) -> tuple[Callable[[str], None], Statements]:
    """What carries out scripts as an engine does, and checks that each statement can be read again; and what it
    remembers.
    """
    known = Statements()

    def carry_out(script: str) -> None:
        steps = compile_statements(script, catalog)
        before = catalog.state()
        while (one := next(steps, None)) is not None:
            unchanged = isinstance(one.definition, Setting) and catalog.state() == before
            if not isinstance(one.definition, ANSWERS) and not unchanged:
                statement = known.of(one.statement, one.definition, 0, one.language)
                refuse_unreadable(statement, one, before, catalog)
                known.add(statement, one.definition)
            before = catalog.state()

    return carry_out, known


def started_again(remembered: list[Statement]) -> Catalog:
    """The catalog of an engine that has been started again."""
    again = Catalog()
    again.permissions = None
    for statement in remembered:
        list(compile_statements(words_again(statement, again), again, language=statement.language))
    return again


def agrees(one: Catalog, other: Catalog) -> None:
    for kind in ("stream", "relation", "view", "query", "group", "function", "constraint"):
        assert _known(one, kind) == _known(other, kind)
    assert (one.settings, one.declarations, one.protocols) == (other.settings, other.declarations, other.protocols)


def _known(catalog: Catalog, kind: str) -> dict[str, Any]:
    known: dict[str, Any] = catalog.of_kind(kind)
    if kind in ("query", "view"):  # plans of one of a family may be those of another one
        return {name: (one.name, one.plan.columns, type(one.plan)) for name, one in known.items()}
    return known


@pytest.mark.parametrize("script", FORMS)
def test_every_form_is_read_again(script: str) -> None:
    catalog = Catalog()
    carry_out, known = checked(catalog)
    carry_out(STREAMS + script)
    agrees(started_again(known.all), catalog)


class Count:
    def __init__(self) -> None:
        self.statements = 0

    def of_texts(self, text: str, catalog: Catalog, origin: str = "") -> list[Definition]:
        """What `define` and `compile_script` do, with the check of an engine."""
        given = list[Definition]()
        before = catalog.state()
        for one in compile_statements(text, catalog, origin):
            if not isinstance(one.definition, ANSWERS) and catalog.state() != before:
                statement = Statements().of(one.statement, one.definition, 0, one.language)
                refuse_unreadable(statement, one, before, catalog)
                self.statements += 1
            given.append(one.definition)
            before = catalog.state()
        return given


def test_every_statement_of_the_cases_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    count = Count()
    monkeypatch.setattr(texts, "compile_script", count.of_texts)
    monkeypatch.setattr(gsql_cases, "define", count.of_texts)
    for name in ("cql", "found", "gsql"):
        for line in (CASES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            given: dict[str, Any] = json.loads(line)
            if name == "gsql":
                gsql_cases.from_json(given)
                continue
            try:
                texts.assumptions_of(from_json(given))
            except UserError as error:  # what is not known is refused
                assert error.code != "not-replayable", given["id"]
    assert count.statements > 700


def test_every_statement_of_the_docs_is_read_again() -> None:
    count = 0
    for page in sorted((ROOT / "docs").glob("*.md")):
        for language in ("cql", "sql", "gsql"):
            catalog = Catalog()
            carry_out, known = checked(catalog)
            for block in re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
                try:
                    carry_out(block)
                except UserError as error:
                    assert error.code != "not-replayable", (page, block)
            agrees(started_again(known.all), catalog)
            count += len(known.all)
    assert count > 100


@pytest.mark.parametrize(
    "script", ["CREATE QUERY `\ud800` AS SELECT n FROM s [NOW]", "SELECT n FROM s [NOW] WHERE k = '\udfff'"]
)
def test_half_of_a_character_is_refused(script: str) -> None:
    with pytest.raises(UserError, match="half of a character"):
        checked(Catalog())[0](STREAMS + script)


def test_what_means_something_else_is_refused() -> None:
    catalog, known = Catalog(), Statements()
    before = catalog.state()
    (one,) = compile_statements("CREATE STREAM s (n INT)", catalog)
    statement = known.of(one.statement, one.definition, 0)
    refuse_unreadable(statement, one, before, catalog)
    for words, why in (
        ("CREATE STREAM s (n STRING)", "They mean something else then."),
        ("CREATE STREAM s (n INTT)", "They are refused: "),
        ("label : CREATE STREAM s", "They are refused: "),
    ):
        with pytest.raises(UserError, match="not-replayable: this statement could not be read again") as error:
            refuse_unreadable(replace(statement, cql=words), one, before, catalog)
        assert why in error.value.detail
