"""Where records begin: the walk in many places at once finds what a walk from one record to the next finds."""

from __future__ import annotations

import random
import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.packets import records
from headgate.packets.records import HEADER, LARGEST, RECORD, chain, pieces


def one_by_one(data: bytes, order: str) -> tuple[list[int], int]:
    found, at = [], HEADER
    while at <= len(data) - RECORD:
        found.append(at)
        (size,) = struct.unpack_from(f"{order}I", data, at + 8)
        if size > LARGEST:
            return found, len(data)
        at += RECORD + size
    return found, min(at, len(data))


def record(order: str, second: int, content: bytes) -> bytes:
    return struct.pack(f"{order}IIII", second, 7, len(content), len(content)) + content


def capture(order: str, seed: int, count: int) -> bytes:
    """A capture of small, large and huge packets. Some carry what looks like records of a capture themselves."""
    chance, found = random.Random(seed), [b"\0" * HEADER]
    for number in range(count):
        size = chance.choice((0, 40, 60, 1_500, 9_000, 70_000 if number % 50 == 0 else 60))
        content = chance.randbytes(size)
        if chance.random() < 0.3:
            content = b"".join(record(order, 1_000 + number, chance.randbytes(chance.randrange(90))) for _ in range(30))
        found.append(record(order, 1_000 + number, content))
    if chance.random() < 0.3:
        found.insert(chance.randint(1, len(found)), struct.pack(f"{order}IIII", 1_000, 7, LARGEST + 1, 9))
    whole = b"".join(found)
    return whole[: len(whole) - chance.choice((0, 0, 1, 5, 17))]


@settings(max_examples=60)
@given(st.sampled_from("<>"), st.integers(0, 10_000), st.integers(0, 300), st.sampled_from((600, 2_500, 2**16)))
def test_the_walk_in_many_places_finds_every_record_and_nothing_else(
    order: str, seed: int, count: int, segment: int
) -> None:
    data = capture(order, seed, count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "SEGMENT", segment)
        found, after = chain(np.frombuffer(data, np.uint8), order, HEADER, len(data))
    assert (found.tolist(), after) == one_by_one(data, order)


def test_pieces_begin_where_records_do(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(b"\x4d\x3c\xb2\xa1" + capture("<", 7, 300)[4:])
    found, heads = pieces(path, 50_000), one_by_one(path.read_bytes(), "<")[0]
    assert len(found) > 5
    assert [(found[0].start, found[0].first), found[-1].end] == [(0, 1), path.stat().st_size]
    for before, piece in pairwise(found):
        assert piece.start == before.end == heads[piece.first - 1]
        assert piece.start - before.start >= 50_000
