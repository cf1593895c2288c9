"""Small files are read without a job, and give what Spark's reader gives; whatever is unusual is left to Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sources.test_inlet import Notebook, a_stream, inlet_of, letters, logged

from headgate.catalog.entries import Connector
from headgate.errors import UserError
from headgate.heartbeat.clock import ManualClock
from headgate.sources.files import FileSource
from headgate.ticks import TimeDomain

COLUMNS = "k STRING, n INT, b BIGINT, s SMALLINT, v DOUBLE, ok BOOLEAN, d DATE, at TIMESTAMP"
NAMES = ["k", "n", "b", "s", "v", "ok", "d", "at"]
STREAM = a_stream(COLUMNS, TimeDomain.TIMESTAMP, timestamp="at")
SHORT = a_stream("k STRING, v DOUBLE, at BIGINT", TimeDomain.INTEGER, timestamp="at")
FIRST = 7 << 43

Make = Callable[..., FileSource]


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Make:
    made: list[FileSource] = []

    def source(format: str, options: dict[str, str] | None = None, stream: Any = STREAM, **more: Any) -> FileSource:
        (tmp_path / "in").mkdir(exist_ok=True)
        inlet = inlet_of(stream, tmp_path / f"log-{len(made)}", Notebook(**more))
        made.append(FileSource(spark, inlet, Connector(format, {"path": str(tmp_path / "in"), **(options or {})})))
        return made[-1]

    return source


# both ways over everything


def whole_numbers(chance: Random) -> str:
    return chance.choice(
        ["0", "7", "-7", "32767", "-32768", "2147483647", "9223372036854775807", str(chance.randrange(99))]
    )


def odd_numbers(chance: Random) -> str:
    return chance.choice(
        [
            "-0",
            "00",
            "01",
            "+1",
            "1.0",
            "1e2",
            "32768",
            "2147483648",
            "9223372036854775808",
            "1e400",
            "-1e-400",
            "NaN",
            "Infinity",
            '"1"',
            '"NaN"',
            "1.",
            ".5",
            "0x1",
            "1_000",
            "null",
            "true",
            "'1'",
            "1" * 400,
            "[1]",
            "{}",
        ]
    )


def numbers(chance: Random) -> str:
    return chance.choice(
        [
            "0.1",
            "-2.5",
            "1e3",
            "1E-7",
            "123456789.123456789",
            "0.30000000000000004",
            "2.2250738585072011e-308",
            "1e22",
            "5e-324",
            "1.7976931348623157e308",
            "9007199254740993",
            "12345678901234567890",
            repr(chance.random()),
        ]
    )


def texts(chance: Random) -> str:
    return json.dumps(chance.choice(["a", "", " a ", "null", "ü€", "a,b", "{", "}", "at", "10:00"]), ensure_ascii=False)


def odd_texts(chance: Random) -> str:
    return chance.choice(
        [
            '"a\\n"',
            '"\\u00e9"',
            '"\\ud83d"',
            '"tab\there"',
            "'a'",
            "7",
            "1.50",
            "true",
            "null",
            '{"x": 1}',
            '["a"]',
            '"a',
        ]
    )


def instants(chance: Random) -> str:
    return chance.choice(
        [
            '"2026-01-01T00:00:01Z"',
            '"2026-01-01 00:00:01.5"',
            '"2026-02-28T23:59:59.123456+00:00"',
            '"0001-01-01T00:00:00Z"',
            '"9999-12-31T23:59:59Z"',
            '"1969-12-31T23:59:59.999999Z"',
        ]
    )


def odd_instants(chance: Random) -> str:
    return chance.choice(
        [
            '"2026-01-01"',
            '"2026-02-30T00:00:00Z"',
            '"2026-01-01T24:00:00Z"',
            '"2026-01-01T00:00:01+01:00"',
            "0",
            "null",
            '"2026-01-01T00:00:01.1234567Z"',
            '"2026-1-1 0:0:1"',
            '"now"',
            '""',
            '"+12026-01-01T00:00:00Z"',
            '" 2026-01-01T00:00:01Z"',
            '"1500-02-29T00:00:00Z"',
            '"2026-12-31T23:59:60Z"',
            '"2026-01-01T00:00:01z"',
            '"12:00:00"',
        ]
    )


PLAIN: dict[str, Callable[[Random], str]] = {
    "k": texts,
    "n": lambda chance: chance.choice(["0", "-7", "2147483647"]),
    "b": whole_numbers,
    "s": lambda chance: chance.choice(["0", "-32768", "12"]),
    "v": numbers,
    "ok": lambda chance: chance.choice(["true", "false"]),
    "d": lambda chance: chance.choice(['"2026-01-01"', '"1600-02-29"']),
    "at": instants,
}
ODD: dict[str, Callable[[Random], str]] = {
    **dict.fromkeys(["n", "b", "s", "v"], odd_numbers),
    "k": odd_texts,
    "ok": lambda chance: chance.choice(['"true"', "0", "TRUE", "null", "1"]),
    "d": lambda chance: chance.choice(['"2026-1-1"', '"2026-02-30"', '"2026-01-01T00:00:00"', "5", "null", '"x"']),
    "at": odd_instants,
}


def a_line(chance: Random, odd: float) -> str:
    """A line of JSON that may have something unusual in it."""
    members = {name: (ODD if chance.random() < odd else PLAIN)[name](chance) for name in NAMES}
    if chance.random() < odd:
        members.pop(chance.choice(NAMES))
    spelled = [(f'"{name}"', value) for name, value in members.items()]
    if chance.random() < odd:
        name, value = chance.choice(spelled)
        spelled.append((chance.choice([name, name.upper(), f" {name}", '"more"', "k"]), value))
    chance.shuffle(spelled)
    colon, comma = chance.choice([(":", ","), (": ", ", "), (" : ", " ,")])
    line = "{" + comma.join(f"{name}{colon}{value}" for name, value in spelled) + "}"
    if chance.random() < odd:
        line = chance.choice(
            [
                f"[{line}]",
                f"{line}{line}",
                f"{line} x",
                line[:-1],
                f" {line} ",
                f"{line}\r",
                f"\t{line}",
                f"{line},",
                "",
                "  ",
                "null",
                "7",
                f"{line}\n{line}",
                line.replace(",", ",\n", 1),
                f"/* */{line}",
                line.replace('"', "'"),
                f"\ufeff{line}",
            ]
        )
    return line


def a_csv_line(chance: Random, odd: float) -> str:
    values = [(ODD if chance.random() < odd else PLAIN)[name](chance).strip('"') for name in NAMES]
    if chance.random() < odd:
        values = chance.choice(
            [values[:-1], [*values, "more"], [f'"{values[0]}"', *values[1:]], ["", *values[1:]], [" "] * 8]
        )
    return ",".join(values)


def a_file(chance: Random, format: str) -> bytes:
    odd = chance.choice([0.0, 0.0, 0.02, 0.1])
    lines = [(a_line if format == "json" else a_csv_line)(chance, odd) for _ in range(chance.randrange(1, 5))]
    header = ",".join(name.upper() if chance.random() < odd else name for name in NAMES)
    text = "\n".join(lines if format == "json" else [header, *lines]) + chance.choice(["", "\n"])
    return (
        text.encode()
        if chance.random() >= odd
        else text.encode().replace(b"a", chance.choice([b"\xff", b"a", b"\xed\xa0\x80"]))
    )


@pytest.mark.parametrize("format", ["json", "csv"])
def test_what_is_read_here_is_what_spark_reads(make: Make, tmp_path: Path, format: str) -> None:
    source, chance = make(format, {"header": "true"} if format == "csv" else {}), Random(5)
    taken: dict[str, pa.Table] = {}
    refused = 0
    for number in range(1_500):
        path = tmp_path / "in" / f"{number:05d}.{format}"
        path.write_bytes(a_file(chance, format))
        rows = source.small.rows({f"file:{path}": FIRST})
        if rows is None:
            refused += 1
            path.unlink()
        else:
            (taken[f"file:{path}"],) = rows
    assert len(taken) > 300, "plain files are read here"
    assert refused > 300, "and unusual ones are not"
    ranks = {file: rank for rank, file in enumerate(taken)}
    theirs = source.in_order(source.reader.rows(list(taken)), ranks).selectExpr(*NAMES, "_raw", "_s").toArrow()
    theirs = theirs.sort_by("_s")
    assert theirs["_raw"].null_count == theirs.num_rows, "Spark finds no fault with any of them"
    ours = pa.concat_tables(taken.values()).select(NAMES)
    theirs = theirs.select(NAMES).cast(ours.schema)
    assert ours.num_rows == theirs.num_rows
    for name in NAMES:
        assert [repr(value) for value in ours[name].to_pylist()] == [repr(value) for value in theirs[name].to_pylist()]


USUAL = '{"k":"a","v":1.5,"at":1}'


@pytest.mark.parametrize(
    "content",
    [
        USUAL,
        f"{USUAL}\n\n{USUAL}\n",
        '{"at": 1, "v": 2, "k": "ü"}',
        '{"v":1.5,"at":1}',
        '{"k":null,"v":1.5,"at":1, "more": {"x": [1, {}]}}',
        "",
    ],
)
def test_plain_json(make: Make, tmp_path: Path, content: str) -> None:
    assert rows_of(make("json", stream=SHORT), tmp_path, content) is not None


@pytest.mark.parametrize(
    "content",
    [
        '{"k":"a\\u0041","v":1.5,"at":1}',
        '{"K":"a","v":1.5,"at":1}',
        '{"k":"a","k":"b","v":1.5,"at":1}',
        '{"k":"a","v":1.5,"at":1,"o":{"k":"b"}}',
        '{"k":"a","v":-0,"at":1}',
        '{"k":"a","v":1e999,"at":1}',
        '{"k":"a","v":1.5,"at":null}',
        '{"k":"a","v":1.5,"at":1.0}',
        '{"k":7,"v":1.5,"at":1}',
        f"[{USUAL}]",
        USUAL + USUAL,
        '{"k":"a","v":1.5,\n"at":1}',
        f"\ufeff{USUAL}",
        f"{USUAL}\r\n",
        "nothing",
    ],
)
def test_unusual_json(make: Make, tmp_path: Path, content: str) -> None:
    assert rows_of(make("json", stream=SHORT), tmp_path, content) is None


@pytest.mark.parametrize(
    ("content", "plain"),
    [
        ("k,v,at\na,1.5,1\n", True),
        ("AT,more,K,V\n1,x,a,1.5", True),
        ("k,v,at\na,1.5,\n", False),
        ("k,v,at\n,1.5,1\n", False),
        ("k,v,at\n a,1.5,1\n", True),
        ("k,v,at\n  ,1.5,1\n", False),
        ('k,v,at\n"a",1.5,1\n', False),
        ("k,v,at\na,1.5\n", False),
        ("k,v,at\na,1.5,1\n\n", False),
        ("k,v\na,1.5\n", False),
        ("k,k,v,at\na,a,1.5,1\n", False),
        ("k,v,at\na,1e5d,1\n", False),
        ("k,v,at\n", False),
    ],
)
def test_csv(make: Make, tmp_path: Path, content: str, plain: bool) -> None:
    assert (rows_of(make("csv", {"header": "true"}, SHORT), tmp_path, content) is not None) == plain


def rows_of(source: FileSource, tmp_path: Path, content: str) -> list[pa.Table] | None:
    path = tmp_path / "in" / "1"
    path.write_text(content, encoding="utf-8", newline="")
    return source.small.rows({f"file:{path}": FIRST})


# what becomes of the rows


def both(make: Make, format: str, stream: Any, options: dict[str, str] | None = None, **more: Any) -> list[FileSource]:
    """A source that reads small files by itself, and one that leaves all to Spark."""
    ours, theirs = (make(format, options, stream, **more) for _ in range(2))
    theirs.small.wanted = False
    return [ours, theirs]


def seen(source: FileSource, columns: Sequence[str]) -> tuple[Any, ...]:
    """The rows, dead letters, counts and heartbeats of a source; both sources must have equal ones."""
    dead = [{key: value for key, value in letter.items() if key != "_s"} for letter in letters(source.inlet)]
    heard = source.inlet.heartbeats
    return logged(source.inlet, *columns), dead, dict(source.inlet.counts), source.inlet.arrivals, heard


@pytest.mark.parametrize("late", ["keep", "drop", "fail"])
def test_late_and_early_tuples_are_judged_alike(make: Make, tmp_path: Path, late: str) -> None:
    stream = a_stream("k STRING, v DOUBLE, at BIGINT", TimeDomain.INTEGER, timestamp="at", late=late)
    found = []
    for source in both(make, "json", stream, closed=5):
        (tmp_path / "in" / "1.json").write_text(
            '{"k":"a","v":1,"at":3}\n{"k":"b","v":2,"at":9}\n{"k":"c","v":3,"at":-4}\n'
        )
        try:
            source.poll(ManualClock())
            found.append(seen(source, ["k", "v", "at", "_t"])[:4])
        except UserError as error:
            found.append((error.code, error.message, error.detail))
    assert found[0] == found[1]
    assert found[0][0]


def test_sources_and_their_heartbeats(make: Make, tmp_path: Path) -> None:
    stream = a_stream(
        "k STRING, upto BIGINT, at BIGINT", TimeDomain.INTEGER, timestamp="at", source="k", heartbeat="upto"
    )
    rows = '{"k":"a","upto":2,"at":3}\n{"k":"b","upto":null,"at":9}\n{"k":"a","upto":7,"at":8}\n'
    found = []
    for source in both(make, "json", stream):
        (tmp_path / "in" / "1.json").write_text(rows)
        assert source.poll(ManualClock()) == 3
        told = source.inlet.heartbeats.told  # type: ignore[attr-defined]
        found.append((seen(source, ["k", "upto", "at", "_t"])[:4], sorted(map(str, told))))
    assert found[0] == found[1]


def test_a_file_that_is_behind_the_ones_before_it_shows(make: Make, tmp_path: Path) -> None:
    source = make("json", stream=SHORT)
    for number, stamps in enumerate([(5, 9), (3, 4), (20, 1)]):
        lines = [json.dumps({"k": "a", "v": 1.5, "at": at}) for at in stamps]
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(lines))
    assert source.poll(ManualClock()) == 6
    (batch,) = source.inlet.heartbeats.batches  # type: ignore[attr-defined]
    assert batch.behind.tolist() == [8]


def test_small_parquet_files_with_sources(make: Make, tmp_path: Path) -> None:
    stream = a_stream("k STRING, v DOUBLE, at BIGINT", TimeDomain.INTEGER, timestamp="at", source="k")
    table = pa.table({"k": ["a", None], "v": [float("nan"), -0.0], "at": pa.array([1, 2], pa.int64())})
    found = []
    for source in both(make, "parquet", stream):
        pq.write_table(table, tmp_path / "in" / "1.parquet")
        assert source.poll(ManualClock()) == 2
        found.append(repr(seen(source, ["k", "v", "at", "_t"])[:4]))
    assert found[0] == found[1]


def test_no_job_runs_for_small_files(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = make("json")
    for number in range(3):
        row = {
            "k": "a",
            "n": 1,
            "b": 2,
            "s": 3,
            "v": 1.5,
            "ok": True,
            "d": "2026-01-01",
            "at": f"2026-01-01T00:00:0{number}Z",
        }
        (tmp_path / "in" / f"{number}.json").write_text(json.dumps(row))
    monkeypatch.setattr(source.reader, "rows", lambda *_: pytest.fail("Spark is asked"))
    assert source.poll(ManualClock()) == 3
    (first, *_) = logged(source.inlet, *NAMES)
    assert first == ("a", 1, 2, 3, 1.5, True, date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC))
    (chunk, *_) = source.inlet.log.chunks
    assert chunk.statistics is not None
    assert chunk.statistics.values("v") is not None, "what sums take for granted is known"


# folders


def test_a_plain_folder_is_listed_without_spark_once_it_agreed(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make("json", stream=SHORT)
    (tmp_path / "in" / "1.json").write_text(USUAL)
    (tmp_path / "in" / "_hidden").write_text("nothing")
    assert source.poll(ManualClock()) == 1
    assert source.folder.trusted
    monkeypatch.setattr(source.reader, "listed", lambda _: pytest.fail("Spark is asked"))
    (tmp_path / "in" / "2.json").write_text(USUAL)
    assert source.stirred()
    assert source.poll(ManualClock()) == 1
    (tmp_path / "in" / "1.json").unlink()
    assert source.poll(ManualClock()) == 0
    assert len(source.seen) == 1


@pytest.mark.parametrize("name", ["with space.json", "ü.json", "a+b.json", "folder/1.json", "_k=1/1.json"])
def test_other_folders_are_listed_by_spark(make: Make, tmp_path: Path, name: str) -> None:
    source = make("json", {"recursiveFileLookup": "true"} if "folder" in name else {}, SHORT)
    path = tmp_path / "in" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(USUAL)
    assert source.folder.files() is None
    assert source.poll(ManualClock()) == ("=" not in name or 1)
    assert not source.folder.trusted
