"""Rows that break the CHECK of a column are dead letters, whichever way they come in; a null breaks none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sources.test_inlet import Notebook, inlet_of, letters, logged, write
from tools.duck import shared, transpiled

from headgate import Engine
from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Connector, Relation, Stream
from headgate.cql.definitions import define
from headgate.heartbeat.clock import ManualClock
from headgate.sources.files import FileSource
from headgate.sources.tables import TableSource
from headgate.sources.verdict import Limits, verdict_sql, verdicts

CHECKED = "n INT CHECK (n IN (1, 5, 60)), s STRING CHECK (s > 'b' AND NOT s = 'x')"
ROWS = [(n, s, at) for n in (1, 5, 7, None) for s in ("a", "c", "x", None) for at in (4, 11)]


def stream_of(columns: str) -> Stream:
    """A stream as CQL defines it."""
    (stream,) = define(f"CREATE STREAM s ({columns}, at BIGINT) TIMESTAMP BY at", Catalog())
    assert isinstance(stream, Stream)
    return stream


def passes(n: int | None, s: str | None) -> bool:
    return n in (1, 5, 60, None) and s in ("c", None)


def expected(closed: int) -> list[str]:
    return ["check-failed" if not passes(n, s) else "late" if at <= closed else "tuple" for n, s, at in ROWS]


CONDITIONS = [
    "n IN (1, 5, 60)",
    "n = 5 OR n > 6",
    "NOT (n <> 5)",
    "n BETWEEN -1 AND 1",
    "n IS NULL",
    "n IN (1, 5) AND n < 5",
    "n >= -9223372036854775807 AND n <= 5",
]


@pytest.mark.parametrize("kind", ["TINYINT", "SMALLINT", "INT", "BIGINT"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_both_rules_say_the_same(condition: str, kind: str, tmp_path: Path) -> None:
    stream = stream_of(f"n {kind} CHECK ({condition})")
    arrow = {"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64()}[kind]
    values = [None, -1, 0, 1, 5, 6, 7, 127, -128]
    table = pa.table({"n": pa.array(values, arrow), "at": [3] * len(values), "_t": [3] * len(values)})
    listed = ", ".join(f"(({'NULL' if n is None else n})::{kind}, {place})" for place, n in enumerate(values))
    judged = transpiled(verdict_sql(stream, Limits()))
    found = shared().execute(
        f"SELECT {judged} FROM (SELECT n, p, 3 AS _t, NULL AS _raw, NULL::BIGINT AS _upto, 1 AS _n "
        f"FROM (VALUES {listed}) v(n, p)) ORDER BY p"
    )
    own = verdicts(stream, table, Limits()).tolist()
    assert [one for (one,) in found.fetchall()] == own
    assert set(own) == {"tuple", "check-failed"}
    assert own[0] == "tuple", "a CHECK that is null holds"


def test_pushed_rows(tmp_path: Path) -> None:
    heartbeats = Notebook(closed=5, ahead=100)
    inlet = inlet_of(stream_of(CHECKED), tmp_path, heartbeats)
    verdict = expected(5)
    assert inlet.push(ROWS, ManualClock()) == verdict.count("tuple") == 6
    assert inlet.counts == {"check-failed": verdict.count("check-failed"), "late": 6}
    found = {row["_s"]: row for row in letters(inlet)}
    assert [found[place]["_reason"] if place in found else "tuple" for place in range(len(ROWS))] == verdict
    one = found[0]
    assert {key: one[key] for key in ("n", "s", "at", "_behind", "_timestamp", "_raw", "_t")} == {
        "n": 1,
        "s": "a",
        "at": 4,
        "_behind": None,
        "_timestamp": 4,
        "_raw": None,
        "_t": 6,
    }


def test_the_heartbeats_do_not_hear_of_them(tmp_path: Path) -> None:
    heartbeats = Notebook(ahead=100)
    inlet = inlet_of(stream_of("n INT CHECK (n < 5)"), tmp_path, heartbeats)
    assert inlet.push([(1, 3), (9, 50), (2, 4)], ManualClock()) == 2
    assert heartbeats.told == [("arrived", {None: (2, 3, 4)})]
    assert [row["_t"] for row in letters(inlet)] == [3], "stamped like the first tuple"


def test_a_row_that_is_a_heartbeat_needs_no_check(tmp_path: Path) -> None:
    heartbeats = Notebook()
    (stream,) = define(
        "CREATE STREAM s (n INT CHECK (n < 5), done BOOLEAN, at BIGINT) TIMESTAMP BY at HEARTBEAT BY done", Catalog()
    )
    assert isinstance(stream, Stream)
    inlet = inlet_of(stream, tmp_path, heartbeats)
    assert inlet.push([(9, True, 3), (9, False, 4)], ManualClock()) == 0
    assert inlet.counts == {"heartbeats": 1, "check-failed": 1}


@pytest.mark.spark
@pytest.mark.parametrize("by_spark", [False, True])
@pytest.mark.parametrize("format", ["json", "parquet"])
def test_files(spark: SparkSession, tmp_path: Path, format: str, by_spark: bool) -> None:
    inlet = inlet_of(stream_of(CHECKED), tmp_path / "engine", heartbeats := Notebook(closed=5, ahead=100))
    folder = tmp_path / "in"
    if format == "json":
        write(folder, "1", *(dict(zip(("n", "s", "at"), row, strict=True)) for row in ROWS))
    else:
        folder.mkdir()
        own = [
            pa.array(values, kind)
            for values, kind in zip(zip(*ROWS, strict=True), (pa.int32(), pa.string(), pa.int64()), strict=True)
        ]
        pq.write_table(pa.table(own, names=["n", "s", "at"]), folder / "1.parquet")
    source = FileSource(spark, inlet, Connector(format, {"path": str(folder)}))
    if by_spark:
        source.small.wanted = False
    verdict = expected(5)
    assert source.poll(ManualClock()) == 6
    assert inlet.counts == {"check-failed": verdict.count("check-failed"), "late": 6}
    assert [(row["n"], row["s"], row["at"], row["_reason"]) for row in letters(inlet)] == [
        (*row, reason) for row, reason in zip(ROWS, verdict, strict=True) if reason != "tuple"
    ]
    assert {row["_behind"] for row in letters(inlet) if row["_reason"] == "check-failed"} == {None}
    assert logged(inlet, "n", "s", "at") == [row for row, one in zip(ROWS, verdict, strict=True) if one == "tuple"]
    assert heartbeats.told == [("arrived", {None: (12, 4, 11)}), ("late", {None: 6})]


@pytest.mark.spark
def test_a_parquet_file_of_a_stream_with_a_check_is_not_taken_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"n": pa.array([1, 7], pa.int32()), "at": [1, 2]}), tmp_path / "in" / "1.parquet")
    inlet = inlet_of(stream_of("n INT CHECK (n < 5)"), tmp_path / "engine", Notebook())
    source = FileSource(spark, inlet, Connector("parquet", {"path": str(tmp_path / "in")}))
    source.small.wanted = False
    assert source.poll(ManualClock()) == 1
    assert inlet.counts == {"check-failed": 1}


@pytest.mark.spark
@pytest.mark.parametrize("kind", [TableSource, FileSource])
def test_a_relation_that_never_changes(spark: SparkSession, tmp_path: Path, kind: Any) -> None:
    (relation,) = define(
        f"CREATE RELATION r (k INT, n INT CHECK (n IN (1, 5))) FROM json OPTIONS ('path' = '{tmp_path}')", Catalog()
    )
    assert isinstance(relation, Relation)
    write(tmp_path / "in", "1", {"k": 1, "n": 1}, {"k": 2, "n": 2}, {"k": 3})
    inlet = inlet_of(relation, tmp_path / "engine", Notebook())
    source = kind(spark, inlet, Connector("json", {"path": str(tmp_path / "in")}))
    assert (source.poll(ManualClock()), source.poll(ManualClock())) == (2, 0)
    assert sorted(logged(inlet, "k", "n"), key=str) == [(1, 1), (3, None)]
    assert [(row["k"], row["_reason"]) for row in letters(inlet)] == [(2, "check-failed")]
    assert inlet.counts == {"check-failed": 1}


@pytest.mark.spark
def test_what_spark_streams(spark: SparkSession, tmp_path: Path) -> None:
    for number, rows in enumerate(([{"n": 1, "at": 1}, {"n": 9, "at": 2}], [{"n": 60, "at": 3}])):
        write(tmp_path, str(number), *rows)
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM s (n INT CHECK (n IN (1, 60)), at INT) TIMESTAMP BY at "
            f"FROM json OPTIONS ('path' = '{tmp_path}', 'maxFilesPerTrigger' = '1');"
            "CREATE QUERY q AS SELECT n FROM s; CREATE QUERY odd AS SELECT ISTREAM(n, _reason AS why) FROM LATE(s) [NOW]"
        )
        engine.run_once()
        assert engine.counts("s") == {"taken": 2, "check-failed": 1}
        assert [result.row for result in engine.query("odd").results()] == [{"n": 9, "why": "check-failed"}]
        assert [result.row["n"] for result in engine.query("q").results()] == [1, 60]


@pytest.mark.spark
@pytest.mark.parametrize("files", [False, True])
def test_what_no_query_needs_is_still_kept_as_a_dead_letter(spark: SparkSession, tmp_path: Path, files: bool) -> None:
    rows = [{"n": 1, "m": 1, "at": 1}, {"n": 9, "m": 2, "at": 2}, {"n": 60, "m": 3, "at": 3}]
    write(tmp_path, "1", *rows)
    source = f"FROM json OPTIONS ('path' = '{tmp_path}')" if files else ""
    with Engine(spark) as engine:
        engine.execute(
            f"CREATE STREAM s (n INT CHECK (n IN (1, 60)), m INT, at INT) TIMESTAMP BY at {source};"
            "CREATE QUERY q AS SELECT ISTREAM(n) FROM s [NOW] WHERE n > 30"
        )
        if files:
            engine.poll()
        else:
            assert engine.push("s", rows) == 2
        assert engine.counts("s")["check-failed"] == 1
        (letter,) = engine.dead_letters("s")
        assert (letter["n"], letter["m"]) == (9, 2)


def test_the_check_of_a_column_that_is_called_like_a_word_of_sql(tmp_path: Path) -> None:
    stream = stream_of("`group` INT CHECK (`group` IN (1, 2)), `a b` STRING CHECK (`A b` <> '')")
    inlet = inlet_of(stream, tmp_path, Notebook())
    assert inlet.push([(1, "x", 1), (3, "x", 2), (2, "", 3)], ManualClock()) == 1
    assert [row["_s"] for row in letters(inlet)] == [1, 2]
