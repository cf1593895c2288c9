"""Flipped bits, cut, lost and exchanged files: each is noticed when the file is read, and named, or changes nothing.

Without a JVM: a directory is put together from the parts of an engine that read and write files, and read back as an
engine does, with PyArrow where Spark would read. `test_recovery` has a few of these on Spark.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch
from zlib import crc32

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from headgate.catalog.entries import Connector
from headgate.deliver.outbox import Outbox
from headgate.deliver.sinks.files import FileSink, read_commits
from headgate.deliver.sinks.sink import Delivery, in_order
from headgate.deliver.sinks.writer import identity
from headgate.errors import UserError
from headgate.execute.synopses import listed_synopses, read_synopses
from headgate.heartbeat.clock import ManualClock
from headgate.heartbeat.why import Why
from headgate.log import chunk
from headgate.log import log as logs
from headgate.log.checksum import agrees_with_hadoop
from headgate.log.chunk import Chunk, sized
from headgate.log.journal import Journal
from headgate.log.log import Log
from headgate.observe import status
from headgate.spark.staging import spark_writing
from headgate.ticks import TimeDomain

FLIPS = 1_000
NAMED = ("torn-file", "other-version", "no-journal")


class Synopses:
    """The files of a fragment's synopses, as its store knows them by the journal."""

    def __init__(self, directory: Path, journal: Journal) -> None:
        self.folder = directory / "queries" / "q" / "synopses" / "000000000001"
        self.files: dict[str, list[Chunk]] = {}
        journal.introduce("fragment q", self.apply)

    def apply(self, what: dict[str, Any]) -> None:
        self.files = read_synopses(self.folder, what["synopses"])

    def state(self) -> dict[str, Any]:
        return {"synopses": listed_synopses(self.folder, self.files)}


class Silent:
    """A sink that takes nothing."""

    guarantee, wants_empty = "at least once", False

    def deliver(self, delivery: Delivery) -> None:
        raise ConnectionError

    def delivered(self) -> int | None:
        return None

    def close(self) -> None:
        pass


