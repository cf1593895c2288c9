"""Streams of packets: capture files through Spark's batch reader, a live interface through its streaming reader."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tools.packets import ether, ip4, ip6, needs_capture, pcap, tcp, udp

from headgate import Engine
from headgate.errors import UserError
from headgate.packets import sources

pytestmark = pytest.mark.spark

STREAM = """CREATE STREAM packets (time TIMESTAMP, time_ns BIGINT, SRC_IP STRING, dst_port BIGINT, dns_addresses ARRAY<STRING>)
    TIMESTAMP BY time FROM pcap OPTIONS ('path' = '{}');
    CREATE QUERY q AS SELECT ISTREAM(time_ns, src_ip, dst_port) FROM packets [NOW];"""


def test_captures_of_a_folder_are_read_once_in_order_and_nothing_is_dropped(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in with a blank"
    folder.mkdir()
    broken = ether(bytes(ip4(tcp(), 6))[:12])
    pcap(folder / "1.pcap", [ether(ip4(udp(1, port), 17)) for port in range(100, 140)] + [broken])
    pcap(folder / "2.pcap", [ether(ip6(udp(1, 7), 17), 0x86DD)] * 3)
    (folder / "2.pcap").write_bytes((folder / "2.pcap").read_bytes()[:-5])
    (folder / "3.pcap").write_text("no capture")
    with Engine(spark, tmp_path / "state") as engine:
        engine.execute(STREAM.format(folder))
        engine.poll()
        (note,) = engine.notes()
        assert note.code == "file-set-aside"
        assert "it begins neither like pcap nor like pcapng" in note.detail
        assert engine.counts("packets") == {"taken": 42, "malformed": 3}
        letters = [str(letter["_raw"]) for letter in engine.dead_letters("packets")]
        for told in (
            f"the IPv4 header is cut off after 12 of 20 bytes (packet 41 of {folder}/1.pcap",
            "the file ends after 57 of 62 bytes",
            f"{folder}/3.pcap: NotACapture",
        ):
            assert sum(told in letter for letter in letters) == 1, told
        assert engine.poll() == 0
        engine.run_once()
        found = [result.row for result in engine.query("q").results()]
    assert sorted(row["dst_port"] for row in found) == [7, 7, *range(100, 140)]
    assert {row["src_ip"] for row in found} == {"10.0.0.1", "2001:db8::1"}
    assert {row["time_ns"] % 1_000_000 for row in found} == set(range(40)), "nanoseconds are kept"


def test_a_large_capture_is_read_in_pieces(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pcap(
        tmp_path / "a.pcap", [ether(ip4(udp(1, 1 + number % 60_000, bytes(1_200)), 17)) for number in range(3_000)]
    )
    reader = sources.PcapReader([str(path)], ["time_ns"])
    assert len(reader.partitions()) == 1
    monkeypatch.setattr(sources, "PIECE_BYTES", 2**20)
    parts = reader.partitions()
    assert len(parts) == 4
    assert sum(rows.num_rows for part in parts for rows in reader.read(part)) == 3_000
    spark.dataSource.register(sources.Pcap)
    counted = (
        spark.read.format("pcap").load(str(tmp_path)).selectExpr("COUNT(*)", "COUNT(DISTINCT dst_port)", "COUNT(_raw)")
    )
    assert tuple(counted.collect()[0]) == (3_000, 3_000, 0), "all fields, also without headgate"


@needs_capture
def test_live_traffic_is_counted_and_an_idle_interface_does_not_block(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything sent on loopback is counted by the query. The kernel keeps all packets from the stream beside it."""
    monkeypatch.setattr("headgate.sources.packets.LEAST_SNAP_LENGTH", 0)
    stream = """CREATE STREAM {} (time TIMESTAMP, dst_port INT, payload_length INT) TIMESTAMP BY time
        FROM interface OPTIONS ('interface' = 'lo', 'snap_length' = '{}'); SKEW FROM CLOCK TO {} (WITHIN 50 MILLISECONDS);"""
    with Engine(spark, tmp_path / "state") as engine:
        engine.execute(stream.format("busy", 96, "busy") + stream.format("idle", 0, "idle"))
        engine.execute("""CREATE VIEW links AS SELECT dst_port, payload_length FROM busy UNION ALL SELECT dst_port, payload_length FROM idle;
            CREATE QUERY sent AS SELECT COUNT(*) AS packets, SUM(payload_length) AS bytes FROM links WHERE dst_port = 40414;""")
        limit = time.monotonic() + 180
        sources = engine._core.inputs.sources
        engine.run(until=lambda: time.monotonic() > limit or not any(source.starting for source in sources))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for number in range(500):
                sender.sendto(bytes(number), ("127.0.0.1", 40_414))
        expected = {"packets": 500, "bytes": sum(range(500))}
        answer: list[dict[str, object]] = []
        engine.query("sent").on_change(
            lambda results: answer.extend(dict(result.row) for result in results if result.sign == "+")
        )
        engine.run(until=lambda: time.monotonic() > limit or expected in answer)
        assert answer[-1:] == [expected], "each packet that was sent is counted, and none twice"
        assert engine.counts("idle") == {"taken": 0}
        assert [letter for letter in engine.dead_letters("busy") if letter["_reason"] == "late"] == []


def test_what_a_stream_of_packets_cannot_be(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark) as engine:
        for text, code in (
            ("CREATE STREAM s (time TIMESTAMP, src_prt INT) TIMESTAMP BY time FROM pcap OPTIONS ('path' = 'x')", "no-such-column"),
            ("CREATE STREAM s (time TIMESTAMP) TIMESTAMP BY time FROM interface OPTIONS ('interface' = 'nope0')", "no-such-interface"),
            ("CREATE STREAM s (time TIMESTAMP) TIMESTAMP BY time FROM interface", "bad-option"),
            ("CREATE STREAM s (time TIMESTAMP) TIMESTAMP BY time FROM interface OPTIONS ('interface' = 'lo', 'snaplen' = '9')", "bad-option"),
            ("CREATE STREAM s (time TIMESTAMP) TIMESTAMP BY time FROM interface OPTIONS ('interface' = 'lo', 'snap_length' = 'x')", "bad-option"),
            ("CREATE STREAM s (time TIMESTAMP) TIMESTAMP BY time FROM pcap", "no-path"),
            (f"CREATE STREAM s (time TIMESTAMP) TIMESTAMP BY time FROM pcap OPTIONS ('path' = '{tmp_path}', 'header' = 'true')", "bad-option"),
        ):  # fmt: skip
            with pytest.raises(UserError) as error:
                engine.execute(text)
            assert error.value.code == code, text
