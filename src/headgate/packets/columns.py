"""From packets to the columns of an Arrow batch: the fields that were asked for, and `_raw` for what cannot be decoded.

A packet that cannot be decoded is a row of nulls whose `_raw` says why, which packet it is, and its first bytes. So is
whatever stands in place of packets: the end of a file that was cut off, or what the kernel has dropped.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.packets.fields import FIELDS, Depth
from headgate.packets.headers import NONE, Headers, Rows
from headgate.packets.records import SECOND_NS, Numbers, Records, words_of

RAW = "_raw"
SHOWN = 128
"""How many bytes of a packet that cannot be decoded are shown."""

FLAGS = {"fin": 1, "syn": 2, "rst": 4, "psh": 8, "ack": 16, "urg": 32}
ARROW = {
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "BIGINT": pa.int64(),
    "INT": pa.int32(),
    "BOOLEAN": pa.bool_(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "ARRAY<STRING>": pa.list_(pa.string()),
}


def batch(records: Records, names: Sequence[str], where: str) -> pa.RecordBatch:
    """The rows of some packets, with these columns, each a field or `_raw`; `where` says what they are from."""
    wanted = frozenset(names) & FIELDS.keys()
    flags = {"tcp_flags"} if wanted & FLAGS.keys() else set()
    needed = {"src_port", "dst_port"} if any(FIELDS[name].depth is Depth.DNS for name in wanted) else set()
    headers = Headers(records, wanted | flags | needed)
    dns = _dns(headers) if needed else {}
    bad = headers.malformed()
    good = None
    if bad:
        good = np.ones(headers.count, bool)
        good[list(bad)] = False
    texts = [_text(records, row, bad[row], where) for row in sorted(bad)]
    texts += [f"{reason} ({where})" for reason in records.lost]
    columns = {name: dns[name] if name in dns else _column(headers, name) for name in wanted}
    arrays = []
    for name in names:
        if name == RAW:
            decoded = pa.nulls(headers.count - len(bad), pa.string())
            arrays.append(pa.concat_arrays([decoded, pa.array(texts, pa.string())]) if texts else decoded)
            continue
        column = columns[name] if good is None else columns[name].filter(pa.array(good))
        arrays.append(pa.concat_arrays([column, pa.nulls(len(texts), column.type)]) if texts else column)
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def _text(records: Records, row: int, reason: str, where: str) -> str:
    """A packet that cannot be decoded, in words."""
    at, captured, length = int(records.at[row]), int(records.captured[row]), int(records.lengths[row])
    seconds, fraction = divmod(int(records.times_ns[row]), SECOND_NS)
    when = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"
    content = records.data[at : at + min(captured, SHOWN)].tobytes().hex()
    number = records.first + row
    return f"{reason} (packet {number:,} of {where}, {when}, {captured:,} of {length:,} bytes): {content}"


def _column(headers: Headers, name: str) -> pa.Array:
    records = headers.records
    match name:
        case "time":
            return pa.array(records.times_ns // 1_000).cast(ARROW["TIMESTAMP"])
        case "time_ns":
            return pa.array(records.times_ns)
        case "length":
            return pa.array(records.lengths.astype(np.int32))
        case "captured_length":
            return pa.array(records.captured.astype(np.int32))
        case "src_mac" | "dst_mac":
            return _macs(headers, 6 if name == "src_mac" else 0)
        case "src_ip" | "dst_ip":
            return _addresses(headers, 0 if name == "src_ip" else 1)
        case "src_ipv4" | "dst_ipv4":
            numbers = np.full(headers.count, NONE, np.int64)
            at = headers.network_at[headers.ipv4] + (12 if name == "src_ipv4" else 16)
            numbers[headers.ipv4] = headers.u32[at]
            return _numbers(numbers, name)
        case "payload":
            return _payloads(headers)
        case _ if name in FLAGS:
            flags = headers.fields.get("tcp_flags")
            if flags is None:
                return pa.nulls(headers.count, pa.bool_())
            return pa.array((flags & FLAGS[name]) != 0, mask=flags == NONE)
        case _:
            numbers = headers.fields.get(name, np.zeros(0, np.int64))
            return _numbers(numbers, name) if len(numbers) else pa.nulls(headers.count, ARROW[FIELDS[name].type])


def _numbers(numbers: Numbers, name: str) -> pa.Array:
    missing = numbers == NONE
    kind = ARROW[FIELDS[name].type]
    values = numbers != 0 if kind == pa.bool_() else numbers.astype(kind.to_pandas_dtype())
    return pa.array(values, kind, mask=missing if missing.any() else None)


def _dns(headers: Headers) -> dict[str, pa.Array]:
    from headgate.packets.dns import decoded  # needs dpkt, which streams without DNS do not

    rows, found = decoded(headers) if "src_port" in headers.fields else (np.zeros(0, np.intp), {})
    return {
        name: _scattered(rows, found.get(name, []), headers.count, ARROW[field.type])
        for name, field in FIELDS.items()
        if field.depth is Depth.DNS and name in headers.wanted
    }


def _scattered(rows: Rows, values: Sequence[Any], count: int, kind: pa.DataType) -> pa.Array:
    """Values of some packets as a column of all of them."""
    places = np.full(count, NONE, np.int64)
    places[rows] = np.arange(len(rows))
    known = pa.array(values).cast(kind) if isinstance(values, np.ndarray) else pa.array(values, kind)
    return known.take(pa.array(places, mask=places == NONE))


# addresses as text


def _addresses(headers: Headers, which: int) -> pa.Array:
    """The senders' (0) or receivers' (1) addresses. Each address of a batch is written as text once."""
    count, four, six = headers.count, headers.ipv4, headers.ipv6
    numbers = headers.u32[headers.network_at[four] + 12 + 4 * which].astype(np.int64)
    known = pa.array(numbers).dictionary_encode()
    texts = _dotted(known.dictionary.to_numpy())
    if len(four) == count:
        return texts.take(known.indices)
    index = np.full(count, NONE, np.int64)
    index[four] = known.indices.to_numpy()
    if len(six):
        start = headers.network_at[six] + 8 + 16 * which
        halves = words_of(headers.records.data, ">u8")
        pairs = np.stack([halves[start], halves[start + 8]], axis=1).astype(np.uint64)
        others, places = np.unique(pairs, axis=0, return_inverse=True)
        index[six] = len(texts) + places.reshape(-1)
        written = [str(ipaddress.IPv6Address((high << 64) | low)) for high, low in others.tolist()]
        texts = pa.concat_arrays([texts, pa.array(written, pa.string())])
    return texts.take(pa.array(index, mask=index == NONE))


def _dotted(numbers: Numbers) -> pa.Array:
    """IPv4 addresses as text."""
    octets = [pa.array((numbers >> shift & 255).astype(np.uint8)).cast(pa.string()) for shift in (24, 16, 8, 0)]
    return pc.binary_join_element_wise(*octets, ".")


def _macs(headers: Headers, offset: int) -> pa.Array:
    rows = np.flatnonzero(headers.link_at != NONE)
    at = headers.link_at[rows] + offset
    numbers = headers.u16[at].astype(np.int64) << 32 | headers.u32[at + 2].astype(np.int64)
    known, places = np.unique(numbers, return_inverse=True)
    texts = pa.array([":".join(f"{number:012x}"[at : at + 2] for at in range(0, 12, 2)) for number in known.tolist()])
    index = np.full(headers.count, NONE, np.int64)
    index[rows] = places
    return texts.cast(pa.string()).take(pa.array(index, mask=index == NONE))


def _payloads(headers: Headers) -> pa.Array:
    """The bytes after the transport's headers, copied once."""
    content, data = headers.payload_at != NONE, headers.records.data.data
    ends = np.where(content, headers.payload_end, 0).tolist()
    starts = np.where(content, headers.payload_at, 0).tolist()
    found = [
        data[start:end] if there else None for start, end, there in zip(starts, ends, content.tolist(), strict=True)
    ]
    return pa.array([None if one is None else bytes(one) for one in found], pa.binary())
