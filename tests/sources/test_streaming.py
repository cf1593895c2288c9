"""Streams through Structured Streaming: every row of a source once, across failures and restarts, from Kafka too."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from tools.jars import add_jars
from tools.kafka_broker import broker, consume, create_topic, produce
from tools.places import EXAMPLES

from headgate import Engine
from headgate.cql.readers import formats
from headgate.errors import UserError
from headgate.heartbeat.clock import ManualClock
from headgate.sources.streaming import Handover, StreamingSource
from headgate.spark import connectors

pytestmark = pytest.mark.spark


TENS = (
    "CREATE STREAM tens (value BIGINT, timestamp TIMESTAMP) TIMESTAMP BY value FROM `rate-micro-batch` "
    "OPTIONS ('rowsPerBatch' = '10', 'numPartitions' = '1', 'startTimestamp' = '1000');"
    "CREATE QUERY q AS SELECT ISTREAM(value) FROM tens [NOW]"
)


def polled(engine: Engine, rows: int, seconds: float = 60) -> int:
    """Poll until so many tuples have come."""
    taken, limit = 0, time.monotonic() + seconds
    while taken < rows:
        assert time.monotonic() < limit, f"{taken} tuples in {seconds} seconds"
        taken += engine.poll()
        time.sleep(0.01)
    return taken


def streaming(engine: Engine) -> StreamingSource:
    (source,) = engine._core.inputs.sources
    assert isinstance(source, StreamingSource)
    return source


def test_a_batch_that_spark_did_not_commit_is_not_taken_twice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(self: Handover) -> None:
        raise KeyboardInterrupt

    with Engine(spark, tmp_path) as engine:
        engine.execute(TENS)
        polled(engine, 10)
        monkeypatch.setattr(Handover, "release", die)  # the chunk is in the log, and Spark never hears of it
        with pytest.raises(KeyboardInterrupt):
            polled(engine, 10)
        monkeypatch.undo()
        assert streaming(engine).inlet.position["batch"] == 1
    commits = {file.name for file in (tmp_path / "sources" / "tens" / "commits").iterdir()}
    assert "1" not in commits, "or this test shows nothing"
    with Engine(spark, tmp_path) as engine:
        engine.execute(TENS)
        assert engine.counts("tens") == {"taken": 20}
        polled(engine, 10)
        names = {chunk.path.name for chunk in streaming(engine).inlet.log.chunks}
        assert names == {f"batch-{number:012d}-00000.parquet" for number in range(3)}
        engine.advance(29)
        assert [result.row["value"] for result in engine.query("q").results()] == list(range(30))
    shutil.rmtree(tmp_path / "sources" / "tens" / "offsets")
    with Engine(spark, tmp_path) as engine, pytest.raises(UserError, match="torn-checkpoint"):
        engine.poll()


def rows_from(folder: Path) -> type[DataSource]:
    """A source of a user: each file of a folder is what comes next; "broken" among them makes it fail."""

    class Reader(SimpleDataSourceStreamReader):
        def initialOffset(self) -> dict[str, int]:  # noqa: N802
            return {"files": 0}

        def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[Any, ...]], dict[str, int]]:
            names = sorted(file.name for file in folder.iterdir())
            if "broken" in names:
                raise RuntimeError("the line is down")
            new = names[start["files"] :]
            rows = [tuple(row) for name in new for row in json.loads((folder / name).read_text())]
            return iter(rows), {"files": len(names)}

        def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[tuple[Any, ...]]:  # noqa: N802
            names = sorted(file.name for file in folder.iterdir())[start["files"] : end["files"]]
            return iter([tuple(row) for name in names for row in json.loads((folder / name).read_text())])

    class Folder(DataSource):
        @classmethod
        def name(cls) -> str:
            return "folder_of_rows"

        def schema(self) -> str:
            return "k STRING, v STRING, at BIGINT"

        def simpleStreamReader(self, schema: Any) -> Reader:  # noqa: N802
            return Reader()

    return Folder


def test_a_source_in_python_that_fails_and_comes_back(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1").write_text(json.dumps([["a", "1", 3], ["b", "two", 1], ["a", None, 2]]))
    spark.dataSource.register(rows_from(folder))
    clock = ManualClock()
    with Engine(spark, tmp_path / "engine", clock=clock) as engine:
        with pytest.raises(UserError) as missing:
            engine.execute("CREATE STREAM s (k STRING, w INT, at INT) TIMESTAMP BY at FROM folder_of_rows")
        assert missing.value.render() == (
            'no-such-column: column "w" of stream "s" does not exist in its source\ndetail: Its columns are "k", "v", "at".'
        )
        engine.execute(
            "CREATE STREAM s (K STRING, v INT, at INT) TIMESTAMP BY at FROM folder_of_rows; CREATE QUERY q AS SELECT ISTREAM(*) FROM s [NOW]"
        )
        engine.run_once()
        assert engine.counts("s") == {"taken": 2, "malformed": 1}
        assert [letter["_raw"] for letter in engine.dead_letters("s")] == ['{"k":"b","v":"two","at":1}']
        (folder / "broken").touch()
        with pytest.raises(UserError, match="source-failed") as failed:
            polled(engine, 1)
        assert "the line is down" in failed.value.detail
        (folder / "broken").rename(tmp_path / "mended")
        (folder / "2").write_text(json.dumps([["c", "7", 9]]))
        with pytest.raises(UserError, match="source-failed"):
            engine.poll()
        clock.move_by(30_000_000)
        polled(engine, 1)
        engine.advance(9)
        assert [(result.at, *result.row.values()) for result in engine.query("q").results()] == [
            (2, "a", None, 2),
            (3, "a", 1, 3),
            (9, "c", 7, 9),
        ]


def test_files_through_sparks_own_stream(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number, text in enumerate(['{"v": 1, "at": 1}\n{"v": "x", "at": 2}\n', "not json\n", '{"v": 3, "at": 2}\n']):
        (folder / f"{number}.json").write_text(text)
    with Engine(spark) as engine:
        engine.execute(
            f"CREATE STREAM s (v INT, at INT) TIMESTAMP BY at FROM json OPTIONS ('path' = '{folder}', 'maxFilesPerTrigger' = '2')"
        )
        assert streaming(engine).drain(engine.clock) == 2
        assert engine.counts("s") == {"taken": 2, "malformed": 2}
        assert {letter["_raw"] for letter in engine.dead_letters("s")} == {'{"v": "x", "at": 2}', "not json"}


def test_a_format_that_spark_cannot_read(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connectors.KNOWN, "nowhere", ("spark-nowhere",))
    found = connectors.installed()
    with Engine(spark) as engine:
        with pytest.raises(UserError) as refused:
            engine.execute("CREATE STREAM s (v INT) TIMESTAMP BY v FROM nowhere")
        assert (refused.value.code, refused.value.message) == (
            "no-connector",
            'stream "s" is read from nowhere, and this Spark cannot read that',
        )
        assert f"org.apache.spark:spark-nowhere_{found.scala}:{found.spark}" in refused.value.hint
        with pytest.raises(UserError, match="no-connector") as misspelt:
            engine.execute("CREATE STREAM s (v INT) TIMESTAMP BY v FROM kafak")
        assert misspelt.value.hint == 'Did you mean "kafka"?'


def test_the_formats_that_a_script_needs() -> None:
    script = """CREATE STREAM s (v INT) TIMESTAMP BY v LATENCY 1 VALUE AS avro FROM kafka OPTIONS ('subscribe' = 's');
        CREATE RELATION r (v INT) FROM jdbc OPTIONS ('url' = 'jdbc:postgresql://h/d');
        CREATE RELATION other (v INT) FROM jdbc OPTIONS ('url' = 'jdbc:other:d'); CREATE QUERY q AS SELECT * FROM s INTO parquet OPTIONS ('path' = 'p')"""
    assert formats(script) == {"kafka", "avro", "jdbc", "parquet"}
    first, *_ = connectors.packages("kafka")
    assert (first.name, first.version) == (
        f"spark-sql-kafka-0-10_{connectors.installed().scala}",
        connectors.installed().spark,
    )


@pytest.fixture(scope="module")
def kafka(spark: SparkSession) -> Iterator[str]:
    for connector in ("kafka", "avro"):
        add_jars(spark, connector)
    with broker() as servers:
        yield servers


def test_kafka_values_become_tuples_or_dead_letters(spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    create_topic(kafka, "temperature", partitions=2)
    create_topic(kafka, "coded")
    good = [json.dumps({"sensor": f"s{at % 3}", "celsius": at / 2, "at": at}) for at in (5, 1, 4, 2, 3)]
    bad = ["not json", '{"sensor": "s", "celsius": "hot", "at": 2}', "", '[{"at": 1}, {"at": 2}]', '{"sensor": "s"}']
    produce(kafka, "temperature", [*good[:3], *bad], partition=0)
    produce(kafka, "temperature", good[3:], partition=1)
    written = "STRUCT(CONCAT('s', id) AS sensor, CAST(id AS DOUBLE) AS celsius, CAST(id AS INT) AS at)"
    options = {"kafka.bootstrap.servers": kafka, "topic": "coded"}
    spark.range(1, 4).selectExpr("NULLIF(id, 0) AS id").selectExpr(f"TO_AVRO({written}) AS value").write.format(
        "kafka"
    ).options(**options).save()
    script = "".join(
        f"CREATE STREAM {topic} (sensor STRING, celsius DOUBLE, at INT) TIMESTAMP BY at SOURCE BY sensor VALUE AS {format} FROM kafka "
        f"OPTIONS ('kafka.bootstrap.servers' = '{kafka}', 'subscribe' = '{topic}', 'maxOffsetsPerTrigger' = '4');"
        for topic, format in (("temperature", "json"), ("coded", "avro"))
    )
    script += "CREATE QUERY q AS SELECT ISTREAM(sensor, celsius) FROM temperature [NOW];"
    script += f"CREATE STREAM plain (value STRING, topic STRING, offset BIGINT) TIMESTAMP INTERNAL FROM kafka OPTIONS ('kafka.bootstrap.servers' = '{kafka}', 'subscribe' = 'temperature')"
    with Engine(spark, tmp_path) as engine:
        engine.execute(script)
        engine.run_once()
        assert engine.counts("temperature") == {"taken": 5, "malformed": 4, "no-timestamp": 1}
        assert sorted(letter["_raw"] for letter in engine.dead_letters("temperature")) == sorted(bad)
        assert engine.counts("coded") == {"taken": 3}
        assert engine.counts("plain") == {"taken": 10}
        assert engine._core.inputs.inlets["temperature"].position["batch"] >= 2, "maxOffsetsPerTrigger is the user's"
        found = [(result.at, *result.row.values()) for result in engine.query("q").results()]
        assert found == [(at, f"s{at % 3}", at / 2) for at in (1, 2, 3, 4, 5)]
    produce(kafka, "temperature", ['{"sensor": "s0", "celsius": 3, "at": 6}'])
    with Engine(spark, tmp_path) as engine:
        polled(engine, 2)  # also as a row of "plain"
        assert engine.counts("temperature") == {"taken": 6, "malformed": 4, "no-timestamp": 1}


def noon(seconds: float) -> datetime:
    return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=seconds)


def test_kafka_knows_when_all_of_a_topic_has_been_read(spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    """A backlog in two partitions, of which one is a minute behind the other: no clock makes any of it late."""
    create_topic(kafka, "readings", partitions=2)
    backlog = [
        [json.dumps({"v": 10 * part + n, "at": noon(n - 60 * part).isoformat()}) for n in range(9)] for part in (0, 1)
    ]
    for part in (0, 1):
        produce(kafka, "readings", backlog[part], partition=part)
    with Engine(spark, tmp_path) as engine:
        engine.execute(
            "CREATE STREAM outside (v INT, at TIMESTAMP) TIMESTAMP BY at HEARTBEAT ON DEMAND WITHIN 1 SECOND "
            f"FROM kafka OPTIONS ('kafka.bootstrap.servers' = '{kafka}', 'subscribe' = 'readings', 'maxOffsetsPerTrigger' = '4') "
            "VALUE AS json; CREATE STREAM other (v INT, at TIMESTAMP) TIMESTAMP BY at; DISORDER OF other 0;"
            "CREATE QUERY q AS SELECT v FROM outside UNION ALL SELECT v FROM other"
        )
        engine.push("other", [(100, noon(5)), (101, noon(9)), (102, noon(3_600))])
        limit = time.monotonic() + 120
        engine.run(until=lambda: engine.query("q").count >= 20 or time.monotonic() > limit)
        assert engine.counts("outside") == {"taken": 18}
        assert engine._core.inputs.inlets["outside"].position["batch"] >= 4, "it came in pieces"
        values = [result.row["v"] for result in engine.query("q").results()]
        assert values == [*range(10, 19), *range(6), 100, 6, 7, 8, 101]
        assert "heartbeat from the clock on demand" in str(engine.query("q").why())


def test_the_kafka_example(spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    create_topic(kafka, "temperature-of-the-example", partitions=2)
    create_topic(kafka, "alarms")
    script = (EXAMPLES / "kafka" / "alarms.cql").read_text(encoding="utf-8")
    script = script.replace("localhost:9092", kafka).replace("'temperature'", "'temperature-of-the-example'")
    shown = re.findall("^> (.*)", (EXAMPLES / "kafka" / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    produce(kafka, "temperature-of-the-example", shown)
    with Engine(spark, tmp_path) as engine:
        engine.execute(script)
        engine.run_once()
        assert engine.counts("temperature") == {"taken": 3, "malformed": 1}
    (alarm,) = map(json.loads, consume(kafka, "alarms", 1))
    assert (alarm["sensor"], alarm["mean"], alarm["_time"]) == ("a", 32.0, "2026-01-01T12:00:20.000000Z")
