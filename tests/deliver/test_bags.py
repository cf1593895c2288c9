"""The rows that are left of changes: computed by Arrow, compared as Spark compares them."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.deliver.bags import net

NAN = math.nan


def changes(rows: list[tuple[str, Any]], kind: pa.DataType) -> pa.Table:
    signs, values = [sign for sign, _ in rows], [value for _, value in rows]
    return pa.table({"_time": pa.array(range(len(rows)), pa.int64()), "_change": signs, "v": pa.array(values, kind)})


def left(kind: pa.DataType, *rows: tuple[str, Any]) -> list[Any]:
    """Put changes into two tables, and return the values that are left of them."""
    half = len(rows) // 2
    found = net([changes([*rows[:half]], kind), changes([*rows[half:]], kind)])
    assert found is not None
    assert found.column_names == ["v"]
    return list(found.column("v").to_pylist())


@pytest.mark.parametrize(
    "kind, one, other",
    [
        (pa.int64(), 1, 2),
        (pa.float64(), NAN, 0.0),
        (pa.float32(), 1.5, None),
        (pa.string(), "x", None),
        (pa.string(), "", None),
        (pa.bool_(), True, None),
        (pa.binary(), b"\x00", b""),
        (pa.decimal128(10, 2), Decimal("1.50"), None),
        (pa.date32(), date(2026, 1, 1), None),
        (pa.timestamp("us", "UTC"), datetime(2026, 1, 1, tzinfo=UTC), None),
        (pa.list_(pa.int64()), [1, None], [1]),
        (pa.list_(pa.int64()), [], None),
        (pa.list_(pa.list_(pa.string())), [["a"], ["b,c"]], [["a", "b,c"]]),
        (pa.struct([("a", pa.int64()), ("b", pa.list_(pa.float64()))]), {"a": 1, "b": [NAN]}, None),
        (pa.struct([("a", pa.int64()), ("b", pa.int64())]), {"a": 1, "b": None}, {"a": None, "b": 1}),
        (pa.map_(pa.string(), pa.int64()), [("a", 1)], [("a", 2)]),
        (pa.list_(pa.struct([("x", pa.map_(pa.string(), pa.int64()))])), [{"x": [("k", 1)]}], [{"x": None}]),
    ],
)
def test_rows_of_every_type_are_told_apart(kind: pa.DataType, one: Any, other: Any) -> None:
    rows = left(kind, ("+", one), ("+", other), ("+", one), ("+", one), ("-", one))
    assert list(map(str, rows)) == list(map(str, [one, one, other]))
    assert left(kind, ("+", one), ("+", other), ("-", one), ("-", other)) == []


def test_zero_is_zero_whatever_its_sign() -> None:
    assert left(pa.float64(), ("+", 0.0), ("-", -0.0)) == []
    assert left(pa.list_(pa.float64()), ("+", [0.0, NAN]), ("-", [-0.0, NAN])) == []


def test_of_no_tables_there_are_no_columns_either() -> None:
    assert net([]) is None


rows = st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 2)), max_size=30)


@given(rows, st.randoms(use_true_random=False))
def test_a_bag_is_what_came_without_what_went(came: list[tuple[str, int | None]], random: Any) -> None:
    """Of rows that come, some go again: what is left is counted row by row in Python."""
    went = [row for row in came if random.random() < 0.5]
    table = pa.table(
        {
            "_time": pa.array(range(len(came) + len(went)), pa.int64()),
            "_change": pa.array(["+"] * len(came) + ["-"] * len(went), pa.string()),
            "k": pa.array([key for key, _ in [*came, *went]], pa.string()),
            "v": pa.array([value for _, value in [*came, *went]], pa.int64()),
        }
    )
    found = net([table])
    assert found is not None
    assert Counter((row["k"], row["v"]) for row in found.to_pylist()) == Counter(came) - Counter(went)
