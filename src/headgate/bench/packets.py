"""Measures packets a second from a capture file to flows, beside the packet library alone and tshark.

All read the same file, which the file system has in memory, turn by turn. headgate reads it by Spark's data source,
writes it to the stream's log, and puts out the packets and bytes of each five-tuple in each bucket of ten seconds, on
all cores. dpkt reads the packets one by one in one process: once without looking into them, once with parsing them, and
once with counting the same flows in a dictionary. tshark, if it is there, prints the
same fields of the first packets.
headgate's flows must be those that dpkt counts.

Not measured: the start of Spark, a disk.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console

from headgate.bench.layout import empty_table
from headgate.bench.traffic import write_capture
from headgate.engine import Engine
from headgate.errors import UserError

PACKETS, ROUNDS = 500_000, 3
TSHARK_PACKETS = 20_000
"""tshark dissects everything; so many packets are enough to know its speed."""

BUCKET_S = 10
OURS, READ, PARSED, COUNTED, TSHARK = (
    "headgate: capture to flows",
    "dpkt: reads the packets",
    "dpkt: reads and parses them",
    "dpkt: reads, parses, counts flows",
    "tshark: prints seven fields",
)
SCRIPT = """
CREATE STREAM packets (time TIMESTAMP, src_ip STRING, dst_ip STRING, src_port INT, dst_port INT, protocol INT,
    length INT)
  TIMESTAMP BY time FROM pcap OPTIONS ('path' = '{}');
CREATE QUERY flows AS
  SELECT bucket, src_ip, dst_ip, src_port, dst_port, protocol, COUNT(*) AS packets, SUM(length) AS bytes FROM packets
  GROUP BY UNIX_SECONDS(time) - UNIX_SECONDS(time) % {} AS bucket, src_ip, dst_ip, src_port, dst_port, protocol
  EMIT FINAL;
"""

Flows = dict[tuple[Any, ...], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Speeds:
    """Packets a second in each round, by way, and what was read."""

    packets: int
    bytes: int
    flows: int
    rounds: dict[str, list[float]]

    def of(self, way: str) -> float:
        """The median over the rounds."""
        return median(self.rounds[way])


def steps() -> int:
    """How many steps the progress bar has: each round, and one to warm up."""
    return ROUNDS + 1


def speeds(spark: SparkSession, folder: Path, packets: int, done: Callable[[], None]) -> Speeds:
    """Runs every way in turns; an error if headgate's flows are not those that dpkt counts."""
    try:
        import dpkt  # noqa: F401
    except ImportError:
        raise UserError("no-library", "dpkt is not installed", hint="pip install headgate[packets]") from None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "capture.pcap"
    write_capture(path, packets)
    rounds: dict[str, list[float]] = {way: [] for way in (OURS, READ, PARSED, COUNTED)}
    if shutil.which("tshark"):
        rounds[TSHARK] = []
    expected, tables = dict[tuple[Any, ...], tuple[int, int]](), list[pa.Table]()
    for turn in range(steps()):
        for way, found in rounds.items():
            start, count = perf_counter(), packets
            if way == OURS:
                tables = _by_headgate(spark, folder)
            elif way == READ:
                _read(path)
            elif way == PARSED:
                _parse(path)
            elif way == COUNTED:
                expected = _count(path)
            else:
                count = _by_tshark(path, packets)
            if turn:
                found.append(count / (perf_counter() - start))
        if _flows(tables) != expected:
            raise UserError("wrong-flows", "headgate found other flows than dpkt")
        done()
    return Speeds(packets, path.stat().st_size, len(expected), rounds)


def _by_headgate(spark: SparkSession, folder: Path) -> list[pa.Table]:
    with Engine(spark) as engine:
        engine.execute(SCRIPT.format(folder, BUCKET_S))
        engine.run_once()
        return engine.query("flows").result_tables()


def _flows(tables: list[pa.Table]) -> Flows:
    """Packets and bytes by bucket and five-tuple."""
    found: Flows = {}
    for table in tables:
        names = ("bucket", "src_ip", "dst_ip", "src_port", "dst_port", "protocol", "packets", "bytes")
        *key, packets, size = (table[name].to_pylist() for name in names)
        found |= dict(zip(zip(*key, strict=True), zip(packets, size, strict=True), strict=True))
    return found


def _packets(path: Path) -> Iterator[tuple[Any, bytes]]:
    import dpkt

    with path.open("rb") as file:
        yield from dpkt.pcap.Reader(file)


def _read(path: Path) -> int:
    return sum(len(content) for _, content in _packets(path))


def _parse(path: Path) -> int:
    import dpkt

    total = 0
    for _, content in _packets(path):
        packet = dpkt.ethernet.Ethernet(content).data
        total += packet.data.dport
    return total


def _count(path: Path) -> Flows:
    import dpkt

    counted: dict[tuple[Any, ...], list[int]] = {}
    for at, content in _packets(path):
        packet = dpkt.ethernet.Ethernet(content).data
        key = (int(at) // BUCKET_S * BUCKET_S, packet.src, packet.dst, packet.data.sport, packet.data.dport, packet.p)
        flow = counted.setdefault(key, [0, 0])
        flow[0] += 1
        flow[1] += len(content)
    text = dpkt.utils.inet_to_str
    return {
        (bucket, text(source), text(target), *rest): (flow[0], flow[1])
        for (bucket, source, target, *rest), flow in counted.items()
    }


def _by_tshark(path: Path, packets: int) -> int:
    """How many packets tshark has dissected."""
    count = min(packets, TSHARK_PACKETS)
    fields = ("frame.time_epoch", "ip.src", "ip.dst", "tcp.srcport", "tcp.dstport", "ip.proto", "frame.len")
    command = ["tshark", "-n", "-r", str(path), "-c", str(count), "-T", "fields"]
    for name in fields:
        command += ["-e", name]
    subprocess.run(command, check=True, capture_output=True)
    return count


def show(console: Console, found: Speeds) -> None:
    """Prints the table."""
    size = found.bytes / 2**20
    title = f"{found.packets:,} packets ({size:,.0f} MiB) to {found.flows:,} flows, the median of {ROUNDS}"
    table = empty_table(title, "", "packets a second", "headgate is faster by")
    for way in found.rounds:
        ratio = "" if way == OURS else f"{found.of(OURS) / found.of(way):.2f}"
        table.add_row(way, f"{found.of(way):,.0f}", ratio)
    console.print(table)
    if TSHARK not in found.rounds:
        console.print("tshark is not installed.")
