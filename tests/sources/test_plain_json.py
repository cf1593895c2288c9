"""Plain files of JSON: everything comes out as if each line had been read as text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sources.test_inlet import Notebook, a_stream, letters, logged, source_of

from headgate.heartbeat.clock import ManualClock
from headgate.sources import plain_json
from headgate.sources.files import HURRIES, RANK_SHIFT, FileSource
from headgate.sources.plain_json import is_plain

STREAM = a_stream("k STRING, v DOUBLE, at BIGINT", timestamp="at")


@pytest.fixture(autouse=True)
def small_files_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_json, "PLAIN_BYTES", 1)


@pytest.mark.parametrize(
    "content, plain",
    [
        (b'{"k": 1}', True),
        (b'{"k": 1}\n', True),
        (b'{"k": 1}\n{"k": 2}\n{"k": 3}', True),
        (b"{no json}\n{", True),  # that shows when it is read
        (b'[{"k": 1}]', False),
        (b'{"k": 1}\n[{"k": 2}]', False),
        (b'{"k": 1}\n {"k": 2}', False),
        (b'{"k": 1}\n\n{"k": 2}', False),
        (b'{"k": 1}\r\n{"k": 2}', False),
        (b'{"k": 1}\r[{"k": 2}]', False),
        (b'\xef\xbb\xbf{"k": 1}', False),
        (b"", False),
    ],
)
def test_a_glance_at_a_file(content: bytes, plain: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "1.json"
    file.write_bytes(content)
    for block in (1, 2, 3, 8, 9, 1000):
        monkeypatch.setattr(plain_json, "BLOCK_BYTES", block)
        assert is_plain(file) == plain, block


def test_what_is_small_packed_or_gone_is_not_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "1.json.gz").write_bytes(b'{"k": 1}')
    (tmp_path / "2.json").write_bytes(b'{"k": 1}')
    assert not is_plain(tmp_path / "1.json.gz")
    assert not is_plain(tmp_path / "3.json")
    assert is_plain(tmp_path / "2.json")
    monkeypatch.setattr(plain_json, "PLAIN_BYTES", 100)
    assert not is_plain(tmp_path / "2.json")


def clean(first: int, rows: int = 5) -> list[Any]:
    return [{"k": f"k{at}", "v": at / 3, "at": at} for at in range(first, first + rows)]


FILES: dict[str, list[Any]] = {
    "1": clean(20),
    "2": [*clean(30), '{"k": "x", "v": "much", "at": 40}', {"k": "late", "v": 1, "at": 3}, *clean(40)],
    "3": clean(50),
    "4": [{"K": "other case", "v": 1, "AT": 60}, {"k": "no instant", "v": 2.5}, {"k": None, "v": 2, "at": 61}],
    "5": ["{", '{"k": 1.10, "v": 1e3, "at": 62, "more": [1]}', '{"v": 1, "at": 63}{"v": 2, "at": 64}'],
    "6": [[{"k": 1.10, "v": 2, "at": 65}, {"k": "in an array", "v": 3, "at": 66}], {"k": "z", "v": 1, "at": 67}],
    "7": [*clean(70), {"k": "far", "v": 1.0, "at": 5_000}],
    **{name: clean(100 + 10 * place) for place, name in enumerate("abcdefgh")},
}


def taken(spark: SparkSession, folder: Path, files: dict[str, list[Any]]) -> tuple[FileSource, Notebook]:
    heartbeats = Notebook(closed=10, ahead=1_000)
    source = source_of(spark, STREAM, folder / "in", heartbeats)
    source.small.wanted = False  # plain files are large ones
    (folder / "in").mkdir(parents=True)
    for name, rows in files.items():
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (folder / "in" / f"{name}.json").write_text("\n".join(lines))
    source.poll(ManualClock())
    return source, heartbeats


@pytest.mark.spark
@pytest.mark.parametrize("names", ["1", "13", "137", "12", "45", "1234567", "abcdefgh1", "abcdefgh2"])
def test_they_read_like_text(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: str) -> None:
    files = {name: FILES[name] for name in names}
    hasty, heard = taken(spark, tmp_path / "hasty", files)
    monkeypatch.setattr(plain_json, "PLAIN_BYTES", 2**60)
    careful, heard_before = taken(spark, tmp_path / "careful", files)
    columns = ("k", "v", "at", "_t")
    assert logged(hasty.inlet, *columns) == logged(careful.inlet, *columns)
    assert [_without_place(row) for row in letters(hasty.inlet)] == [
        _without_place(row) for row in letters(careful.inlet)
    ]
    assert hasty.inlet.counts == careful.inlet.counts
    assert heard.told == heard_before.told
    assert not any("\0" in (row["_raw"] or "") for row in letters(hasty.inlet))


def _without_place(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "_s": row["_s"] >> RANK_SHIFT}  # rows are counted from the beginning of a task, in either way


@pytest.mark.spark
def test_plain_files_are_read_by_one_job_and_others_once_more(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[set[str]] = []
    source = source_of(spark, STREAM, tmp_path / "in", Notebook())
    source.small.wanted = False  # plain files are large ones
    rows = source.reader.rows

    def noted(paths: list[str], plain: Any = ()) -> Any:
        reads.append({Path(path).stem for path in plain})
        return rows(paths, plain)

    monkeypatch.setattr(source.reader, "rows", noted)

    def poll(*names: str) -> list[set[str]]:
        reads.clear()
        for name in names:
            lines = [row if isinstance(row, str) else json.dumps(row) for row in FILES[name[0]]]
            (tmp_path / "in" / f"{name}.json").write_text("\n".join(lines))
        source.poll(ManualClock())
        return reads

    (tmp_path / "in").mkdir()
    assert poll("1", "3") == [{"1", "3"}]
    assert poll("2", "7") == [{"2", "7"}, {"7"}]
    assert poll("1a") == [{"1a"}], "it was plain: the count begins again"
    for turn in range(HURRIES):
        assert poll(f"2{turn}") == [{f"2{turn}"}, set()]
    assert poll("1b") == [set()], "this source has nothing but surprises"


@pytest.mark.spark
def test_compressed_files_and_options_that_change_what_a_line_is(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, STREAM, tmp_path / "in", Notebook())
    source.small.wanted = False  # plain files are large ones
    (tmp_path / "in").mkdir()
    text = "\n".join(map(json.dumps, clean(1)))
    (tmp_path / "in" / "1.json.gz").write_bytes(gzip.compress(text.encode()))
    assert source.poll(ManualClock()) == 5
    file = tmp_path / "in" / "2.json"
    file.write_text(text)
    assert source.reader.plain([str(file)]) == {str(file)}
    source.reader.said["linesep"] = ";"
    assert source.reader.plain([str(file)]) == set()
