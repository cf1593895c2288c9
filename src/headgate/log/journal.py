"""The journal: everything an engine must not forget, in the order in which it happened.

A fact says what became of one subject: a statement was executed, chunks came to a log or left it, a source or a query
got so far. Facts that belong together are one line, which is there whole or not at all; that line is the commit. Files
are renamed into place before it, memory follows after it, and deleted files go last, so at every moment what the
journal says is there is there.

    journal/000000000007.checkpoint   {"headgate": 2, "segment": 7}
                                      ["log streams/bids", {"add": [["000000000016.parquet", 900, 1, 3, 18311, 900,
                                      714211]]}] ... {"facts": 12, "crc": "0badc0de"}
    journal/000000000007.lines        {"headgate": 2, "segment": 7}
                                      5f3c0a11 [["log streams/bids", {"add": [["000000000017.parquet", 90, 3, 9, 2480,
                                      0, 98]]}],
                                                ["inlet bids", {"arrivals": 1900, ...}]]

A checkpoint is a shorter list of facts, which leads to where all lines before it have led. It is written while the
engine works on, and what it replaces is deleted when it is complete. Its last line has the checksum of all lines before
it.

A line begins with the checksum of its text, which continues that of the line before, so that no line can be missing,
stand twice or be that of another file. A last line without an end was never acknowledged to anybody and is cut off; any
other line that is not whole is damage. Before lines go on in another segment, a line says so: {"next": 8}.

The journal does not know what facts mean. Each subject applies its own facts, when they happen and again when the
journal is read; `facts` lists those of the engine itself.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

from headgate.errors import UserError
from headgate.log.checksum import DAMAGED, full_or_broken, synced, torn, writing

Fact: TypeAlias = tuple[str, dict[str, Any]]
"""A subject, and what is to be known of it: JSON."""

Apply: TypeAlias = Callable[[dict[str, Any]], None]
Act: TypeAlias = Callable[[], None]

VERSION = 2
READABLE = (1, VERSION)
"""In format 1 a line's checksum is that of its own text alone, and neither checkpoints nor data files have one."""

KINDS = (".checkpoint", ".lines")
DATA = (
    "streams/*/*.parquet",
    "dead/*/*.parquet",
    "queries/*/results/*.parquet",
    "queries/*/*/elements/*.parquet",
    "queries/**/synopses/*/*/*.parquet",
    "shared/*/elements/*.parquet",
    "shared/*/synopses/*/*/*.parquet",
    "sources/*/offsets/*",
)
"""Files in an engine's directory that count by lines of its journal."""

CHECKPOINT_BYTES = 2**20
"""A checkpoint is due when the lines since the last have grown to this size, or to that of the last, if it was
larger.
"""


RESERVE = "reserve"
RESERVE_BYTES = 2**16
"""A file in the engine's directory that holds room for what makes room: DROP becomes durable there on a full disk."""

FULL = (errno.ENOSPC, errno.EDQUOT)
"""How the system says that there is no room."""