class Kept:
    """What an engine keeps in its directory, without the engine."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.journal = Journal(directory)
        self.logs = [
            Log(directory / folder, self.journal, f"log {folder}")
            for folder in ("streams/s", "dead/s", "streams/relation", "queries/q/part-1/elements")
        ]
        self.synopses = Synopses(directory, self.journal)
        self.outbox = Outbox("q", TimeDomain.INTEGER, Silent(), directory / "queries" / "q", self.journal)
        self.journal.read()
        for log in self.logs:
            log.check()

    def facts(self) -> list[tuple[str, dict[str, Any]]]:
        parts: list[Log | Outbox] = [*self.logs, self.outbox.log, self.outbox]
        return [*((part.subject, part.state()) for part in parts), ("fragment q", self.synopses.state())]

    def said(self) -> str:
        """All that the journal says."""
        return json.dumps(self.facts())

    def rows(self, kind: str) -> list[Any]:
        """All that the files of a kind hold, read as an engine reads them."""
        if kind == "results":
            for delivery in self.outbox.waiting:
                self.outbox._check(delivery)
            return [str(result) for result in in_order([part.table() for part in self.outbox.log.chunks])]
        if kind == "synopsis":
            parts = [part for parts in self.synopses.files.values() for part in parts]
            for part in parts:
                part.check()  # before Spark reads it
        else:
            parts = self.logs[("stream", "dead letters", "relation", "fragment").index(kind)].chunks
        return [part.table().to_pylist() for part in parts]

    def close(self) -> None:
        self.journal.close()


def rows(random: Random, count: int) -> pa.Table:
    at = sorted(random.randrange(1_000) for _ in range(count))
    texts = [random.choice(("a", "bb", "ccc")) for _ in at]
    return pa.table(
        {"k": texts, "v": [random.randrange(10) for _ in at], "_t": at, "_time": at, "_s": list(range(count))}
    )


def staged(directory: Path, table: pa.Table) -> Path:
    """A file as a Spark job leaves it."""
    path = directory / "staged.parquet"
    written = chunk.write(table, path)
    assert written is not None
    return path


def write_directory(directory: Path) -> None:
    """A checkpoint, lines behind it, and every kind of file that an engine writes to its directory."""
    random, kept = Random(1), Kept(directory)

    def more() -> None:
        for log in kept.logs:
            with kept.journal.together():
                log.append(rows(random, 5))
                log.adopt([staged(directory, rows(random, 3))], f"batch-{log.rows:012d}")
        kept.outbox.put([[staged(directory, rows(random, 4))]], 0, 999)
        target = kept.synopses.folder / "_synopsis=x"
        target.mkdir(parents=True, exist_ok=True)
        file = staged(directory, rows(random, 6)).rename(target / f"part-{kept.outbox.number:05d}.parquet")
        held = {"x": [*kept.synopses.files.get("x", ()), sized(Chunk(file, 6, 0, 0))]}
        kept.journal.record("fragment q", {"synopses": listed_synopses(kept.synopses.folder, held)})

    more()
    kept.journal.checkpoint(kept.facts)
    kept.journal.wait()
    more()
    more()
    kept.close()
    status.write(directory, {"q": Why("q", "10", "", None, "", (), ())})
    identity(directory / "queries" / "q")


def write_output(folder: Path, directory: Path) -> None:
    """The records of a sink of files: folded ones, and some that are not."""
    sink = made_sink(folder, directory)
    for number in range(1, 8):
        sink._commit(Delivery("q", number, number - 1, number, number, (), 0), [], 0)
        if number == 4:
            sink._fold()


def made_sink(folder: Path, directory: Path) -> FileSink:
    sink = object.__new__(FileSink)  # without a session
    sink.query, sink.connector, sink.mode = "q", Connector("parquet", {"path": str(folder)}), "changes"
    sink.folder, sink.commits = folder, folder / "_commits"
    sink.writer = identity(directory / "queries" / "q")
    sink._last, sink._singles = None, []
    sink._claim()
    sink._recall()
    return sink


@dataclass(frozen=True)
class Tried:
    """A directory, and the folder of a sink beside it."""

    directory: Path
    out: Path
    sound: dict[str, Any]
    """By kind of file, what is read while all of them are whole."""

    def files(self) -> dict[str, list[Path]]:
        kinds = {
            "lines": "journal/*.lines",
            "checkpoint": "journal/*.checkpoint",
            "stream": "streams/s/*",
            "dead letters": "dead/s/*",
            "relation": "streams/relation/*",
            "fragment": "queries/q/part-1/elements/*",
            "synopsis": "queries/q/synopses/*/*/*",
            "results": "queries/q/results/*",
            "status": "status.json",
            "writer": "queries/q/writer",
        }
        found = {kind: sorted(self.directory.glob(pattern)) for kind, pattern in kinds.items()}
        return found | {"commits": sorted((self.out / "_commits").glob("*.json"))}

    def answer(self, kind: str) -> Any:
        """What comes of reading the files of a kind."""
        match kind:
            case "status":
                said, _ = status.read(self.directory, "q")
                return said
            case "writer":
                return identity(self.directory / "queries" / "q")
            case "commits":
                sink = made_sink(self.out, self.directory)
                return sink.delivered(), sink._singles, list(read_commits(self.out))
        kept = Kept(self.directory)
        try:
            return (kept.said(), None) if kind in ("lines", "checkpoint") else (kept.said(), kept.rows(kind))
        finally:
            kept.close()


@pytest.fixture(autouse=True, scope="module")
def hasty() -> Iterator[None]:
    """Nothing here is about the power going, so nothing waits for the disk."""
    with patch("os.fsync"):
        yield


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    folder = tmp_path_factory.mktemp("damage")
    found = Tried(folder / "state", folder / "out", {})
    write_directory(found.directory)
    write_output(found.out, found.directory)
    assert all(found.files().values()), "every kind of file is there"
    found.sound.update({kind: found.answer(kind) for kind in found.files()})
    return found


def read_damaged(tried: Tried, kind: str, damage: Callable[[], Any], path: Path) -> str:
    """What comes of damage: it is noticed, and then the file is named, or harmless. Everything is put back in the
    end.
    """
    folder = path.parent
    before = {file: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    try:
        damage()
        found = tried.answer(kind)
    except UserError as error:
        assert error.code in NAMED, error.render()
        named = f'"{path.name}" in "{folder}"' in error.message
        assert named or (kind in ("lines", "checkpoint") and str(tried.directory) in error.message), error.render()
        return "noticed"
    else:
        assert found == tried.sound[kind], f"another answer from {path}"
        return "harmless"
    finally:
        for file in [file for file in folder.iterdir() if file.is_file() and file not in before]:
            file.unlink()
        for file, content in before.items():
            file.write_bytes(content)


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def test_a_thousand_flipped_bits(tried: Tried) -> None:
    random, files = Random(7), tried.files()
    outcomes: dict[str, list[str]] = {kind: [] for kind in files}
    for kind, _ in zip(cycle(files), range(FLIPS), strict=False):
        path = random.choice(files[kind])
        bit = random.randrange(8 * path.stat().st_size)
        outcomes[kind].append(read_damaged(tried, kind, lambda path=path, bit=bit: flip(path, bit), path))  # type: ignore[misc]
    for kind, found in outcomes.items():
        harmless = found.count("harmless") / len(found)
        assert harmless <= (0.1 if kind in ("status", "commits") else 0), f"{kind}: {harmless:.0%} were not noticed"


def test_every_bit_of_the_last_line(tried: Tried) -> None:
    """A wrong checksum with the line's end intact is damage, and so is an end that is another letter now."""
    (path,) = tried.files()["lines"]
    content = path.read_bytes()
    begin = content.rindex(b"\n", 0, -1) + 1
    for bit in [*range(8 * begin, 8 * begin + 200), *range(8 * len(content) - 200, 8 * len(content))]:
        assert read_damaged(tried, "lines", lambda bit=bit: flip(path, bit), path) == "noticed"  # type: ignore[misc]


