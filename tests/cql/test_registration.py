"""Functions in Python, relations from any reader, upserts by key, and DROP."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import StructType

from headgate.cql.definitions import Listing
from headgate.engine import Engine
from headgate.errors import UserError

pytestmark = pytest.mark.spark

Changes = list[tuple[int, str, tuple[object, ...]]]


def changes(engine: Engine, query: str) -> Changes:
    return [(result.at, result.sign, tuple(result.row.values())) for result in engine.query(query).results()]


def test_functions_in_python_by_name(spark: SparkSession) -> None:
    @pandas_udf("int")  # type: ignore[call-overload, untyped-decorator]
    def next_one(values: pd.Series) -> pd.Series:
        return values + 1

    spark.udf.register("twice", lambda value: 2 * value, "int")  # in the session, before the query
    with Engine(spark) as engine:
        engine.register_function("shout", lambda text: text.upper() + "!", "string")
        engine.register_function("next_one", next_one)
        engine.execute("CREATE STREAM s (k STRING, v INT)")
        engine.execute(
            "CREATE QUERY q AS SELECT ISTREAM(shout(k), twice(v), next_one(v) AS n) FROM s [NOW] WHERE twice(v) > 2"
        )
        engine.push("s", [(1, ("a", 1)), (2, ("b", 5))])
        engine.advance(3)
        assert changes(engine, "q") == [(2, "+", ("B!", 10, 6))]


def test_an_aggregate_in_python_beside_others_over_a_window(spark: SparkSession) -> None:
    @pandas_udf("double")  # type: ignore[call-overload, untyped-decorator]
    def spread(values: pd.Series) -> float:
        return float(values.max() - values.min())

    with Engine(spark) as engine:
        engine.register_function("spread", spread)
        engine.execute("""
            CREATE STREAM s (k STRING, v INT);
            CREATE QUERY q AS SELECT k, spread(v) AS d, COUNT(*) AS n, COUNT(DISTINCT v) AS m FROM s [RANGE 2] GROUP BY k;
        """)
        engine.push("s", [(1, ("a", 1)), (2, ("a", 8))])
        for until in (1, 2, 6):
            engine.advance(until)
        assert changes(engine, "q") == [
            (1, "+", ("a", 0.0, 1, 1)),
            (2, "-", ("a", 0.0, 1, 1)),
            (2, "+", ("a", 7.0, 2, 2)),
            (4, "-", ("a", 7.0, 2, 2)),
            (4, "+", ("a", 0.0, 1, 1)),
            (5, "-", ("a", 0.0, 1, 1)),
        ]


def test_a_relation_from_any_reader(spark: SparkSession) -> None:
    class CitiesReader(DataSourceReader):
        def read(self, partition: InputPartition) -> Iterator[tuple[str, str]]:
            yield ("a", "Kiruna")
            yield ("b", "Oslo")

    class Cities(DataSource):
        """Stands for any reader that is not made of files: JDBC, Delta, a service."""

        @classmethod
        def name(cls) -> str:
            return "cities"

        def schema(self) -> str:
            return "k string, city string"

        def reader(self, schema: StructType) -> DataSourceReader:
            return CitiesReader()

    spark.dataSource.register(Cities)
    with Engine(spark) as engine:
        engine.execute("""
            CREATE STREAM s (k STRING);
            CREATE RELATION cities (k STRING, city STRING) FROM cities;
            CREATE QUERY q AS SELECT ISTREAM(city) FROM s [NOW], cities WHERE s.k = cities.k;
            CREATE RELATION nowhere (k STRING) FROM a_reader_that_is_not_there;
        """)
        engine.push("s", [(1, ("b",))])
        with pytest.raises(UserError, match="nowhere"):
            engine.poll()
        engine.advance(1)
        assert changes(engine, "q") == [(1, "+", ("Oslo",))]


def test_upserts_by_key(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute("CREATE RELATION r (k STRING, v INT) KEY (k); CREATE QUERY q AS SELECT * FROM r")
        engine.push(
            "r",
            [(1, ("a", 1)), (2, ("b", 2)), (3, ("a", 5)), (3, ("a", 6)), (4, ("a", None), "-"), (4, ("c", None), "-")],
        )
        for until in (1, 3, 5):
            engine.advance(until)
        assert changes(engine, "q") == [
            (1, "+", ("a", 1)),
            (2, "+", ("b", 2)),
            (3, "-", ("a", 1)),
            (3, "+", ("a", 6)),
            (4, "-", ("a", 6)),
        ]


def test_what_is_dropped_is_gone(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM s (v INT); CREATE VIEW big AS SELECT v FROM s WHERE v > 1; CREATE QUERY q AS SELECT v FROM big"
        )
        with pytest.raises(UserError, match="still-read"):
            engine.execute("DROP STREAM s")
        engine.execute("DROP VIEW big; DROP QUERY q; DROP STREAM s; DROP QUERY IF EXISTS q")
        (listing,) = engine.execute("SHOW QUERIES")
        assert isinstance(listing, Listing)
        assert listing.rows == ()
        engine.execute(
            "CREATE STREAM s (v STRING); CREATE QUERY q AS SELECT v FROM s [NOW]"
        )  # the names are free, the types new
        engine.push("s", [(1, ("x",))])
        engine.advance(1)
        assert changes(engine, "q") == [(1, "+", ("x",))]


def test_a_mistake_takes_back_nothing_before_it(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        with pytest.raises(UserError, match="no-such-column"):
            engine.execute(
                "CREATE STREAM s (v INT); CREATE QUERY q AS SELECT v FROM s [NOW]; CREATE QUERY r AS SELECT w FROM s"
            )
        engine.push("s", [(1, (7,))])
        engine.advance(1)
        assert changes(engine, "q") == [(1, "+", (7,))]


def test_sums_of_doubles_do_not_drift(spark: SparkSession) -> None:
    """What was huge, infinite or not a number leaves no trace when it has gone."""
    with Engine(spark) as engine:
        engine.execute("CREATE STREAM s (v DOUBLE); CREATE QUERY q AS SELECT SUM(v) AS t, AVG(v) AS m FROM s [RANGE 2]")
        strange = [1e300, float("inf"), float("nan"), 1e17, -1e16]
        engine.push(
            "s", [row for i, value in enumerate(strange) for row in ((10 * i, (value,)), (10 * i + 1, (0.25,)))]
        )
        for until in (5, 11, 30, 60):
            engine.advance(until)
        held = [values for at, sign, values in changes(engine, "q") if sign == "+" and at % 10 == 3]
        assert held == [(0.25, 0.25)] * len(strange)
