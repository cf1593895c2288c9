"""Makes two captures for network.cql: a minute of the main link of a small site, and of its control link.

    python examples/network/make_capture.py [folder] [--seed 1]

The main link carries web traffic, DNS, pings, one host that scans ports and never finishes a handshake, and one packet
that was damaged on the way. The control link is its backup and carries next to nothing, and nothing at all for half a
minute. The same seed makes the same bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random
from socket import AF_INET, inet_pton

import dpkt

START = 1_767_268_800  # 2026-01-01 12:00:00 UTC
SECONDS = 60
CLIENTS = [f"10.0.0.{number}" for number in range(10, 30)]
SERVERS = ["192.0.2.10", "192.0.2.11", "192.0.2.12"]
RESOLVER, SCANNER = "192.0.2.53", "198.51.100.66"
SYN, ACK, FIN, PSH = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK, dpkt.tcp.TH_FIN, dpkt.tcp.TH_PUSH

Packets = list[tuple[float, bytes]]


def frame(source: str, target: str, protocol: int, content: bytes) -> bytes:
    """An Ethernet frame with an IPv4 packet."""
    packet = dpkt.ip.IP(src=inet_pton(AF_INET, source), dst=inet_pton(AF_INET, target), p=protocol, data=content)
    packet.len = len(packet)
    return bytes(dpkt.ethernet.Ethernet(src=b"\x02" * 6, dst=b"\x04" * 6, data=packet))


def segment(
    source: str, port: int, target: str, target_port: int, flags: int, seq: int, ack: int, size: int = 0
) -> bytes:
    """A frame with a TCP segment."""
    made = dpkt.tcp.TCP(sport=port, dport=target_port, flags=flags, seq=seq, ack=ack, data=bytes(size))
    return frame(source, target, 6, bytes(made))


def connection(chance: Random, start: float, client: str, server: str) -> Packets:
    """A web request: handshake, a few segments each way, and the end."""
    port, delay = chance.randrange(32_768, 61_000), chance.uniform(0.001, 0.03)
    ours, theirs = chance.getrandbits(31), chance.getrandbits(31)
    at, packets = start, []

    def say(by_client: bool, flags: int, size: int = 0) -> None:
        nonlocal at, ours, theirs
        if by_client:
            packets.append((at, segment(client, port, server, 443, flags, ours, theirs, size)))
            ours += size + bool(flags & (SYN | FIN))
        else:
            packets.append((at, segment(server, 443, client, port, flags, theirs, ours, size)))
            theirs += size + bool(flags & (SYN | FIN))
        at += delay * chance.uniform(0.5, 1.5)

    say(True, SYN)
    say(False, SYN | ACK)
    say(True, ACK)
    for _ in range(chance.randrange(1, 4)):
        say(True, PSH | ACK, chance.randrange(80, 600))
        for _ in range(chance.randrange(1, 8)):
            say(False, ACK, 1_448)
        say(True, ACK)
    say(True, FIN | ACK)
    say(False, FIN | ACK)
    say(True, ACK)
    return packets


def lookup(chance: Random, start: float, client: str) -> Packets:
    """A DNS query and its response. One name in eight does not exist."""
    port, number = chance.randrange(32_768, 61_000), chance.getrandbits(16)
    missing = chance.random() < 1 / 8
    name = f"{'gone' if missing else 'www'}{chance.randrange(9)}.example.org"
    question = dpkt.dns.DNS.Q(name=name, type=dpkt.dns.DNS_A)
    answer = dpkt.dns.DNS.RR(name=name, type=dpkt.dns.DNS_A, cls=1, ttl=60, rdata=inet_pton(AF_INET, SERVERS[0]))
    query = dpkt.dns.DNS(id=number, qd=[question])
    response = dpkt.dns.DNS(id=number, qr=1, rcode=3 if missing else 0, qd=[question], an=[] if missing else [answer])

    def datagram(source: int, target: int, message: dpkt.dns.DNS) -> bytes:
        content = bytes(message)
        return bytes(dpkt.udp.UDP(sport=source, dport=target, ulen=8 + len(content), data=content))

    return [
        (start, frame(client, RESOLVER, 17, datagram(port, 53, query))),
        (start + chance.uniform(0.002, 0.02), frame(RESOLVER, client, 17, datagram(53, port, response))),
    ]


def main_link(chance: Random) -> Packets:
    """A minute of traffic with a scan from the 20th to the 40th second."""
    packets: Packets = []
    for _ in range(300):
        packets += connection(
            chance, START + chance.uniform(0, SECONDS - 5), chance.choice(CLIENTS), chance.choice(SERVERS)
        )
    for _ in range(120):
        packets += lookup(chance, START + chance.uniform(0, SECONDS - 1), chance.choice(CLIENTS))
    for number in range(400):
        at = START + 20 + number * 0.05
        packets.append((at, segment(SCANNER, 50_000, SERVERS[number % 3], 1 + number, SYN, number, 0)))
    for second in range(SECONDS):
        ping = dpkt.icmp.ICMP(type=8, data=dpkt.icmp.ICMP.Echo(id=1, seq=second, data=bytes(32)))
        packets.append((START + second + 0.5, frame(CLIENTS[0], SERVERS[0], 1, bytes(ping))))
    damaged = segment(CLIENTS[1], 40_000, SERVERS[1], 443, ACK, 1, 1, 100)
    return [*packets, (START + 33.3, damaged[:14] + b"\x4f" + damaged[15:40])]


def control_link(chance: Random) -> Packets:
    """The backup: a few requests at the beginning and at the end."""
    packets: Packets = []
    for start in (2.0, 7.5, 48.0, 51.0):
        packets += connection(chance, START + start + chance.random(), CLIENTS[-1], SERVERS[2])
    return packets


def write(path: Path, packets: Packets) -> None:
    """A capture file with nanoseconds, in order of time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file, nano=True)
        for at, content in sorted(packets, key=lambda packet: packet[0]):
            writer.writepkt(content, ts=at)


def make(folder: Path, seed: int = 1) -> None:
    """Makes both captures."""
    chance = Random(seed)
    write(folder / "main" / "1.pcap", main_link(chance))
    write(folder / "control" / "1.pcap", control_link(chance))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parent / "captures")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    make(given.folder, given.seed)
    print(f"captures are in {given.folder}")