class Journal:
    """Writes facts to the lines of a journal, writes checkpoints, and reads both after a restart."""

    def __init__(self, directory: Path | None = None) -> None:
        """Keep the journal in a folder of the engine's directory; without a directory, write nothing."""
        self.turn = threading.RLock()
        """The lock to hold while what the engine knows is changed. Epochs run without it."""
        self.directory = None if directory is None else directory / "journal"
        self.subjects: dict[str, Apply] = {}
        """The function that applies the facts of each subject."""
        self.waiting: dict[str, list[dict[str, Any]]] = {}
        """Facts that were read of subjects that have not been introduced yet."""
        self._together: list[tuple[Fact, Act, Act | None]] | None = None
        self._number = 0
        self._lines: Any = None
        self._size = 0
        self._checksum = 0
        self._checkpoint_size = 0
        self._writing: threading.Thread | None = None
        self._broken: OSError | None = None
        self._from_reserve = False
        """Whether what is written now may take the room of the reserve."""

    @property
    def durable(self) -> bool:
        """True if facts are written to disk."""
        return self.directory is not None

    @property
    def has_turn(self) -> bool:
        """True if the calling thread has the turn."""
        return self.turn._is_owned()  # type: ignore[attr-defined]

    def introduce(self, subject: str, apply: Apply) -> None:
        """Say by which function facts of a subject are applied; those that were read already are applied now."""
        self.subjects[subject] = apply
        for what in self.waiting.get(subject, ()):
            apply(what)

    # writing

    def record(self, subject: str, what: dict[str, Any], then: Act | None = None, undo: Act | None = None) -> None:
        """Make a fact durable, and only then apply it: by `then`, or else by the function of its subject.

        If the fact does not become durable, `undo` takes back what was prepared for it.
        """
        entry = (subject, what), then or (lambda: self.subjects[subject](what)), undo
        with self.together():
            assert self._together is not None
            self._together.append(entry)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write what is recorded inside as one line at the end; if an exception leaves the block, write nothing."""
        with self.turn:
            if self._together is not None:  # part of a larger whole
                yield
                return
            entries = self._together = []
            try:
                yield
                self._commit([fact for fact, *_ in entries])
            except BaseException:
                for *_, undo in entries:
                    if undo is not None:
                        undo()
                raise
            finally:
                self._together = None
            try:
                for _, apply, _ in entries:
                    apply()
            except BaseException:
                self.give_up()  # what is durable is not so in memory
                raise

    def _commit(self, facts: list[Fact]) -> None:
        if self.directory is None or not facts:
            return
        if self._broken is not None:
            raise full_or_broken(self._broken, self.directory)
        try:
            self._write(json.dumps(facts, separators=(",", ":")).encode())
        except OSError as error:
            raise full_or_broken(error, self.directory) from None

    def _write(self, text: bytes) -> None:
        """Make a line durable, if need be in the room of the reserve. If that fails, nothing of it is there."""
        try:
            self._write_line(text)
        except OSError as error:
            if error.errno not in FULL or not self._from_reserve or not self._give_reserve():
                raise
            self._write_line(text)

    def _write_line(self, text: bytes) -> None:
        checksum = crc32(text, self._checksum)
        line = b"%08x %s\n" % (checksum, text)
        try:
            self._lines.write(line)
            self._lines.flush()
            os.fsync(self._lines.fileno())
        except BaseException as error:
            self._take_back(error)
            raise
        self._size, self._checksum = self._size + len(line), checksum

    def _take_back(self, error: BaseException) -> None:
        """Cut off the part of a line that was written. If not even that can be done, nothing more may be written behind
        it.
        """
        assert self.directory is not None
        path = self._path("lines", self._number)
        with suppress(OSError):  # what was left in its buffer goes the same way
            self._lines.close()
        try:
            os.truncate(path, self._size)
            self._lines = path.open("ab")
        except OSError:
            self._broken = error if isinstance(error, OSError) else OSError(str(error))

    def give_up(self) -> None:
        """Write nothing more, because memory and journal differ: the engine must be started again."""
        self._broken = self._broken or OSError("it must be started again")

    # room

    @contextmanager
    def from_reserve(self) -> Iterator[None]:
        """What is written in here makes room, so it may take the room that is kept for it when the disk is full."""
        self._from_reserve = True
        try:
            yield
        finally:
            self._from_reserve = False

    def _give_reserve(self) -> bool:
        """Make room by deleting the reserve; False if there is none."""
        assert self.directory is not None
        try:
            (self.directory.parent / RESERVE).unlink()
            synced(self.directory.parent)
        except OSError:
            return False
        return self._broken is None

    def keep_reserve(self) -> None:
        """Keep some room for what makes room, unless it is kept already or there is none."""
        if self.directory is None or (reserve := self.directory.parent / RESERVE).exists():
            return
        staged = reserve.with_name(f".{RESERVE}.staged")
        try:
            with staged.open("wb") as file:
                file.write(os.urandom(RESERVE_BYTES))  # a file system cannot write this in less room
                file.flush()
                os.fsync(file.fileno())
            staged.rename(reserve)
        except OSError:
            with suppress(OSError):
                staged.unlink(missing_ok=True)

    # reading

    def read(self) -> int:
        """Let all subjects apply the facts of the journal, and be ready to write more; returns how many there were."""
        if self.directory is None:
            return 0
        with writing(self.directory):
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)  # statements may hold passwords
        said, segments = _read(self.directory)
        count = 0
        for subject, what in chain(said, *(segment.facts for segment in segments)):
            if subject in self.subjects:
                self.subjects[subject](what)
            else:
                self.waiting.setdefault(subject, []).append(what)
            count += 1
        sizes = [file.stat().st_size for file in self.directory.glob("*.checkpoint")]
        self._checkpoint_size = max(sizes, default=0)
        with writing(self.directory):
            self._go_on(segments[-1] if segments else None)
        self.keep_reserve()
        return count

    def _go_on(self, last: Segment | None) -> None:
        """Write to the last segment, behind its last whole line; to a new one if it is of an older format."""
        assert self.directory is not None
        for file in self.directory.glob("*.lines"):
            if last is not None and int(file.stem) > last.number:  # it was begun, and no line came to say so
                file.unlink()
        if last is not None and last.version:
            if last.size < last.length:
                os.truncate(last.path, last.size)
            elif last.size > last.length:
                with last.path.open("ab") as lines:
                    lines.write(b"\n")
            synced(last.path)
        if last is not None and last.version == VERSION:
            self._number, self._size, self._checksum = last.number, last.size, last.checksum
            self._lines = last.path.open("ab")
        else:
            self._number = 0 if last is None else last.number + (last.version > 0)
            self._lines, self._size, self._checksum = self._begun(self._number)

    def _begun(self, number: int) -> tuple[Any, int, int]:
        """A new segment to write to: its file, its size, and the checksum with which its first line begins."""
        path, heading = self._path("lines", number), _heading(VERSION, number)
        lines = path.open("wb")
        try:
            lines.write(heading + b"\n")
            lines.flush()
            synced(path)
            synced(path.parent)
        except OSError:
            with suppress(OSError):
                lines.close()
            raise
        return lines, len(heading) + 1, crc32(heading)

    def _path(self, kind: str, number: int) -> Path:
        assert self.directory is not None
        return self.directory / f"{number:012d}.{kind}"

    # checkpoints

    def checkpoint_due(self) -> bool:
        """True if the lines since the last checkpoint have grown so long that another one pays."""
        busy = self._writing is not None and self._writing.is_alive()
        return self.durable and not busy and self._size > max(CHECKPOINT_BYTES, self._checkpoint_size)

    def checkpoint(self, facts: Callable[[], Iterable[Fact]]) -> None:
        """Begin a new segment behind a checkpoint of the facts that hold now; the checkpoint is written in the
        background.
        """
        if self.directory is None or self._broken is not None:
            return
        self.wait()
        with self.turn:
            said = list(facts())
            number = self._number + 1
            try:
                begun = self._begun(number)
                self._write(b'{"next": %d}' % number)
            except OSError:  # no room: the lines go on where they are, and a later one may succeed
                self._path("lines", number).unlink(missing_ok=True)
                return
            self._lines.close()
            self._number = number
            self._lines, self._size, self._checksum = begun
        self._writing = threading.Thread(
            target=self._write_checkpoint, args=(number, said), name="checkpoint", daemon=True
        )
        self._writing.start()

    def _write_checkpoint(self, number: int, facts: list[Fact]) -> None:
        path = self._path("checkpoint", number)
        staged = path.with_name(f".{path.name}.staged")
        try:
            with staged.open("wb") as file:
                said = [
                    _heading(VERSION, number),
                    *(json.dumps(fact, separators=(",", ":")).encode() for fact in facts),
                ]
                file.writelines(b"%s\n" % line for line in said)
                file.write(b'{"facts": %d, "crc": "%08x"}\n' % (len(facts), _of_lines(said)))
                file.flush()
                os.fsync(file.fileno())
            staged.rename(path)
            synced(path.parent)
        except OSError:
            staged.unlink(
                missing_ok=True
            )  # the last checkpoint and the lines since are still there; the next may succeed
            return
        self._checkpoint_size = path.stat().st_size
        for old in path.parent.iterdir():
            if old.suffix in KINDS and int(old.stem) < number:
                old.unlink()

    def wait(self) -> None:
        """Wait until the checkpoint that is being written is complete."""
        if self._writing is not None:
            self._writing.join()

    def close(self) -> None:
        """Write nothing more: a sink that answers later must not touch what another engine may be writing."""
        self.wait()
        with self.turn:
            self._broken = self._broken or OSError("it is closed")
            if self._lines is not None:
                self._lines.close()


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of lines, as it was read."""

    path: Path
    number: int
    version: int
    """The version of its format; 0 if the file was created and not even its heading written."""

    facts: list[Fact]
    size: int
    """The size of its whole lines in bytes, each with its end."""

    checksum: int
    """The checksum that the next line continues."""

    length: int
    """The length of the file: more than `size` if a line was cut off, less if the end of the last line is missing."""

    ended: bool = False
    """True if its last line says that lines go on in the next segment."""


