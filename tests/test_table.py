"""Small tables: columns of words as text and as HTML, and what becomes of words that come from data."""

from __future__ import annotations

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Relation, Stream
from headgate.cql.definitions import Listing, define
from headgate.heartbeat.why import Input, Why
from headgate.table import MOST_LETTERS, Table, counted, paragraphs, word, words

EVIL = "<img src=x onerror=alert(1)>&\"'"
HARMLESS = "&lt;img src=x onerror=alert(1)&gt;&amp;&quot;&#x27;"


def test_words_stand_in_columns() -> None:
    assert str(Table(("item", "n"), (("vase", "1"), ("a", "20")), "two rows")) == "item  n\nvase  1\na     20\ntwo rows"
    assert str(Table(("item",), ())) == "item"


def test_everything_in_html_is_escaped() -> None:
    html = Table((EVIL,), ((EVIL,),), EVIL)._repr_html_() + paragraphs([EVIL, EVIL])
    assert html.count(HARMLESS) == 5
    assert "<img" not in html


def test_words_are_one_line_and_not_too_long() -> None:
    assert word(None) == "null"
    assert word(1.5) == "1.5"
    assert word("a\nb\x1b[2J\u202e") == "a?b?[2J?"
    assert len(word("x" * 10_000)) == MOST_LETTERS
    assert word("x" * MOST_LETTERS) == "x" * MOST_LETTERS
    assert words(("a",), [(None,)]).rows == (("null",),)


def test_numbers_with_what_is_counted() -> None:
    assert [counted(n, "query", "queries") for n in (0, 1, 2)] == ["0 queries", "1 query", "2 queries"]
    assert counted(2, "row") == "2 rows"


def test_what_statements_answer_can_be_shown_in_a_notebook() -> None:
    catalog = Catalog()
    stream, relation, query = define(
        """CREATE STREAM s (k STRING, v INT, at TIMESTAMP) TIMESTAMP BY at SOURCE BY k;
        CREATE RELATION r (k STRING, o STRING, c STRING, at TIMESTAMP) KEY (k) TIMESTAMP BY at CHANGE BY c;
        CREATE QUERY q AS SELECT ISTREAM(k) FROM s [NOW] WHERE v < 3 AND k <> '<b>'""",
        catalog,
    )
    assert isinstance(stream, Stream)
    assert isinstance(relation, Relation)
    shown = stream._repr_html_()
    assert "<b>stream s</b>" in shown
    assert all(
        one in shown for one in (">k<", ">STRING<", ">names its source<", ">its timestamp<", "stamped: external")
    )
    assert ">its key<" in relation._repr_html_()
    said = catalog.query("q")._repr_html_()
    assert query is catalog.query("q")
    assert "v &lt; 3 AND k &lt;&gt; &#x27;&lt;b&gt;&#x27;" in said
    assert ">&lt;b&gt;<" in Listing(("a",), (("<b>",),))._repr_html_()


def test_why_is_escaped_because_sources_are_named_by_data() -> None:
    why = Why("q", "3", f"s SOURCE '{EVIL}'", 1.0, "", (), (Input("s", "3", "speaking", 1),))
    assert HARMLESS in why._repr_html_()
    assert "<img" not in why._repr_html_()
