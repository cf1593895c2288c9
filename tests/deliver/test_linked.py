"""Results that reach a Parquet sink by link: the same inode, each file in order, and nothing lost or left by a crash."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deliver.test_sinks import Deliveries, Row, rows_in, sink
from pyspark.sql import SparkSession

from headgate import Engine, ManualClock
from headgate.deliver.outbox import Outbox
from headgate.deliver.sinks import as_they_are, shape
from headgate.deliver.sinks import files as file_sink
from headgate.deliver.sinks.files import read_commits
from headgate.deliver.sinks.sink import Delivery
from headgate.execute import programs
from headgate.sql import result_order

pytestmark = pytest.mark.spark

EVEN: list[Row] = [(at, change, f"{change}{at}", 0.5) for at in range(2, 42, 2) for change in "-+"]
ODD: list[Row] = [(at, change, f"{change}{at}", 0.5) for at in range(1, 40, 2) for change in "-+"]
BOTH = sorted([*EVEN, *ODD], key=lambda row: (row[0], row[1] == "+"))


@pytest.fixture
def deliveries(tmp_path: Path) -> Deliveries:
    return Deliveries(tmp_path / "outbox")


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(as_they_are, "FILE_ROWS", 1)


def overlapping(deliveries: Deliveries) -> Delivery:
    """Two files, each in order, whose rows lie between those of the other."""
    return deliveries(*(row for pair in zip(EVEN, ODD, strict=True) for row in pair))


def inodes(files: Any) -> list[int]:
    return [file.stat().st_ino for file in files]


def into(out: Path, more: str = "") -> str:
    return f"parquet OPTIONS ('path' = '{out}'{more})"


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("this was to be linked")


def test_files_in_order_are_linked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deliveries: Deliveries
) -> None:
    delivery = overlapping(deliveries)
    kept = sink(spark, tmp_path / "query", into(tmp_path / "out"))
    with monkeypatch.context() as patched:
        patched.setattr(shape, "write_parts", never)
        kept.deliver(delivery)
    (commit,) = read_commits(tmp_path / "out")
    assert inodes(commit.files) == inodes(reversed(delivery.files)), "that which begins earlier comes first"
    for file in delivery.files:
        file.unlink()
    assert len(rows_in(spark, tmp_path / "out")) == commit.rows == delivery.rows
    for file in commit.files:
        table = pq.read_table(file)
        assert table == table.sort_by(result_order(table.column_names))
    kept.deliver(deliveries())
    assert [commit.rows for commit in read_commits(tmp_path / "out")] == [delivery.rows, 0]


def test_ordered_files_follow_one_another_in_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deliveries: Deliveries
) -> None:
    kept = sink(spark, tmp_path / "query", into(tmp_path / "out", ", 'ordered' = 'true'"))
    first = overlapping(deliveries)
    kept.deliver(first)
    (commit,) = read_commits(tmp_path / "out")
    assert not set(inodes(commit.files)) & set(inodes(first.files))
    assert [row[:2] for row in rows_in(spark, tmp_path / "out")] == [row[:2] for row in BOTH]
    monkeypatch.setattr(shape, "write_parts", never)
    whole = Deliveries(tmp_path / "behind")
    whole.number = 1
    later = whole(*((at + 100, change, k, v) for at, change, k, v in BOTH), files=1)
    kept.deliver(later)
    assert inodes(list(read_commits(tmp_path / "out"))[-1].files) == inodes(later.files), "one file is in order"


def test_what_is_not_in_order_is_sorted(spark: SparkSession, tmp_path: Path, deliveries: Deliveries) -> None:
    """By time, and at one instant insertions stand before deletions; also where a batch ends."""
    kept = sink(spark, tmp_path / "query", into(tmp_path / "out"))
    kept.deliver(deliveries(*reversed(BOTH), files=1))
    kept.deliver(deliveries((50, "+", "a", 1.0), (50, "-", "b", 1.0), files=1))
    found = [row[:2] for row in rows_in(spark, tmp_path / "out")]
    assert found == [*(row[:2] for row in BOTH), (50, "-"), (50, "+")]


def test_order_is_looked_at_across_batches(tmp_path: Path) -> None:
    rows: list[Row] = [(at, "+", "a", 1.0) for at in range(70_000)]
    wrong = [*rows[: 1 << 16], (5, "+", "a", 1.0), *rows[1 << 16 :]]
    for given, found in ((rows, True), (wrong, False)):
        delivery = Deliveries(tmp_path / str(found))(*given, files=1)
        assert (as_they_are.linked(delivery, tmp_path / "linked", ordered=True) is not None) == found


def test_many_small_files_are_put_together(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deliveries: Deliveries
) -> None:
    monkeypatch.setattr(as_they_are, "FILE_ROWS", 20)
    sink(spark, tmp_path / "query", into(tmp_path / "out")).deliver(deliveries(*BOTH, files=10))
    (commit,) = read_commits(tmp_path / "out")
    assert len(commit.files) == 1
    assert [row[:2] for row in rows_in(spark, tmp_path / "out")] == [row[:2] for row in BOTH]


@pytest.mark.parametrize("more", [", 'compression' = 'gzip'", ", 'deliver' = 'upserts', 'key' = 'k'"])
def test_what_must_be_written_is_not_linked(
    spark: SparkSession, tmp_path: Path, deliveries: Deliveries, more: str
) -> None:
    delivery = deliveries(*((at, "+", str(at), 1.0) for at in range(9)), files=1)
    sink(spark, tmp_path / "query", into(tmp_path / "out", more)).deliver(delivery)
    (commit,) = read_commits(tmp_path / "out")
    assert not set(inodes(commit.files)) & set(inodes(delivery.files))


def test_a_crash_between_the_links_and_the_record(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deliveries: Deliveries
) -> None:
    out, delivery = tmp_path / "out", overlapping(deliveries)
    kept = sink(spark, tmp_path / "query", into(out))
    with monkeypatch.context() as broken:
        broken.setattr(file_sink, "settle", lambda *_: 1 / 0)
        for _ in ("once", "again in the same process"):
            with pytest.raises(ZeroDivisionError):
                kept.deliver(delivery)
    assert list(read_commits(out)) == []
    assert len(list(out.glob("*.parquet"))) == 2
    restarted = sink(spark, tmp_path / "query", into(out))
    restarted.deliver(delivery)
    restarted.deliver(delivery)
    (commit,) = read_commits(out)
    assert sorted(out.glob("*.parquet")) == sorted(commit.files)
    assert set(inodes(commit.files)) == set(inodes(delivery.files))
    assert commit.rows == delivery.rows == len(rows_in(spark, out))
    restarted.close()
    assert not (out / "_staging").exists()


def test_a_crash_between_two_links(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deliveries: Deliveries
) -> None:
    out, delivery, linked = tmp_path / "out", overlapping(deliveries), list[Path]()

    def one_and_no_more(source: Path, path: Path) -> None:
        if linked:
            raise KeyboardInterrupt
        linked.append(path)
        os.link(source, path)

    with monkeypatch.context() as broken:
        broken.setattr(as_they_are, "link", one_and_no_more)
        with pytest.raises(KeyboardInterrupt):
            sink(spark, tmp_path / "query", into(out)).deliver(delivery)
    sink(spark, tmp_path / "query", into(out)).deliver(delivery)
    (commit,) = read_commits(out)
    assert len(rows_in(spark, out)) == commit.rows == delivery.rows


def test_where_no_link_can_be_made_files_are_copied(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deliveries: Deliveries
) -> None:
    def refused(*_: Any) -> None:
        raise OSError(18, "Invalid cross-device link")

    delivery = overlapping(deliveries)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(os, "link", refused)
        sink(spark, tmp_path / "query", into(tmp_path / "out")).deliver(delivery)
    (commit,) = read_commits(tmp_path / "out")
    assert [file.read_bytes() for file in commit.files] == [file.read_bytes() for file in reversed(delivery.files)]
    assert not set(inodes(commit.files)) & set(inodes(delivery.files))


@pytest.mark.parametrize("asked", ["ISTREAM(k, COUNT(*) AS n)", "k, COUNT(*) AS n"])
def test_results_of_large_epochs_are_in_order_in_each_file_and_linked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setattr(programs, "SINGLE_TASK_ROWS", 10)
    monkeypatch.setattr(shape, "write_parts", never)
    put, waiting = Outbox.put, dict[str, int]()

    def seen(self: Outbox, *given: Any) -> Any:
        chunks = put(self, *given)
        waiting.update({str(chunk.path): chunk.path.stat().st_ino for chunk in chunks})
        return chunks

    monkeypatch.setattr(Outbox, "put", seen)
    out = tmp_path / "out"
    with Engine(spark, tmp_path / "state", clock=ManualClock()) as engine:
        engine.execute(f"""
        CREATE STREAM s (k INT);
        CREATE QUERY q AS SELECT {asked} FROM s [RANGE 20] GROUP BY k INTO parquet OPTIONS ('path' = '{out}');
        """)
        engine.push("s", [(at, (at % 7,)) for at in range(300)])
        engine.advance(400)
    commits = [commit for commit in read_commits(out) if commit.rows]
    files = [file for commit in commits for file in commit.files]
    assert {file.stat().st_ino for file in files} == set(waiting.values())
    assert not any(map(os.path.exists, waiting)), "the outbox has deleted its own names"
    assert all(file.stat().st_nlink == 1 for file in files)
    assert max(len(commit.files) for commit in commits) > 1, "several tasks have written"
    for file in files:
        table = pq.read_table(file)
        assert table == table.sort_by(result_order(table.column_names))
