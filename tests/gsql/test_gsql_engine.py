"""GSQL in an engine: beside CQL, with functions from Python, with parameters that change, and after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.engine import Engine
from headgate.errors import UserError

SCRIPT = """SET dialect = 'gsql';
PROTOCOL base { uint time get_time (increasing); }
PROTOCOL TCP (base) { IP srcIP; uint len; }
CREATE STREAM eth0.TCP; CREATE STREAM eth1.TCP;
DEFINE { query_name 'big'; } PARAM { least uint = 10; }
  select time, srcIP, len from TCP where len >= $least;
DEFINE { query_name 'per_minute'; } select tb, count(*) as n, max(srcIP) from big group by time/60 as tb;
DEFINE { query_name 'frequent'; } PARAM { n uint = 1; }
  select tb, srcIP, count(*) as n from eth0.TCP group by time/60 as tb, srcIP having count(*) > $n;
DEFINE { query_name 'called'; } select time, twice(len) as len from eth0.TCP where len > 90 and not boring[srcIP];
SET dialect = 'cql';
CREATE QUERY large AS SELECT ISTREAM(time, len) FROM big [NOW] WHERE len > 85;
"""


def rows(begin: int, lengths: list[int]) -> list[dict[str, Any]]:
    return [{"time": begin + i, "srcIP": f"10.0.0.{9 + i % 2}", "len": length} for i, length in enumerate(lengths)]


def found(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    return [tuple(result.row.values()) for result in engine.query(query).results()]


@pytest.mark.spark
def test_gsql_runs_beside_cql_and_goes_on_with_its_parameters(spark: SparkSession, tmp_path: Path) -> None:
    def begun() -> Engine:
        engine = Engine(spark, tmp_path)
        engine.register_function("twice", lambda value: 2 * value, "BIGINT")
        engine.register_function("boring", lambda ip: ip == "10.0.0.99", "BOOLEAN")
        engine.execute(SCRIPT)
        return engine

    spark.udf.register("twice", lambda value: 2 * value, "BIGINT")
    spark.udf.register("boring", lambda ip: ip == "10.0.0.99", "BOOLEAN")
    with begun() as engine:
        engine.push("eth0_TCP", rows(0, [5, 20, 80]))
        engine.push("eth1_TCP", rows(1, [90]))
        engine.step()
        engine.execute("ALTER QUERY big SET least = 85")  # counts behind the newest tuple
        assert engine.set_parameter("frequent", "n", 2) == 3
        engine.push("eth0_TCP", [*rows(10, [80, 100]), {"time": 59, "srcIP": "10.0.0.99", "len": 500}])
        engine.push("eth1_TCP", rows(20, [86]))
        engine.advance(100)
        assert found(engine, "big") == [
            (1, "10.0.0.10", 20),
            (1, "10.0.0.9", 90),
            (2, "10.0.0.9", 80),
            (11, "10.0.0.10", 100),
            (20, "10.0.0.9", 86),
            (59, "10.0.0.99", 500),
        ]
        assert found(engine, "per_minute") == [(0, 6, "10.0.0.99")]
        assert found(engine, "large") == [(1, 90), (11, 100), (20, 86), (59, 500)]
        assert found(engine, "called") == [(11, 200)]
        assert found(engine, "frequent") == [(0, "10.0.0.9", 3)]  # of two, as of the group's last tuple
        with pytest.raises(UserError, match="too-late"):
            engine.execute("ALTER QUERY big SET least = 5 FROM 3")
        with pytest.raises(UserError, match="still-read"):
            engine.execute("DROP QUERY big")
        assert "CAST(PARAMETER('big.least', time) AS BIGINT)" in engine.query("big").explain()
        assert "which amounts to this CQL" in engine.query("per_minute").explain()
    with begun() as engine:
        assert engine.resumed
        engine.push("eth0_TCP", rows(200, [80, 100]))
        engine.push("eth1_TCP", rows(200, [84]))
        engine.advance(300)
        assert found(engine, "big")[6:] == [(201, "10.0.0.10", 100)]
        assert found(engine, "per_minute")[1:] == [(3, 1, "10.0.0.10")]
        parameters = engine.execute("SHOW PARAMETERS")[0]
        assert str(parameters).splitlines()[1].split() == ["big", "least", "BIGINT", "85"]
        engine.execute("DROP QUERY large; DROP QUERY per_minute; DROP QUERY big")
        assert "big.least" not in engine.catalog.parameters
