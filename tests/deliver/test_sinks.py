"""Sinks: what is delivered once or again, in order, as changes, upserts and current rows, and after a crash in
between.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from tools.jars import add_jars
from tools.kafka_broker import broker, create_topic
from tools.places import DOCS
from tools.postgres_server import Server

from headgate.catalog.catalog import Catalog
from headgate.catalog.sinks import SINKS
from headgate.cql.definitions import define
from headgate.deliver.sinks import files as file_sink
from headgate.deliver.sinks import shape
from headgate.deliver.sinks.console import ConsoleSink
from headgate.deliver.sinks.delta import transaction
from headgate.deliver.sinks.files import read_commits
from headgate.deliver.sinks.kafka import KafkaSink
from headgate.deliver.sinks.sink import Delivery, Sink
from headgate.deliver.sinks.sink_for import sink_class, sink_for
from headgate.errors import UserError
from headgate.spark.back_off import BackOff

Row = tuple[int, str, str | None, float | None]
"""An instant, + or -, and a row of two columns: k, v."""

START = datetime(2026, 11, 1, tzinfo=UTC)


class Deliveries:
    """Makes numbered deliveries of hand-made rows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = 0

    def __call__(self, *rows: Row, files: int = 2) -> Delivery:
        """Rows in any order, spread over files."""
        self.number += 1
        paths = []
        for part in range(min(files, len(rows))):
            mine = rows[part::files]
            table = pa.table(
                {
                    "_time": pa.array([START + timedelta(seconds=at) for at, *_ in mine], pa.timestamp("us", "UTC")),
                    "_change": pa.array([change for _, change, *_ in mine]),
                    "k": pa.array([row[2] for row in mine], pa.string()),
                    "v": pa.array([row[3] for row in mine], pa.float64()),
                }
            )
            self.folder.mkdir(exist_ok=True)
            paths.append(self.folder / f"{self.number}-{part}.parquet")
            pq.write_table(table, paths[-1])
        at = START + timedelta(seconds=10 * self.number)
        tick = int(at.timestamp() * 1_000_000)
        return Delivery("q", self.number, tick - 10_000_000, tick, at, tuple(paths), len(rows))


@pytest.fixture
def deliveries(tmp_path: Path) -> Deliveries:
    return Deliveries(tmp_path / "outbox")


def sink(spark: SparkSession, directory: Path, into: str) -> Sink:
    catalog = Catalog()
    define(f"CREATE STREAM s (k STRING, v DOUBLE); CREATE QUERY q AS SELECT k, v FROM s [RANGE 9] INTO {into}", catalog)
    query = catalog.queries["q"]
    return sink_for(query, spark, directory)


FIRST: tuple[Row, ...] = ((3, "+", "b", 2.0), (1, "+", "a", 1.0), (3, "-", "a", 1.0), (3, "+", "a", None))
SECOND: tuple[Row, ...] = ((12, "-", "b", 2.0), (11, "+", "c", 0.5))
IN_ORDER = [
    (1, "+", "a", 1.0),
    (3, "-", "a", 1.0),
    (3, "+", "a", None),
    (3, "+", "b", 2.0),
    (11, "+", "c", 0.5),
    (12, "-", "b", 2.0),
]


def random_changes(seed: int, keyed: bool, deliveries: int = 4) -> tuple[list[list[Row]], Counter[tuple[str, float]]]:
    """Changes of a relation, delivery by delivery, and what it is in the end: one row a key, or several equal ones."""
    chance, now, all_changes = random.Random(seed), Counter[tuple[str, float]](), []
    for number in range(deliveries):
        changes: list[Row] = []
        for at in range(number * 10 + 1, number * 10 + 6):
            for name in "abc":
                mine = [row for row in now.elements() if row[0] == name]
                left = [chance.choice(mine)] if mine and chance.random() < 0.6 else []
                came = (
                    [(name, chance.choice([0.5, 1.5]))]
                    if chance.random() < 0.7 and (not keyed or len(mine) == len(left))
                    else []
                )
                if left != came:
                    changes += [(at, "-", *row) for row in left] + [(at, "+", *row) for row in came]
                    now.subtract(left)
                    now.update(came)
        chance.shuffle(changes)
        all_changes.append(changes)
    return all_changes, +now


# back-off


