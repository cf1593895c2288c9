"""What the JDBC sink writes into its statements."""

from __future__ import annotations

import pytest

from headgate.deliver.sinks.jdbc import _check_columns
from headgate.errors import UserError


@pytest.mark.parametrize("column", ['a") ; DROP TABLE t; --', "a`b", "a]b", "a\\", "[a"])
def test_columns_that_would_end_their_quotes(column: str) -> None:
    with pytest.raises(UserError, match="sink-failed"):
        _check_columns(["_time", column], "t")


def test_columns_of_any_other_name() -> None:
    _check_columns(["_time", "a b", "größe", "it's", "a;b", "count(1)"], "t")