def facts(directory: Path) -> Iterator[Fact]:
    """Read the facts of the journal in a folder, from its last checkpoint on."""
    said, segments = _read(directory)
    yield from said
    for segment in segments:
        yield from segment.facts


def _read(directory: Path) -> tuple[list[Fact], list[Segment]]:
    """The facts of the last checkpoint, and the segments behind it. What is missing or damaged is named."""
    checkpoints, files = (sorted(directory.glob(f"*{kind}")) for kind in KINDS)
    first = int(checkpoints[-1].stem) if checkpoints else 0
    said = _checkpoint_facts(checkpoints[-1], first) if checkpoints else []
    files = [file for file in files if int(file.stem) >= first]
    if checkpoints and not files:  # it was begun before the checkpoint
        raise torn(checkpoints[-1].with_suffix(".lines"), "it is missing")
    segments: list[Segment] = []
    for expected, file in enumerate(files, first):
        if int(file.stem) != expected:
            missing = file.with_stem(f"{expected:012d}")
            raise torn(
                missing if expected > first or checkpoints else missing.with_suffix(".checkpoint"), "it is missing"
            )
        begun = segments[-1].ended if segments else bool(checkpoints)
        segment, before = _segment(file, expected, begun), segments[-1] if segments else None
        if before is None or before.ended or (before.version == 1 and before.size <= before.length):
            segments.append(segment)
        elif segment.facts or segment.ended or before.version == 1:
            raise torn(before.path, "its last line is cut off")
    if segments and segments[-1].ended:
        raise torn(directory / f"{segments[-1].number + 1:012d}.lines", "it is missing")
    if not said and not any(segment.facts for segment in segments):
        _refuse_forgotten(directory)
    return said, segments