def test_cut_emptied_and_deleted_files(tried: Tried) -> None:
    random = Random(3)
    for kind, files in tried.files().items():
        for path in files[:2]:
            size = path.stat().st_size
            for length in (0, 1, size // 2, size - 1, *(random.randrange(size) for _ in range(3))):
                cut = lambda path=path, length=length: path.write_bytes(path.read_bytes()[:length])  # noqa: E731
                if kind != "lines":  # what is cut off there was never acknowledged, or so it looks
                    outcome = read_damaged(tried, kind, cut, path)
                    assert outcome == "noticed" or length == size - 1, f"{path} cut to {length} bytes"
            if kind == "status":
                continue  # says that no engine runs
            if kind not in ("commits", "writer"):  # the journal speaks of them
                assert read_damaged(tried, kind, path.unlink, path) == "noticed", path


def test_exchanged_and_doubled_files(tried: Tried) -> None:
    for kind, files in tried.files().items():
        if len(files) < 2:
            continue
        one, other = files[:2]
        contents = one.read_bytes(), other.read_bytes()

        one.write_bytes(contents[1])
        other.write_bytes(contents[0])
        with pytest.raises(UserError, match="cannot be used"):
            tried.answer(kind)
        one.write_bytes(contents[0])
        other.write_bytes(contents[1])
        if kind not in ("commits", "writer", "status"):
            doubled = one.with_name("000000000777.parquet")
            copy = lambda one=one, doubled=doubled: shutil.copyfile(one, doubled)  # noqa: E731
            assert read_damaged(tried, kind, copy, one) == "harmless", "a file that no line counts is not read"


def test_a_journal_that_is_gone_beside_data_is_refused(tried: Tried, tmp_path: Path) -> None:
    for damage, what in (("empty", "is empty"), ("heading", "is empty"), ("deleted", "is missing")):
        directory = tmp_path / damage
        shutil.copytree(tried.directory, directory)
        (lines,) = (directory / "journal").glob("*.lines")
        shutil.rmtree(directory / "journal")
        if damage != "deleted":
            lines.parent.mkdir()
            heading = b'{"headgate": 2, "segment": 0}\n'
            lines.with_stem(f"{0:012d}").write_bytes(b"" if damage == "empty" else heading)
        with pytest.raises(UserError) as error:
            Kept(directory)
        assert error.value.code == "no-journal"
        assert what in error.value.message
        assert "parquet" in error.value.detail
        assert "back from a copy" in error.value.hint


def test_damage_is_not_merged_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MERGE_AT", 3)
    journal = Journal(tmp_path)
    log = Log(tmp_path / "streams" / "s", journal)
    journal.read()
    random = Random(1)
    for _ in range(4):
        log.append(rows(random, 5))
    flip(log.chunks[1].path, 400)
    with pytest.raises(UserError, match=log.chunks[1].path.name):
        log.compact()
    log.compact()  # it is left where it is
    assert len(log.chunks) == 4
    for _ in range(2):
        log.append(rows(random, 5))
    log.compact()
    assert [part.rows for part in log.chunks] == [5, 5, 20], "what lies behind it is merged"
    journal.close()


def test_what_does_not_come_to_count_takes_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is nearly full has room for a file, and none for the line that would make it count."""
    monkeypatch.setattr(logs, "MERGE_AT", 3)
    journal = Journal(tmp_path)
    log = Log(tmp_path / "streams" / "s", journal)
    journal.read()
    random = Random(1)
    for _ in range(3):
        log.append(rows(random, 5))
    there = sorted(log.directory.iterdir())

    def full(text: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    staging = staged(tmp_path, rows(random, 3))
    with monkeypatch.context() as patched:
        patched.setattr(journal, "_write", full)
        for attempt in (log.compact, lambda: log.append(rows(random, 5)), lambda: log.adopt([staging])):
            with pytest.raises(UserError, match="disk-failed"):
                attempt()
            assert sorted(log.directory.iterdir()) == there
    log.compact()
    assert [part.rows for part in log.chunks] == [15]
    journal.close()


def test_a_full_disk_is_one_error_whoever_meets_with_it(tmp_path: Path) -> None:
    for error in (
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        PySparkException("[TASK_WRITE_FAILED] Task failed.\nCaused by: java.io.IOException: No space left on device"),
        PySparkException("java.io.IOException: Disk quota exceeded"),
    ):
        with pytest.raises(UserError, match="disk-failed"), spark_writing(tmp_path):
            raise error
    for other in (
        PySparkException("[DIVIDE_BY_ZERO] Division by zero."),
        ConnectionRefusedError(111, "Connection refused"),
    ):
        with pytest.raises(type(other)), spark_writing(tmp_path):
            raise other


def test_a_query_that_finds_no_room_for_its_identity_can_be_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        with pytest.raises(UserError, match="disk-failed"):
            identity(tmp_path / "q")
    assert identity(tmp_path / "q") == identity(tmp_path / "q")


class Counting(Silent):
    """A sink that takes everything."""

    def __init__(self) -> None:
        self.taken: list[int] = []

    def deliver(self, delivery: Delivery) -> None:
        self.taken.append(delivery.number)


def test_what_a_sink_took_while_the_disk_was_full_is_not_delivered_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, sink, clock = Journal(tmp_path), Counting(), ManualClock()
    outbox = Outbox("q", TimeDomain.INTEGER, sink, tmp_path / "queries" / "q", journal)
    journal.read()
    for until in (10, 20):
        outbox.put([[staged(tmp_path, rows(Random(1), 4))]], until - 10, until)

    def full(text: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(journal, "_write", full)
        for _ in range(3):
            with pytest.raises(UserError, match="disk-failed"):
                outbox.deliver(clock, lambda text: None)
    outbox.deliver(clock, lambda text: None)
    assert sink.taken == [1, 2]
    assert not outbox.waiting
    assert not list(outbox.log.directory.iterdir())
    journal.close()


def test_what_spark_noted_is_compared_by_stretches(tmp_path: Path) -> None:
    content, noted, sums = Random(1).randbytes(1_300), tmp_path / "17", tmp_path / ".17.crc"
    noted.write_bytes(content)
    assert agrees_with_hadoop(noted), "there is nothing to compare it with"
    stretches = [content[at : at + 512] for at in range(0, 1_300, 512)]
    sums.write_bytes(b"crc\0\0\0\2\0" + b"".join(crc32(stretch).to_bytes(4, "big") for stretch in stretches))
    assert agrees_with_hadoop(noted)
    for bit in range(0, 8 * len(content), 97):
        flip(noted, bit)
        assert not agrees_with_hadoop(noted)
        flip(noted, bit)
    noted.write_bytes(content[:512])
    assert not agrees_with_hadoop(noted), "cut off behind a stretch"
    sums.write_bytes(b"")
    assert agrees_with_hadoop(noted), "the power went before it was on disk"
