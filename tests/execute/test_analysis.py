"""Programs that differ in values only are analysed once; whatever could change a type is not taken for such a value."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from headgate.engine import Engine
from headgate.errors import UserError
from headgate.execute import analysis
from headgate.execute.analysis import shape


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("a > 10", "a > 11", True),
        ("a > 10", "a > 'x'", False),
        ("a = 'it\\'s'", "a = 'b'", True),
        ("a < 1.5", "a < 10.25", False),
        ("a >= 12345678901", "a >= 12345678902", False),
        ("ROUND(a, 1)", "ROUND(a, 2)", False),
        ("FROM_JSON(a, 'x INT')", "FROM_JSON(a, 'x DATE')", False),
        ("a LIKE 'b > ' || 'c'", "a LIKE 'b > ' || 'd'", False),
        ("`a > 1` = 2", "`a > 2` = 2", False),
        ("_t + 60 > 5", "_t + 61 > 5", False),
    ],
)
def test_only_values_that_are_compared_with_are_left_out(one: str, other: str, alike: bool) -> None:
    assert (shape(one) == shape(other)) is alike


def test_queries_of_one_shape_are_analysed_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    class Counted(analysis._Analysis):
        def __init__(self, *arguments: object) -> None:
            asked.append(arguments)
            super().__init__(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(analysis, "_Analysis", Counted)
    with Engine(spark) as engine:
        engine.execute("SET families = 'off'; CREATE STREAM s (t BIGINT, k STRING, v DOUBLE) TIMESTAMP BY t")
        for number in range(5):
            engine.execute(f"CREATE QUERY q{number} AS SELECT ISTREAM k FROM s [NOW] WHERE k = 'k{number}' AND v > 1")
        assert len(asked) == 1
        engine.execute("CREATE QUERY other AS SELECT ISTREAM k, v FROM s [NOW] WHERE k = 'k' AND v > 1")
        assert len(asked) == 2
        for _ in range(2):
            with pytest.raises(UserError, match=r"ARRAY|array"):
                engine.execute("CREATE QUERY bad AS SELECT ISTREAM k FROM s [NOW] WHERE ARRAY(k) = 5")
        engine.push("s", [(1, "k3", 2.0), (1, "k4", 0.0)])
        engine.advance(1)
        assert [result.row for result in engine.query("q3").results()] == [{"k": "k3"}]
        assert not engine.query("q4").results()
