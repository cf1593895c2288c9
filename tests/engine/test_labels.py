"""Labels of answers, in an engine that runs its epochs in DuckDB: what they count, what keeps them, who gets them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tools.duck_engine import engine_on_duckdb, killed, without_spark

from headgate import Delivery, Reflects, Result, read_commits
from headgate.log.log import MERGE_AT

STREAM = "CREATE STREAM s (k STRING, v INT); "
SUMS = "SELECT k, SUM(v) AS n FROM s [RANGE 3] GROUP BY k"

TOLD: list[tuple[int, dict[str, Reflects]]] = []
FAIL: list[bool] = []


def took(delivery: Delivery, batches: Iterator[pa.RecordBatch]) -> None:
    """A callback."""
    if FAIL:
        raise RuntimeError("not now")
    TOLD.append((delivery.number, dict(delivery.reflects)))


@pytest.fixture(autouse=True)
def on_duckdb(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in ("callback", "files"):
        monkeypatch.setattr(f"headgate.deliver.sinks.{module}.own_session", lambda session: session)
    TOLD.clear()
    FAIL.clear()
    with without_spark():
        yield


def shown(results: Sequence[Result]) -> list[tuple[Any, ...]]:
    return [(one.at, one.sign, *one.row.values(), one.reflects) for one in results]


def test_a_label_counts_what_had_come(tmp_path: Path) -> None:
    engine = engine_on_duckdb(tmp_path)
    engine.execute(f"{STREAM} DISORDER OF s 2; CREATE QUERY q AS {SUMS}")
    query = engine.query("q")
    assert query.reflects == {}, "nothing is complete"
    engine.push("s", [(1, ("a", 1)), (4, ("a", 4)), (2, ("a", 2))])
    engine.step()
    first = {"s": Reflects(3, 1)}
    assert query.reflects == first
    assert shown(query.results(labels=True)) == [(1, "+", "a", 1, first)]
    assert shown(query.results()) == [(1, "+", "a", 1, None)]
    assert engine.push("s", [(1, ("a", 9)), (6, ("a", 6))]) == 1, "what is late does not count"
    engine.step()
    assert query.reflects == {"s": Reflects(4, 3)}
    assert "reflect the first 4 tuples of s, up to 3\n" in str(query.why())
    engine = killed(engine, tmp_path)
    query = engine.query("q")
    assert query.reflects == {"s": Reflects(4, 3)}
    assert [one.reflects for one in query.results(labels=True)] == [first, *[{"s": Reflects(4, 3)}] * 2]
    engine.push("s", [(30, ("b", 1))])
    engine.step()
    engine.push("s", [(40, ("b", 1))])
    engine.step()
    assert query.reflects == {"s": Reflects(6, 37)}, "nothing happened, and the instant moved on"
    assert query.results(labels=True)[-1].reflects == {"s": Reflects(6, 37)}
    engine.close()


def test_labels_of_files_that_are_merged(tmp_path: Path) -> None:
    """Labels stay as few as the files of results, also in a checkpoint; merged results have the last of theirs."""
    engine = engine_on_duckdb(tmp_path)
    engine.execute(f"{STREAM} CREATE QUERY q AS {SUMS}")
    query = engine.query("q")
    for at in range(1, MERGE_AT + 6):
        engine.push("s", [(at, ("a", at))])
        engine.advance(at)
        for one in query.results(labels=True):
            assert one.reflects is not None
            assert one.at <= one.reflects["s"].tuples == one.reflects["s"].complete <= at
    assert len(query.outbox.labels) == len(query.outbox.log.chunks) < MERGE_AT
    before = shown(query.results(labels=True))
    engine._running.checkpoint()
    engine = killed(engine, tmp_path)
    assert shown(engine.query("q").results(labels=True)) == before
    engine.close()


def test_members_of_a_family_that_was_found(tmp_path: Path) -> None:
    engine = engine_on_duckdb(tmp_path)
    engine.execute(STREAM)
    heard: list[Result] = []
    for number in range(5):
        engine.execute(f"CREATE QUERY q{number} AS SELECT ISTREAM(k, v) FROM s [NOW] WHERE v > {number}")
    engine.query("q3").on_change(heard.extend)
    assert all(query.membership is not None for query in engine.queries())
    engine.push("s", [(1, ("a", 4)), (2, ("b", 9)), (3, ("c", 2))])
    engine.step()
    label = {"s": Reflects(3, 2)}
    assert engine.query("q3").reflects == label, "the relation of the members is not told"
    assert shown(engine.query("q3").results(labels=True)) == [(1, "+", "a", 4, label), (2, "+", "b", 9, label)]
    assert shown(heard) == shown(engine.query("q3").results(labels=True))
    engine = killed(engine, tmp_path)
    assert engine.query("q3").reflects == label
    engine.close()


def test_members_of_a_family_that_was_declared() -> None:
    engine = engine_on_duckdb()
    engine.execute(f"{STREAM} CREATE RELATION r (k STRING, least INT)")
    engine.push("r", [(0, ("a", 1), "+"), (0, ("b", 5), "+")])
    engine.execute(
        "CREATE QUERIES q FOR EACH ROW OF r AS SELECT ISTREAM(v) FROM s [NOW] WHERE s.k = r.k AND v > r.least"
    )
    engine.push("s", [(1, ("a", 4)), (2, ("b", 9))])
    engine.advance(5)
    label = {"r": Reflects(2, 5), "s": Reflects(2, 5)}
    assert shown(engine.query("q").member("a", 1).results(labels=True)) == [(1, "+", 4, label)]
    engine.close()


def test_a_query_that_runs_by_groups() -> None:
    """The instant is that of the group that is least far; the tuples are those that any group has seen."""
    engine = engine_on_duckdb()
    engine.execute(
        "CREATE STREAM s (dev STRING, v INT, at BIGINT) TIMESTAMP BY at SOURCE BY dev; DISORDER OF s 0;"
        "GROUPS OF s ('a'), ('c'); CREATE QUERY q AS SELECT dev, SUM(v) AS n FROM s [RANGE 10] GROUP BY dev"
    )
    engine.push("s", [("a", 1, 10), ("c", 1, 5)])
    engine.step()
    query = engine.query("q")
    assert len(query.answers) == 3
    engine.push("s", [("c", 3, 6), ("c", 4, 8)])
    engine.step()
    complete = query.complete
    assert query.complete_by_group["('a')"] > query.complete_by_group["('c')"] >= complete
    assert query.reflects == {"s": Reflects(4, complete)}
    engine.advance(20)
    assert query.reflects == {"s": Reflects(4, 20)}
    assert all(one.reflects for one in query.results(labels=True))
    engine.close()


def test_deliveries_that_wait_keep_their_labels(tmp_path: Path) -> None:
    engine = engine_on_duckdb(tmp_path)
    engine.execute(f"{STREAM} CREATE QUERY q AS {SUMS} INTO callback OPTIONS ('function' = 'test_labels:took')")
    engine.push("s", [(1, ("a", 1)), (2, ("a", 1))])
    engine.advance(1)
    FAIL.append(True)
    engine.advance(2)
    FAIL.clear()
    engine = killed(engine, tmp_path)
    engine.advance(3)
    engine.close()
    assert TOLD[:2] == [(1, {"s": Reflects(2, 1)}), (2, {"s": Reflects(2, 2)})]


def test_a_column_of_a_sink(tmp_path: Path) -> None:
    engine = engine_on_duckdb()
    for name, more in (("with", ", 'reflects' = 'true'"), ("without", ", 'reflects' = 'false'")):
        into = f"INTO parquet OPTIONS ('path' = '{tmp_path / name}'{more})"
        engine.execute(f"{STREAM if name == 'with' else ''} CREATE QUERY q_{name} AS {SUMS} {into}")
    engine.push("s", [(1, ("a", 1)), (2, ("a", 1))])
    for at in (1, 2):
        engine.advance(at)
    engine.close()
    commits = [pq.read_table(file) for commit in read_commits(tmp_path / "with") for file in commit.files]
    assert [set(rows["_reflects"].to_pylist()) for rows in commits] == [
        {'{"s": {"tuples": 2, "complete": 1}}'},
        {'{"s": {"tuples": 2, "complete": 2}}'},
    ]
    assert json.loads(commits[0]["_reflects"][0].as_py()) == {"s": {"tuples": 2, "complete": 1}}
    (file, *_) = (file for commit in read_commits(tmp_path / "without") for file in commit.files)
    assert "_reflects" not in pq.read_schema(file).names


def test_an_earlier_version_left_no_labels(tmp_path: Path) -> None:
    engine = engine_on_duckdb(tmp_path)
    engine.execute(f"{STREAM} CREATE QUERY q AS {SUMS}")
    engine.push("s", [(1, ("a", 1))])
    engine.advance(1)
    query = engine.query("q")
    query.outbox.labels.clear()
    query.answer.progress.tuples = {}
    assert (query.reflects, query.results(labels=True)[0].reflects) == ({}, {})
    assert "reflect" not in str(query.why())
    engine.push("s", [(2, ("a", 1))])
    engine.advance(2)
    assert query.reflects == {"s": Reflects(2, 2)}
    assert [one.reflects for one in query.results(labels=True)] == [{"s": Reflects(2, 2)}] * 3
    engine.close()
