"""The fields of packets that a stream may declare: name, type, the header that each stands in, and what it says.

A field of a header that a packet does not have is null. A packet whose headers end before a declared field, or
contradict themselves there, is malformed. So how deep a packet is looked into depends on what is declared.

This module imports nothing, so that names are checked without Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Depth(IntEnum):
    """How far into a packet a field stands."""

    RECORD = 0
    LINK = 1
    NETWORK = 2
    TRANSPORT = 3
    DNS = 4


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its name, its type in SQL, where it stands, and what it says."""

    name: str
    type: str
    depth: Depth
    says: str


def _fields() -> Iterable[Field]:
    record, link, network, transport, dns = Depth
    yield Field("time", "TIMESTAMP", record, "when it was captured, to the microsecond")
    yield Field("time_ns", "BIGINT", record, "when it was captured, in nanoseconds since 1970")
    yield Field("length", "INT", record, "how many bytes it had on the wire")
    yield Field("captured_length", "INT", record, "how many of them were captured")
    yield Field("src_mac", "STRING", link, "Ethernet: the sender's address")
    yield Field("dst_mac", "STRING", link, "Ethernet: the receiver's address")
    yield Field(
        "ether_type", "INT", link, "the protocol after the link's header and its VLAN tags, such as 2048 for IPv4"
    )
    yield Field("vlan", "INT", link, "the number in the innermost VLAN tag")
    yield Field("ip_version", "INT", network, "4 or 6")
    yield Field("src_ip", "STRING", network, "the sender's address")
    yield Field("dst_ip", "STRING", network, "the receiver's address")
    yield Field("src_ipv4", "BIGINT", network, "IPv4: the sender's address as a number")
    yield Field("dst_ipv4", "BIGINT", network, "IPv4: the receiver's address as a number")
    yield Field(
        "protocol", "INT", network, "the protocol after IP and its extension headers: 6 TCP, 17 UDP, 1 and 58 ICMP"
    )
    yield Field("ttl", "INT", network, "time to live, or hop limit")
    yield Field("tos", "INT", network, "type of service, or traffic class")
    yield Field("ip_length", "INT", network, "bytes of the IP packet with its header")
    yield Field("ip_id", "INT", network, "IPv4: the identification")
    yield Field("dont_fragment", "BOOLEAN", network, "IPv4: it must not be fragmented")
    yield Field("more_fragments", "BOOLEAN", network, "more fragments follow")
    yield Field("fragment_offset", "INT", network, "where in its packet a fragment begins, in bytes")
    yield Field("flow_label", "INT", network, "IPv6: the flow label")
    yield Field("src_port", "INT", transport, "TCP, UDP: the sender's port")
    yield Field("dst_port", "INT", transport, "TCP, UDP: the receiver's port")
    yield Field("tcp_seq", "BIGINT", transport, "TCP: the sequence number")
    yield Field("tcp_ack", "BIGINT", transport, "TCP: the acknowledgment number")
    yield Field("tcp_flags", "INT", transport, "TCP: all flags as a number, FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32")
    yield Field("fin", "BOOLEAN", transport, "TCP: the flag FIN")
    yield Field("syn", "BOOLEAN", transport, "TCP: the flag SYN")
    yield Field("rst", "BOOLEAN", transport, "TCP: the flag RST")
    yield Field("psh", "BOOLEAN", transport, "TCP: the flag PSH")
    yield Field("ack", "BOOLEAN", transport, "TCP: the flag ACK")
    yield Field("urg", "BOOLEAN", transport, "TCP: the flag URG")
    yield Field("tcp_window", "INT", transport, "TCP: the window, not scaled")
    yield Field("icmp_type", "INT", transport, "ICMP, ICMPv6: the type")
    yield Field("icmp_code", "INT", transport, "ICMP, ICMPv6: the code")
    yield Field("payload_length", "INT", transport, "bytes after the TCP, UDP or ICMP header, on the wire")
    yield Field("payload", "BINARY", transport, "these bytes, as far as they were captured")
    yield Field("dns_id", "INT", dns, "the number of a message")
    yield Field("dns_response", "BOOLEAN", dns, "it is a response")
    yield Field("dns_opcode", "INT", dns, "the kind of query")
    yield Field("dns_rcode", "INT", dns, "the code of a response: 0 no error, 3 no such name")
    yield Field("dns_answers", "INT", dns, "how many answers it holds")
    yield Field("dns_query", "STRING", dns, "the first name that is asked for")
    yield Field("dns_type", "INT", dns, "the type of record that is asked for: 1 A, 28 AAAA")
    yield Field("dns_addresses", "ARRAY<STRING>", dns, "the addresses in the answers")


FIELDS: dict[str, Field] = {field.name: field for field in _fields()}


def depth(names: Iterable[str]) -> Depth:
    """How far packets must be looked into for these fields."""
    return max((FIELDS[name].depth for name in names if name in FIELDS), default=Depth.RECORD)
