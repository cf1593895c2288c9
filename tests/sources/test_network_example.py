"""examples/network: its captures, its queries over Spark, and what dpkt finds in the same captures."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import dpkt
import pytest
from pyspark.sql import SparkSession
from tools.places import EXAMPLES

from headgate import Engine

pytestmark = pytest.mark.spark


def parsed(path: Path) -> list[tuple[float, int, Any]]:
    """What dpkt reads: when, how long, and the IP packet; what is damaged is left out."""
    with path.open("rb") as file:
        packets = [(float(at), content) for at, content in dpkt.pcap.Reader(file)]
    found = [(at, len(content), dpkt.ethernet.Ethernet(content).data) for at, content in packets]
    return [(at, size, packet) for at, size, packet in found if isinstance(packet, dpkt.ip.IP) and packet.hl == 5]


def flows(path: Path) -> Counter[tuple[Any, ...]]:
    """Bytes of each five-tuple in each bucket."""
    counted: Counter[tuple[Any, ...]] = Counter()
    for at, size, packet in parsed(path):
        if packet.p in (6, 17):
            ends = (dpkt.utils.inet_to_str(packet.src), dpkt.utils.inet_to_str(packet.dst))
            counted[int(at) // 10 * 10, *ends, packet.data.sport, packet.data.dport, packet.p] += size
    return counted


def test_the_network_example(spark: SparkSession, tmp_path: Path) -> None:
    make = runpy.run_path(str(EXAMPLES / "network" / "make_capture.py"))["make"]
    make(tmp_path / "captures")
    make(tmp_path / "again")
    for link in ("main", "control"):
        assert (tmp_path / "captures" / link / "1.pcap").read_bytes() == (
            tmp_path / "again" / link / "1.pcap"
        ).read_bytes()
    script = (EXAMPLES / "network" / "network.cql").read_text(encoding="utf-8")
    with Engine(spark) as engine:
        engine.execute(script.replace("examples/network/captures", str(tmp_path / "captures")))
        engine.run_once()
        rows = {query.name: [result.row for result in query.results()] for query in engine.queries()}
        counts = engine.counts("main")
    main, control = (flows(tmp_path / "captures" / link / "1.pcap") for link in ("main", "control"))
    found = {
        (
            int(row["bucket"].timestamp()),
            row["src_ip"],
            row["dst_ip"],
            row["src_port"],
            row["dst_port"],
            row["protocol"],
        ): row["bytes"]
        for row in rows["flows"]
    }
    assert found == main
    both = sorted(
        (row["bucket"], row["src_ip"], row["dst_ip"], row["main_bytes"], row["control_bytes"])
        for row in rows["both_links"]
        if row["control_bytes"]
    )
    assert both == sorted((key[0], key[1], key[2], main.get(key), size) for key, size in control.items())
    assert len(rows["both_links"]) == len(main.keys() | control.keys())
    times = [row["time"] for row in rows["merged"]]
    assert times == sorted(times)
    assert Counter(row["link"] for row in rows["merged"]) == {
        "main": counts["taken"],
        "control": len(parsed(tmp_path / "captures" / "control" / "1.pcap")),
    }
    assert {row["src_ip"] for row in rows["half_open"]} == {"198.51.100.66"}
    assert sum(row["connections"] for row in rows["half_open"]) == 400, "every probe of the scan"
    last: Counter[str] = Counter()
    for at, size, packet in parsed(tmp_path / "captures" / "main" / "1.pcap"):
        if 1_767_268_810 < at <= 1_767_268_840:
            last[dpkt.utils.inet_to_str(packet.src)] += size
    assert [(row["src_ip"], row["bytes"]) for row in rows["talkers"]].count(last.most_common(1)[0]) == 1
    assert rows["no_such_name"]
    assert all(row["dns_query"].startswith("gone") for row in rows["no_such_name"])
    (bad,) = rows["malformed"]
    assert bad["packet"].startswith("the IPv4 header is cut off after 26 of 60 bytes")
    assert counts["malformed"] == 1


def test_its_flows_in_gsql(spark: SparkSession, tmp_path: Path) -> None:
    make = runpy.run_path(str(EXAMPLES / "network" / "make_capture.py"))["make"]
    make(tmp_path / "captures")
    script = (EXAMPLES / "network" / "network.gsql").read_text(encoding="utf-8")
    flows_only = script[: script.index("-- Both links")].replace(
        "examples/network/captures", str(tmp_path / "captures")
    )
    with Engine(spark) as engine:
        engine.execute(f"SET dialect = 'gsql';\n{flows_only}")
        engine.run_once()
        for link in ("main", "control"):
            rows = [result.row for result in engine.query(f"{link}_flows").results()]
            keys = ("src_ip", "dst_ip", "src_port", "dst_port", "protocol")
            found = {(row["tb"] * 10, *(row[key] for key in keys)): row["bytes"] for row in rows}
            assert found == flows(tmp_path / "captures" / link / "1.pcap")
