"""Stages: where `explain` says that rows are dealt to the tasks anew, and that Spark plans just these exchanges."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.cql.stages import shuffles
from headgate.delta.lower import lower
from headgate.delta.program import Program
from headgate.spark.session import own_session

STREAMS = "CREATE STREAM s (k INT, v INT); CREATE STREAM t (k INT, w INT);"


def program(query: str) -> Program:
    catalog = Catalog()
    define(f"{STREAMS} CREATE QUERY q AS {query};", catalog)
    return lower(catalog.query("q").plan)


CASES = {
    "SELECT k FROM s [RANGE 5]": ["netted_1 by k, _t"],
    "ISTREAM(SELECT v FROM s [RANGE UNBOUNDED] WHERE v > 1)": [],
    "ISTREAM(SELECT k, v FROM s [NOW])": ["before_1 by k, v"],
    "ISTREAM(SELECT k, SUM(v) AS n FROM s [RANGE 9] GROUP BY k)": ["dealt_1 by _k1", "moves_2 by _k1"],
    "ISTREAM(SELECT k, SUM(v) AS n FROM s [RANGE 9 SLIDE 3] GROUP BY k)": [
        "new_panes_1 by _k1, _t, _x",
        "dealt_1 by _k1",
    ],
}


@pytest.mark.parametrize("query", CASES)
def test_rows_are_dealt_anew_only_where_they_do_not_lie_together(query: str) -> None:
    made = program(query)
    assert [str(one) for one in shuffles(made.texts(made.result))] == CASES[query]


def test_all_rows_of_a_walk_without_groups_go_to_one_task() -> None:
    made = program("SELECT SUM(v) AS n FROM s [RANGE 9]")
    assert "to one task" in str(shuffles(made.texts(made.result))[0])


@pytest.mark.spark
@pytest.mark.parametrize(
    "query",
    [
        "ISTREAM(SELECT k, v FROM s [NOW])",
        "ISTREAM(SELECT k, SUM(v) AS n FROM s [RANGE 9] GROUP BY k)",
        "SELECT k, SUM(v) AS n FROM s [RANGE 9] GROUP BY k",
        "ISTREAM(SELECT x.k, x.v, r.n FROM s [NOW] x, (SELECT k, AVG(v) AS n FROM s [RANGE 9] GROUP BY k) r "
        "WHERE x.k = r.k)",
        "ISTREAM(SELECT x.k, w FROM s [RANGE 3] x, t [RANGE 3] y WHERE x.k = y.k AND w > v)",
    ],
)
def test_spark_shuffles_where_explain_says(spark: SparkSession, tmp_path: Path, query: str) -> None:
    made, session = program(query), own_session(spark)
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")

    def lay(name: str, schema: StructType | str) -> None:
        session.createDataFrame([], schema).write.parquet(str(tmp_path / name))
        session.read.schema(schema).parquet(str(tmp_path / name)).createOrReplaceTempView(name)

    for source in made.inputs:
        own = "k INT, v INT" if source.stream == "s" else "k INT, w INT"
        lay(source.name, f"{own}, _t BIGINT, _s BIGINT")
    epoch = {"since": -1, "until": 5, "after": -1}
    for synopsis in made.synopses:
        lay(synopsis.name, session.sql(made.shape(synopsis), args=epoch).schema)
    plan = session.sql(made.output(), args=epoch)._jdf.queryExecution().executedPlan().toString()
    said = shuffles(made.texts(made.result))
    assert len(re.findall(r"- Exchange ", plan)) == len(said), f"{plan}\n{list(map(str, said))}"
