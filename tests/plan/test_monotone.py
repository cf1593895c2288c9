"""Monotone functions: which texts are chains of steps, that they rise or fall as is said, and that `passed` is the
first instant beyond.

What only this file can catch: a step that is undone wrongly for negative numbers or at a border, which random queries
over small numbers seldom meet. Texts are evaluated by DuckDB, as written and as the chain that was made of them.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.as_sql import sql
from tools.duck import shared, transpiled

from headgate.plan.chains import chain
from headgate.plan.monotone import (
    Calendar,
    Chain,
    Divided,
    Floored,
    Scale,
    Shift,
    Steps,
    Truncated,
    applied,
    as_number,
    passed,
    reach,
    rising,
)
from headgate.sql import Sql

TYPES = {"t": "BIGINT", "at": "TIMESTAMP", "d": "DATE", "s": "STRING", "x": "DOUBLE"}
SECOND, MINUTE, DAY = 1_000_000, 60_000_000, 86_400_000_000


@pytest.mark.parametrize(
    ("text", "column", "steps", "kind"),
    [
        ("t", "t", (), "integer"),
        ("t DIV 60", "t", (Divided(60),), "integer"),
        ("SHIFTRIGHT(t + 1, 5)", "t", (Shift(1), Floored(32)), "integer"),
        ("(t + 1) DIV 2 - 3", "t", (Shift(1), Divided(2), Shift(-3)), "integer"),
        ("2 * T", "t", (Scale(2),), "integer"),
        ("10 - t", "t", (Scale(-1), Shift(10)), "integer"),
        ("-t", "t", (Scale(-1),), "integer"),
        ("t - t % 60", "t", (Divided(60), Scale(60)), "integer"),
        ("CAST(t AS INT)", "t", (), "integer"),
        ("UNIX_SECONDS(at) DIV 10", "at", (Floored(SECOND), Divided(10)), "integer"),
        ("UNIX_MILLIS(at)", "at", (Floored(1000),), "integer"),
        ("UNIX_MICROS(at)", "at", (), "integer"),
        ("CAST(at AS BIGINT)", "at", (Floored(SECOND),), "integer"),
        (
            "TIMESTAMP_SECONDS(UNIX_SECONDS(at) DIV 10 * 10)",
            "at",
            (Floored(SECOND), Divided(10), Scale(10), Scale(SECOND)),
            "timestamp",
        ),
        ("DATE_TRUNC('minute', at)", "at", (Truncated(MINUTE),), "timestamp"),
        ("DATE_TRUNC('MONTH', at)", "at", (Calendar(Sql("MONTH")),), "timestamp"),
        ("DATE_TRUNC('WEEK', at)", "at", (Shift(-4 * DAY), Truncated(7 * DAY), Shift(4 * DAY)), "timestamp"),
        ("at + INTERVAL '5' MINUTES", "at", (Shift(5 * MINUTE),), "timestamp"),
        ("CAST(at AS DATE)", "at", (Floored(DAY),), "date"),
        ("TO_DATE(at)", "at", (Floored(DAY),), "date"),
        ("TRUNC(d, 'MM')", "d", (Scale(DAY), Calendar(Sql("MONTH")), Floored(DAY)), "date"),
    ],
)
def test_texts_that_are_chains(text: str, column: str, steps: Steps, kind: str) -> None:
    assert chain(text, TYPES) == Chain(column, steps, kind)


@pytest.mark.parametrize(
    "text",
    [
        "s",
        "x",
        "t * 0",
        "t DIV 0",
        "SHIFTRIGHT(t, 32)",
        "SHIFTRIGHT(5, t)",
        "SHIFTLEFT(t, 5)",
        "t % 10",
        "t + t",
        "t * 0.5",
        "t DIV x",
        "1",
        "HOUR(at)",
        "at + INTERVAL '1' MONTH",
        "t - t % 0",
        "UNIX_SECONDS(s)",
        "DATE_TRUNC('nothing', at)",
        "CAST(s AS BIGINT)",
        "10 DIV t",
        "a.t",
        "UPPER(s)",
        "d - 1",
        "((",
        "FLOOR(x)",
    ],
)
def test_texts_that_are_not(text: str) -> None:
    assert chain(text, TYPES) is None


steps = st.one_of(
    st.integers(-70, 70).map(Shift),
    st.integers(-7, 7).filter(bool).map(Scale),
    st.integers(-70, 70).filter(bool).map(Divided),
    st.integers(1, 70).map(Floored),
    st.integers(1, 70).map(Truncated),
)
chains = st.lists(steps, max_size=4).map(tuple)


def evaluated(*texts: str) -> list[int]:
    return list(shared().execute(transpiled(f"SELECT {', '.join(texts)}")).fetchone() or ())


@settings(max_examples=150)
@given(chains, st.integers(-300, 300), st.integers(0, 40))
def test_a_chain_goes_the_way_it_says(some: Steps, x: int, further: int) -> None:
    here, there = evaluated(applied(some, Sql(f"({x})")), applied(some, Sql(f"({x + further})")))
    assert here <= there if rising(some) else here >= there


@settings(max_examples=150)
@given(chains, st.integers(-300, 300))
def test_passed_is_the_first_instant_beyond(some: Steps, x: int) -> None:
    (value,) = evaluated(applied(some, Sql(f"({x})")))
    (first,) = evaluated(passed(some, Sql(f"({value})")))
    before, at = evaluated(applied(some, Sql(f"({first - 1})")), applied(some, Sql(f"({first})")))
    assert first > x
    assert before == value
    assert at > value if rising(some) else at < value


@settings(max_examples=150)
@given(chains, chains, st.integers(-300, 300))
def test_nothing_is_passed_later_than_its_reach(there: Steps, back: Steps, x: int) -> None:
    """Also where the value comes by another way than the one it is undone by, as in a join."""
    if rising(there) != rising(back):
        return
    (value,) = evaluated(applied(there, Sql(f"({x})")))
    (first,) = evaluated(passed(back, Sql(f"({value})")))
    most = reach(there, back)
    assert most is None or first - x <= most
    own = reach(there, there)
    assert own is not None


@settings(max_examples=60)
@given(st.sampled_from(["MONTH", "QUARTER", "YEAR"]), st.integers(-(10**16), 10**16), st.booleans())
def test_months_end_where_the_calendar_says(unit: str, x: int, falling: bool) -> None:
    some: Steps = (Calendar(sql(unit)), Scale(-1)) if falling else (Calendar(sql(unit)),)
    (value,) = evaluated(applied(some, Sql(f"CAST({x} AS BIGINT)")))
    (first,) = evaluated(passed(some, Sql(f"CAST({value} AS BIGINT)")))
    before, at = evaluated(
        applied(some, Sql(f"CAST({first - 1} AS BIGINT)")), applied(some, Sql(f"CAST({first} AS BIGINT)"))
    )
    assert (before, first > x) == (value, True)
    assert at < value if falling else at > value
    assert first - x <= (reach(some, some) or 0)


@pytest.mark.parametrize(
    "text", ["DATE_TRUNC('hour', at)", "DATE_TRUNC('week', at)", "DATE_TRUNC('year', at)", "CAST(at AS DATE)"]
)
@pytest.mark.parametrize("x", [-5_000_000_000_001, -1, 0, 59_999_999, 60_000_000, 1_700_000_000_123_456])
def test_a_chain_is_what_its_text_says(text: str, x: int) -> None:
    found = chain(text, TYPES)
    assert found is not None
    said = as_number(sql(re.sub(r"\bat\b", f"TIMESTAMP_MICROS({x})", text)), found.kind)
    assert evaluated(said) == evaluated(applied(found.steps, Sql(f"CAST({x} AS BIGINT)")))
