"""Files of every format are read by name, and what does not fit is kept whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sources.test_inlet import Notebook, a_stream, inlet_of, letters, logged
from tools.jars import add_jars

from headgate import Engine
from headgate.catalog.entries import Connector
from headgate.errors import UserError
from headgate.heartbeat.clock import ManualClock
from headgate.sources.files import FileSource
from headgate.sources.payload import with_columns
from headgate.ticks import TimeDomain

pytestmark = pytest.mark.spark

PEOPLE = a_stream("name STRING, city STRING, at INT", timestamp="at")
ROWS = [("ann", "bonn", 1), ("bob", "rome", 2)]
TYPES = {"name": pa.string(), "city": pa.string(), "at": pa.int32(), "more": pa.string()}


def table(order: str, rows: list[tuple[Any, ...]], **types: pa.DataType) -> pa.Table:
    """The rows with their columns in this order; names of upper case are those columns all the same."""
    values = dict(zip(("name", "city", "at"), zip(*rows, strict=True), strict=True)) | {"more": ["x"] * len(rows)}
    columns = order.split(",")
    kinds = {**TYPES, **types}
    return pa.table([pa.array(values[c.lower()], kinds[c.lower()]) for c in columns], names=columns)


def write_csv(file: Path, rows: pa.Table, header: bool = True) -> None:
    lines = [",".join(map(str, row.values())) for row in rows.to_pylist()]
    file.write_text("\n".join([*([",".join(rows.column_names)] if header else []), *lines]) + "\n")


def write_json(file: Path, rows: pa.Table) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))


def write_array(file: Path, rows: pa.Table) -> None:
    file.write_text(json.dumps(rows.to_pylist(), indent=1))


def write_xml(file: Path, rows: pa.Table) -> None:
    records = ["".join(f"<{k}>{v}</{k}>" for k, v in row.items()) for row in rows.to_pylist()]
    file.write_text(f"<rows>{''.join(f'<row>{record}</row>' for record in records)}</rows>")


def write_orc(file: Path, rows: pa.Table) -> None:
    orc.write_table(rows, file)


def write_parquet(file: Path, rows: pa.Table) -> None:
    pq.write_table(rows, file)


FORMATS: dict[str, tuple[str, dict[str, str], Callable[[Path, pa.Table], None]]] = {
    "csv": ("csv", {"header": "true"}, write_csv),
    "json": ("json", {}, write_json),
    "json array": ("json", {"multiLine": "true"}, write_array),
    "xml": ("xml", {"rowTag": "row"}, write_xml),
    "orc": ("orc", {}, write_orc),
    "parquet": ("parquet", {}, write_parquet),
}


def source_of(spark: SparkSession, tmp_path: Path, format: str, options: dict[str, str], **more: Any) -> FileSource:
    stream = more.pop("stream", PEOPLE)
    (tmp_path / "in").mkdir(exist_ok=True)
    inlet = inlet_of(stream, tmp_path / "log", Notebook(**more))
    return FileSource(spark, inlet, Connector(format, {"path": str(tmp_path / "in"), **options}))


@pytest.mark.parametrize("kind", FORMATS)
def test_columns_by_name_whatever_their_order_and_case(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    format, options, write = FORMATS[kind]
    source = source_of(spark, tmp_path, format, options)
    write(tmp_path / "in" / "1", table("name,city,at", ROWS))
    write(tmp_path / "in" / "2", table("CITY,at,more,Name", ROWS))
    write(tmp_path / "in" / "3", table("at,city,name", ROWS))
    assert source.poll(ManualClock()) == 6
    assert logged(source.inlet, "name", "city", "at") == ROWS * 3
    assert source.inlet.counts == {}


def test_avro_by_name(spark: SparkSession, tmp_path: Path) -> None:
    add_jars(spark, "avro")
    for number, order in enumerate(("name,city,at", "CITY,at,more,Name")):
        rows = spark.createDataFrame(table(order, ROWS).to_pandas())
        rows.coalesce(1).write.format("avro").save(f"{tmp_path}/in/{number}")
    source = source_of(spark, tmp_path, "avro", {"recursiveFileLookup": "true"})
    assert source.poll(ManualClock()) == 4
    assert logged(source.inlet, "name", "city", "at") == ROWS * 2


def test_csv_without_a_header_goes_by_position(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, tmp_path, "csv", {})
    write_csv(tmp_path / "in" / "1", table("name,city,at", ROWS), header=False)
    (tmp_path / "in" / "2").write_text("cid,oslo\ndan,paris,x\neve,riga,9,more\nfay,ulm,\n")
    assert source.poll(ManualClock()) == 2
    assert logged(source.inlet, "name", "city", "at") == ROWS
    found = [(letter["_reason"], letter["_raw"]) for letter in letters(source.inlet)]
    assert found == [
        ("malformed", "cid,oslo"),
        ("malformed", "dan,paris,x"),
        ("malformed", "eve,riga,9,more"),
        ("no-timestamp", '{"name":"fay","city":"ulm"}'),
    ]


def test_a_header_as_spreadsheets_write_it(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, tmp_path, "csv", {"header": "true", "ignoreLeadingWhiteSpace": "true"})
    (tmp_path / "in" / "1").write_text("\ufeffcity, at, name\r\nbonn, 1, ann\r\nrome, 2, bob\r\n", encoding="utf-8")
    assert source.poll(ManualClock()) == 2
    assert logged(source.inlet, "name", "city", "at") == ROWS


@pytest.mark.parametrize("kind", ["csv", "orc", "parquet"])
def test_a_column_that_a_file_does_not_have(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    format, options, write = FORMATS[kind]
    source = source_of(spark, tmp_path, format, options)
    write(tmp_path / "in" / "1", table("name,city,at", ROWS))
    wrong = table("name,city,at", ROWS).rename_columns(["name", "citty", "at"])
    write(tmp_path / "in" / "2", wrong)
    write(tmp_path / "in" / "3", table("name,city,at", ROWS))
    for _ in range(2):
        with pytest.raises(UserError, match='no-such-column: column "city" of stream "s"') as refused:
            source.poll(ManualClock())
        assert refused.value.detail.startswith('Its columns are "name", "citty", "at".')
        assert refused.value.hint == 'Did you mean "citty"?'
        assert source.looked_us is None
    assert logged(source.inlet, "name", "city", "at") == ROWS * 2, "the other files are read, once"
    source.reader.said["mergeschema"] = "true"
    assert source.poll(ManualClock()) == 2
    assert logged(source.inlet, "name", "city", "at")[4:] == [("ann", None, 1), ("bob", None, 2)]


def test_files_of_other_types_and_files_that_are_none(spark: SparkSession, tmp_path: Path) -> None:
    """Casts, dead letters, and the others go on."""
    source = source_of(spark, tmp_path, "parquet", {})
    write_parquet(tmp_path / "in" / "1", table("name,city,at", [*ROWS, ("cid", "oslo", 2**40)], at=pa.int64()))
    write_parquet(tmp_path / "in" / "2", table("at,city,name", [("3", "ulm", "x"), ("4", "riga", "7")], at=pa.string()))
    (tmp_path / "in" / "3").write_bytes(b"PAR1 this is nothing of the kind PAR1")
    write_parquet(tmp_path / "in" / "4", table("name,city,at", ROWS))
    source.poll(ManualClock())
    (note,) = source.notes
    assert "/in/3" in note.message
    assert note.code == "file-set-aside"
    assert logged(source.inlet, "name", "city", "at") == [*ROWS, ("4", "riga", 7), *ROWS]
    raw = [letter["_raw"] for letter in letters(source.inlet)]
    assert any("/in/3" in text for text in raw), "the file is a dead letter by its name"
    found = [("malformed", json.loads(text)) for text in raw if text.startswith("{")]
    assert found == [
        ("malformed", {"name": "cid", "city": "oslo", "at": 2**40}),
        ("malformed", {"name": "3", "city": "ulm", "at": "x"}),
    ]


def test_what_cannot_be_read_is_kept_whole_and_can_be_seen(spark: SparkSession, tmp_path: Path) -> None:
    """The keys of JSON count without case; a dead letter has its text, and an instant of its stream."""
    lines = [
        '{"A": 1, "X": {"A": 1.5}, "AT": "2026-01-01 10:00:00"}',
        '{"a": 2, "A": 7, "x": null, "At": "2026-01-01 11:00:00"}',
        '{"a": 3, "AT": "2026-01-01 12:00:00", "At": "2026-01-01 13:00:00"}',
        '{"a": 4, "when": "2026-01-01 12:00:00"}',
        "not json",
    ]
    stream = a_stream("a INT, x STRING, at TIMESTAMP", TimeDomain.TIMESTAMP, timestamp="at")
    source = source_of(spark, tmp_path, "json", {}, stream=stream)
    (tmp_path / "in" / "1.json").write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    assert source.poll(ManualClock()) == 2
    assert [(a, x) for a, x in logged(source.inlet, "a", "x")] == [(1, '{"A":1.5}'), (2, None)]
    first = min(t for (t,) in logged(source.inlet, "_t"))
    found = [(letter["_reason"], letter["_raw"], letter["_t"]) for letter in letters(source.inlet)]
    assert found == [("malformed", lines[2], first), ("no-timestamp", lines[3], first), ("malformed", lines[4], first)]
    pushed = inlet_of(stream, tmp_path / "pushed", Notebook())
    pushed.push([{"a": "x"}, {"a": 1, "at": "2026-01-01 10:00:00"}, {"a": 2}], ManualClock())
    assert [letter["_t"] for letter in letters(pushed)] == [first, first]


def test_late_sees_rows_that_are_malformed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(
        'nothing\n{"v": 1, "at": "2026-01-01 10:00:00"}\n{"v": 1, "at": "2026-01-01 10:30:00"}\n'
    )
    with Engine(spark) as engine:
        engine.execute(
            f"CREATE STREAM s (v INT, at TIMESTAMP) TIMESTAMP BY at FROM json OPTIONS ('path' = '{tmp_path}');"
            "CREATE QUERY q AS SELECT _reason, _raw FROM LATE(s) [RANGE 1 HOUR]"
        )
        engine.run_once()
        (seen,) = engine.query("q").results()
        assert (seen.sign, seen.row, seen.at.isoformat()) == (
            "+",
            {"reason": "malformed", "raw": "nothing"},
            "2026-01-01T10:00:00+00:00",
        )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_through_sparks_own_stream_by_name_too(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    format, options, write = FORMATS[kind]
    (tmp_path / "i n").mkdir()
    write(tmp_path / "i n" / "1 [a]", table("name,city,at", ROWS))
    write(tmp_path / "i n" / "2", table("CITY,at,more,Name", ROWS))
    more = "".join(f", '{key}' = '{value}'" for key, value in options.items())
    with Engine(spark) as engine:
        engine.execute(
            f"CREATE STREAM s (name STRING, city STRING, at INT) TIMESTAMP BY at FROM {format} "
            f"OPTIONS ('path' = '{tmp_path}/i n', 'maxFilesPerTrigger' = '1'{more}); CREATE QUERY q AS SELECT ISTREAM(*) FROM s [NOW]"
        )
        engine.run_once()
        assert engine.counts("s") == {"taken": 4}
        found = sorted((r.row["name"], r.row["city"], r.row["at"]) for r in engine.query("q").results())
        assert found == sorted(ROWS * 2)


def test_text_has_the_column_value(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1").write_text("bonn,ann\nrome,bob\n")
    lines = FileSource(
        spark,
        inlet_of(a_stream("value STRING", TimeDomain.ARRIVAL, stamped="latent"), tmp_path / "a", Notebook()),
        Connector("text", {"path": str(tmp_path / "in")}),
    )
    assert lines.poll(ManualClock()) == 2
    assert logged(lines.inlet, "value") == [("bonn,ann",), ("rome,bob",)]
    decoded = FileSource(
        spark,
        inlet_of(
            a_stream("city STRING, name STRING", TimeDomain.ARRIVAL, stamped="latent"), tmp_path / "b", Notebook()
        ),
        Connector("text", {"path": str(tmp_path / "in")}, Connector("csv", {})),
    )
    assert decoded.poll(ManualClock()) == 2
    assert logged(decoded.inlet, "city", "name") == [("bonn", "ann"), ("rome", "bob")]
    other = FileSource(
        spark,
        inlet_of(a_stream("line STRING", TimeDomain.ARRIVAL, stamped="latent"), tmp_path / "c", Notebook()),
        Connector("text", {"path": str(tmp_path / "in")}),
    )
    with pytest.raises(UserError, match='no-such-column: column "line"'):
        other.poll(ManualClock())


def test_values_as_csv_go_by_position_and_as_json_by_name(spark: SparkSession, tmp_path: Path) -> None:
    values = spark.createDataFrame([("ann,bonn,1",), ("bob,rome",), ("cid,oslo,3,4",), (None,)], "value STRING")
    inlet = inlet_of(PEOPLE, tmp_path, Notebook())
    found = with_columns(values, inlet, Connector("csv", {})).selectExpr("name", "city", "at", "_raw").collect()
    assert [tuple(row) for row in found[:1]] == [("ann", "bonn", 1, None)]
    assert [row[3] for row in found[1:]] == ["bob,rome", "cid,oslo,3,4", ""]
    objects = spark.createDataFrame(
        [('{"AT": 1, "city": "bonn", "Name": "ann"}',), ('[{"at": 1}, {"at": 2}]',)], "value STRING"
    )
    found = with_columns(objects, inlet, Connector("json", {})).selectExpr("name", "city", "at", "_raw").collect()
    assert tuple(found[0]) == ("ann", "bonn", 1, None)
    assert found[1][3] == '[{"at": 1}, {"at": 2}]'
    with pytest.raises(UserError, match="bad-option: the values of stream"):
        with_columns(values, inlet, Connector("csv", {"header": "true"}))
