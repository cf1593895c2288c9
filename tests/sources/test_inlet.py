"""The inlet of a stream: what becomes of every row that arrives, and what the heartbeats are told of it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tools.as_sql import sql
from tools.duck import shared, transpiled

from headgate.catalog.entries import Connector, Relation, Stream
from headgate.errors import UserError
from headgate.heartbeat.admission import Admission
from headgate.heartbeat.arrival_order import ArrivalOrder
from headgate.heartbeat.arrivals import Arrivals, Ticks
from headgate.heartbeat.clock import ManualClock, SystemClock
from headgate.heartbeat.manager import Heartbeats as TimeManager
from headgate.log.chunk import described
from headgate.sources import judged_batch
from headgate.sources.files import FileSource
from headgate.sources.inlet import Heartbeats, Inlet
from headgate.sources.judged_batch import JudgedBatch
from headgate.sources.rows import ticks
from headgate.sources.tables import TableSource
from headgate.sources.verdict import verdict_sql
from headgate.sql import Column, Sql
from headgate.ticks import Tick, TimeDomain

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TYPES = {
    "STRING": pa.string(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
}


@dataclass
class Notebook:
    """Heartbeats that only say what they were told to say, and write down what they hear."""

    closed: Tick | None = None
    apart: dict[str, Tick] = field(default_factory=dict)
    ahead: Tick | None = None
    reference: Tick | None = None
    sampling: bool = False
    order: ArrivalOrder = field(default_factory=lambda: ArrivalOrder(99))
    batches: list[Arrivals] = field(default_factory=list)
    told: list[tuple[Any, ...]] = field(default_factory=list)
    """Everything in order: ("arrived", {source: (count, smallest, largest)}), ("late", {source: count}), ("upto",
    source, tick).
    """

    def admission(self, stream: str) -> Admission:
        return Admission(
            self.closed,
            self.apart,
            first_open=0 if self.closed is None else self.closed + 1,
            largest=self.reference,
            unheard=self.closed is None and self.reference is None,
            wants_sample=self.sampling,
        )

    def future_limit(self, stream: str, date_us: int | None, now_us: int, tops: Ticks | None = None) -> Tick | None:
        return self.ahead

    def arrived(
        self,
        stream: str,
        arrivals: Arrivals,
        now_us: int,
        late: Ticks | None = None,
        heartbeats: Mapping[Any, Tick] | None = None,
    ) -> None:
        if arrivals.total:
            self.batches.append(arrivals)
            figures = zip(arrivals.counts.tolist(), arrivals.smallest.tolist(), arrivals.largest.tolist(), strict=True)
            self.told.append(("arrived", dict(zip(arrivals.sources, figures, strict=True))))
        if late is not None and late.any():
            counts = zip(arrivals.sources, late.tolist(), strict=True)
            self.told.append(("late", {source: count for source, count in counts if count}))
        self.told += [("upto", source, upto) for source, upto in (heartbeats or {}).items()]


def a_stream(columns: str, domain: TimeDomain = TimeDomain.INTEGER, **more: Any) -> Stream:
    """A stream of columns written as in CQL."""
    named = [column.split() for column in columns.split(", ")]
    return Stream("s", tuple(Column(name, sql(kind)) for name, kind in named), domain, **more)


def inlet_of(stream: Stream | Relation, directory: Path, heartbeats: Heartbeats) -> Inlet:
    own = [pa.field(column.name, TYPES[column.type]) for column in stream.columns]
    signed = [pa.field("_n", pa.int64())] if isinstance(stream, Relation) else []
    schema = pa.schema([*own, *signed, pa.field("_t", pa.int64()), pa.field("_s", pa.int64())])
    return Inlet(stream, schema, directory, heartbeats)


def logged(inlet: Inlet, *columns: str) -> list[tuple[Any, ...]]:
    """What is in the log, in order of arrival."""
    rows = [row for chunk in inlet.log.chunks for row in chunk.table().to_pylist()]
    return [tuple(row[column] for column in columns) for row in sorted(rows, key=lambda row: row["_s"])]


def letters(inlet: Inlet) -> list[dict[str, Any]]:
    """As `LATE(s)` reads them: the columns it has, whatever else stands in the files."""
    columns = inlet.dead_schema.names
    rows = [row for chunk in inlet.dead.chunks for row in pq.ParquetFile(chunk.path).read(columns).to_pylist()]
    return sorted(rows, key=lambda row: row["_s"])


# pushed rows


def test_every_row_has_its_verdict(tmp_path: Path) -> None:
    heartbeats = Notebook(closed=10, ahead=100)
    inlet = inlet_of(a_stream("v INT"), tmp_path, heartbeats)
    rows = [(11, (1,)), (10, (2,)), (None, (3,)), (-1, (4,)), (101, (5,)), (12, ("six",)), (4, (7,)), (100, (8,))]
    assert inlet.push(rows, ManualClock()) == 2
    assert logged(inlet, "v", "_t", "_s") == [(1, 11, 0), (8, 100, 7)]
    assert inlet.counts == {"late": 2, "no-timestamp": 1, "before-origin": 1, "far-future": 1, "malformed": 1}
    found = [
        (row["v"], row["_reason"], row["_behind"], row["_timestamp"], row["_raw"], row["_t"], row["_s"])
        for row in letters(inlet)
    ]
    assert found == [
        (2, "late", 0, 10, None, 11, 1),
        (3, "no-timestamp", None, None, None, 11, 2),
        (4, "before-origin", None, -1, None, 11, 3),
        (5, "far-future", 1, 101, None, 11, 4),
        (None, "malformed", None, None, '[12, {"v": "six"}]', 11, 5),
        (7, "late", 6, 4, None, 11, 6),
    ]
    assert heartbeats.told == [("arrived", {None: (4, 4, 100)}), ("late", {None: 2})]
    assert inlet.push([(50, (9,))], ManualClock()) == 1
    assert logged(inlet, "_s") == [(0,), (7,), (8,)]


def test_dead_letters_can_be_read_as_a_stream(tmp_path: Path) -> None:
    heartbeats = Notebook(closed=ticks(NOON))
    inlet = inlet_of(a_stream("at TIMESTAMP, v INT", TimeDomain.TIMESTAMP, timestamp="at"), tmp_path, heartbeats)
    inlet.push([(NOON - timedelta(seconds=3), 1), (NOON, "x")], ManualClock())
    (chunk,) = inlet.dead.chunks
    assert pq.read_schema(chunk.path).names == ["at", "v", "_reason", "_behind", "_timestamp", "_raw", "_t", "_s"]
    assert (chunk.low, chunk.high) == (ticks(NOON) + 1, ticks(NOON) + 1)
    first, second = letters(inlet)
    assert (first["_timestamp"], first["_behind"]) == (NOON - timedelta(seconds=3), 3_000_000)
    assert (second["at"], second["_timestamp"], second["_reason"]) == (None, None, "malformed")


def test_tuples_are_told_in_their_order(tmp_path: Path) -> None:
    heartbeats = Notebook()
    inlet = inlet_of(a_stream("k STRING", source="k"), tmp_path, heartbeats)
    inlet.push([(5, ("a",)), (3, ("b",)), (4, ("a",)), (9, (None,)), (2, ("b",))], ManualClock())
    (batch,) = heartbeats.batches
    assert batch.rows is not None
    positions, instants = batch.rows
    assert [(batch.sources[position], tick) for position, tick in zip(positions, instants, strict=True)] == [
        ("a", 5),
        ("b", 3),
        ("a", 4),
        ("", 9),
        ("b", 2),
    ]
    assert dict(zip(batch.sources, batch.behind.tolist(), strict=True)) == {"a": 1, "b": 1, "": 0}


def test_sources_are_counted_each_by_itself(tmp_path: Path) -> None:
    heartbeats = Notebook(closed=4, ahead=20)
    inlet = inlet_of(a_stream("k INT", source="k"), tmp_path, heartbeats)
    inlet.push([(5, (7,)), (3, (8,)), (4, (7,)), (1, (8,)), (30, (9,))], ManualClock())
    assert heartbeats.told == [("arrived", {"7": (2, 4, 5), "8": (2, 1, 3)}), ("late", {"7": 1, "8": 2})]


def test_sources_are_late_each_behind_its_own_limit(tmp_path: Path) -> None:
    """Where readers of some sources were told more than those of others; the same by SQL."""
    stream, heartbeats = a_stream("k INT", source="k"), Notebook(closed=4, apart={"7": 10, "9": 10, "": 2})
    inlet = inlet_of(stream, tmp_path, heartbeats)
    rows = [(at, (source,)) for source in (7, 8, 9, None) for at in (2, 3, 4, 5, 10, 11)]
    inlet.push(rows, ManualClock())
    late = {
        source: [at for at, (of,) in rows if of == source and at <= closed]
        for source, closed in ((7, 10), (8, 4), (9, 10), (None, 2))
    }
    assert [(row["k"], row["_timestamp"]) for row in letters(inlet)] == [
        (k, at) for k, some in late.items() for at in some
    ]
    assert {row["_timestamp"] + row["_behind"] for row in letters(inlet) if row["k"] == 7} == {10}
    limits = inlet.limits(ManualClock())
    values = ", ".join(
        f"({'NULL' if source is None else source}, {at}, NULL, NULL::BIGINT, 1)" for at, (source,) in rows
    )
    judged = f"SELECT k, _t, {transpiled(verdict_sql(stream, limits))} AS _verdict FROM (VALUES {values}) rows(k, _t, _raw, _upto, _n)"
    found = shared().execute(f"SELECT k, _t FROM ({judged}) WHERE _verdict = 'late'").fetchall()
    assert found == [(k, at) for k, some in late.items() for at in some]


def test_nothing_usable_is_not_told(tmp_path: Path) -> None:
    heartbeats = Notebook(ahead=5)
    for number, stream in enumerate((a_stream("k STRING"), a_stream("k STRING", source="k"))):
        inlet = inlet_of(stream, tmp_path / str(number), heartbeats)
        assert inlet.push([(6, ("a",)), (1, (2,))], ManualClock()) == 0
        assert inlet.push([], ManualClock()) == 0
        assert inlet.counts == {"far-future": 1, "malformed": 1}
    assert heartbeats.told == []


def test_what_is_to_be_dropped_is_counted(tmp_path: Path) -> None:
    heartbeats = Notebook(closed=10, ahead=100)
    inlet = inlet_of(a_stream("v INT", late="drop"), tmp_path, heartbeats)
    assert inlet.push([(11, (1,)), (9, (2,)), (101, (3,)), (None, (4,)), (5, ("x",))], ManualClock()) == 1
    assert inlet.counts == {"late": 1, "far-future": 1, "no-timestamp": 1, "malformed": 1}
    assert [row["_reason"] for row in letters(inlet)] == ["no-timestamp", "malformed"]
    assert heartbeats.told == [("arrived", {None: (2, 9, 11)}), ("late", {None: 1})]


def test_a_batch_is_refused_whole(tmp_path: Path) -> None:
    heartbeats = Notebook(closed=10, ahead=100)
    inlet = inlet_of(a_stream("k STRING", late="fail", source="k"), tmp_path, heartbeats)
    with pytest.raises(UserError) as refused:
        inlet.push([(11, ("a",)), (9, ("a",)), (3, ("b",)), (101, ("c",)), (None, ("d",))], ManualClock())
    assert refused.value.render() == (
        'late-tuple: stream "s" got 2 late tuples and 1 tuple from the far future, and is to fail then\n'
        'detail: The worst of source "b" lies 7 ticks behind what is complete already. Nothing of the batch was taken.\n'
        "hint: LATE OF s KEEP, or a larger bound, DISORDER OF s."
    )
    assert (inlet.log.chunks, inlet.dead.chunks, inlet.counts, heartbeats.told, inlet.arrivals) == ([], [], {}, [], 0)
    assert inlet.push([(11, ("a",)), (None, ("d",))], ManualClock()) == 1
    assert inlet.counts == {"no-timestamp": 1}


def test_a_batch_from_the_far_future_is_refused(tmp_path: Path) -> None:
    stream = a_stream("at TIMESTAMP", TimeDomain.TIMESTAMP, timestamp="at", late="fail")
    inlet = inlet_of(stream, tmp_path, Notebook(ahead=ticks(NOON)))
    with pytest.raises(UserError) as refused:
        inlet.push([(NOON + timedelta(hours=30),)], ManualClock())
    assert 'stream "s" got 1 tuple from the far future' in refused.value.message
    assert "The worst lies 1 day, 6:00:00 beyond the limit." in refused.value.detail
    assert "FUTURE OF s" in refused.value.hint


def test_a_relation_keeps_what_is_late(tmp_path: Path) -> None:
    heartbeats = Notebook(closed=10)
    inlet = inlet_of(Relation("r", (Column("v", Sql("INT")),), TimeDomain.INTEGER), tmp_path, heartbeats)
    assert inlet.push([(11, (1,)), (12, (1,), "-"), (9, (2,))], ManualClock()) == 2
    assert logged(inlet, "v", "_n", "_t") == [(1, 1, 11), (1, -1, 12)]
    (letter,) = letters(inlet)
    assert list(letter) == ["v", "_reason", "_behind", "_timestamp", "_raw", "_t", "_s"]
    fixed = inlet_of(Relation("f", (Column("v", Sql("INT")),), None), tmp_path, heartbeats)
    heartbeats.told.clear()
    assert fixed.push([(0, (1,)), (0, ("x",))], ManualClock()) == 1
    assert fixed.counts == {"malformed": 1}
    assert heartbeats.told == []


def test_rows_that_are_heartbeats(tmp_path: Path) -> None:
    heartbeats = Notebook(closed=3, ahead=100)
    stream = a_stream("at INT, k STRING, done BOOLEAN", timestamp="at", source="k", heartbeat="done", late="drop")
    inlet = inlet_of(stream, tmp_path, heartbeats)
    rows = [
        (5, "a", None),
        (7, "a", True),
        (6, "a", False),
        (9, "b", True),
        (8, "b", True),
        (2, "c", True),
        (101, "d", True),
        (None, "e", True),
    ]
    assert inlet.push(rows, ManualClock()) == 2
    assert logged(inlet, "at") == [(5,), (6,)]
    assert inlet.counts == {"heartbeats": 4, "far-future": 1, "no-timestamp": 1}
    assert heartbeats.told == [("arrived", {"a": (2, 5, 6)}), ("upto", "a", 7), ("upto", "b", 9), ("upto", "c", 2)]
    assert [row["k"] for row in letters(inlet)] == ["e"]


def test_tuples_that_bring_heartbeats(tmp_path: Path) -> None:
    heartbeats = Notebook(closed=ticks(NOON))
    stream = a_stream("at TIMESTAMP, upto TIMESTAMP", TimeDomain.TIMESTAMP, timestamp="at", heartbeat="upto")
    inlet = inlet_of(stream, tmp_path, heartbeats)
    late, now, soon, far = (NOON + timedelta(seconds=seconds) for seconds in (-1, 1, 2, 100))
    assert inlet.push([(now, None), (soon, now), (late, soon)], ManualClock()) == 2
    assert heartbeats.told[-1] == ("upto", None, ticks(soon))
    heartbeats.ahead = ticks(soon)
    assert inlet.push([(soon, far)], ManualClock()) == 0, (
        "a promise from the far future would make everything else late"
    )
    assert (inlet.counts["far-future"], letters(inlet)[-1]["_behind"]) == (1, 98_000_000)
    assert len(heartbeats.told) == 3


def test_stamped_on_entry_by_the_date(tmp_path: Path) -> None:
    heartbeats = Notebook()
    clock = ManualClock(5, ticks(NOON))
    inlet = inlet_of(a_stream("v INT", TimeDomain.TIMESTAMP, stamped="internal"), tmp_path, heartbeats)
    assert inlet.push([(1,), {"v": 2}, ("x",)], clock) == 2
    clock.move_by(10)
    inlet.push([(3,)], clock)
    heartbeats.closed, heartbeats.ahead = ticks(NOON) + 20, 0
    inlet.push([(4,)], clock)
    inlet.push([(5,)], ManualClock(5, 0))
    assert [(v, t - ticks(NOON)) for v, t in logged(inlet, "v", "_t")] == [(1, 0), (2, 0), (3, 10), (4, 21), (5, 21)]
    assert inlet.counts == {"malformed": 1}
    assert [told[0] for told in heartbeats.told] == ["arrived"] * 4


def test_stamped_on_entry_without_a_date(tmp_path: Path) -> None:
    inlet = inlet_of(a_stream("v INT", TimeDomain.TIMESTAMP, stamped="internal"), tmp_path, Notebook())
    inlet.push([(1,)], ManualClock(7))
    assert logged(inlet, "v", "_t") == [(1, 7)]


def test_latent_rows_have_the_order_of_arrival(tmp_path: Path) -> None:
    heartbeats = Notebook(closed=99)
    inlet = inlet_of(a_stream("v INT", TimeDomain.ARRIVAL, stamped="latent"), tmp_path, heartbeats)
    assert inlet.push([(1,), ("x",), (2,)], ManualClock()) == 2
    assert inlet.push([(3,)], ManualClock()) == 1
    assert logged(inlet, "v", "_t") == [(1, 100), (2, 101), (3, 102)]
    assert heartbeats.told == [("arrived", {None: (2, 100, 101)}), ("arrived", {None: (1, 102, 102)})]
    assert [row["_raw"] for row in letters(inlet)] == ['[null, {"v": "x"}]']


def test_clocks_and_dates() -> None:
    dated, undated = ManualClock(date_us=50), ManualClock()
    for clock in (dated, undated):
        clock.move_by(7)
    assert (dated.now_us(), dated.date_us(), undated.now_us(), undated.date_us()) == (7, 57, 7, None)
    assert abs((SystemClock().date_us() or 0) - time.time() * 1e6) < 60e6


def test_the_range_of_a_chunk_behind_nested_columns(tmp_path: Path) -> None:
    nested = pa.array([{"a": 1, "b": {"c": 2, "d": 3}}] * 2)
    pq.write_table(pa.table({"n": nested, "_t": [7, 9], "_s": [0, 1]}), tmp_path / "1.parquet")
    chunk = described(tmp_path / "1.parquet")
    assert chunk is not None
    assert (chunk.low, chunk.high) == (7, 9)


def test_one_pushed_row_from_the_future_is_set_apart_and_the_second_is_believed(tmp_path: Path) -> None:
    heartbeats, stream = TimeManager(), a_stream("v INT")
    heartbeats.define(stream, now_us=0)
    inlet = inlet_of(stream, tmp_path, heartbeats)
    assert inlet.push([(10 * row, (row,)) for row in range(300)], ManualClock()) == 300
    assert inlet.push([(3_000, (1,)), (3_600_000, (2,)), (3_010, (3,))], ManualClock()) == 2
    assert [(row["v"], row["_reason"], row["_timestamp"]) for row in letters(inlet)] == [(2, "far-future", 3_600_000)]
    assert inlet.push([(3_600_010, (4,))], ManualClock()) == 1, "time has gone on"


# files


def source_of(spark: SparkSession, stream: Stream | Relation, folder: Path, heartbeats: Heartbeats) -> FileSource:
    inlet = inlet_of(stream, folder.parent / "engine", heartbeats)
    return FileSource(spark, inlet, Connector("json", {"path": str(folder)}))


def write(folder: Path, name: str, *rows: Any) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))


@pytest.mark.spark
def test_files_every_row_has_its_verdict(spark: SparkSession, tmp_path: Path) -> None:
    heartbeats = Notebook(closed=10, ahead=100)
    source = source_of(spark, a_stream("v INT, at BIGINT", timestamp="at"), tmp_path / "in", heartbeats)
    inlet = source.inlet
    bad = '{"v": 6, "at": "x"}'
    write(
        tmp_path / "in",
        "1",
        {"v": 1, "at": 11},
        {"v": 2, "at": 8},
        {"v": 3},
        {"v": 4, "at": -1},
        {"v": 5, "at": 103},
        bad,
    )
    assert source.poll(ManualClock()) == 1
    assert logged(inlet, "v", "_t") == [(1, 11)]
    assert inlet.counts == {"late": 1, "no-timestamp": 1, "before-origin": 1, "far-future": 1, "malformed": 1}
    found = [
        (row["v"], row["_reason"], row["_behind"], row["_timestamp"], row["_raw"], row["_t"]) for row in letters(inlet)
    ]
    assert found == [
        (2, "late", 2, 8, None, 11),
        (3, "no-timestamp", None, None, '{"v": 3}', 11),
        (4, "before-origin", None, -1, None, 11),
        (5, "far-future", 3, 103, None, 11),
        (6, "malformed", None, None, bad, 11),
    ]
    for chunk in inlet.dead.chunks:
        assert pq.read_schema(chunk.path).names == ["v", "at", "_reason", "_behind", "_timestamp", "_raw", "_t", "_s"]
        assert (chunk.low, chunk.high) == (11, 11)
    assert heartbeats.told == [("arrived", {None: (2, 8, 11)}), ("late", {None: 1})]
    assert source.poll(ManualClock()) == 0


@pytest.mark.spark
def test_files_of_history_are_taken_whole_but_for_one_bad_timestamp(spark: SparkSession, tmp_path: Path) -> None:
    """The first batch is compared with itself, the second with the pace of the first."""
    heartbeats, folder = TimeManager(), tmp_path / "in"
    stream = a_stream("v INT, at BIGINT", timestamp="at")
    heartbeats.define(stream, now_us=0)
    source = source_of(spark, stream, folder, heartbeats)
    for batch in range(2):
        rows = [{"v": row, "at": 10_000 * batch + 10 * row + (86_400_000 if row == 500 else 0)} for row in range(1_000)]
        write(folder, str(batch), *rows)
        assert source.poll(ManualClock()) == 999
    assert source.inlet.counts == {"far-future": 2}
    assert [row["_timestamp"] for row in letters(source.inlet)] == [86_405_000, 86_415_000]
    assert heartbeats.stream("s").largest == 19_990


@pytest.mark.spark
def test_files_in_their_order(spark: SparkSession, tmp_path: Path) -> None:
    """A file that is whole behind the ones before it shows; what is late counts, the far future does not."""
    heartbeats = Notebook(closed=ticks(NOON), ahead=ticks(NOON) + 60_000_000)
    stream = a_stream("at TIMESTAMP", TimeDomain.TIMESTAMP, timestamp="at")
    source = source_of(spark, stream, tmp_path / "in", heartbeats)
    source.session.conf.set("spark.sql.files.minPartitionNum", "100")  # so that each file is a task of its own
    for name, seconds in {"1": (5, 9), "2": (3, 4, 90), "3": (-2, 10)}.items():
        write(tmp_path / "in", name, *({"at": (NOON + timedelta(seconds=second)).isoformat()} for second in seconds))
    assert source.poll(ManualClock()) == 5
    (batch,) = heartbeats.batches
    (smallest,), (largest,) = ((edge - ticks(NOON)).tolist() for edge in (batch.smallest, batch.largest))
    assert (batch.counts.tolist(), smallest, largest, batch.behind.tolist()) == (
        [6],
        -2_000_000,
        10_000_000,
        [11_000_000],
    )
    assert heartbeats.told[1:] == [("late", {None: 1})]


@pytest.mark.spark
def test_files_with_strange_names(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, a_stream("v INT, at INT", timestamp="at"), tmp_path / "i n", Notebook())
    names = ["1", "2 3", "4%205", "6[7]", "8*", "9?", "a{b,c}", "ä"]
    for at, name in enumerate(names):
        write(tmp_path / "i n", name, {"v": 2 * at, "at": at}, {"v": 2 * at + 1, "at": at})
    assert source.poll(ManualClock()) == 2 * len(names)
    assert source.inlet.counts == {}
    assert logged(source.inlet, "v") == [(v,) for v in range(2 * len(names))]
    write(tmp_path / "i n", "0", {"v": 99, "at": 1})
    assert source.poll(ManualClock()) == 1
    assert logged(source.inlet, "v")[-1] == (99,)


@pytest.mark.spark
def test_files_in_pieces_keep_the_order_of_their_rows(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, a_stream("v INT, at INT, text STRING", timestamp="at"), tmp_path / "in", Notebook())
    write(tmp_path / "in", "1", *({"v": v, "at": 1, "text": "x" * 200} for v in range(12_000)))
    write(tmp_path / "in", "2", {"v": 12_000, "at": 1})
    assert source.poll(ManualClock()) == 12_001
    assert len(source.inlet.log.chunks) > 1
    assert logged(source.inlet, "v") == [(v,) for v in range(12_001)]


@pytest.mark.spark
def test_files_by_source_with_heartbeats(spark: SparkSession, tmp_path: Path) -> None:
    heartbeats = Notebook(closed=3, ahead=100)
    stream = a_stream("at INT, k INT, done BOOLEAN", timestamp="at", source="k", heartbeat="done")
    source = source_of(spark, stream, tmp_path / "in", heartbeats)
    rows = [(5, 1, None), (7, 1, True), (6, 1, False), (9, 2, True), (2, 3, False), (101, 4, True), (8, None, False)]
    write(tmp_path / "in", "1", *(dict(zip(("at", "k", "done"), row, strict=True)) for row in rows))
    assert source.poll(ManualClock()) == 3
    assert source.inlet.counts == {"heartbeats": 2, "late": 1, "far-future": 1}
    assert [told[0] for told in heartbeats.told] == ["arrived", "late", "upto", "upto"]
    assert heartbeats.told[:2] == [("arrived", {"1": (2, 5, 6), "3": (1, 2, 2), "": (1, 8, 8)}), ("late", {"3": 1})]
    assert sorted(heartbeats.told[2:]) == [("upto", "1", 7), ("upto", "2", 9)]
    assert [row["_reason"] for row in letters(source.inlet)] == ["late", "far-future"]
    assert "_upto" not in letters(source.inlet)[0]


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["STRING", "BIGINT"])
def test_sums_by_source_need_no_job_and_are_those_of_spark(
    spark: SparkSession, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged_batch, "SOURCE_ROWS", 3)
    stream = a_stream(f"at BIGINT, k {kind}, upto BIGINT", timestamp="at", source="k", heartbeat="upto")
    heard = []
    for way in ("memory", "spark"):
        heartbeats = Notebook(closed=3, ahead=100)
        source = source_of(spark, stream, tmp_path / way / "in", heartbeats)
        for file in range(2):
            rows = [(5 * file + at, None if at == 7 else -at % 4, None if at % 3 else at) for at in range(12)]
            write(tmp_path / way / "in", str(file), *(dict(zip(("at", "k", "upto"), row, strict=True)) for row in rows))
        with monkeypatch.context() as patched:
            never = "_sums_by_spark" if way == "memory" else "_sums_in_memory"
            patched.delattr(JudgedBatch, never)
            if way == "spark":
                patched.setattr(judged_batch, "SPELLED_ALIKE", ())
            assert source.poll(ManualClock()) == 20
        heard.append([(told[0], sorted(told[1].items())) for told in heartbeats.told[:2]])
        heard[-1].append(("upto", sorted(heartbeats.told[2:])))
    assert heard[0] == heard[1]
    assert len(heard[0][0][1]) == 5


@pytest.mark.spark
def test_files_with_tuples_that_bring_heartbeats(spark: SparkSession, tmp_path: Path) -> None:
    heartbeats = Notebook(closed=3, ahead=100)
    source = source_of(
        spark, a_stream("at INT, upto INT", timestamp="at", heartbeat="upto"), tmp_path / "in", heartbeats
    )
    write(tmp_path / "in", "1", {"at": 5, "upto": 4}, {"at": 2, "upto": 6}, {"at": 7}, {"at": 8, "upto": 200})
    assert source.poll(ManualClock()) == 2
    assert heartbeats.told == [("arrived", {None: (3, 2, 7)}), ("late", {None: 1}), ("upto", None, 6)]
    assert [row["_behind"] for row in letters(source.inlet)] == [1, 100]


@pytest.mark.spark
@pytest.mark.parametrize("heartbeat", ["done BOOLEAN", "upto TIMESTAMP"])
def test_files_and_pushed_rows_have_the_same_verdicts(spark: SparkSession, tmp_path: Path, heartbeat: str) -> None:
    """The rules are written twice; here they meet the same rows, with everything that can be at every edge."""
    second = [NOON + timedelta(seconds=seconds) for seconds in (-2, -1, 0, 1, 9, 10, 11, 12)]
    carried = [None, True, False] if heartbeat.endswith("BOOLEAN") else [None, *second]
    rows = [
        {"at": at, "k": source, heartbeat.split()[0]: beat}
        for at, source, beat in product([None, *second], [None, "a", "b"], carried)
    ]
    stream = a_stream(
        f"at TIMESTAMP, k STRING, {heartbeat}",
        TimeDomain.TIMESTAMP,
        timestamp="at",
        source="k",
        heartbeat=heartbeat.split()[0],
    )
    pushed, read = (Notebook(closed=ticks(NOON), ahead=ticks(NOON) + 10_000_000) for _ in range(2))
    inlet = inlet_of(stream, tmp_path / "pushed", pushed)
    source = source_of(spark, stream, tmp_path / "in", read)
    write(tmp_path / "in", "1", *(json.dumps(row, default=str) for row in rows))
    assert inlet.push(rows, ManualClock()) == source.poll(ManualClock())
    assert inlet.counts == source.inlet.counts
    assert letters(inlet) == [{**letter, "_raw": None} for letter in letters(source.inlet)]
    assert all(
        (letter["_raw"] is not None) == (letter["_reason"] == "no-timestamp") for letter in letters(source.inlet)
    )
    assert logged(inlet, "at", "k", "_t") == logged(source.inlet, "at", "k", "_t")
    assert pushed.told[:2] == read.told[:2]
    assert sorted(pushed.told[2:]) == sorted(read.told[2:])


@pytest.mark.spark
def test_files_that_are_refused_stay_unread(spark: SparkSession, tmp_path: Path) -> None:
    heartbeats = Notebook(closed=10)
    source = source_of(
        spark, a_stream("at INT, k STRING", timestamp="at", source="k", late="fail"), tmp_path / "in", heartbeats
    )
    inlet = source.inlet
    write(tmp_path / "in", "1", {"at": 11, "k": "a"}, {"at": 9, "k": "a"}, {"at": 2, "k": "b"}, {"k": "c"})
    for _ in range(2):
        with pytest.raises(UserError, match='late-tuple: stream "s" got 2 late tuples') as refused:
            source.poll(ManualClock())
        assert 'The worst of source "b" lies 8 ticks' in refused.value.detail
        assert (inlet.log.chunks, inlet.dead.chunks, inlet.counts, heartbeats.told) == ([], [], {}, [])
    assert isinstance(inlet.stream, Stream)
    inlet.stream = replace(inlet.stream, late="drop")
    assert source.poll(ManualClock()) == 1
    assert inlet.counts == {"late": 2, "no-timestamp": 1}
    assert [row["_reason"] for row in letters(inlet)] == ["no-timestamp"]
    assert heartbeats.told == [("arrived", {"a": (2, 9, 11), "b": (1, 2, 2)}), ("late", {"a": 1, "b": 1})]


@pytest.mark.spark
def test_files_stamped_on_entry(spark: SparkSession, tmp_path: Path) -> None:
    heartbeats = Notebook()
    clock = ManualClock(0, ticks(NOON))
    write(tmp_path / "in", "1", {"v": 1}, {"v": 2})
    for stamped, domain, first in (
        ("internal", TimeDomain.TIMESTAMP, ticks(NOON)),
        ("latent", TimeDomain.ARRIVAL, 100),
    ):
        (tmp_path / stamped).mkdir()
        inlet = inlet_of(a_stream("v INT", domain, stamped=stamped), tmp_path / stamped, heartbeats)
        source = FileSource(spark, inlet, Connector("json", {"path": str(tmp_path / "in")}))
        assert source.poll(clock) == 2
        assert logged(inlet, "v", "_t") == [(1, first), (2, first)]
    write(tmp_path / "in", "2", {"v": 3})
    assert source.poll(clock) == 1
    assert logged(inlet, "v", "_t") == [(1, 100), (2, 100), (3, 101)]
    assert heartbeats.told[1:] == [("arrived", {None: (2, 100, 100)}), ("arrived", {None: (1, 101, 101)})]


@pytest.mark.spark
def test_files_with_a_sample_of_their_timestamps(spark: SparkSession, tmp_path: Path) -> None:
    heartbeats = Notebook(closed=10, sampling=True, reference=100_000)
    source = source_of(spark, a_stream("at BIGINT", timestamp="at"), tmp_path / "in", heartbeats)
    near, far, ahead = [99_999, 99_998, 99_998, 100_000], [5, 50_000, 50_010], [100_003, 101_000, 101_020]
    write(tmp_path / "in", "1", *({"at": at} for at in near + far + ahead))
    source.poll(ManualClock())
    (batch,) = heartbeats.batches
    instants, counts = batch.weighted()
    found = dict(zip(instants.tolist(), counts.tolist(), strict=True))
    assert found == {99_999: 1, 99_998: 2, 100_000: 1, 5: 1, 50_000: 2, 100_003: 1, 101_020: 2}
    heartbeats.reference = None
    write(tmp_path / "in", "2", {"at": 200}, {"at": 300})
    source.poll(ManualClock())
    assert sorted(np.column_stack(heartbeats.batches[1].weighted()).tolist()) == [[200, 1], [300, 1]]


@pytest.mark.spark
def test_relations_from_files(spark: SparkSession, tmp_path: Path) -> None:
    heartbeats = Notebook(closed=10)
    columns = (Column("v", Sql("INT")), Column("at", Sql("INT")), Column("op", Sql("STRING")))
    changing = Relation("r", columns, TimeDomain.INTEGER, timestamp="at", change="op")
    source = source_of(spark, changing, tmp_path / "in", heartbeats)
    write(
        tmp_path / "in",
        "1",
        {"v": 1, "at": 11, "op": "+"},
        {"v": 1, "at": 12, "op": "-"},
        {"v": 2, "at": 3, "op": "+"},
        {"v": 3, "at": 13, "op": "?"},
    )
    assert source.poll(ManualClock()) == 2
    assert logged(source.inlet, "v", "_n", "_t") == [(1, 1, 11), (1, -1, 12)]
    assert [(row["_reason"], row["_timestamp"], row["_raw"], "_n" in row) for row in letters(source.inlet)] == [
        ("late", 3, None, False),
        ("malformed", 13, '{"v": 3, "at": 13, "op": "?"}', False),
    ]
    assert heartbeats.told == [("arrived", {None: (3, 3, 12)}), ("late", {None: 1})]
    fixed = Relation("f", columns[:1], None)
    whole = TableSource(
        spark, inlet_of(fixed, tmp_path / "f", heartbeats), Connector("json", {"path": str(tmp_path / "in")})
    )
    assert (whole.poll(ManualClock()), whole.poll(ManualClock())) == (4, 0)
    assert source_of(spark, fixed, tmp_path / "in", heartbeats).poll(ManualClock()) == 4
    assert len(heartbeats.told) == 2
