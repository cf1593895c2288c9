"""Capture files: both formats, both byte orders, to the nanosecond, whole, cut off and damaged."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import dpkt
import pytest
from tools.packets import START_NS, ether, ip4, pcap, rows, tcp, udp

from headgate.packets.records import NotACapture, check, pieces

FRAMES = [ether(ip4(udp(payload=b"x" * size), 17)) for size in range(40)]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("nanoseconds", [True, False])
def test_both_byte_orders_and_both_resolutions(tmp_path: Path, order: str, nanoseconds: bool) -> None:
    found = rows(
        pcap(tmp_path / "a.pcap", FRAMES, order=order, nanoseconds=nanoseconds), "time_ns", "time", "length", "dst_port"
    )
    exact = [START_NS + number * 1_000_001 for number in range(len(FRAMES))]
    kept = exact if nanoseconds else [time // 1_000 * 1_000 for time in exact]
    assert [row["time_ns"] for row in found] == kept
    assert [row["time"].timestamp() for row in found] == pytest.approx([time / 1e9 for time in exact], abs=1e-6)  # type: ignore[attr-defined]
    assert [row["length"] for row in found] == [len(frame) for frame in FRAMES]
    assert {row["dst_port"] for row in found} == {9_000}
    assert {row["_raw"] for row in found} == {None}


def test_dpkt_reads_the_same_from_pcap_and_pcapng(tmp_path: Path) -> None:
    for name, writer in (("a.pcap", dpkt.pcap.Writer), ("a.pcapng", dpkt.pcapng.Writer)):
        with (tmp_path / name).open("wb") as file:
            made = writer(file)
            for number, frame in enumerate(FRAMES):
                made.writepkt(frame, ts=1_767_225_600 + number / 1_000)
        with (tmp_path / name).open("rb") as file:
            expected = [(round(float(time) * 1e6), len(frame)) for time, frame in dpkt.pcap.UniversalReader(file)]
        found = rows(tmp_path / name, "time_ns", "captured_length")
        assert [(round(row["time_ns"] / 1e3), row["captured_length"]) for row in found] == expected, name  # type: ignore[operator]


def block(kind: int, content: bytes, order: str = "<") -> bytes:
    content += bytes(-len(content) % 4)
    return struct.pack(f"{order}II", kind, len(content) + 12) + content + struct.pack(f"{order}I", len(content) + 12)


@pytest.mark.parametrize("order", "<>")
def test_interfaces_of_pcapng_have_clocks_and_links_of_their_own(tmp_path: Path, order: str) -> None:
    def interface(link: int, resolution: int) -> bytes:
        option = struct.pack(f"{order}HH", 9, 1) + bytes([resolution, 0, 0, 0]) + bytes(4)
        return block(1, struct.pack(f"{order}HHI", link, 0, 0) + option, order)

    def packet(number: int, stamp: int, content: bytes) -> bytes:
        head = struct.pack(f"{order}IIIII", number, stamp >> 32, stamp & 0xFFFFFFFF, len(content), len(content))
        return block(6, head + content, order)

    section = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    inner = bytes(ip4(udp(), 17))
    parts = [
        section,
        interface(1, 9),
        interface(101, 6),
        packet(0, START_NS + 1, ether(inner)),
        packet(1, START_NS // 1_000, inner),
    ]
    parts += [
        block(5, bytes(12), order),
        interface(101, 0x80 | 10),
        packet(2, (START_NS // 10**9) << 10 | 512, inner),
        packet(7, 0, inner),
    ]
    path = tmp_path / "a.pcapng"
    path.write_bytes(b"".join(parts))
    found = rows(path, "time_ns", "src_ip", "dst_mac")
    assert [row["time_ns"] for row in found] == [START_NS + 1, START_NS, START_NS + 500_000_000, None]
    assert [row["src_ip"] for row in found[:3]] == ["10.0.0.1"] * 3
    assert [row["dst_mac"] for row in found] == ["0a:0b:0c:0d:0e:0f", None, None, None]
    assert "interface 7 is not described" in str(found[3]["_raw"])
    path.write_bytes(b"".join(parts)[:-10])
    assert "the file ends within a block of" in str(rows(path, "time_ns")[-1]["_raw"])


def test_pieces_hold_every_packet_once_and_in_order(tmp_path: Path) -> None:
    path = pcap(tmp_path / "a.pcap", [ether(ip4(udp(payload=bytes(number % 97)), 17)) for number in range(2_000)])
    whole = rows(path, "time_ns", "length")
    for size in (100, 1_000, 30_000):
        cut = pieces(path, size)
        assert len(cut) > 2
        assert [piece.end for piece in cut[:-1]] == [piece.start for piece in cut[1:]]
        assert rows(path, "time_ns", "length", size=size) == whole


def test_a_payload_that_is_itself_a_capture_does_not_lead_astray(tmp_path: Path) -> None:
    inner = pcap(tmp_path / "inner.pcap", FRAMES).read_bytes()
    path = pcap(tmp_path / "a.pcap", [ether(ip4(tcp(payload=inner), 6))] * 50)
    assert len(rows(path, "length", size=700)) == 50


def test_a_cut_off_file_gives_what_it_has_and_says_what_is_missing(tmp_path: Path) -> None:
    content = pcap(tmp_path / "a.pcap", FRAMES[:5]).read_bytes()
    path = tmp_path / "cut.pcap"
    ends = [24]
    for frame in FRAMES[:5]:
        ends.append(ends[-1] + 16 + len(frame))
    for size in range(24, len(content) + 1):
        path.write_bytes(content[:size])
        found = rows(path, "length")
        whole = sum(end <= size for end in ends) - 1
        assert [row["length"] for row in found[:whole]] == [len(frame) for frame in FRAMES[:whole]]
        if size in ends:
            assert len(found) == whole
        else:
            (last,) = found[whole:]
            assert "the file ends" in str(last["_raw"])
            assert f"{size - ends[whole]:,} bytes from byte {ends[whole]:,} on are not read" in str(last["_raw"])


def test_a_damaged_record_says_what_is_not_read(tmp_path: Path) -> None:
    content = bytearray(pcap(tmp_path / "a.pcap", FRAMES[:3]).read_bytes())
    second = 24 + 16 + len(FRAMES[0])
    content[second + 4 : second + 8] = b"\xff\xff\xff\xff"
    (tmp_path / "a.pcap").write_bytes(content)
    first, rest = rows(tmp_path / "a.pcap", "length")
    assert first["length"] == len(FRAMES[0])
    assert f"the header of a packet is damaged; {len(content) - second:,} bytes from byte {second:,} on" in str(
        rest["_raw"]
    )


def test_zipped_captures(tmp_path: Path) -> None:
    path = pcap(tmp_path / "a.pcap", FRAMES)
    zipped = tmp_path / "a.pcap.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    check(zipped)
    assert rows(zipped, "time_ns", "length") == rows(path, "time_ns", "length")
    zipped.write_bytes(zipped.read_bytes()[:-20])
    with pytest.raises(NotACapture, match="cannot be unpacked"):
        check(zipped)


def test_what_is_no_capture(tmp_path: Path) -> None:
    for content, said in (
        (b"", "neither"),
        (b"PK\x03\x04" * 10, "neither"),
        (b"\xd4\xc3\xb2\xa1\x02", "first 24 bytes"),
    ):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(NotACapture, match=said):
            check(tmp_path / "x")
