"""Packets and captures for tests, made by dpkt."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from socket import AF_INET, AF_INET6, inet_pton

import dpkt
import pytest

from headgate.errors import UserError
from headgate.packets import ring
from headgate.packets.columns import batch
from headgate.packets.records import Piece, opened, pieces, records

START_NS = 1_767_225_600_000_000_000


def ip4(
    payload: bytes | dpkt.Packet, protocol: int, source: str = "10.0.0.1", target: str = "10.0.0.2", **more: int
) -> dpkt.ip.IP:
    """An IPv4 packet."""
    made = dpkt.ip.IP(src=inet_pton(AF_INET, source), dst=inet_pton(AF_INET, target), p=protocol, data=payload, **more)
    made.len = len(made)
    return made


def ip6(payload: bytes | dpkt.Packet, protocol: int, source: str = "2001:db8::1", target: str = "2001:db8::2") -> bytes:
    """An IPv6 packet, as bytes."""
    content = bytes(payload)
    head = struct.pack(">IHBB", 6 << 28 | 5 << 20 | 77, len(content), protocol, 63)
    return head + inet_pton(AF_INET6, source) + inet_pton(AF_INET6, target) + content


def tcp(
    source: int = 40_000, target: int = 443, flags: int = dpkt.tcp.TH_ACK, payload: bytes = b"", **more: int
) -> dpkt.tcp.TCP:
    """A TCP segment."""
    return dpkt.tcp.TCP(sport=source, dport=target, flags=flags, data=payload, **more)


def udp(source: int = 40_000, target: int = 9_000, payload: bytes = b"") -> dpkt.udp.UDP:
    """A UDP datagram."""
    return dpkt.udp.UDP(sport=source, dport=target, ulen=8 + len(payload), data=payload)


def ether(payload: bytes | dpkt.Packet, kind: int = 0x0800, tags: tuple[int, ...] = ()) -> bytes:
    """An Ethernet frame, tagged for VLANs from the outside in."""
    head = bytes.fromhex("0a0b0c0d0e0f") + bytes.fromhex("020304050607")
    for tag in tags:
        head += struct.pack(">HH", 0x8100, tag)
    return head + struct.pack(">H", kind) + bytes(payload)


def pcap(
    path: Path, packets: Iterable[bytes], link: int = 1, nanoseconds: bool = True, order: str = "<", snap: int = 2**16
) -> Path:
    """A capture of packets a millisecond and a nanosecond apart."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snap, link)]
    for number, packet in enumerate(packets):
        seconds, rest = divmod(START_NS + number * 1_000_001, 1_000_000_000)
        captured = packet[:snap]
        head = (seconds, rest if nanoseconds else rest // 1_000, len(captured), len(packet))
        parts += [struct.pack(f"{order}IIII", *head), captured]
    path.write_bytes(b"".join(parts))
    return path


def rows(path: Path, *names: str, size: int = 2**40) -> list[dict[str, object]]:
    """The rows of a capture file, with these fields and `_raw`, read in pieces of a size."""
    found: list[dict[str, object]] = []
    for piece in pieces(path, size):
        for some in records(Piece(str(path), piece.start, piece.end, piece.first)):
            found += batch(some, [*names, "_raw"], path.name).to_pylist()
    assert len(opened(path)) == path.stat().st_size or path.suffix == ".gz"
    return found


def _capable() -> str:
    """Why live interfaces cannot be captured here; nothing if they can."""
    try:
        ring.check("lo")
    except UserError as error:
        return str(error)
    return ""


needs_capture = pytest.mark.skipif(bool(_capable()), reason=f"no live capture here: {_capable()}")