def test_a_failed_sink_is_tried_again_after_twice_the_time_and_no_later_than_half_a_minute() -> None:
    back_off, now_us, waits = BackOff(), 0, []
    assert back_off.ready(now_us)
    for _ in range(12):
        back_off.failed(now_us)
        waits.append(back_off.next_us - now_us)
        assert not back_off.ready(back_off.next_us - 1)
        now_us = back_off.next_us
        assert back_off.ready(now_us)
    assert waits[:4] == [100_000, 200_000, 400_000, 800_000]
    assert waits[8:] == [25_600_000, 30_000_000, 30_000_000, 30_000_000]
    back_off.succeeded()
    back_off.failed(now_us)
    assert back_off.next_us - now_us == 100_000


# files


def rows_in(spark: SparkSession, folder: Path, file_format: str = "parquet", **options: str) -> list[Row]:
    """The rows of all commits in the order in which a reader of the commits gets them."""
    schema = "_time TIMESTAMP, _change STRING, k STRING, v DOUBLE"
    rows: list[Row] = []
    for commit in read_commits(folder):
        for file in commit.files:
            frame = spark.read.schema(schema).options(**options).format(file_format).load(str(file))
            rows += [(int((row[0].astimezone(UTC) - START).total_seconds()), *row[1:]) for row in frame.collect()]
    return rows


@pytest.mark.spark
@pytest.mark.parametrize(
    "file_format, options",
    [("parquet", ""), ("orc", ""), ("json", ", 'compression' = 'gzip'"), ("csv", ", 'header' = 'true'")],
)
def test_files_hold_each_delivery_once_and_in_order(
    spark: SparkSession, tmp_path: Path, deliveries: Deliveries, file_format: str, options: str
) -> None:
    out, directory = tmp_path / "out", tmp_path / "query"
    into = f"{file_format} OPTIONS ('path' = '{out}'{options})"
    first, second, third = deliveries(*FIRST), deliveries(*SECOND), deliveries()
    kept = sink(spark, directory, into)
    assert kept.delivered() == 0
    kept.deliver(first)
    kept.deliver(first)
    kept.deliver(second)
    again = sink(spark, directory, into)  # a restart
    assert again.delivered() == 2
    again.deliver(second)
    again.deliver(third)
    assert sorted(rows_in(spark, out, file_format, header="true"), key=str) == sorted(IN_ORDER, key=str)
    assert [row[:2] for row in rows_in(spark, out, file_format, header="true")] == [row[:2] for row in IN_ORDER]
    assert [(commit.number, commit.complete, commit.rows) for commit in read_commits(out, after=1)] == [
        (2, second.complete, 2),
        (3, third.complete, 0),
    ]
    ending = {"json": "json.gz"}.get(file_format, file_format)
    assert sorted(file.name for file in out.glob("0*")) == [f"00000000000{n}-00000.{ending}" for n in (1, 2)]


@pytest.mark.spark
def test_large_deliveries_are_cut_by_time(
    spark: SparkSession, tmp_path: Path, deliveries: Deliveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shape, "SMALL_ROWS", 10)
    monkeypatch.setattr(shape, "PART_ROWS", 30)
    moments = random.Random(1).sample(range(50), 50)
    delivery = deliveries(*((at, change, f"{change}{at}", 0.0) for at in moments for change in "+-"))
    sink(spark, tmp_path / "query", f"parquet OPTIONS ('path' = '{tmp_path}/out')").deliver(delivery)
    (commit,) = read_commits(tmp_path / "out")
    assert len(commit.files) > 2
    assert [row[:2] for row in rows_in(spark, tmp_path / "out")] == [
        (at, change) for at in range(50) for change in "-+"
    ]