def _refuse_forgotten(directory: Path) -> None:
    """A journal that says nothing beside data that only a journal can have made count is not that of a new engine."""
    there = next((file for pattern in DATA for file in directory.parent.glob(pattern)), None)
    if there is not None:
        what = "is empty" if any(directory.glob("*.lines")) else "is missing"
        raise UserError(
            "no-journal",
            f'the journal of directory "{directory.parent}" {what}',
            detail=f'An engine has worked there: it has left "{there.relative_to(directory.parent)}", which no line '
            "speaks of.",
            hint=f'Put "{directory.name}" back from a copy of the whole directory, or begin with a new directory.',
        )


def _checkpoint_facts(path: Path, number: int) -> list[Fact]:
    """It was renamed into place whole: if it is not so now, something else has happened to it."""
    heading, *lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    version = _version(heading, path, number)
    try:
        *said, end = map(json.loads, lines)
        complete = end["facts"] == len(said)
        whole = version == 1 or end["crc"] == f"{_of_lines([heading, *lines[:-1]]):08x}"
    except (ValueError, KeyError, TypeError):
        complete = whole = False
    if not complete:
        raise torn(path, "a checkpoint is incomplete")
    if not whole:
        raise torn(path, DAMAGED)
    return said


def _of_lines(lines: Iterable[bytes]) -> int:
    checksum = 0
    for line in lines:
        checksum = crc32(line + b"\n", checksum)
    return checksum


def _segment(path: Path, number: int, begun: bool) -> Segment:
    """Read the lines of a segment. Only a last line without its end can be one that was being written.

    A line with its end was written whole, so if its checksum is wrong it is damaged. A last line of which the end alone
    is missing counts if its checksum is right. `begun`: the segment is known to have had its heading.
    """
    content = path.read_bytes()
    *lines, rest = content.split(b"\n")
    if not lines:
        if _is_heading(rest, number):
            lines, rest = [rest], b""
        elif begun or _is_heading(rest[:-1], number):
            raise torn(path, "it has no heading")
        else:
            return Segment(path, number, 0, [], 0, 0, len(content))
    version = _version(lines[0], path, number)
    checksum, said, size, ended = crc32(lines[0]), list[Fact](), len(lines[0]) + 1, False
    for place, line in enumerate([*lines[1:], rest], 2):
        before = checksum if version > 1 else 0
        found = _whole(line, before)
        if found is not None:
            checksum = found
            text = json.loads(line.partition(b" ")[2])
            ended = isinstance(text, dict)
            said += [] if ended else text
            size += len(line) + 1
        elif place <= len(lines) or _whole(line[:-1], before) is not None:
            raise torn(path, f"line {place} is damaged")
    return Segment(path, number, version, said, size, checksum, len(content), ended)


def _whole(line: bytes, before: int) -> int | None:
    """The checksum of a line that has it in front; None if it is another."""
    given, _, text = line.partition(b" ")
    found = crc32(text, before)
    return found if given == b"%08x" % found else None


def _heading(version: int, number: int) -> bytes:
    return b'{"headgate": 1}' if version == 1 else b'{"headgate": %d, "segment": %d}' % (version, number)


def _is_heading(line: bytes, number: int) -> bool:
    return any(line == _heading(version, number) for version in READABLE)


def _version(line: bytes, path: Path, number: int) -> int:
    """The format of a file, by its heading; that of another file is none."""
    for version in READABLE:
        if line == _heading(version, number):
            return version
    try:
        found = json.loads(line)["headgate"]
    except (ValueError, KeyError, TypeError):
        raise torn(path, "it has no heading") from None
    if found in READABLE:
        raise torn(path, f"its heading is that of another file: {line.decode()}")
    raise UserError(
        "other-version",
        f'"{path.parent.parent}" was written by another version of headgate',
        detail=f"Its format is {found}, and this one reads {' and '.join(map(str, READABLE))}.",
    )
