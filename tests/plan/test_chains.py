"""The text of an expression as a tree, whatever its columns are called."""

from __future__ import annotations

import pytest
from sqlglot import exp

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.errors import UserError
from headgate.sql.reading import parsed


@pytest.mark.parametrize("column", ["load", "cache", "comment", "set", "use"])
def test_a_column_may_have_the_name_of_a_statement(column: str, caplog: pytest.LogCaptureFixture) -> None:
    tree = parsed(f"{column} > 3")
    assert isinstance(tree, exp.GT)
    assert [one.name for one in tree.find_all(exp.Column)] == [column]
    assert not caplog.records, "sqlglot warns of a statement that it does not know"


def test_what_is_refused_is_refused_behind_such_a_column() -> None:
    text = "CREATE STREAM s (k INT, load TIMESTAMP); CREATE QUERY q AS SELECT k FROM s [RANGE 5] WHERE load > 'now'"
    with pytest.raises(UserError, match="an instant of its own clock"):
        define(text, Catalog())


def test_what_cannot_be_read_is_no_tree() -> None:
    assert parsed("a +") is None
    assert parsed("a, b") is None
