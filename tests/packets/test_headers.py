"""Headers decoded for many packets at once: field by field, against dpkt, and what is said of malformed ones."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random
from typing import Any

import dpkt
import pytest
from tools.packets import ether, ip4, ip6, pcap, rows, tcp, udp

from headgate.packets.fields import FIELDS


def one(tmp_path: Path, packet: bytes, *names: str, link: int = 1, snap: int = 2**16) -> dict[str, Any]:
    (row,) = rows(pcap(tmp_path / "one.pcap", [packet], link=link, snap=snap), *(names or FIELDS))
    return {name: value for name, value in row.items() if value is not None}


def test_every_field_of_a_tcp_segment(tmp_path: Path) -> None:
    segment = tcp(40_001, 443, dpkt.tcp.TH_SYN | dpkt.tcp.TH_PUSH, b"hello", seq=2**32 - 1, ack=7, win=1_024)
    frame = ether(ip4(segment, 6, ttl=9, tos=4, id=513, df=1), tags=(5, 42))
    found = one(tmp_path, frame)
    found.pop("time")
    assert found == {
        "time_ns": 1_767_225_600_000_000_000, "length": len(frame), "captured_length": len(frame),
        "src_mac": "02:03:04:05:06:07", "dst_mac": "0a:0b:0c:0d:0e:0f", "ether_type": 0x0800, "vlan": 42,
        "ip_version": 4, "src_ip": "10.0.0.1", "dst_ip": "10.0.0.2", "src_ipv4": 0x0A000001, "dst_ipv4": 0x0A000002,
        "protocol": 6, "ttl": 9, "tos": 4, "ip_length": 45, "ip_id": 513, "dont_fragment": True, "more_fragments": False,
        "fragment_offset": 0, "src_port": 40_001, "dst_port": 443, "tcp_seq": 2**32 - 1, "tcp_ack": 7, "tcp_flags": 10,
        "fin": False, "syn": True, "rst": False, "psh": True, "ack": False, "urg": False, "tcp_window": 1_024,
        "payload_length": 5, "payload": b"hello",
    }  # fmt: skip


def test_ipv6_with_extension_headers(tmp_path: Path) -> None:
    hop_by_hop = struct.pack(">BB", 60, 0) + bytes(6)
    options = struct.pack(">BB", 51, 1) + bytes(14)
    authentication = struct.pack(">BB", 17, 4) + bytes(22)
    frame = ether(ip6(hop_by_hop + options + authentication + bytes(udp(5, 6, b"abc")), 0), 0x86DD)
    found = one(
        tmp_path,
        frame,
        "ip_version",
        "src_ip",
        "dst_ip",
        "protocol",
        "ttl",
        "tos",
        "flow_label",
        "dst_port",
        "payload",
        "src_ipv4",
    )
    assert found == {"ip_version": 6, "src_ip": "2001:db8::1", "dst_ip": "2001:db8::2", "protocol": 17, "ttl": 63, "tos": 5,
                     "flow_label": 77, "dst_port": 6, "payload": b"abc"}  # fmt: skip


def test_fragments_have_ports_in_the_first_alone(tmp_path: Path) -> None:
    whole = bytes(udp(1, 2, b"y" * 40))
    first = ip4(whole[:24], 17, mf=1)
    rest = ip4(whole[24:], 17, offset=24 // 8)
    fields = ("fragment_offset", "more_fragments", "dst_port", "payload_length")
    assert one(tmp_path, ether(first), *fields) == {
        "fragment_offset": 0,
        "more_fragments": True,
        "dst_port": 2,
        "payload_length": 16,
    }
    assert one(tmp_path, ether(rest), *fields) == {"fragment_offset": 24, "more_fragments": False}
    last = struct.pack(">BBHI", 17, 0, 24, 1) + whole[24:]
    assert one(tmp_path, ether(ip6(last, 44), 0x86DD), *fields, "protocol") == {
        "fragment_offset": 24,
        "more_fragments": False,
        "protocol": 17,
    }


@pytest.mark.parametrize(
    "link, head",
    [(101, b""), (12, b""), (228, b""), (0, struct.pack("<I", 2)), (0, struct.pack(">I", 2)), (108, struct.pack(">I", 2)),
     (113, struct.pack(">HHH8sH", 0, 1, 6, b"", 0x0800)), (276, struct.pack(">HHIHBB8s", 0x0800, 0, 1, 1, 0, 6, b""))],
)  # fmt: skip
def test_links(tmp_path: Path, link: int, head: bytes) -> None:
    packet = head + bytes(ip4(tcp(1, 2), 6))
    assert one(tmp_path, packet, "src_ip", "dst_port", "src_mac", link=link) == {"src_ip": "10.0.0.1", "dst_port": 2}
    assert one(tmp_path, packet[: len(head)], "src_ip", link=link)["_raw"]


def test_other_protocols_have_no_fields_and_are_not_malformed(tmp_path: Path) -> None:
    arp = ether(bytes(28), 0x0806)
    assert one(tmp_path, arp, "ether_type", "src_ip", "src_port", "dns_query") == {"ether_type": 0x0806}
    gre = ether(ip4(bytes(8), 47))
    assert one(tmp_path, gre, "protocol", "src_port", "icmp_type") == {"protocol": 47}
    ping = ether(ip4(dpkt.icmp.ICMP(type=8, data=dpkt.icmp.ICMP.Echo(id=1, seq=2, data=b"abcd")), 1))
    assert one(tmp_path, ping, "icmp_type", "icmp_code", "payload_length") == {
        "icmp_type": 8,
        "icmp_code": 0,
        "payload_length": 4,
    }
    assert one(tmp_path, ether(ip6(b"\x80\x01\0\0\0\0\0\0", 58), 0x86DD), "icmp_type", "icmp_code") == {
        "icmp_type": 128,
        "icmp_code": 1,
    }


BROKEN = {
    "the Ethernet header is cut off after 9 of 14 bytes": ether(b"")[:9],
    "the IPv4 header is cut off after 12 of 20 bytes": ether(bytes(ip4(tcp(), 6))[:12]),
    "the IPv4 header says version 5": ether(b"\x55" + bytes(ip4(tcp(), 6))[1:]),
    "the IPv4 header says that it has 3 words": ether(b"\x43" + bytes(ip4(tcp(), 6))[1:]),
    "IPv4 says 15 bytes, and its header alone has 20": ether(
        struct.pack(">BBH", 0x45, 0, 15) + bytes(ip4(tcp(), 6))[4:]
    ),
    "IPv4 says 1500 bytes, and the packet has 40": ether(
        struct.pack(">BBH", 0x45, 0, 1_500) + bytes(ip4(tcp(), 6))[4:]
    ),
    "the IPv6 header is cut off after 39 of 40 bytes": ether(ip6(b"", 6)[:39], 0x86DD),
    "an IPv6 extension header is cut off after 3 of 8 bytes": ether(ip6(b"\x11\0\0", 60), 0x86DD),
    "an IPv6 extension header is cut off after 8 of 24 bytes": ether(ip6(b"\x11\x02" + bytes(6), 60), 0x86DD),
    "the TCP header is cut off after 11 of 20 bytes": ether(ip4(bytes(tcp())[:11], 6)),
    "the TCP header says that it has 2 words": ether(ip4(bytes(12) + b"\x20" + bytes(7), 6)),
    "IP holds 20 bytes for a TCP header of 60": ether(ip4(bytes(12) + b"\xf0" + bytes(7), 6)),
    "UDP says 400 bytes, and the packet has 8": ether(ip4(struct.pack(">HHHH", 1, 2, 400, 0), 17)),
    "the ICMP header is cut off after 2 of 8 bytes": ether(ip4(b"\x08\0", 1)),
    "the DNS header is cut off after 3 of 12 bytes": ether(ip4(udp(5, 53, b"abc"), 17)),
    "the DNS message cannot be decoded": ether(
        ip4(udp(5, 53, struct.pack(">HHHHHH", 1, 0, 1, 0, 0, 0) + b"\x3fabc"), 17)
    ),
    "a VLAN tag is cut off after 2 of 4 bytes": ether(b"\0\x05", 0x8100),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_malformed_packets_say_why(tmp_path: Path, reason: str) -> None:
    found = one(tmp_path, BROKEN[reason])
    text = found.pop("_raw")
    assert text.startswith(f"{reason} (packet 1 of one.pcap, 2026-01-01T00:00:00.000000000Z, ")
    assert text.endswith(BROKEN[reason].hex())
    assert not found, "nothing else is known of it"
    assert one(tmp_path, BROKEN[reason], "time_ns") == {"time_ns": 1_767_225_600_000_000_000}, (
        "nobody asked for headers"
    )


def test_an_unknown_link_is_malformed_for_who_asks_for_headers(tmp_path: Path) -> None:
    assert "link type 147 is not known" in one(tmp_path, b"abc", "src_ip", link=147)["_raw"]
    assert one(tmp_path, b"abc", "length", link=147) == {"length": 3}


def test_a_snap_length_that_holds_the_headers_is_no_fault(tmp_path: Path) -> None:
    frame = ether(ip4(tcp(1, 2, payload=bytes(1_000)), 6))
    found = one(tmp_path, frame, "dst_port", "payload_length", "length", "captured_length", "payload", snap=60)
    assert found == {
        "dst_port": 2,
        "payload_length": 1_000,
        "length": 1_054,
        "captured_length": 60,
        "payload": bytes(6),
    }
    assert "the TCP header is cut off" in one(tmp_path, frame, "dst_port", snap=40)["_raw"]


def test_padding_of_short_frames_is_no_payload(tmp_path: Path) -> None:
    frame = ether(ip4(tcp(), 6)) + bytes(20)
    assert one(tmp_path, frame, "payload_length", "payload") == {"payload_length": 0, "payload": b""}


def test_dns(tmp_path: Path) -> None:
    query = dpkt.dns.DNS(id=77, qd=[dpkt.dns.DNS.Q(name="example.org", type=1)])
    answer = dpkt.dns.DNS.RR(name="example.org", type=1, cls=1, ttl=60, rdata=bytes([192, 0, 2, 7]))
    response = dpkt.dns.DNS(id=77, qr=1, rcode=0, qd=query.qd, an=[answer])
    names = [name for name in FIELDS if name.startswith("dns_")]
    asked = {"dns_id": 77, "dns_opcode": 0, "dns_rcode": 0, "dns_query": "example.org", "dns_type": 1}
    assert one(tmp_path, ether(ip4(udp(999, 53, bytes(query)), 17)), *names) == asked | {
        "dns_response": False, "dns_answers": 0, "dns_addresses": []}  # fmt: skip
    assert one(tmp_path, ether(ip4(udp(53, 999, bytes(response)), 17)), *names) == asked | {
        "dns_response": True, "dns_answers": 1, "dns_addresses": ["192.0.2.7"]}  # fmt: skip
    assert one(tmp_path, ether(ip4(udp(53, 999, bytes(response)), 17)), "dns_id", "dns_answers") == {
        "dns_id": 77,
        "dns_answers": 1,
    }


def test_dpkt_decodes_the_same_from_many_packets_of_all_kinds(tmp_path: Path) -> None:
    chance = Random(5)
    frames = []
    for _ in range(1_500):
        ports = chance.randrange(1, 65_536), chance.randrange(54, 5_000)
        body = bytes(chance.randrange(256) for _ in range(chance.randrange(30)))
        options = bytes(4 * chance.randrange(4))
        segment = tcp(*ports, chance.randrange(64), seq=chance.getrandbits(32))
        segment.opts, segment.off, segment.data = options, 5 + len(options) // 4, body
        content, protocol = chance.choice([(bytes(segment), 6), (bytes(udp(*ports, body)), 17)])
        address = f"{chance.randrange(1, 224)}.{chance.randrange(256)}.0.{chance.randrange(256)}"
        if chance.random() < 0.3:
            frame = ether(ip6(content, protocol, source=f"fe80::{chance.randrange(1, 65_536):x}"), 0x86DD)
        else:
            frame = ether(
                ip4(content, protocol, source=address, ttl=chance.randrange(256)), tags=(3,) * chance.randrange(2)
            )
        frames.append(frame[: chance.randrange(10, len(frame))] if chance.random() < 0.2 else frame)
    fields = ("src_ip", "dst_port", "src_port", "protocol", "tcp_seq", "tcp_flags", "payload_length")
    found = rows(pcap(tmp_path / "many.pcap", frames), "time_ns", *fields)
    assert len(found) == len(frames)
    whole = {row["time_ns"]: row for row in found if row["_raw"] is None}
    compared = 0
    for number, frame in enumerate(frames):
        row = whole.get(1_767_225_600_000_000_000 + number * 1_000_001)
        if row is None:
            continue
        packet = dpkt.ethernet.Ethernet(frame).data
        inner = packet.data
        assert row["src_ip"] == dpkt.utils.inet_to_str(packet.src)
        assert (row["src_port"], row["dst_port"], row["protocol"]) == (inner.sport, inner.dport, packet.p)
        assert row["payload_length"] == len(inner.data)
        if row["protocol"] == 6:
            assert (row["tcp_seq"], row["tcp_flags"]) == (inner.seq, inner.flags)
        compared += 1
    assert compared > 1_100
    assert sum(row["_raw"] is not None for row in found) == len(frames) - compared
