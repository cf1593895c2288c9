"""The journal: everything an engine must not forget, in the order in which it happened.

A fact says what became of one subject: a statement was executed, chunks came to a log or left it, a source or a query got so far.
Facts that belong together are one line, which is there whole or not at all; that line is the commit. Files are renamed into
place before it, memory follows after it, and deleted files go last, so at every moment what the journal says is there is there.

    journal/000000000007.checkpoint   {"headgate": 1}
                                      [["log streams/bids", {"add": [["000000000016.parquet", 900, 1, 3, 18311]]}], ...]
                                      {"facts": 12}
    journal/000000000007.lines        {"headgate": 1}
                                      5f3c0a11 [["log streams/bids", {"add": [["000000000017.parquet", 1000, 3, 9, 20480]]}],
                                                ["inlet bids", {"arrivals": 1900, ...}]]

A checkpoint is nothing but a shorter way to say the same: facts that lead to where all lines before it have led. It is written
beside the engine's work, and what it replaces is deleted when it is complete. A line begins with the checksum of its text.
A last line without an end was never acknowledged to anybody and is cut off.

It knows nothing of what facts mean: each subject applies its own, when they happen and again when the journal is read.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

from headgate.errors import UserError

Fact: TypeAlias = tuple[str, dict[str, Any]]
"""A subject, and what is to be known of it: JSON."""

Apply: TypeAlias = Callable[[dict[str, Any]], None]
Act: TypeAlias = Callable[[], None]

VERSION = 1
KINDS = (".checkpoint", ".lines")
CHECKPOINT_BYTES = 2**20
"""A checkpoint is due when the lines since the last have grown to this size, or to that of the last, if it was larger."""


class Journal:
    def __init__(self, directory: Path | None = None) -> None:
        """Without a directory nothing is written: such an engine forgets everything."""
        self.turn = threading.RLock()
        """Held by whoever changes what the engine knows. Epochs run without it."""
        self.directory = None if directory is None else directory / "journal"
        self.subjects: dict[str, Apply] = {}
        self.waiting: dict[str, list[dict[str, Any]]] = {}
        """While it is read: what was said of subjects that have not been introduced yet."""
        self._together: list[tuple[Fact, Act, Act | None]] | None = None
        self._number = 0
        self._lines: Any = None
        self._size = 0
        self._checkpoint_size = 0
        self._writing: threading.Thread | None = None
        self._broken: OSError | None = None

    @property
    def durable(self) -> bool:
        return self.directory is not None

    def introduce(self, subject: str, apply: Apply) -> None:
        """Who applies what is said of a subject; what was read of it so far is applied now."""
        self.subjects[subject] = apply
        for what in self.waiting.pop(subject, ()):
            apply(what)

    # writing

    def record(self, subject: str, what: dict[str, Any], then: Act | None = None, undo: Act | None = None) -> None:
        """Make a fact durable, and only then let its subject apply it: by `then`, where it can do so with less work.

        If the fact does not come to be, `undo` tidies up what was prepared for it.
        """
        entry = (subject, what), then or (lambda: self.subjects[subject](what)), undo
        with self.together():
            assert self._together is not None
            self._together.append(entry)

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is recorded inside becomes one line at the end; nothing of it happens if an exception leaves it."""
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
        text = json.dumps(facts, separators=(",", ":"))
        line = f"{crc32(text.encode()):08x} {text}\n".encode()
        try:
            self._lines.write(line)
            self._lines.flush()
            os.fsync(self._lines.fileno())
        except BaseException as error:
            self._take_back(error)
            if isinstance(error, OSError):
                raise full_or_broken(error, self.directory) from None
            raise
        self._size += len(line)

    def _take_back(self, error: BaseException) -> None:
        """Cut off the part of a line that was written. If not even that can be done, nothing more may be written behind it."""
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
        """Memory and journal have come apart: only reading the journal again helps."""
        self._broken = self._broken or OSError("it must be started again")

    # reading

    def read(self) -> int:
        """Let all subjects apply what the journal says, and be ready to go on writing; how many facts there were."""
        if self.directory is None:
            return 0
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)  # statements may hold passwords
        count = 0
        for subject, what in facts(self.directory, cut_off=True):
            if subject in self.subjects:
                self.subjects[subject](what)
            else:
                self.waiting.setdefault(subject, []).append(what)
            count += 1
        files = [file for file in self.directory.iterdir() if file.suffix in KINDS]
        self._number = max((int(file.stem) for file in files), default=0)
        self._checkpoint_size = max((file.stat().st_size for file in files if file.suffix == ".checkpoint"), default=0)
        self._lines, self._size = self._opened(self._number)
        return count

    def _opened(self, number: int) -> tuple[Any, int]:
        """A segment to write to, and how long it is."""
        path = self._path("lines", number)
        fresh = not path.exists() or not path.stat().st_size
        lines = path.open("ab")
        try:
            if fresh:
                lines.write(f'{{"headgate": {VERSION}}}\n'.encode())
                lines.flush()
            synced(path)
            synced(path.parent)
        except OSError:
            with suppress(OSError):
                lines.close()
            raise
        return lines, path.stat().st_size

    def _path(self, kind: str, number: int) -> Path:
        assert self.directory is not None
        return self.directory / f"{number:012d}.{kind}"

    # checkpoints

    def due(self) -> bool:
        busy = self._writing is not None and self._writing.is_alive()
        return self.durable and not busy and self._size > max(CHECKPOINT_BYTES, self._checkpoint_size)

    def checkpoint(self, facts: Callable[[], Iterable[Fact]]) -> None:
        """Begin a new segment behind a checkpoint of the facts that hold now; the checkpoint is written in the background."""
        if self.directory is None or self._broken is not None:
            return
        self.wait()
        with self.turn:
            said = list(facts())
            number = self._number + 1
            try:
                opened = self._opened(number)
            except OSError:  # no room: the lines go on where they are, and a later one may succeed
                self._path("lines", number).unlink(missing_ok=True)
                return
            self._lines.close()
            self._number = number
            self._lines, self._size = opened
        self._writing = threading.Thread(target=self._write_checkpoint, args=(number, said), name="checkpoint", daemon=True)
        self._writing.start()

    def _write_checkpoint(self, number: int, facts: list[Fact]) -> None:
        path = self._path("checkpoint", number)
        staged = path.with_name(f".{path.name}.staged")
        try:
            with staged.open("w") as file:
                file.write(f'{{"headgate": {VERSION}}}\n')
                file.writelines(json.dumps(fact, separators=(",", ":")) + "\n" for fact in facts)
                file.write(f'{{"facts": {len(facts)}}}\n')
                file.flush()
                os.fsync(file.fileno())
            staged.rename(path)
            synced(path.parent)
        except OSError:
            staged.unlink(missing_ok=True)  # the last checkpoint and the lines since are still there; the next may succeed
            return
        self._checkpoint_size = path.stat().st_size
        for old in path.parent.iterdir():
            if old.suffix in KINDS and int(old.stem) < number:
                old.unlink()

    def wait(self) -> None:
        """Until the checkpoint that is being written is there."""
        if self._writing is not None:
            self._writing.join()

    def close(self) -> None:
        """Write nothing more: a sink that comes back now must not touch what another engine may be writing."""
        self.wait()
        with self.turn:
            self._broken = self._broken or OSError("it is closed")
            if self._lines is not None:
                self._lines.close()


