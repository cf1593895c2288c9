"""Where the packets of a capture file are: pcap and pcapng, in both byte orders, to the micro- or the nanosecond.

A capture is a chain of records, each of which says how long it is. A pcap file is walked along in many places at the
same time (`chain`); of a pcapng file, walking along its blocks is done one by one. The rest of a record's header, and
all headers in the packets, are decoded for many packets at once.

    pcap    24 bytes that say byte order, resolution and link type; then records of 16 bytes and the packet
    pcapng  blocks of a type and a length; interfaces have link types and resolutions of their own

A large pcap file is read in pieces. Where a piece begins is found by walking; a guess counts if the walk proves it. A
pcapng file is read in one piece: what an interface is stands anywhere before its packets.
"""

from __future__ import annotations

import gzip
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]

MAGIC = {b"\xd4\xc3\xb2\xa1": ("<", 1_000), b"\xa1\xb2\xc3\xd4": (">", 1_000),
         b"\x4d\x3c\xb2\xa1": ("<", 1), b"\xa1\xb2\x3c\x4d": (">", 1)}  # fmt: skip
"""How a pcap file begins, with its byte order and the nanoseconds in a unit of its fractions."""

SECTION, INTERFACE, OLD_PACKET, SIMPLE_PACKET, PACKET = 0x0A0D0D0A, 1, 2, 3, 6
BYTE_ORDER = 0x1A2B3C4D
ZIPPED = b"\x1f\x8b"
HEADER, RECORD = 24, 16
SECOND_NS = 1_000_000_000
LARGEST = 2**26
"""A record that claims to hold more bytes than this is damaged; captures hold at most 262,144 of a packet."""

WALKED = 2**15
"""How many packets are decoded at a time."""

SEGMENT, REACH, SOUGHT = 2**16, 2**11, 2**9
"""How long a segment of a walk is, how far behind its border a record is looked for, and for how many at a time."""

USUAL_LARGEST, NEAR_S = 2**18, 2**17
"""What looks like a record: no larger than captures hold of a packet, and stamped within a day or so of the first."""

FAR = 2**62
"""Behind the end of every file."""


class NotACapture(Exception):
    """A file is no capture, or one that cannot be read as a whole."""


@dataclass(frozen=True, slots=True)
class Records:
    """Some packets of a capture: where their bytes are in `data`, and what the records say of them."""

    data: Bytes
    at: Numbers
    captured: Numbers
    lengths: Numbers
    """How long the packets were on the wire."""

    times_ns: Numbers
    links: Numbers
    """The link type of each."""

    first: int = 1
    """The number of the first in its file or piece."""

    lost: list[str] = field(default_factory=list)
    """What stands in place of packets that are not there, in words."""

    vlans: Numbers | None = None
    """The numbers of VLAN tags that stand beside the packets and not in them; -1 where there is none."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a capture file: from the first byte of a record to the first byte of another one."""

    path: str
    start: int
    end: int
    first: int
    """The number of its first packet in the file."""


def opened(path: Path) -> Bytes:
    """The bytes of a file, mapped into memory; unpacked if it is zipped."""
    with path.open("rb") as file:
        if file.read(2) == ZIPPED:
            try:
                return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8)
            except (OSError, EOFError) as error:
                raise NotACapture(f"it cannot be unpacked: {error}") from None
        if not path.stat().st_size:
            return np.zeros(0, np.uint8)
        return np.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), np.uint8)


def check(path: Path) -> None:
    """Refuse a file that does not begin like a capture."""
    with path.open("rb") as file:
        head = file.read(HEADER)
    if head[:2] == ZIPPED:
        head = opened(path)[:HEADER].tobytes()
    if head[:4] == SECTION.to_bytes(4, "little"):
        return
    if head[:4] not in MAGIC:
        raise NotACapture("it begins neither like pcap nor like pcapng")
    if len(head) < HEADER:
        raise NotACapture("it ends within its first 24 bytes")


def pieces(path: Path, size: int) -> list[Piece]:
    """A capture file in pieces of at least `size` bytes, as far as it can be cut."""
    data = opened(path)
    end = len(data)
    zipped = end != path.stat().st_size
    if end <= size or zipped or data[:4].tobytes() not in MAGIC:
        return [Piece(str(path), 0, end, 1)]
    order, _ = MAGIC[data[:4].tobytes()]
    heads, _ = chain(data, order, HEADER, end)
    found: list[Piece] = []
    start, first = 0, 1
    while True:
        cut = int(np.searchsorted(heads, start + size))
        if cut >= len(heads):
            return [*found, Piece(str(path), start, end, first)]
        found.append(Piece(str(path), start, int(heads[cut]), first))
        start, first = int(heads[cut]), cut + 1


def records(piece: Piece) -> Iterator[Records]:
    """The packets of a piece of a capture file, many at a time."""
    data = opened(Path(piece.path))
    head = data[:4].tobytes()
    if head in MAGIC:
        yield from _pcap(data, piece, *MAGIC[head])
    elif head == SECTION.to_bytes(4, "little"):
        yield from _pcapng(data)
    else:
        raise NotACapture("it begins neither like pcap nor like pcapng")


