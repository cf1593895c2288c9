"""Positions in a log, in order of arrival: what a reader has read, what it skipped, and what is new."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.execute.position import Position, Unread, first_rows
from headgate.log.chunk import Chunk
from headgate.log.log import Log


def log_of(folder: Path, *chunks: list[int]) -> Log:
    log = Log(folder)
    for stamps in chunks:
        log.append(pa.table({"_t": pa.array(stamps, pa.int64()), "_s": pa.array(stamps, pa.int64())}))
    return log


def stamps(chunks: list[Chunk]) -> list[list[int]]:
    return [chunk.table(["_t"])["_t"].to_pylist() for chunk in chunks]


def test_what_was_skipped_and_what_is_new(tmp_path: Path) -> None:
    log = log_of(tmp_path, [8, 12, 9], [10, 14, 7], [11, 3])
    unread = Unread(log, Position(6, 10))
    assert stamps(unread.new()) == [[11, 3]]
    assert stamps(unread.skipped(11)) == [], "12 and 14 are stamped later"
    assert stamps(unread.skipped(12)) == [[8, 12, 9]]
    assert stamps(unread.skipped(20)) == [[8, 12, 9], [10, 14, 7]]
    assert stamps(unread.up_to(2)) == []
    assert stamps(unread.up_to(13)) == [[8, 12, 9], [11, 3]]
    assert [unread.any(upto) for upto in (2, 3, 12)] == [False, True, True]


def test_a_reader_that_has_read_everything_waits_for_nothing(tmp_path: Path) -> None:
    unread = Unread(log_of(tmp_path, [1, 2], [3]), Position(3, 5))
    assert not unread.any(10**9)
    assert Unread(unread.log, Position(0, -1)).any(1), "at first everything is unread"


@given(
    st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=4), max_size=5), st.integers(0, 5), st.integers(-1, 20)
)
def test_every_tuple_is_read_once(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[list[int]], known: int, upto: int
) -> None:
    """A reader at (arrived, upto) has read some tuples; those that are skipped or new are exactly the others."""
    log = log_of(tmp_path_factory.mktemp("log"), *chunks)
    arrived = log.chunks[min(known, len(chunks)) - 1].arrived if known and chunks else 0
    unread = Unread(log, Position(arrived, upto))
    read = [t for some in chunks[: len(chunks) - len(unread.new())] for t in some if t <= upto]
    skipped = [t for some in stamps(unread.skipped(20)) for t in some if t > upto]
    new = [t for some in stamps(unread.new()) for t in some]
    assert sorted(read + skipped + new) == sorted(t for some in chunks for t in some)


def test_the_first_chunks_up_to_a_number_of_rows() -> None:
    chunks = [Chunk(Path(str(number)), rows, 0, 0) for number, rows in enumerate((5, 3, 4))]
    assert [len(first_rows(chunks, most)) for most in (1, 5, 8, 11, 12)] == [1, 1, 2, 2, 3]
    assert first_rows([], 5) == []


def test_chunks_before_and_behind_a_readers_position_are_not_merged(tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    for stamp in range(40):
        log.append(pa.table({"_t": [stamp, stamp + 5], "_s": [stamp, stamp]}))
    assert [chunk.arrived for chunk in log.chunks][:3] == [2, 4, 6]
    log.compact(apart={50})
    ends = [chunk.arrived for chunk in log.chunks]
    assert 50 in ends
    assert len(ends) < 40
    assert sum(chunk.rows for chunk in log.chunks if chunk.arrived <= 50) == 50
    log.forget(lambda chunk: chunk.arrived > 50)
    again = Log(tmp_path / "again")
    again.apply(log.state())
    assert [chunk.arrived for chunk in again.chunks] == [chunk.arrived for chunk in log.chunks]
    again.append(pa.table({"_t": [1], "_s": [1]}))
    assert again.chunks[-1].arrived == 81
