"""The headers of many packets at once: each field of all packets is one array.

Headers are decoded from the outside in. A step takes the packets that have a header of its kind, checks that it is
there as a whole and agrees with itself, and notes where the next one begins. A packet that fails is noted with the
reason and goes no further.

    link        Ethernet with VLAN tags, Linux cooked (1 and 2), BSD loopback, raw IP
    network     IPv4 with options, IPv6 with extension headers
    transport   TCP, UDP, ICMP, ICMPv6; none in a fragment that is not the first

A capture may hold less of a packet than there was (its snap length). That is no fault as long as the headers are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from headgate.packets.fields import Depth, depth
from headgate.packets.records import Numbers, Records, words_of

Rows = NDArray[np.intp]
"""Which packets of a batch."""


class Link(IntEnum):
    """The link types that are decoded, as capture files number them."""

    NULL = 0
    ETHERNET = 1
    RAW_12 = 12
    RAW_14 = 14
    RAW = 101
    LOOP = 108
    COOKED = 113
    IPV4_ONLY = 228
    IPV6_ONLY = 229
    COOKED_2 = 276


IPV4, IPV6 = 0x0800, 0x86DD
TAGS = (0x8100, 0x88A8, 0x9100)
"""Types by which VLAN tags are known."""

TAGS_DEEP, EXTENSIONS_DEEP = 3, 8
"""How many VLAN tags and extension headers are looked through."""

TCP, UDP, ICMP, ICMP6, FRAGMENT, AUTHENTICATION = 6, 17, 1, 58, 44, 51
EXTENSIONS = (0, 43, 60, 135, 139, 140, FRAGMENT, AUTHENTICATION)
FAMILIES = {2: IPV4, 10: IPV6, 24: IPV6, 28: IPV6, 30: IPV6}
"""How systems number the kinds of IP on their loopback interface."""

NONE = -1
"""A field that a packet does not have."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why some packets cannot be decoded: `{have}` and `{need}` stand for numbers of theirs."""

    text: str
    rows: Rows
    have: Numbers
    need: Numbers

    def reasons(self) -> list[tuple[int, str]]:
        """The reason for each packet."""
        told = zip(self.rows.tolist(), self.have.tolist(), self.need.tolist(), strict=True)
        return [(row, self.text.format(have=have, need=need)) for row, have, need in told]