def _pcap(data: Bytes, piece: Piece, order: str, unit_ns: int) -> Iterator[Records]:
    link = struct.unpack_from(f"{order}I", data.data, 20)[0] & 0xFFFF  # above it: how long check sequences are
    words, end = words_of(data, f"{order}u4"), piece.end
    heads, after = chain(data, order, max(piece.start, HEADER), end)
    sizes, fractions = words[heads + 8].astype(np.int64), words[heads + 4].astype(np.int64) * unit_ns
    damaged = (sizes > LARGEST) | (fractions >= SECOND_NS)
    wrong = np.flatnonzero(damaged | (heads + RECORD + sizes > end))
    lost = []
    if len(wrong):
        at, size, odd = int(heads[wrong[0]]), int(sizes[wrong[0]]), bool(damaged[wrong[0]])
        said = f"the file ends after {end - at - RECORD:,} of {size:,} bytes of a packet"
        lost = [_rest(data, at, end, "the header of a packet is damaged" if odd else said)]
        heads, sizes, fractions = heads[: wrong[0]], sizes[: wrong[0]], fractions[: wrong[0]]
    elif after < end:
        lost = [_rest(data, after, end, "the file ends within the header of a packet")]
    for start in range(0, max(len(heads), 1), WALKED):
        some = slice(start, start + WALKED)
        at_some = heads[some]
        times = words[at_some].astype(np.int64) * SECOND_NS + fractions[some]
        lengths, links = words[at_some + 12].astype(np.int64), np.full(len(at_some), link, np.int64)
        last = lost if start + WALKED >= len(heads) else []
        yield Records(data, at_some + RECORD, sizes[some], lengths, times, links, piece.first + start, last)


def chain(data: Bytes, order: str, start: int, end: int) -> tuple[Numbers, int]:
    """Where the records of a pcap file begin that begin between `start`, where one does, and `end`; and where the last
    one ends.

    The bytes are cut into segments, and all of these are walked along at the same time, each from a place that looks
    like the beginning of a record. That is a guess, so it is proved: the walk along a segment counts only if the one
    before it, which is proved, ends exactly where it began. Otherwise the segment is walked along once more.
    The chain ends early at a record that claims to be larger than any.
    """
    words = words_of(data, f"{order}u4")
    last = end - RECORD
    """Where the last record may begin."""
    bounds = np.arange(start, max(last, start) + 1, SEGMENT, dtype=np.int64)
    stops = np.append(bounds[1:], last + 1)
    begins = np.append(start, _likely(words, bounds[1:], start, last))
    found, walked, ended = _walk(words, begins, stops, last)
    proved, redone, at = np.zeros(len(bounds), bool), [], start
    for number, (begin, stop, after) in enumerate(zip(begins.tolist(), stops.tolist(), ended.tolist(), strict=True)):
        if at >= stop:
            continue
        if begin == at:
            proved[number], at = True, after
        else:
            again, _, reached = _walk(words, np.array([at]), np.array([stop]), last)
            redone.append(again)
            at = int(reached[0])
    return np.sort(np.concatenate([found[proved[walked]], *redone])), min(at, end)


def _likely(words: NDArray[np.unsignedinteger], bounds: Numbers, start: int, last: int) -> Numbers:
    """Behind each bound, the first place that looks like the beginning of a record; the end if none is near."""
    found = np.full(len(bounds), last + 1, np.int64)
    if not len(bounds):
        return found
    since = int(words[start])

    def looks_right(at: Numbers) -> NDArray[np.bool_]:
        inside = np.minimum(at, last)
        sizes = words[inside + 8].astype(np.int64)
        near = np.abs(words[inside].astype(np.int64) - since) < NEAR_S
        right = near & (sizes <= words[inside + 12]) & (sizes <= USUAL_LARGEST) & (words[inside + 4] < SECOND_NS)
        return right | (at > last)

    for first in range(0, len(bounds), SOUGHT):
        some = bounds[first : first + SOUGHT]
        some = some[some + REACH <= last]
        if not len(some):
            break
        here = np.lib.stride_tricks.sliding_window_view(words, REACH)[some]
        rows, places = np.nonzero(here - np.uint32(max(since - NEAR_S, 0)) < 2 * NEAR_S)
        at = some[rows] + places
        right = looks_right(at)
        rows, at = rows[right], at[right]
        right = looks_right(at + RECORD + words[at + 8].astype(np.int64))
        rows, at = rows[right], at[right]
        numbers, firsts = np.unique(rows, return_index=True)
        found[first + numbers] = at[firsts]
    return found


