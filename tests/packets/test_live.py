"""A live interface: the kernel's ring, the spool, and Spark's reader over both, without Spark."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tools.packets import needs_capture

from headgate.errors import UserError
from headgate.packets import ring, spool
from headgate.packets.sources import BATCH_SEGMENTS, SPOOL, USUAL, InterfaceReader
from headgate.packets.spool import NOTE, Spool, Spot, between, chunks

NAMES = ["time_ns", "dst_port", "payload_length", "payload", "_raw"]
PORT = 40_413


def reader(folder: Path, **options: str) -> InterfaceReader:
    return InterfaceReader({**USUAL, "interface": "lo", SPOOL: str(folder), **options}, NAMES)


def send(count: int, size: int = 3) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in range(count):
            sender.sendto(number.to_bytes(4, "big") + bytes(size), ("127.0.0.1", PORT))


def taken(made: InterfaceReader, start: dict[str, int], end: dict[str, int]) -> list[dict[str, Any]]:
    found = [row for part in made.partitions(start, end) for rows in made.read(part) for row in rows.to_pylist()]
    return [row for row in found if row["dst_port"] == PORT or row["_raw"] is not None]


@needs_capture
def test_what_is_sent_is_captured_once_and_can_be_read_again(tmp_path: Path) -> None:
    made = reader(tmp_path)
    start = made.latestOffset(made.initialOffset(), ReadAllAvailable())
    try:
        before = time.time_ns()
        send(700)
        end = made.latestOffset(start, ReadAllAvailable())
        after = time.time_ns()
        found = taken(made, start, end)
        assert [int.from_bytes(row["payload"][:4], "big") for row in found] == list(range(700))
        assert all(before <= row["time_ns"] <= after for row in found)
        assert made.reportLatestOffset() == end, "a batch that ends here has everything that was there"
        assert taken(made, start, end) == found, "as after a crash"
        assert Spot(**made.latestOffset(end, ReadAllAvailable())) >= Spot(**end)
    finally:
        made.stop()
    again = reader(tmp_path)
    again.prepareForTriggerAvailableNow()
    assert taken(again, start, again.latestOffset(start, ReadAllAvailable()))[:700] == found
    assert again.capture is None, "what was captured before is read, and nothing is captured"
    resumed = reader(tmp_path)
    try:
        later = resumed.latestOffset(end, ReadAllAvailable())
        notes = [row["_raw"] for row in taken(resumed, end, later) if row["_raw"] is not None]
        assert any("nothing was captured from" in note for note in notes)
        resumed.commit(later)
        assert [number for number, _ in spool.segments(tmp_path)] == [later["segment"]]
    finally:
        resumed.stop()


@needs_capture
def test_the_kernels_drops_are_counted_and_told(tmp_path: Path) -> None:
    made = reader(tmp_path, spool_bytes="0")  # nothing is taken from the ring, so it overflows
    made.latestOffset(made.initialOffset(), ReadAllAvailable())
    send(1_200, 60_000)
    end = made.latestOffset(made.initialOffset(), ReadAllAvailable())
    assert made.reportLatestOffset() != end, "there is more than it could take"
    assert made.capture is not None
    made.capture.most_bytes = 2**30
    start = made.initialOffset()
    made.stop()
    made.only_spooled = True
    found = taken(made, start, made.latestOffset(start, ReadAllAvailable()))
    notes = [row["_raw"] for row in found if row["_raw"] is not None]
    dropped = sum(int(note.removeprefix("the kernel dropped ").partition(" ")[0].replace(",", "")) for note in notes)
    assert dropped > 0
    assert len(found) - len(notes) + dropped >= 1_200, "each was captured or is counted"
    assert all(note.endswith("(interface lo)") for note in notes)


@needs_capture
def test_the_kernel_keeps_as_much_of_a_packet_as_it_was_told(tmp_path: Path) -> None:
    made = reader(tmp_path, snap_length="64")
    start = made.latestOffset(made.initialOffset(), ReadAllAvailable())
    send(3, 500)
    try:
        found = taken(made, start, made.latestOffset(start, ReadAllAvailable()))
    finally:
        made.stop()
    assert [(len(row["payload"]), row["payload_length"]) for row in found] == [(64 - 14 - 28, 504)] * 3


@needs_capture
def test_an_idle_interface_stays_where_it_is(tmp_path: Path) -> None:
    made = reader(tmp_path, snap_length="0")  # the kernel keeps nothing
    try:
        start = made.latestOffset(made.initialOffset(), ReadAllAvailable())
        send(10)
        assert made.latestOffset(start, ReadAllAvailable()) == made.reportLatestOffset() == start
    finally:
        made.stop()


def test_an_interface_that_is_not_there() -> None:
    with pytest.raises(UserError, match='there is no interface "lop"') as error:
        ring.check("lop")
    assert '"lo"' in error.value.hint


def test_without_the_capability_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(socket.socket):
        def __init__(self, *arguments: Any) -> None:
            raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("headgate.packets.ring.socket.socket", Refused)
    with pytest.raises(UserError, match="CAP_NET_RAW") as error:
        ring.check("lo")
    assert error.value.code == "no-capability"
    assert "setcap" in error.value.hint


# the spool by itself


def written(folder: Path, notes: int) -> Spool:
    made = Spool(folder)
    made.begin(Spot())
    for number in range(notes):
        made.append(NOTE, 0, f"note {number}".encode())
    return made


def texts(folder: Path, start: Spot, end: Spot) -> list[str]:
    return [text for part in between(folder, start, end) for some in chunks(*part) for text in some.lost]


def test_places_in_a_spool_cut_it_without_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "SEGMENT_BYTES", 100)
    made, spots = Spool(tmp_path), [Spot()]
    made.begin(Spot())
    for number in range(40):
        made.append(NOTE, 0, f"note {number}".encode())
        spots.append(made.spot())
    assert made.spot().segment > 5
    whole = [f"note {number}" for number in range(40)]
    for middle in spots:
        assert texts(tmp_path, Spot(), middle) + texts(tmp_path, middle, made.spot()) == whole
    made.forget(spots[20])
    assert texts(tmp_path, spots[20], made.spot()) == whole[20:], "what comes after it is kept"


def test_what_is_gone_from_a_spool_is_told(tmp_path: Path) -> None:
    made = written(tmp_path, 3)
    end = made.spot()
    path = spool.path_of(tmp_path, end.segment)
    os.truncate(path, end.byte - 2)  # as after a power failure
    assert texts(tmp_path, Spot(), end) == [
        "note 0",
        "note 1",
        f"{spool.CHUNK.size + 6} captured bytes are gone from {path.name}",
    ]
    path.unlink()
    assert texts(tmp_path, Spot(), end) == [f"{end.byte} captured bytes are gone from {path.name}"]


def test_a_backlog_comes_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "SEGMENT_BYTES", 20)
    written(tmp_path, 10)
    made, place, found = reader(tmp_path), Spot().told(), []
    made.prepareForTriggerAvailableNow()
    while (end := made.latestOffset(place, ReadAllAvailable())) != place:
        assert end["segment"] - place["segment"] <= BATCH_SEGMENTS + 1
        found.append(texts(tmp_path, Spot(**place), Spot(**end)))
        place = end
    assert [text for some in found for text in some] == [f"note {number}" for number in range(10)]
    assert len(found) > 2
