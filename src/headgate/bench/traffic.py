"""Captures for measurements: many packets of many flows, written as a whole by NumPy."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

START_NS = 1_767_225_600_000_000_000
HEADER, RECORD = 24, 16
SMALL_BYTES, SMALL = 66, 0.6
"""The size of a packet without payload, and how many of all packets are such."""

LARGEST_BYTES, FLOWS, HOSTS = 1_514, 20_000, 500
MEAN_GAP_NS = 10_000


def write_capture(path: Path, packets: int, seed: int = 1) -> None:
    """Writes a pcap file with nanoseconds: TCP and UDP over IPv4, a few flows of most packets and many of few."""
    chance = np.random.default_rng(seed)
    sizes = np.where(chance.random(packets) < SMALL, SMALL_BYTES, chance.integers(200, LARGEST_BYTES, packets))
    starts = HEADER + np.concatenate([[0], np.cumsum(sizes + RECORD)[:-1]])
    content = np.zeros(int(starts[-1] + RECORD + sizes[-1]), np.uint8)
    content[:HEADER] = np.frombuffer(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1), np.uint8)

    def put(at: int, values: NDArray[np.int64] | int, kind: str) -> None:
        """Writes a number into each packet, so many bytes behind the beginning of its record."""
        numbers = np.broadcast_to(np.asarray(values), (packets,)).astype(kind)
        for place, column in enumerate(numbers.view(np.uint8).reshape(packets, -1).T):
            content[starts + at + place] = column

    times = START_NS + np.cumsum(chance.integers(1, 2 * MEAN_GAP_NS, packets))
    flow = chance.zipf(1.3, packets) % FLOWS
    udp = flow % 5 == 0
    put(0, times // 1_000_000_000, "<u4")
    put(4, times % 1_000_000_000, "<u4")
    put(8, sizes, "<u4")
    put(12, sizes, "<u4")
    ethernet, ip, transport = RECORD, RECORD + 14, RECORD + 34
    put(ethernet + 12, 0x0800, ">u2")
    put(ip, 0x45, "u1")
    put(ip + 2, sizes - 14, ">u2")
    put(ip + 8, 64, "u1")
    put(ip + 9, np.where(udp, 17, 6), "u1")
    put(ip + 12, 0x0A000000 + flow, ">u4")
    put(ip + 16, 0xC0000200 + flow * 7 % HOSTS, ">u4")
    put(transport, 1_024 + flow, ">u2")
    put(transport + 2, np.where(udp, 9_000, 443), ">u2")
    put(transport + 4, np.where(udp, sizes - 34, 0), ">u2")
    put(transport + 12, np.where(udp, 0, 0x50), "u1")
    put(transport + 13, np.where(udp, 0, 0x10), "u1")
    content.tofile(path)
