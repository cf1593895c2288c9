"""The kernel's ring of packets of one live interface: AF_PACKET with TPACKET_V3, on Linux.

The kernel writes packets into blocks of memory that it shares with this process, and stamps each to the nanosecond. A
block is handed over when it is full, or a few milliseconds after its first packet. It is copied as a whole: no packet
is touched here. `records` finds the packets in such a copy later, where they are decoded.

If blocks are not taken fast enough, the kernel drops packets and counts them.
"""

from __future__ import annotations

import ctypes
import mmap
import select
import socket
import struct
from dataclasses import dataclass

import numpy as np

from headgate.errors import UserError, nearest, quoted
from headgate.packets.headers import Link
from headgate.packets.records import SECOND_NS, Bytes, Records

BLOCK_BYTES, BLOCKS = 2**20, 32
HANDED_OVER_MS = 10
"""After how long the kernel hands over a block that is not full, or after twice as long."""

SOL_PACKET, ADD_MEMBERSHIP, RX_RING, STATISTICS, VERSION, IGNORE_OUTGOING = 263, 1, 5, 6, 10, 23
TPACKET_V3, PROMISCUOUS, EVERYTHING = 2, 1, 3
ATTACH_FILTER, RETURN = 26, 0x06
KERNELS, USERS = 0, 1
"""Whose a block is."""

VLAN_VALID = 1 << 4
STATUS = struct.Struct("=I")
BLOCK = struct.Struct("=IIIIII")
"""Version, offset to private data, status, packets, offset to the first, bytes."""

LINKS = {1: Link.ETHERNET, 772: Link.ETHERNET, 65534: Link.RAW, 768: Link.RAW, 769: Link.RAW, 776: Link.RAW}
"""Link types by the kernel's types of hardware: Ethernet, loopback, and tunnels of IP."""


@dataclass(frozen=True, slots=True)
class Drops:
    """What the kernel has counted since it was last asked."""

    seen: int
    dropped: int


def check(interface: str) -> int:
    """Refuse an interface that cannot be captured; its link type."""
    if not hasattr(socket, "AF_PACKET"):
        raise UserError("no-capture", "live interfaces can be captured on Linux only", hint="FROM pcap reads files.")
    known = [name for _, name in socket.if_nameindex()]
    if interface not in known:
        raise UserError(
            "no-such-interface",
            f'there is no interface "{interface}" on this machine',
            detail=f"There are {quoted(known)}.",
            hint=nearest(interface, known) or "ip link lists them.",
        )
    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as probe:
            probe.bind((interface, 0))
            hardware = probe.getsockname()[3]
    except PermissionError:
        raise UserError(
            "no-capability",
            f'interface "{interface}" cannot be captured: this process lacks the capability CAP_NET_RAW',
            hint="Run as root, with docker run --cap-add NET_RAW, or give Python the capability: "
            "setcap cap_net_raw+ep $(readlink -f $(which python)).",
        ) from None
    if hardware not in LINKS:
        raise UserError("no-capture", f'interface "{interface}" has hardware type {hardware}, which is not decoded')
    return LINKS[hardware]


class Ring:
    """The packets of an interface, block by block."""

    def __init__(self, interface: str, snap_length: int, promiscuous: bool) -> None:
        self.link = check(interface)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(SOL_PACKET, VERSION, STATUS.pack(TPACKET_V3))
        frame = 2_048
        shape = (BLOCK_BYTES, BLOCKS, frame, BLOCK_BYTES // frame * BLOCKS, HANDED_OVER_MS, 0, 0)
        self.socket.setsockopt(SOL_PACKET, RX_RING, struct.pack("=7I", *shape))
        self.memory = mmap.mmap(self.socket.fileno(), BLOCK_BYTES * BLOCKS)
        self._snap(snap_length)
        if interface == "lo":  # every packet would be seen on its way out and on its way in
            self.socket.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
        if promiscuous:
            index = socket.if_nametoindex(interface)
            self.socket.setsockopt(SOL_PACKET, ADD_MEMBERSHIP, struct.pack("=iHH8s", index, PROMISCUOUS, 0, b""))
        self.socket.bind((interface, EVERYTHING))
        self.next = 0
        self._poll = select.poll()
        self._poll.register(self.socket.fileno(), select.POLLIN | select.POLLERR)

    def _snap(self, length: int) -> None:
        """Let the kernel keep so many bytes of each packet: a filter of one instruction, which takes every packet."""
        program = ctypes.create_string_buffer(struct.pack("=HBBI", RETURN, 0, 0, length))
        attached = struct.pack("@HP", 1, ctypes.addressof(program))
        self.socket.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, attached)

    def take(self) -> bytes | None:
        """A copy of the next block that the kernel has handed over, which goes back to it; None if there is none."""
        start = self.next * BLOCK_BYTES
        _, _, status, _, _, size = BLOCK.unpack_from(self.memory, start)
        if not status & USERS:
            return None
        block = self.memory[start : start + size]
        STATUS.pack_into(self.memory, start + 8, KERNELS)
        self.next = (self.next + 1) % BLOCKS
        return block

    def waiting(self) -> int:
        """How many blocks hold packets that were not taken yet, with the one that the kernel is filling."""
        for ahead in range(BLOCKS):
            start = (self.next + ahead) % BLOCKS * BLOCK_BYTES
            _, _, status, packets, _, _ = BLOCK.unpack_from(self.memory, start)
            if not status & USERS:
                return ahead + (packets > 0)
        return BLOCKS

    def wait(self, timeout_ms: int) -> None:
        """Wait until a block is there, or the time has passed."""
        self._poll.poll(timeout_ms)

    def drops(self) -> Drops:
        """How many packets the kernel has seen and dropped since the last call."""
        seen, dropped, _ = struct.unpack("=3I", self.socket.getsockopt(SOL_PACKET, STATISTICS, 12))
        return Drops(seen, dropped)

    def close(self) -> None:
        """Stop capturing."""
        self.socket.close()
        self.memory.close()


def records(data: Bytes, start: int, end: int, link: int) -> Records:
    """The packets of a block that was copied to these bytes."""
    buffer = data.data
    _, _, _, count, first, _ = BLOCK.unpack_from(buffer, start)
    following, at, found = STATUS.unpack_from, start + first, []
    for _ in range(count):
        found.append(at)
        at += following(buffer, at)[0]
    heads = np.array(found, np.int64)
    assert not count or found[-1] < end
    words = np.ndarray((max(len(data) - 3, 0),), "=u4", data, strides=(1,))
    halves = np.ndarray((max(len(data) - 1, 0),), "=u2", data, strides=(1,))
    times = words[heads + 4].astype(np.int64) * SECOND_NS + words[heads + 8]
    tagged = words[heads + 20] & VLAN_VALID != 0
    vlans = np.where(tagged, words[heads + 32].astype(np.int64) & 0xFFF, -1)
    return Records(
        data, heads + halves[heads + 24], words[heads + 12].astype(np.int64), words[heads + 16].astype(np.int64), times,
        np.full(count, link, np.int64), vlans=vlans,
    )  # fmt: skip
