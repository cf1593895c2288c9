"""The shell completes GSQL when that is the dialect."""

from __future__ import annotations

import pytest

from headgate.catalog.catalog import Catalog
from headgate.compile import compile_script
from headgate.editing.entries import split
from headgate.shell.completion import completions


@pytest.mark.parametrize(
    "typed, offered",
    [
        ("PROT", "PROTOCOL"),
        ("PROTOCOL X { ", "uint"),
        ("PROTOCOL X { uint time (inc", "increasing"),
        ("DEFINE { que", "query_name"),
        ("select time from e", "eth0.TCP"),
        ("select time from T", "TCP"),
        ("select time from f", "flows"),
        ("select le", "len"),
        ("select time OUTER", "OUTER_JOIN"),
        ("select t, count(*) from TCP group by time as t super", "SUPERGROUP"),
        ("SHOW PAR", "PARAMETERS"),
    ],
)
def test_gsql_is_completed(typed: str, offered: str) -> None:
    catalog = Catalog()
    compile_script(
        "SET dialect = 'gsql'; PROTOCOL TCP { uint time (increasing); uint len; } CREATE STREAM eth0.TCP;"
        "DEFINE { query_name 'flows'; } select time from TCP",
        catalog,
    )
    found = completions(typed, catalog, " from TCP" if "from" not in typed else "").candidates
    assert offered.lower() in [candidate.text.lower() for candidate in found]


def test_a_section_of_gsql_does_not_end_a_statement() -> None:
    entries, rest = split("DEFINE { query_name 'q'; }\nselect time from TCP; SHOW STREAMS; DEFINE { comment 'x';")
    assert [entry.text for entry in entries] == ["DEFINE { query_name 'q'; }\nselect time from TCP;", "SHOW STREAMS;"]
    assert rest == "DEFINE { comment 'x';"