class Headers:
    """The headers of a batch of packets, as far as the wanted fields need them."""

    def __init__(self, records: Records, wanted: frozenset[str]) -> None:
        self.records = records
        self.wanted = wanted
        self.depth = depth(wanted)
        self.count = len(records.at)
        self.end = records.at + records.captured
        self.wire_end = records.at + np.maximum(records.lengths, records.captured)
        self.u8, self.u16, self.u32 = records.data, words_of(records.data, ">u2"), words_of(records.data, ">u4")
        """The number at each byte: `u16[at]` is the one that begins at `at`."""
        self.fields: dict[str, Numbers] = {}
        """Fields by name, one value a packet; NONE where it has none."""
        self.problems: list[Problem] = []
        self.ipv4 = self.ipv6 = np.zeros(0, np.intp)
        self.link_at, self.network_at = self._nowhere(), self._nowhere()
        """Where Ethernet's addresses and the header of IP begin; NONE if there are none."""
        self.payload_at, self.payload_end = self._nowhere(), self._nowhere()
        """Where the bytes after the transport's header begin, and end as far as they were captured."""
        if self.depth >= Depth.LINK:
            types = self._link()
            if self.depth >= Depth.NETWORK:
                self._network(types)

    def _nowhere(self) -> Numbers:
        return np.full(self.count, NONE, np.int64)

    # telling packets apart

    def new(self, name: str) -> Numbers:
        """A new field, which no packet has yet."""
        self.fields[name] = found = self._nowhere()
        return found

    def keep(self, name: str, rows: Rows, values: Callable[[], NDArray[np.integer]]) -> None:
        """Decode a field of some packets, if it is wanted."""
        if name in self.wanted:
            if name not in self.fields:
                self.new(name)
            self.fields[name][rows] = values()

    def refuse(self, text: str, rows: Rows, wrong: NDArray[np.bool_], have: Numbers, need: Numbers | int) -> Rows:
        """Note the packets among `rows` that are wrong; the others."""
        if not wrong.any():
            return rows
        needed = np.broadcast_to(np.asarray(need, np.int64), wrong.shape)
        self.problems.append(Problem(text, rows[wrong], have[wrong], needed[wrong]))
        return rows[~wrong]

    def whole(self, header: str, rows: Rows, at: Numbers, need: Numbers | int) -> Rows:
        """The packets among `rows` that hold `need` bytes of a header from `at` on; of the others it is noted."""
        have = self.end[rows] - at[rows]
        text = f"{header} is cut off after {{have}} of {{need}} bytes"
        return self.refuse(text, rows, have < need, np.maximum(have, 0), need)

    # the link's header

    def _link(self) -> Numbers:
        """Decode the links' headers; the type of what follows, for each packet."""
        start, links = self.records.at, self.records.links
        types = self.new("ether_type")
        vlans = self.new("vlan")
        if self.records.vlans is not None:
            vlans[:] = self.records.vlans
        for link in np.unique(links).tolist():
            rows = np.flatnonzero(links == link)
            match link:
                case Link.ETHERNET:
                    rows = self.whole("the Ethernet header", rows, start, 14)
                    self.link_at[rows] = start[rows]
                    self._tagged(rows, start[rows] + 12, types)
                case Link.COOKED:
                    rows = self.whole("the header of Linux cooked capture", rows, start, 16)
                    self._tagged(rows, start[rows] + 14, types)
                case Link.COOKED_2:
                    rows = self.whole("the header of Linux cooked capture", rows, start, 20)
                    types[rows], self.network_at[rows] = self.u16[start[rows]], start[rows] + 20
                case Link.NULL | Link.LOOP:
                    rows = self.whole("the loopback header", rows, start, 4)
                    family = self.u32[start[rows]].astype(np.int64)
                    family = np.where(family > 0xFFFF, family.astype(np.uint32).byteswap(), family)
                    known = np.full(len(rows), NONE, np.int64)
                    for number, type in FAMILIES.items():
                        known[family == number] = type
                    types[rows], self.network_at[rows] = known, start[rows] + 4
                case Link.RAW | Link.RAW_12 | Link.RAW_14 | Link.IPV4_ONLY | Link.IPV6_ONLY:
                    rows = self.whole("the IP header", rows, start, 1)
                    version = self.u8[start[rows]] >> 4
                    types[rows] = np.select([version == 4, version == 6], [IPV4, IPV6], NONE)
                    self.network_at[rows] = start[rows]
                    odd = types[rows] == NONE
                    self.refuse("the IP header says version {have}", rows, odd, version.astype(np.int64), 0)
                case _:
                    everything = np.ones(len(rows), bool)
                    self.refuse("link type {have} is not known", rows, everything, links[rows], 0)
        return types

    def _tagged(self, rows: Rows, at: Numbers, types: Numbers) -> None:
        """Go through VLAN tags: `at` is where the first type stands."""
        found = self.u16[at].astype(np.int64)
        types[rows], self.network_at[rows] = found, at + 2
        for _ in range(TAGS_DEEP):
            tagged = rows[np.isin(types[rows], TAGS)]
            if not len(tagged):
                return
            tagged = self.whole("a VLAN tag", tagged, self.network_at, 4)
            tag = self.network_at[tagged]
            self.fields["vlan"][tagged] = self.u16[tag] & 0xFFF
            types[tagged], self.network_at[tagged] = self.u16[tag + 2], tag + 4

    # IP

    def _network(self, types: Numbers) -> None:
        for name in ("protocol", "more_fragments", "fragment_offset"):
            self.new(name)
        transport_at, end = self._nowhere(), self._nowhere()
        self.ipv4 = self._ipv4(np.flatnonzero(types == IPV4), transport_at, end)
        self.ipv6 = self._ipv6(np.flatnonzero(types == IPV6), transport_at, end)
        if self.depth >= Depth.TRANSPORT:
            self._transport(transport_at, end)

    def _ipv4(self, rows: Rows, transport_at: Numbers, end: Numbers) -> Rows:
        rows = self.whole("the IPv4 header", rows, self.network_at, 20)
        if not len(rows):
            return rows
        first = self.u8[self.network_at[rows]].astype(np.int64)
        rows = self.refuse("the IPv4 header says version {have}", rows, first >> 4 != 4, first >> 4, 4)
        words = self.u8[self.network_at[rows]].astype(np.int64) & 15
        rows = self.refuse("the IPv4 header says that it has {have} words", rows, words < 5, words, 5)
        size = (self.u8[self.network_at[rows]].astype(np.int64) & 15) * 4
        rows = self.whole("the IPv4 header", rows, self.network_at, size)
        at = self.network_at[rows]
        size, length = (self.u8[at].astype(np.int64) & 15) * 4, self.u16[at + 2].astype(np.int64)
        there = self.wire_end[rows] - at
        length = np.where(length == 0, there, length)  # cut into packets only by the network card
        rows, size, length, there = self._fits("IPv4", rows, size, length, there)
        at = self.network_at[rows]
        fragment = self.u16[at + 6].astype(np.int64)
        self.fields["protocol"][rows] = self.u8[at + 9]
        self.fields["more_fragments"][rows], self.fields["fragment_offset"][rows] = (
            fragment >> 13 & 1,
            (fragment & 0x1FFF) * 8,
        )
        self.keep("dont_fragment", rows, lambda: fragment >> 14 & 1)
        self.keep("ip_version", rows, lambda: np.full(len(rows), 4))
        self.keep("tos", rows, lambda: self.u8[at + 1])
        self.keep("ip_length", rows, lambda: length)
        self.keep("ip_id", rows, lambda: self.u16[at + 4])
        self.keep("ttl", rows, lambda: self.u8[at + 8])
        transport_at[rows], end[rows] = at + size, at + length
        return rows

    def _fits(
        self, header: str, rows: Rows, size: Numbers, length: Numbers, there: Numbers
    ) -> tuple[Rows, Numbers, Numbers, Numbers]:
        """Refuse packets whose lengths contradict each other."""
        wrong = (length < size) | (length > there)
        if wrong.any():
            short = length < size
            said = f"{header} says {{have}} bytes, and"
            self.refuse(f"{said} its header alone has {{need}}", rows, short, length, size)
            self.refuse(f"{said} the packet has {{need}}", rows, wrong & ~short, length, there)
            rows, size, length, there = rows[~wrong], size[~wrong], length[~wrong], there[~wrong]
        return rows, size, length, there

    def _ipv6(self, rows: Rows, transport_at: Numbers, end: Numbers) -> Rows:
        rows = self.whole("the IPv6 header", rows, self.network_at, 40)
        if not len(rows):
            return rows
        first = self.u8[self.network_at[rows]].astype(np.int64) >> 4
        rows = self.refuse("the IPv6 header says version {have}", rows, first != 6, first, 6)
        at = self.network_at[rows]
        length, there = self.u16[at + 4].astype(np.int64) + 40, self.wire_end[rows] - at
        length = np.where(length == 40, there, length)  # a jumbogram, or left to the network card
        rows, _, length, _ = self._fits("IPv6", rows, np.full(len(rows), 40, np.int64), length, there)
        at = self.network_at[rows]
        word = self.u32[at].astype(np.int64)
        fields = self.fields
        self.keep("ip_version", rows, lambda: np.full(len(rows), 6))
        self.keep("tos", rows, lambda: word >> 20 & 0xFF)
        self.keep("flow_label", rows, lambda: word & 0xFFFFF)
        self.keep("ip_length", rows, lambda: length)
        self.keep("ttl", rows, lambda: self.u8[at + 7])
        fields["protocol"][rows] = self.u8[at + 6]
        fields["more_fragments"][rows] = fields["fragment_offset"][rows] = 0
        transport_at[rows], end[rows] = at + 40, at + length
        refused = self._extensions(rows, transport_at)
        return rows[~np.isin(rows, refused)] if len(refused) else rows

    def _extensions(self, rows: Rows, transport_at: Numbers) -> Rows:
        """Go through the extension headers of IPv6; the packets in which one is cut off."""
        before, fields = len(self.problems), self.fields
        for _ in range(EXTENSIONS_DEEP):
            rows = rows[np.isin(fields["protocol"][rows], EXTENSIONS) & (fields["fragment_offset"][rows] == 0)]
            if not len(rows):
                break
            rows = self.whole("an IPv6 extension header", rows, transport_at, 8)
            at, kind = transport_at[rows], fields["protocol"][rows]
            size = np.select(
                [kind == FRAGMENT, kind == AUTHENTICATION],
                [8, (self.u8[at + 1].astype(np.int64) + 2) * 4],
                (self.u8[at + 1].astype(np.int64) + 1) * 8,
            )
            pieces = rows[kind == FRAGMENT]
            said = self.u16[transport_at[pieces] + 2].astype(np.int64)
            fields["fragment_offset"][pieces], fields["more_fragments"][pieces] = said & 0xFFF8, said & 1
            whole = self.whole("an IPv6 extension header", rows, transport_at, size)
            if len(whole) < len(rows):
                size = size[np.isin(rows, whole)]
                rows, at = whole, transport_at[whole]
            fields["protocol"][rows], transport_at[rows] = self.u8[at], at + size
        return np.concatenate([np.zeros(0, np.intp), *(problem.rows for problem in self.problems[before:])])

    # TCP, UDP, ICMP

    def _transport(self, at: Numbers, end: Numbers) -> None:
        fields = self.fields
        alive = np.concatenate([self.ipv4, self.ipv6]) if len(self.ipv6) else self.ipv4
        alive = alive[fields["fragment_offset"][alive] == 0]
        protocol = fields["protocol"][alive]
        self._tcp(alive[protocol == TCP], at, end)
        self._udp(alive[protocol == UDP], at, end)
        icmp = alive[(protocol == ICMP) | (protocol == ICMP6)]
        if len(icmp):
            icmp = self._inside("ICMP", self.whole("the ICMP header", icmp, at, 8), at, end, 8)
            self.keep("icmp_type", icmp, lambda: self.u8[at[icmp]])
            self.keep("icmp_code", icmp, lambda: self.u8[at[icmp] + 1])
            self._payload(icmp, at[icmp] + 8, end)

    def _tcp(self, rows: Rows, at: Numbers, end: Numbers) -> None:
        rows = self._inside("TCP", self.whole("the TCP header", rows, at, 20), at, end, 20)
        if not len(rows):
            return
        words = self.u8[at[rows] + 12].astype(np.int64) >> 4
        rows = self.refuse("the TCP header says that it has {have} words", rows, words < 5, words, 5)
        size = (self.u8[at[rows] + 12].astype(np.int64) >> 4) * 4
        rows = self._inside("TCP", rows, at, end, size)
        here = at[rows]
        said = self.u32[here + 12].astype(np.int64)
        self.keep("src_port", rows, lambda: self.u16[here])
        self.keep("dst_port", rows, lambda: self.u16[here + 2])
        self.keep("tcp_seq", rows, lambda: self.u32[here + 4])
        self.keep("tcp_ack", rows, lambda: self.u32[here + 8])
        self.keep("tcp_flags", rows, lambda: said >> 16 & 0xFF)
        self.keep("tcp_window", rows, lambda: said & 0xFFFF)
        self._payload(rows, here + (said >> 28) * 4, end)

    def _udp(self, rows: Rows, at: Numbers, end: Numbers) -> None:
        rows = self._inside("UDP", self.whole("the UDP header", rows, at, 8), at, end, 8)
        if not len(rows):
            return
        fields, here = self.fields, at[rows]
        length = self.u16[here + 4].astype(np.int64)
        there = end[rows] - here
        whole = (fields["more_fragments"][rows] == 0) & (length != 0)
        wrong = (length < 8) & (length != 0) | whole & (length > there)
        rows = self.refuse("UDP says {have} bytes, and the packet has {need}", rows, wrong, length, there)
        here = at[rows]
        length = self.u16[here + 4].astype(np.int64)
        self.keep("src_port", rows, lambda: self.u16[here])
        self.keep("dst_port", rows, lambda: self.u16[here + 2])
        end[rows] = np.where(length == 0, end[rows], np.minimum(here + length, end[rows]))
        self._payload(rows, here + 8, end)

    def _inside(self, header: str, rows: Rows, at: Numbers, end: Numbers, size: Numbers | int) -> Rows:
        """Refuse packets whose transport header is longer than what IP says is there."""
        there = end[rows] - at[rows]
        text = f"IP holds {{have}} bytes for a {header} header of {{need}}"
        return self.refuse(text, rows, there < size, there, size)

    def _payload(self, rows: Rows, at: Numbers, end: Numbers) -> None:
        self.keep("payload_length", rows, lambda: np.maximum(end[rows] - at, 0))
        self.payload_at[rows] = np.minimum(at, self.end[rows])
        self.payload_end[rows] = np.maximum(np.minimum(end[rows], self.end[rows]), self.payload_at[rows])

    def malformed(self) -> dict[int, str]:
        """The packets that cannot be decoded, each with the first reason."""
        found: dict[int, str] = {}
        for problem in self.problems:
            for row, reason in problem.reasons():
                found.setdefault(row, reason)
        return found
