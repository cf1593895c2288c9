"""Compiling: from text to fragments and programs, without Spark."""

from __future__ import annotations

import pytest

from headgate.catalog.catalog import Catalog
from headgate.compile import compile_query, compile_script, compile_statements, explanation
from headgate.errors import UserError

STREAMS = """
CREATE STREAM s (k STRING, v INT) SOURCE BY k;
CREATE STREAM t (k STRING, w INT);
"""


def catalog(script: str) -> Catalog:
    found = Catalog()
    compile_script(STREAMS + script, found)
    return found


def test_a_query_that_is_split_has_its_fragments_in_order() -> None:
    known = catalog(
        "SET heartbeats = 'operator'; CREATE QUERY q AS SELECT a.n, t.w "
        "FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k) a, t [RANGE 5] WHERE a.k = t.k"
    )
    below, answer = compile_query(known.query("q"), known)
    assert (below.part.name, answer.part.name) == ("part(1)", "answer")
    assert (below.program.kind, answer.program.kind) == ("elements", "relation")
    assert [fragment.ahead for fragment in (below, answer)] == ["nothing", "nothing"]
    assert below.part.log in answer.program.logs()
    assert "part(1): waits for s" in explanation(known.query("q"), known)


@pytest.mark.parametrize(
    ("query", "ahead"),
    [
        ("SELECT ISTREAM(v) FROM s", "everything"),
        ("SELECT ISTREAM(x) FROM (SELECT v AS x FROM s UNION ALL SELECT w AS x FROM t)", "an instant"),
        ("SELECT COUNT(*) AS n FROM s [RANGE 5]", "nothing"),
    ],
)
def test_how_much_a_fragment_takes_before_it_is_complete(query: str, ahead: str) -> None:
    known = catalog(f"CREATE QUERY q AS {query}")
    (fragment,) = compile_query(known.query("q"), known)
    assert fragment.ahead == ahead


def test_a_query_by_groups_has_a_fragment_for_each() -> None:
    known = catalog("GROUPS OF s ('a'), ('b'); CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k")
    fragments = compile_query(known.query("q"), known)
    assert len(fragments) == len(known.query("q").by_groups) == 3
    assert [fragment.group for fragment in fragments] == ["('a')", "('b')", "all but ('a', 'b')"]
    assert [fragment.sees["s"].rpartition(") ")[2] for fragment in fragments] == [
        "IN ('a')",
        "IN ('b')",
        "NOT IN ('a', 'b')",
    ]


def test_a_refused_change_leaves_the_query_as_it_was() -> None:
    known = catalog("CREATE QUERY q AS SELECT DISTINCT k FROM s [RANGE 5]; SET state = 'bounded'")
    before = known.query("q")
    text = "SET state = 'bounded';\nALTER QUERY q AS SELECT DISTINCT k FROM s"
    with pytest.raises(UserError) as refused:
        compile_script(text, known)
    assert refused.value.code == "state-grows"
    assert refused.value.place is not None
    assert text[refused.value.place.start : refused.value.place.end] == "DISTINCT"
    assert known.query("q") is before


def test_words_that_are_known_are_given_out_and_not_carried_out() -> None:
    known = catalog("CREATE QUERY q AS SELECT * FROM s [RANGE 5]")
    before = {"CREATE QUERY q AS SELECT * FROM s [RANGE 5]": known.query("q")}
    text = "CREATE QUERY q AS SELECT * FROM s [RANGE 5]; CREATE QUERY r AS SELECT * FROM t [RANGE 5]"
    found = list(compile_statements(text, known, registered=before.get))
    assert [(one.definition.name, one.known) for one in found] == [("q", True), ("r", False)]  # type: ignore[union-attr]
    assert [one.place.start for one in found] == [0, text.index("CREATE QUERY r")]