def facts(directory: Path, cut_off: bool = False) -> Iterator[Fact]:
    """What the journal in a folder says, from its last checkpoint on. A last line without its end can be cut off."""
    checkpoints = sorted(directory.glob("*.checkpoint"))
    first = int(checkpoints[-1].stem) if checkpoints else 0
    if checkpoints:
        yield from _checkpoint_facts(checkpoints[-1])
    segments = [segment for segment in sorted(directory.glob("*.lines")) if int(segment.stem) >= first]
    if checkpoints and not segments:  # it was begun before the checkpoint
        raise torn(checkpoints[-1].with_suffix(".lines"), "it is missing")
    for expected, segment in enumerate(segments, first):
        if int(segment.stem) != expected:
            missing = segment.with_stem(f"{expected:012d}")
            raise torn(missing if expected > first or checkpoints else missing.with_suffix(".checkpoint"), "it is missing")
        yield from _line_facts(segment, segment is segments[-1], cut_off)


def _checkpoint_facts(path: Path) -> list[Fact]:
    lines = path.read_bytes().splitlines()
    try:
        _check_version(lines[0], path)
        *said, end = (json.loads(line) for line in lines[1:])
        complete = end["facts"] == len(said)
    except (ValueError, IndexError, KeyError, TypeError):
        complete = False
    if not complete:  # it was renamed into place whole, so something else has happened to it
        raise torn(path, "a checkpoint is incomplete")
    return said


def _line_facts(path: Path, last: bool, cut_off: bool) -> Iterator[Fact]:
    content = path.read_bytes()
    lines, good = content.split(b"\n"), 0
    for number, line in enumerate(lines[:-1]):
        said: list[Fact] = []
        if number == 0:
            _check_version(line, path)
        else:
            try:
                checksum, text = line.split(b" ", 1)
                whole = int(checksum, 16) == crc32(text)
            except ValueError:
                whole = False
            if not whole:
                if last and number == len(lines) - 2:
                    break  # the last thing that was written, and not to its end
                raise torn(path, f"line {number + 1} is damaged")
            said = json.loads(text)
        good += len(line) + 1
        yield from said
    if good < len(content):
        if not last:
            raise torn(path, "its last line is cut off")
        if cut_off:
            os.truncate(path, good)


def synced(path: Path) -> None:
    """What was written to a file, or renamed into a folder, survives a power failure."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def torn(path: Path, what: str) -> UserError:
    return UserError(
        "torn-file", f'"{path.name}" in "{path.parent}" cannot be used', detail=f"{what[:1].upper()}{what[1:]}.",
        hint="Put the file back from a copy. Without it the engine cannot know what it had done.",
    )  # fmt: skip


def full_or_broken(error: OSError, directory: Path) -> UserError:
    return UserError(
        "disk-failed", f'nothing can be written to "{directory}"', detail=f"{error.strerror or error}. Nothing was acknowledged.",
        hint="Make room; what was not acknowledged can be sent again.",
    )  # fmt: skip


def _check_version(line: bytes, path: Path) -> None:
    try:
        version = json.loads(line)["headgate"]
    except (ValueError, KeyError, TypeError):
        raise torn(path, "it has no heading") from None
    if version != VERSION:
        raise UserError(
            "other-version", f'"{path.parent.parent}" was written by another version of headgate',
            detail=f"Its format is {version}, and this one reads {VERSION}.",
        )  # fmt: skip
