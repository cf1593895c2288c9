"""The tail of the logs in memory: it is bounded, it never gives other rows than the file, and it forgets with the log."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headgate.errors import UserError
from headgate.log import log as logs
from headgate.log import tail as tails
from headgate.log.chunk import Chunk, write
from headgate.log.log import Log
from headgate.log.tail import Tail

ROWS = 100


def table(first: int) -> pa.Table:
    stamps = pa.array(range(first, first + ROWS), pa.int64())
    return pa.table({"v": stamps, "_t": stamps, "_s": stamps})


def chunk(path: Path, first: int) -> Chunk:
    written = write(table(first), path)
    assert written is not None
    return written


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_memory_is_bounded_and_what_was_not_read_for_longest_goes_first(tmp_path: Path) -> None:
    chunks = [chunk(tmp_path / f"{number}.parquet", number * ROWS) for number in range(4)]
    one = chunks[0].table().nbytes
    tail = Tail(3 * one)
    for some in (*chunks[:3], chunks[0], chunks[3]):
        tail.table(some)
        assert tail.bytes <= 3 * one
    for some in chunks:
        some.path.unlink()
    assert [tail.table(chunks[place]).num_rows for place in (0, 2, 3)] == [ROWS] * 3
    with pytest.raises(UserError, match=r"1\.parquet"):
        tail.table(chunks[1])


def test_a_chunk_that_is_larger_than_the_bound_is_read_and_not_kept(tmp_path: Path) -> None:
    tail = Tail(10)
    assert tail.table(chunk(tmp_path / "1.parquet", 0)).equals(table(0))
    assert tail.bytes == 0


def test_damage_is_found_when_the_file_is_read(tmp_path: Path) -> None:
    tail, damaged, later = Tail(), chunk(tmp_path / "1.parquet", 0), chunk(tmp_path / "2.parquet", ROWS)
    tail.table(later)
    for some in (damaged, later):
        flip(some.path)
    with pytest.raises(UserError, match=r"1\.parquet"):
        tail.table(damaged)
    assert tail.table(later).equals(table(ROWS)), "memory has what was written"
    tail.drop([later])
    with pytest.raises(UserError, match=r"2\.parquet"):
        tail.table(later)


def test_another_file_of_the_same_name_is_not_taken_for_it(tmp_path: Path) -> None:
    tail = Tail()
    tail.table(chunk(tmp_path / "1.parquet", 0))
    assert tail.table(chunk(tmp_path / "1.parquet", 5)).equals(table(5))


def test_it_forgets_what_the_log_deletes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tail = Tail()
    monkeypatch.setattr(tails, "TAIL", tail)
    monkeypatch.setattr(logs, "TAIL", tail)
    log = Log(tmp_path)
    for first in range(0, 16 * ROWS, ROWS):
        log.append(table(first))
    assert tail.known(log.chunks) == [some.table() for some in log.chunks], "what is written is kept at once"
    log.compact()
    (merged,) = log.chunks
    assert tail.bytes == tail.table(merged).nbytes, "the merged chunk is kept in place of the others"
    assert tail.table(merged).equals(merged.table())
    assert merged.table().equals(pa.concat_tables(table(first) for first in range(0, 16 * ROWS, ROWS)))
    log.forget(lambda _: False)
    assert tail.bytes == 0