@pytest.mark.spark
def test_what_a_crash_left_is_not_seen_and_goes(
    spark: SparkSession, tmp_path: Path, deliveries: Deliveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, directory, into = tmp_path / "out", tmp_path / "query", f"parquet OPTIONS ('path' = '{tmp_path}/out')"
    kept = sink(spark, directory, into)
    kept.deliver(deliveries(*FIRST))
    second = deliveries(*SECOND)
    with monkeypatch.context() as broken:
        broken.setattr(file_sink, "settle", lambda *_: 1 / 0)  # after the files have their names, before the record
        with pytest.raises(ZeroDivisionError):
            kept.deliver(second)
    (out / "000000000002-00007.parquet").write_bytes(b"torn")
    (out / "mine.parquet").write_bytes(b"the user's own")
    assert [commit.number for commit in read_commits(out)] == [1]
    restarted = sink(spark, directory, into)
    assert restarted.delivered() == 1
    restarted.deliver(second)
    assert [row[:2] for row in rows_in(spark, out)] == [row[:2] for row in IN_ORDER]
    assert sorted(file.name for file in out.glob("*.parquet")) == [
        "000000000001-00000.parquet",
        "000000000002-00000.parquet",
        "mine.parquet",
    ]


@pytest.mark.spark
def test_records_are_folded_and_can_still_be_followed(
    spark: SparkSession, tmp_path: Path, deliveries: Deliveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_sink, "FOLD_AT", 4)
    out, directory, into = tmp_path / "out", tmp_path / "query", f"parquet OPTIONS ('path' = '{tmp_path}/out')"
    kept = sink(spark, directory, into)
    reader = read_commits(out)
    seen = []
    for number in range(1, 11):
        kept.deliver(deliveries((number, "+", "a", 1.0)))
        if number == 3:
            seen = [next(reader).number]  # a reader that is slower than the folding
    assert sorted(file.name for file in (out / "_commits").glob("0*")) == [
        "000000000004.folded.json",
        "000000000008.folded.json",
        "000000000009.json",
        "000000000010.json",
    ]
    assert seen + [commit.number for commit in reader] == list(range(1, 11))
    assert [commit.number for commit in read_commits(out)] == list(range(1, 11))
    assert [commit.number for commit in read_commits(out, after=6)] == [7, 8, 9, 10]
    shutil.copy(out / "_commits" / "000000000009.json", out / "_commits" / "000000000007.json")  # a fold cut short
    assert sink(spark, directory, into).delivered() == 10
    assert not (out / "_commits" / "000000000007.json").exists()


@pytest.mark.spark
def test_a_folder_of_another_engine_is_not_written_to_unless_it_may_be_replaced(
    spark: SparkSession, tmp_path: Path, deliveries: Deliveries
) -> None:
    into = f"parquet OPTIONS ('path' = '{tmp_path}/out'"
    sink(spark, tmp_path / "one", f"{into})").deliver(deliveries(*FIRST))
    with pytest.raises(UserError, match="sink-taken"):
        sink(spark, tmp_path / "two", f"{into})")
    replacing = sink(spark, tmp_path / "two", f"{into}, 'existing' = 'replace')")
    assert list(read_commits(tmp_path / "out")) == []
    replacing.deliver(Deliveries(tmp_path / "other")((1, "+", "z", 0.0)))
    assert rows_in(spark, tmp_path / "out") == [(1, "+", "z", 0.0)]


def applied(rows: Sequence[Row]) -> Counter[tuple[Any, Any]]:
    """Upserts by the definition: a key has the row that came last, or none."""
    held = {}
    for _, change, k, v in rows:
        held[k] = [(k, v)] if change == "+" else []
    return Counter(row for kept in held.values() for row in kept)


@pytest.mark.spark
def test_files_of_upserts_and_of_current_rows(spark: SparkSession, tmp_path: Path) -> None:
    by_key, in_the_end = random_changes(1, keyed=True)
    bags, bag_in_the_end = random_changes(2, keyed=False)
    assert max(bag_in_the_end.values()) > 1, "no duplicate to test with"
    upserts = sink(
        spark, tmp_path / "u", f"parquet OPTIONS ('path' = '{tmp_path}/upserts', 'deliver' = 'upserts', 'key' = 'K')"
    )
    current = sink(spark, tmp_path / "c", f"parquet OPTIONS ('path' = '{tmp_path}/current', 'deliver' = 'current')")
    make = Deliveries(tmp_path / "keyed")
    for rows in by_key:
        upserts.deliver(make(*rows))
    assert all(len(pq.read_table(list(commit.files))) <= 3 for commit in read_commits(tmp_path / "upserts")), (
        "one row a key"
    )
    assert applied(rows_in(spark, tmp_path / "upserts")) == in_the_end
    make = Deliveries(tmp_path / "bags")
    for rows in bags:
        current.deliver(make(*rows))
    current.deliver(make())
    last = list(read_commits(tmp_path / "current"))[-1]
    assert Counter((row["k"], row["v"]) for row in pq.read_table(list(last.files)).to_pylist()) == bag_in_the_end
    assert (last.number, last.rows) == (5, bag_in_the_end.total())
    assert len(list((tmp_path / "current").glob("*.parquet"))) <= 2, "old states go"


@pytest.mark.spark
def test_a_key_that_does_not_tell_rows_apart_is_refused(
    spark: SparkSession, tmp_path: Path, deliveries: Deliveries
) -> None:
    kept = sink(spark, tmp_path / "q", f"json OPTIONS ('path' = '{tmp_path}/out', 'deliver' = 'upserts', 'key' = 'k')")
    with pytest.raises(
        PySparkException, match=r'does not tell the rows of the relation apart: more than one has \{"k":"a"\}'
    ):
        kept.deliver(deliveries((1, "+", "a", 1.0), (2, "+", "a", 2.0)))
    assert kept.delivered() == 0


# databases


def table_of(server: Server, name: str) -> Counter[tuple[str, float]]:
    return Counter((k, float(v)) for k, v in server.ask(f"SELECT k, v FROM {name}"))


@pytest.mark.spark
@pytest.mark.parametrize(
    "options, keyed", [("'deliver' = 'upserts', 'key' = 'k'", True), ("'deliver' = 'current'", False)]
)
def test_postgres_holds_the_current_rows_after_every_delivery(
    spark: SparkSession, postgres: Server, tmp_path: Path, options: str, keyed: bool
) -> None:
    name = "keyed" if keyed else "bag"
    into = f"jdbc OPTIONS ('url' = '{postgres.url}', 'dbtable' = '{name}', 'user' = 'tester', {options})"
    table, make, now = sink(spark, tmp_path / "q", into), Deliveries(tmp_path / "outbox"), Counter[tuple[str, float]]()
    for rows in random_changes(3, keyed)[0]:
        delivery = make(*rows)
        table.deliver(delivery)
        table.deliver(delivery)
        now.update((k, v) for _, change, k, v in rows if change == "+")  # type: ignore[misc]
        now.subtract((k, v) for _, change, k, v in rows if change == "-")  # type: ignore[misc]
        assert table_of(postgres, name) == +now
    restarted = sink(spark, tmp_path / "q", into)
    assert restarted.delivered() == 4
    restarted.deliver(delivery)
    assert table_of(postgres, name) == +now
    table.close()
    assert postgres.ask("SELECT COUNT(*) FROM pg_tables WHERE tablename LIKE 'headgate_stage%'") == [["0"]]


@pytest.mark.spark
def test_postgres_takes_a_delivery_whole_or_not_at_all(
    spark: SparkSession, postgres: Server, tmp_path: Path, deliveries: Deliveries
) -> None:
    options = f"'url' = '{postgres.url}', 'dbtable' = 'log', 'user' = 'tester'"
    table = sink(spark, tmp_path / "q", f"jdbc OPTIONS ({options})")
    table.deliver(deliveries(*FIRST))
    postgres.ask("ALTER TABLE headgate_deliveries RENAME TO gone")  # the last statement of the transaction fails
    second = deliveries(*SECOND)
    with pytest.raises(UserError, match="sink-failed"):
        table.deliver(second)
    assert postgres.ask("SELECT COUNT(*) FROM log") == [["4"]]
    postgres.ask("ALTER TABLE gone RENAME TO headgate_deliveries")
    table.deliver(second)
    assert [row[0] for row in postgres.ask('SELECT "_change" FROM log')] == [row[1] for row in IN_ORDER]
    assert postgres.ask("SELECT number, complete FROM headgate_deliveries WHERE target = 'log'") == [
        ["2", second.complete.isoformat()]
    ]
    table.deliver(replace(deliveries(), complete=None))  # a piece that ends within the first instant
    assert postgres.ask("SELECT number, complete IS NULL FROM headgate_deliveries WHERE target = 'log'") == [["3", "t"]]
    with pytest.raises(UserError, match="sink-taken"):
        sink(spark, tmp_path / "other", f"jdbc OPTIONS ({options})")
    appending = sink(spark, tmp_path / "other", f"jdbc OPTIONS ({options}, 'existing' = 'append')")
    assert appending.delivered() == 3
    sink(spark, tmp_path / "third", f"jdbc OPTIONS ({options}, 'existing' = 'replace')")
    with pytest.raises(UserError, match="sink-taken"):
        table.deliver(deliveries(*SECOND))
    assert postgres.ask("SELECT COUNT(*) FROM log") == [["0"]]


@pytest.mark.spark
def test_a_database_that_is_down_is_found_when_a_query_is_created_and_waited_for_after_a_restart(
    spark: SparkSession, postgres: Server, tmp_path: Path, deliveries: Deliveries
) -> None:
    away = "jdbc OPTIONS ('url' = 'jdbc:postgresql://127.0.0.1:1/postgres', 'dbtable' = 't', 'user' = 'tester')"
    with pytest.raises(UserError, match="sink-failed"):
        sink(spark, tmp_path / "q", away)
    sink(spark, tmp_path / "q", away.replace("127.0.0.1:1/", f"127.0.0.1:{postgres.port}/"))
    restarted = sink(spark, tmp_path / "q", away)
    with pytest.raises(UserError, match="sink-failed"):
        restarted.delivered()
    with pytest.raises(UserError, match="sink-failed"):
        restarted.deliver(deliveries(*FIRST))


@pytest.mark.spark
def test_a_database_without_on_conflict(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derby comes with Spark. It stands for all that are not PostgreSQL."""
    monkeypatch.chdir(tmp_path)  # it writes a log there
    url = "jdbc:derby:memory:sinks;create=true"
    into = f"jdbc OPTIONS ('url' = '{url}', 'dbtable' = 'held', 'deliver' = 'upserts', 'key' = 'k', 'createTableColumnTypes' = 'k VARCHAR(9)')"
    with pytest.raises(UserError, match="PostgreSQL only"):
        sink(spark, tmp_path / "bag", f"jdbc OPTIONS ('url' = '{url}', 'dbtable' = 'bag', 'deliver' = 'current')")
    table, make = sink(spark, tmp_path / "q", into), Deliveries(tmp_path / "outbox")
    changes, in_the_end = random_changes(4, keyed=True)
    for rows in changes:
        table.deliver(make(*rows))
    table.close()
    frame = spark.read.format("jdbc").options(url=url, dbtable="held").load()
    assert Counter((row["k"], row["v"]) for row in frame.collect()) == in_the_end


# Kafka


@pytest.fixture(scope="module")
def kafka(spark: SparkSession) -> Iterator[str]:
    add_jars(spark, "kafka")
    with broker() as servers:
        yield servers


def records(servers: str, topic: str) -> list[tuple[str | None, Any, str]]:
    """Key, value and position of everything in a topic, partition by partition in order."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "test", "enable.partition.eof": True})
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    found = []
    for partition in partitions:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        while (message := consumer.poll(30)) is not None and not message.error():
            headers = {name: value.decode() for name, value in message.headers()}
            key, value = message.key(), message.value()
            delivered = f"{headers['headgate-delivery'].partition('/')[2]}/{headers['headgate-position']}"
            found.append((key and key.decode(), value and json.loads(value), delivered))
    consumer.close()
    return found


@pytest.mark.spark
def test_kafka_gets_each_record_once_in_order_also_when_a_delivery_was_cut_short(
    spark: SparkSession, kafka: str, tmp_path: Path, deliveries: Deliveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(kafka, "log", partitions=2)
    into = f"kafka OPTIONS ('kafka.bootstrap.servers' = '{kafka}', 'topic' = 'log', 'key' = 'k')"
    topic = sink(spark, tmp_path / "q", into)
    first, second = deliveries(*FIRST), deliveries(*SECOND)
    topic.deliver(first)
    topic.deliver(first)
    assert topic.delivered() == 0
    send = KafkaSink._send
    with monkeypatch.context() as broken:

        def send_one_and_die(self: KafkaSink, frame: DataFrame, rows: int) -> None:
            send(self, frame.where("key = 'c'"), rows)
            raise KeyboardInterrupt

        broken.setattr(KafkaSink, "_send", send_one_and_die)
        with pytest.raises(KeyboardInterrupt):
            topic.deliver(second)
    topic.close()
    assert len(records(kafka, "log")) == 5
    restarted = sink(spark, tmp_path / "q", into)
    assert restarted.delivered() == 1
    restarted.deliver(second)
    restarted.close()
    found = records(kafka, "log")
    assert sorted(position for *_, position in found) == sorted(["1/1-0", "1/1-1", "1/2-0", "1/2-1", "2/1-0", "2/2-0"])
    assert [(value["_time"], value["_change"], value["v"]) for key, value, _ in found if key == "a"] == [
        ("2026-11-01T00:00:01.000000Z", "+", 1.0),
        ("2026-11-01T00:00:03.000000Z", "-", 1.0),
        ("2026-11-01T00:00:03.000000Z", "+", None),
    ]


@pytest.mark.spark
def test_kafka_gets_upserts_and_tombstones(spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    create_topic(kafka, "held", partitions=2)
    topic = sink(
        spark,
        tmp_path / "q",
        f"kafka OPTIONS ('kafka.bootstrap.servers' = '{kafka}', 'topic' = 'held', 'key' = 'k', 'deliver' = 'upserts')",
    )
    make, (changes, in_the_end) = Deliveries(tmp_path / "outbox"), random_changes(5, keyed=True)
    for rows in changes:
        topic.deliver(make(*rows))
    topic.close()
    held = {key: value and value["v"] for key, value, _ in records(kafka, "held")}
    assert Counter((key, value) for key, value in held.items() if value is not None) == in_the_end


# webhook, callback, console, delta


class Listener(ThreadingHTTPServer):
    """Takes posts, and refuses as many as it is told to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.refusing = 0
        self.taken: list[tuple[dict[str, str], dict[str, Any]]] = []


class Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Listener)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        refused = self.server.refusing > 0
        self.server.refusing -= refused
        if not refused:
            self.server.taken.append((dict(self.headers), body))
        self.send_response(503 if refused else 204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def listener() -> Iterator[Listener]:
    server = Listener()
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.mark.spark
def test_a_webhook_gets_batches_in_order_and_only_the_refused_ones_again(
    spark: SparkSession, listener: Listener, tmp_path: Path, deliveries: Deliveries
) -> None:
    url = f"http://127.0.0.1:{listener.server_port}/alerts"
    hook = sink(
        spark, tmp_path / "q", f"webhook OPTIONS ('url' = '{url}', 'rows' = '3', 'header.Authorization' = 'Bearer x')"
    )
    first, second = deliveries(*FIRST), deliveries(*SECOND)
    listener.refusing = 1
    with pytest.raises(UserError, match="503"):
        hook.deliver(first)
    hook.deliver(first)
    listener.refusing = 0
    hook.deliver(second)
    posts = [(body["number"], body["part"], body["last"]) for _, body in listener.taken]
    assert posts == [(1, 0, False), (1, 1, True), (2, 0, True)]
    rows = [row for _, body in listener.taken for row in body["rows"]]
    assert [row["_change"] for row in rows] == [row[1] for row in IN_ORDER]
    assert rows[0] == {"_time": "2026-11-01T00:00:01.000000Z", "_change": "+", "k": "a", "v": 1.0}
    keys = [headers["Idempotency-Key"] for headers, _ in listener.taken]
    assert [key.partition("/")[2] for key in keys] == ["1/0", "1/1", "2/0"]
    assert listener.taken[0][0]["Authorization"] == "Bearer x"
    listener.refusing = 1
    third = deliveries(*SECOND, *SECOND, (14, "+", "z", 0.0))
    hook.rows = 2  # type: ignore[attr-defined]
    listener.taken.clear()
    with pytest.raises(UserError, match="503"):
        hook.deliver(third)
    assert [body["part"] for _, body in listener.taken] == []
    hook.deliver(third)
    assert [body["part"] for _, body in listener.taken] == [0, 1, 2]


CALLS: list[tuple[int, list[tuple[str, str | None]]]] = []


def called(delivery: Delivery, batches: Iterator[pa.RecordBatch]) -> None:
    CALLS.append((delivery.number, [(row["_change"], row["k"]) for batch in batches for row in batch.to_pylist()]))


@pytest.mark.spark
def test_a_callback_gets_deliveries_as_arrow_batches(
    spark: SparkSession, tmp_path: Path, deliveries: Deliveries
) -> None:
    CALLS.clear()
    with pytest.raises(UserError, match="no-such-function"):
        sink(spark, tmp_path / "q", "callback OPTIONS ('function' = 'test_sinks:cald')")
    plain = sink(spark, tmp_path / "q", "callback OPTIONS ('function' = 'test_sinks:called')")
    upserts = sink(
        spark, tmp_path / "q", "callback OPTIONS ('function' = 'test_sinks:called', 'deliver' = 'upserts', 'key' = 'k')"
    )
    plain.deliver(deliveries(*SECOND))
    upserts.deliver(deliveries((1, "+", "a", 1.0), (2, "-", "a", 1.0), (2, "+", "b", 1.0)))
    plain.deliver(deliveries())
    assert CALLS == [(1, [("+", "c"), ("-", "b")]), (2, [("-", "a"), ("+", "b")]), (3, [])]


def test_the_console_shows_the_first_in_order_and_counts_the_rest(
    deliveries: Deliveries, capsys: pytest.CaptureFixture[str]
) -> None:
    ConsoleSink(console=Console(soft_wrap=True)).deliver(
        deliveries(*((at, "+", "k", None) for at in reversed(range(60))))
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "q 2026-11-01 00:00:00+00:00 + k=k, v=None"
    assert [line.split()[2] for line in lines[:50]] == sorted(line.split()[2] for line in lines[:50])
    assert lines[50:] == ["q ... and 10 more", "q complete up to 2026-11-01 00:00:10+00:00"]


@pytest.mark.spark
def test_delta_is_told_who_writes_and_which_delivery(
    spark: SparkSession, tmp_path: Path, deliveries: Deliveries
) -> None:
    deliveries()
    assert transaction("w", deliveries(*FIRST)) == {"txnAppId": "headgate/q/w", "txnVersion": "2"}
    with pytest.raises(UserError, match="no-connector"):
        sink(spark, tmp_path / "q", f"delta OPTIONS ('path' = '{tmp_path}/out')")


# labels


def labelled(make: Deliveries, *rows: Row, tuples: int) -> tuple[Delivery, str]:
    """A delivery, and its label as a sink gets it."""
    delivery = replace(make(*rows), tuples={"s": tuples})
    return delivery, json.dumps({"s": {"tuples": tuples, "complete": delivery.complete.isoformat()}})


@pytest.mark.spark
@pytest.mark.parametrize("format", ["parquet", "json", "csv"])
def test_files_have_the_label_of_each_delivery(
    spark: SparkSession, tmp_path: Path, deliveries: Deliveries, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = ", 'header' = 'true'" if format == "csv" else ""
    into = sink(spark, tmp_path / "q", f"{format} OPTIONS ('path' = '{tmp_path / 'out'}', 'reflects' = 'true'{header})")
    (first, one), (second, two) = labelled(deliveries, *FIRST, tuples=7), labelled(deliveries, *SECOND, tuples=9)
    into.deliver(first)
    monkeypatch.setattr(shape, "SMALL_ROWS", 0)  # by Spark
    into.deliver(second)
    into.deliver(deliveries((21, "+", "d", 1.0)))  # made by an earlier version
    found = [
        spark.read.format(format)
        .option("header", True)
        .option("escape", "\\")
        .load([str(file) for file in commit.files])
        for commit in read_commits(tmp_path / "out")
    ]
    assert [[row["_reflects"] for row in frame.collect()] for frame in found[:2]] == [[one] * 4, [two] * 2]
    if format == "parquet":
        assert found[2].columns == ["_time", "_change", "k", "v", "_reflects"]
        assert [row["_reflects"] for row in found[2].collect()] == [None]
    into.close()


@pytest.mark.spark
def test_files_of_current_rows_have_the_label_with_which_they_were_written(
    spark: SparkSession, tmp_path: Path, deliveries: Deliveries
) -> None:
    options = f"'path' = '{tmp_path / 'out'}', 'deliver' = 'current', 'reflects' = 'true'"
    into = sink(spark, tmp_path / "q", f"parquet OPTIONS ({options})")
    expected = ""
    for rows, tuples in ((FIRST, 7), (SECOND, 9), ((), 11)):
        delivery, label = labelled(deliveries, *rows, tuples=tuples)
        into.deliver(delivery)
        (commit,) = list(read_commits(tmp_path / "out"))[-1:]
        held = [row for file in commit.files for row in pq.read_table(file).to_pylist()]
        expected = label if rows else expected
        assert {row["_reflects"] for row in held} == {expected}
    assert sorted((row["k"], row["v"]) for row in held) == [("a", None), ("c", 0.5)]
    into.close()


@pytest.mark.spark
@pytest.mark.parametrize("options", ["", "'deliver' = 'upserts', 'key' = 'k'", "'deliver' = 'current'"])
def test_postgres_has_the_label_with_which_each_row_came(
    spark: SparkSession, postgres: Server, tmp_path: Path, deliveries: Deliveries, options: str
) -> None:
    name = "labelled_" + re.sub(r"\W+", "", options)
    given = ", ".join(filter(None, (f"'url' = '{postgres.url}', 'dbtable' = '{name}', 'user' = 'tester'", options)))
    table = sink(spark, tmp_path / "q", f"jdbc OPTIONS ({given}, 'reflects' = 'true')")
    (first, one), (second, two) = labelled(deliveries, *FIRST, tuples=7), labelled(deliveries, *SECOND, tuples=9)
    table.deliver(first)
    table.deliver(second)
    table.close()
    found = [tuple(row) for row in postgres.ask(f'SELECT k, "_reflects" FROM {name} ORDER BY k, "_reflects"')]
    if options:
        assert found == [("a", one), ("c", two)]
    else:
        assert found == [("a", one), ("a", one), ("a", one), ("b", one), ("b", two), ("c", two)]


@pytest.mark.spark
def test_kafka_has_the_label_in_each_value(
    spark: SparkSession, kafka: str, tmp_path: Path, deliveries: Deliveries
) -> None:
    create_topic(kafka, "labelled", partitions=1)
    options = f"'kafka.bootstrap.servers' = '{kafka}', 'topic' = 'labelled', 'key' = 'k', 'deliver' = 'upserts'"
    topic = sink(spark, tmp_path / "q", f"kafka OPTIONS ({options}, 'reflects' = 'true')")
    delivery, label = labelled(deliveries, *FIRST, tuples=7)
    topic.deliver(delivery)
    topic.close()
    assert [(key, value["_reflects"]) for key, value, _ in records(kafka, "labelled")] == [("a", label), ("b", label)]


@pytest.mark.spark
def test_a_webhook_has_the_label_in_each_row(
    spark: SparkSession, listener: Listener, tmp_path: Path, deliveries: Deliveries
) -> None:
    url = f"http://127.0.0.1:{listener.server_port}/alerts"
    hook = sink(spark, tmp_path / "q", f"webhook OPTIONS ('url' = '{url}', 'reflects' = 'true')")
    delivery, label = labelled(deliveries, *FIRST, tuples=7)
    hook.deliver(delivery)
    assert [row["_reflects"] for _, body in listener.taken for row in body["rows"]] == [label] * 4


@pytest.mark.parametrize("name", SINKS)
def test_a_row_names_its_class_and_an_example_that_is_accepted(name: str) -> None:
    kind = SINKS[name]
    made = sink_class(kind)
    assert {"deliver", "delivered", "close"} <= set(dir(made))
    assert (made.guarantee, type(made.wants_empty)) == (kind.guarantee, bool)
    catalog = Catalog()
    define(
        f"CREATE STREAM s (a INT); CREATE QUERY q AS SELECT a FROM s [NOW] {kind.example or f'INTO {name}'}", catalog
    )
    connector = catalog.queries["q"].connector
    assert connector is not None
    assert (connector.format, set(connector.options)) == (name, {option.name for option in kind.needs})


def test_every_query_of_the_page_on_sinks_is_accepted() -> None:
    page = (DOCS / "sinks.md").read_text(encoding="utf-8")
    catalog = Catalog()
    define("CREATE STREAM temperature (sensor STRING, celsius DOUBLE, at TIMESTAMP) TIMESTAMP BY at", catalog)
    for block in re.findall(r"```sql\n(.*?)```", page, re.DOTALL):
        define(block, catalog)
    assert {query.connector.format for query in catalog.queries.values() if query.connector} == {
        "parquet",
        "orc",
        "csv",
        "jdbc",
        "kafka",
        "webhook",
    }
    for name, kind in SINKS.items():
        row = next(line for line in page.splitlines() if line.startswith("|") and f"`{name}`" in line)
        assert row.endswith(f" {', '.join(kind.modes)} |")
        assert kind.guarantee.partition(":")[0].partition(" for ")[0] in row or "the same" in row
