"""Measures packets a second from a capture file to flows, beside the packet library alone and tshark.

All read the same file, which the file system has in memory, turn by turn. headgate reads it by tasks of Spark, writes
it to the stream's log, and puts out the packets and bytes of each five-tuple in each bucket of ten seconds, on all
cores; once with the low level off and once with it on. dpkt reads the packets one by one in one process: once without
looking into them, once with parsing them, and once with counting the same flows in a dictionary. tshark, if it is
there, prints the same fields of the first packets.
headgate's flows must be those that dpkt counts.

Not measured: the start of Spark, a disk.
"""

from __future__ import annotations

import os
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

from headgate.bench.finding import Finding, Grid
from headgate.bench.traffic import write_capture
from headgate.bench.yardstick.processes import processor_s
from headgate.engine import Engine
from headgate.errors import UserError

NAME = "packets"
PACKETS, ROUNDS = 1_000_000, 3
TSHARK_PACKETS = 20_000
"""tshark dissects everything; so many packets are enough to know its speed."""

BUCKET_S = 10
OURS, REDUCED, READ, PARSED, COUNTED, TSHARK = (
    "headgate: capture to flows",
    "headgate with the low level on",
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
    """What each way took, and what was read."""

    packets: int
    bytes: int
    flows: int
    seconds: dict[str, list[float]]
    """Of each round, by way, for a million packets."""

    worked: dict[str, list[float]]
    """How long the processors have worked meanwhile, in all processes of that way."""

    def speed(self, way: str) -> float:
        """Packets a second, the median over the rounds."""
        return 1_000_000 / median(self.seconds[way])


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
    ways = [OURS, REDUCED, READ, PARSED, COUNTED, *([TSHARK] if shutil.which("tshark") else [])]
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    worked: dict[str, list[float]] = {way: [] for way in ways}
    expected, tables = dict[tuple[Any, ...], tuple[int, int]](), dict[str, list[pa.Table]]()
    for turn in range(steps()):
        for way in ways:
            count, used, start = packets, processor_s(os.getpid()), perf_counter()
            if way in (OURS, REDUCED):
                tables[way] = _by_headgate(spark, folder, "on" if way == REDUCED else "off")
            elif way == READ:
                _read(path)
            elif way == PARSED:
                _parse(path)
            elif way == COUNTED:
                expected = _count(path)
            else:
                count = _by_tshark(path, packets)
            if turn:
                millions = count / 1_000_000
                seconds[way].append((perf_counter() - start) / millions)
                worked[way].append((processor_s(os.getpid()) - used) / millions)
        if any(_flows(found) != expected for found in tables.values()):
            raise UserError("wrong-flows", "headgate found other flows than dpkt")
        done()
    return Speeds(packets, path.stat().st_size, len(expected), seconds, worked)


def _by_headgate(spark: SparkSession, folder: Path, low_level: str) -> list[pa.Table]:
    with Engine(spark) as engine:
        engine.execute(f"SET low_level = '{low_level}';" + SCRIPT.format(folder, BUCKET_S))
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


def finding(found: Speeds) -> Finding:
    """The table and the remarks."""
    rows = []
    for way in found.seconds:
        ratio = "" if way == OURS else f"{found.speed(OURS) / found.speed(way):.2f}"
        rows.append((way, f"{found.speed(way):,.0f}", ratio, f"{median(found.worked[way]):.1f}"))
    headings = ("", "packets a second", "headgate / it", "seconds of processors for a million")
    title = (
        f"{found.packets:,} packets ({found.bytes / 2**20:,.0f} MiB) to {found.flows:,} flows, the median of {ROUNDS}"
    )
    alone = found.speed(OURS) / found.speed(PARSED)
    read = found.speed(OURS) / found.speed(READ)
    remarks = [
        f"headgate takes a capture to flows {read:.2f} times as fast as dpkt alone reads it without looking into the "
        f"packets, and {alone:.1f} times as fast as dpkt reads and parses it."
    ]
    if TSHARK not in found.seconds:
        remarks.append("tshark was not installed.")
    return Finding(NAME, [Grid(title, headings, rows)], {}, remarks, "performance")


def show(console: Console, found: Speeds, docs: Path | None) -> None:
    """Prints what was found, and writes it into the page if a folder of documentation is given."""
    told = finding(found)
    told.show(console)
    if docs is not None:
        told.write(docs)
