"""What a live interface has sent, on disk until it is in the log: segments of chunks.

    capture/000000000007.segment    chunks, one after the other
    capture/alive                   touched while packets are captured: when the last capture ended

A chunk is a block of packets as the kernel handed it over, or a note of what is missing. A place in the spool is a
segment and a byte. What lies between two places can be read again as often as it takes, also after a restart, until it
is forgotten. So of what was captured nothing is lost or doubled. What was not captured is noted: packets that the
kernel dropped, and the time while nobody captured.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from headgate.packets import ring
from headgate.packets.records import Records

SEGMENT_BYTES = 2**25
CHUNK = struct.Struct("=IIQ")
"""The kind of a chunk, the link type of its packets, and how many bytes follow."""

BLOCK, NOTE = 1, 2
SUFFIX = ".segment"
WAIT_MS = 20
SETTLE_S = 1.0
"""How long it is waited for what the kernel holds, if nobody takes it because the spool is full."""

ALIVE_S = 1.0


@dataclass(frozen=True, order=True, slots=True)
class Spot:
    """A place in the spool: everything before it has been written."""

    segment: int = 0
    byte: int = 0

    def told(self) -> dict[str, int]:
        """The place as Spark keeps it."""
        return {"segment": self.segment, "byte": self.byte}


class Spool:
    """Segments of chunks in a folder. One thread appends; any other may ask where it stands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._file: int | None = None
        self._at = max((Spot(number, path.stat().st_size) for number, path in segments(folder)), default=Spot())

    def spot(self) -> Spot:
        """Up to where it is written."""
        with self._lock:
            return self._at

    def begin(self, after: Spot) -> None:
        """Append from now on, to a new segment that comes after all others and after a place that was read."""
        self._open(max(after.segment, self._at.segment) + 1)

    def append(self, kind: int, link: int, content: bytes) -> None:
        """Write a chunk. It counts when it is written as a whole."""
        assert self._file is not None
        whole = CHUNK.pack(kind, link, len(content)) + content
        written = os.write(self._file, whole)
        while written < len(whole):
            written += os.write(self._file, whole[written:])
        with self._lock:
            self._at = Spot(self._at.segment, self._at.byte + len(whole))
        if self._at.byte >= SEGMENT_BYTES:
            self._open(self._at.segment + 1)

    def _open(self, segment: int) -> None:
        file = os.open(path_of(self.folder, segment), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        before, self._file = self._file, file
        with self._lock:
            self._at = Spot(segment, 0)
        if before is not None:
            os.close(before)

    def size(self) -> int:
        """How many bytes it takes on disk."""
        return sum(path.stat().st_size for _, path in segments(self.folder))

    def forget(self, upto: Spot) -> None:
        """Delete the segments that lie before a place as a whole."""
        for number, path in segments(self.folder):
            if number < upto.segment:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Write no more."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Capture:
    """Captures an interface into a spool, in a thread, until it is stopped."""

    def __init__(self, spool: Spool, live: ring.Ring, interface: str, most_bytes: int) -> None:
        self.spool = spool
        self.ring = live
        self.interface = interface
        self.most_bytes = most_bytes
        self.failed: Exception | None = None
        self._taken = 0
        """How many blocks were taken from the ring."""
        self._taking = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"capture {interface}", daemon=True)

    def start(self, after: Spot) -> None:
        """Begin; note for how long nobody captured, if anybody did before."""
        alive = self.spool.folder / "alive"
        since = alive.stat().st_mtime if alive.exists() else None
        self.spool.begin(after)
        if since is not None:
            self._note(f"nothing was captured from {_date(since)} to {_date(time.time())}")
        alive.touch()
        self._thread.start()

    def settle(self) -> bool:
        """Return when every packet that was there at the call is in the spool. False if the spool is full."""
        with self._taking:
            upto = self._taken + self.ring.waiting()
        limit = time.monotonic() + SETTLE_S
        while self._taken < upto and self._thread.is_alive() and time.monotonic() < limit:
            time.sleep(0.001)
        if self.failed is not None:
            raise self.failed
        return self._taken >= upto

    def stop(self) -> None:
        """Stop capturing. What was captured stays in the spool."""
        self._ended.set()
        self._thread.join()
        self.ring.close()
        self.spool.close()

    def _run(self) -> None:
        try:
            asked = time.monotonic()
            while not self._ended.is_set():
                self.ring.wait(WAIT_MS)
                if self.spool.size() < self.most_bytes:
                    self._take()
                else:
                    self._ended.wait(WAIT_MS / 1_000)
                if time.monotonic() - asked >= ALIVE_S:
                    asked = time.monotonic()
                    self._look()
            self._look()
        except Exception as error:  # the disk is full: whoever asks next is told
            self.failed = error

    def _take(self) -> None:
        """Move what the kernel has handed over to the spool."""
        while True:
            with self._taking:
                block = self.ring.take()
                if block is None:
                    return
                self.spool.append(BLOCK, self.ring.link, block)
                self._taken += 1

    def _look(self) -> None:
        """Note what the kernel has dropped, and that the capture is alive."""
        dropped = self.ring.drops().dropped
        if dropped:
            self._note(f"the kernel dropped {dropped:,} packets up to {_date(time.time())}")
        (self.spool.folder / "alive").touch()

    def _note(self, text: str) -> None:
        self.spool.append(NOTE, 0, text.encode())


def segments(folder: Path) -> list[tuple[int, Path]]:
    """The segments of a spool, in order."""
    return sorted((int(path.stem), path) for path in folder.glob(f"*{SUFFIX}"))


def path_of(folder: Path, segment: int) -> Path:
    """Where a segment is."""
    return folder / f"{segment:012d}{SUFFIX}"


def chunks(path: Path, start: int, end: int) -> Iterator[Records]:
    """The packets and the notes of a part of a segment. What is not there any more is noted in their place."""
    try:
        data = np.fromfile(path, np.uint8, count=end - start, offset=start)
    except FileNotFoundError:
        data = np.zeros(0, np.uint8)
    nothing = np.zeros(0, np.int64)
    at, there = 0, len(data)
    while at + CHUNK.size <= there:
        kind, link, size = CHUNK.unpack_from(data.data, at)
        first = at + CHUNK.size
        if first + size > there:
            break
        if kind == BLOCK:
            yield ring.records(data, first, first + size, link)
        else:
            text = data[first : first + size].tobytes().decode()
            yield Records(data, nothing, nothing, nothing, nothing, nothing, lost=[text])
        at = first + size
    if at < end - start:
        text = f"{end - start - at:,} captured bytes are gone from {path.name}"
        yield Records(data, nothing, nothing, nothing, nothing, nothing, lost=[text])


def between(folder: Path, start: Spot, end: Spot) -> Iterator[tuple[Path, int, int]]:
    """The parts of segments that lie between two places."""
    for number in range(max(start.segment, 1), end.segment + 1):
        path = path_of(folder, number)
        first = start.byte if number == start.segment else 0
        if number == end.segment:
            last = end.byte
        elif path.exists():
            last = path.stat().st_size
        elif number == start.segment:
            continue  # it was read to its end and forgotten
        else:
            continue
        if last > first:
            yield path, first, last


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}Z"