def _walk(
    words: NDArray[np.unsignedinteger], begins: Numbers, stops: Numbers, last: int
) -> tuple[Numbers, NDArray[np.intp], Numbers]:
    """Walk along all segments at the same time, from `begins` on and not beyond `stops`: the beginnings of records, the
    segment that each was found in, and where each segment's walk ended.
    """
    ended = begins.copy()
    numbers = np.flatnonzero(begins < stops)
    at, stop = begins[numbers], stops[numbers]
    places, segments = [np.zeros(0, np.int64)], [np.zeros(0, np.intp)]
    while len(at):
        places.append(at)
        segments.append(numbers)
        sizes = words[at + 8].astype(np.int64)
        onward = np.where(sizes > LARGEST, FAR, at + RECORD + sizes)
        on = onward < stop
        if not on.all():
            ended[numbers[~on]] = onward[~on]
            numbers, stop, onward = numbers[on], stop[on], onward[on]
        at = onward
    return np.concatenate(places), np.concatenate(segments), ended


def _pcapng(data: Bytes) -> Iterator[Records]:
    """Packets of a pcapng file. Link types and resolutions are those of the interface that each names."""
    buffer, at, end, order, number = data.data, 0, len(data), "<", 1
    interfaces: list[tuple[int, int, int]] = []
    """Of each interface of the section: link type, units in a second, and seconds to add."""
    rows: list[tuple[int, int, int, int, int]] = []
    lost: list[str] = []
    while at + 12 <= end:
        (kind,) = struct.unpack_from(f"{order}I", buffer, at)
        if kind == SECTION:
            (mark,) = struct.unpack_from("<I", buffer, at + 8)
            order, interfaces = "<" if mark == BYTE_ORDER else ">", []
        (size,) = struct.unpack_from(f"{order}I", buffer, at + 4)
        if size < 12 or at + size > end:
            short = at + size > end and size <= LARGEST
            said = (
                f"the file ends within a block of {size:,} bytes" if short else f"a block of {size:,} bytes is damaged"
            )
            lost.append(_rest(data, at, end, said))
            at = end
            break
        try:
            if kind == INTERFACE:
                interfaces.append(_interface(buffer, at, size, order))
            elif kind in (PACKET, OLD_PACKET, SIMPLE_PACKET):
                rows.append(_packet(buffer, at, size, order, kind, interfaces))
        except (struct.error, LookupError, ValueError) as error:
            lost.append(_rest(data, at, at + size, f"a block of the capture is damaged: {error}"))
        at += size
        if len(rows) >= WALKED:
            yield _of_rows(data, rows, number, lost)
            number, rows, lost = number + len(rows), [], []
    if at < end:
        lost.append(_rest(data, at, end, "the file ends within a block"))
    if rows or lost:
        yield _of_rows(data, rows, number, lost)


def _interface(buffer: memoryview, at: int, size: int, order: str) -> tuple[int, int, int]:
    (link,) = struct.unpack_from(f"{order}H", buffer, at + 8)
    units, offset, option, end = 1_000_000, 0, at + 16, at + size - 4
    while option + 4 <= end:
        code, length = struct.unpack_from(f"{order}HH", buffer, option)
        if code == 0:
            break
        if code == 9 and length:
            said = buffer[option + 4]
            units = 2 ** (said & 0x7F) if said & 0x80 else 10**said
        if code == 14 and length == 8:
            (offset,) = struct.unpack_from(f"{order}q", buffer, option + 4)
        option += 4 + (length + 3) // 4 * 4
    return link, units, offset


def _packet(
    buffer: memoryview, at: int, size: int, order: str, kind: int, interfaces: list[tuple[int, int, int]]
) -> tuple[int, int, int, int, int]:
    """Where the bytes of a packet are, how many were captured, how many it had, when, and its link type."""
    if kind == SIMPLE_PACKET:
        (length,) = struct.unpack_from(f"{order}I", buffer, at + 8)
        return at + 12, min(length, size - 16), length, 0, interfaces[0][0]
    high, low, captured, length = struct.unpack_from(f"{order}IIII", buffer, at + 12)
    width = "I" if kind == PACKET else "H"
    (number,) = struct.unpack_from(f"{order}{width}", buffer, at + 8)
    if number >= len(interfaces):
        raise LookupError(f"interface {number} is not described")
    if captured > size - 32:
        raise ValueError(f"{captured:,} bytes are said to be in {size - 32:,}")
    link, units, offset = interfaces[number]
    return at + 28, captured, length, ((high << 32) | low) * SECOND_NS // units + offset * SECOND_NS, link


def _of_rows(data: Bytes, rows: list[tuple[int, int, int, int, int]], first: int, lost: list[str]) -> Records:
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    return Records(data, columns[0], columns[1], columns[2], columns[3], columns[4], first, lost)


def _rest(data: Bytes, start: int, end: int, said: str) -> str:
    """Return the text of a dead letter for bytes that cannot be read, with the first of them in hexadecimal digits."""
    shown = data[start : min(end, start + 64)].tobytes().hex()
    return f"{said}; {end - start:,} bytes from byte {start:,} on are not read: {shown}"


def words_of(data: Bytes, kind: str) -> NDArray[np.unsignedinteger]:
    """The numbers that begin at each byte of some bytes, as a view: `words_of(data, ">u2")[at]` decodes one at `at`."""
    width = np.dtype(kind).itemsize
    count = max(len(data) - width + 1, 0)
    return np.ndarray((count,), kind, data, strides=(1,)) if count else np.zeros(0, kind)
