"""Readers: in which way the rows of a stream or relation come."""

from __future__ import annotations

import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.readers import READERS, STREAMED, way
from headgate.cql.definitions import define
from headgate.errors import UserError

STREAM = "CREATE STREAM s (a INT, at TIMESTAMP) TIMESTAMP BY at"
FIXED = "CREATE RELATION s (a INT)"
CHANGING = "CREATE RELATION s (a INT, at TIMESTAMP) TIMESTAMP BY at"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (STREAM, "push"),
        (f"{STREAM} FROM memory", "push"),
        (f"{STREAM} FROM csv OPTIONS ('path' = 'in')", "files"),
        (f"{STREAM} FROM CSV OPTIONS ('path' = 'in', 'MaxFilesPerTrigger' = '1')", "stream"),
        (f"{STREAM} FROM kafka OPTIONS ('subscribe' = 's')", "stream"),
        (f"{STREAM} FROM of_my_own", "stream"),
        (f"{FIXED} FROM csv OPTIONS ('path' = 'in', 'maxFilesPerTrigger' = '1')", "files"),
        (f"{FIXED} FROM jdbc OPTIONS ('url' = 'jdbc:x')", "whole"),
        (f"{FIXED} FROM of_my_own", "whole"),
        (f"{CHANGING} FROM of_my_own", "stream"),
    ],
)
def test_the_way_in_which_rows_come(text: str, expected: str) -> None:
    catalog = Catalog()
    define(text, catalog)
    defined = catalog.source("s")
    assert way(defined) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("name", READERS)
def test_a_stream_names_the_readers_that_it_is_offered(name: str) -> None:
    if READERS[name].fields:
        text = f"CREATE STREAM s ({{}} TIMESTAMP) TIMESTAMP BY {{}} FROM {name.upper()} OPTIONS ('path' = 'in')"
        define(text.format("Time", "time"), Catalog())
        with pytest.raises(UserError, match='has no field "tim"') as error:
            define(text.format("tim", "tim"), Catalog())
        assert error.value.hint == 'Did you mean "time"?'
    elif name in STREAMED:
        define(f"{STREAM} FROM {name.upper()} OPTIONS ('path' = 'in')", Catalog())
    else:
        with pytest.raises(UserError, match="no-such-source"):
            define(f"{STREAM} FROM {name.upper()} OPTIONS ('path' = 'in')", Catalog())
