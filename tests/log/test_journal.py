"""The journal by itself: what is in it after it was cut off at any byte, after a disk that failed, after a checkpoint.

No Spark. That an engine put together from it goes on as if nothing had happened is for `test_recovery` to say.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from headgate.errors import UserError
from headgate.log import journal as module
from headgate.log.journal import Journal


class Account:
    """A subject that adds up what it is told."""

    def __init__(self, journal: Journal, name: str = "account") -> None:
        self.total = 0
        journal.subjects[name] = self.apply

    def apply(self, what: dict[str, Any]) -> None:
        self.total += what["add"]


def opened(directory: Path) -> tuple[Journal, Account]:
    journal = Journal(directory)
    account = Account(journal)
    journal.read()
    return journal, account


def test_what_was_recorded_is_there_again(tmp_path: Path) -> None:
    journal, account = opened(tmp_path)
    for amount in (1, 2, 3):
        journal.record("account", {"add": amount})
    assert account.total == 6
    assert opened(tmp_path)[1].total == 6  # the first was not even closed


def test_cut_off_at_any_byte_it_holds_the_lines_before(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path / "whole")
    totals = {}
    (file,) = (tmp_path / "whole" / "journal").iterdir()
    for amount in (1, 20, 300):
        totals[file.stat().st_size] = opened_total(tmp_path / "whole")
        journal.record("account", {"add": amount})
    content = file.read_bytes()
    first = min(totals)
    totals[len(content)] = opened_total(tmp_path / "whole")
    assert content[:first].endswith(b"}\n"), "the heading"
    for length in range(first, len(content)):
        copy = tmp_path / f"cut-{length}" / "journal"
        copy.mkdir(parents=True)
        (copy / file.name).write_bytes(content[:length])
        cut, account = opened(copy.parent)
        # a whole line of which only the end is missing counts
        assert account.total == totals[max(size for size in totals if size <= length + 1)]
        cut.record("account", {"add": 4000})  # and goes on behind the last whole line
        assert opened_total(copy.parent) == account.total


def opened_total(directory: Path) -> int:
    return opened(directory)[1].total


def test_a_line_that_was_changed_is_named(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path)
    journal.record("account", {"add": 1})
    journal.record("account", {"add": 2})
    (file,) = (tmp_path / "journal").iterdir()
    file.write_bytes(file.read_bytes().replace(b'"add":1', b'"add":7'))
    with pytest.raises(UserError) as error:
        opened(tmp_path)
    assert error.value.code == "torn-file"
    assert "Line 2 is damaged" in error.value.detail


def test_together_is_all_or_nothing(tmp_path: Path) -> None:
    journal, account = opened(tmp_path)
    other = Account(journal, "other")
    undone: list[str] = []

    def half() -> None:
        with journal.together():
            journal.record("account", {"add": 1}, undo=lambda: undone.append("file"))
            assert account.total == 0, "nothing happens before all of it is durable"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert (account.total, undone) == (0, ["file"])
    with journal.together(), journal.together():
        journal.record("account", {"add": 1})
        journal.record("other", {"add": 5})
    assert (account.total, other.total) == (1, 5)
    (file,) = (tmp_path / "journal").iterdir()
    assert len(file.read_text().splitlines()) == 2, "the heading and one line"


class FullDisk:
    """A file that takes a few bytes of each line and then has no room."""

    def __init__(self, path: Path, room: int) -> None:
        self.file = path.open("ab", buffering=0)
        self.room = room

    def write(self, line: bytes) -> None:
        self.file.write(line[: self.room])
        raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        self.file.close()


def test_a_full_disk_acknowledges_nothing_and_leaves_no_half_line(tmp_path: Path) -> None:
    journal, account = opened(tmp_path)
    journal.record("account", {"add": 1})
    (file,) = (tmp_path / "journal").iterdir()
    whole = file.read_bytes()
    journal._lines.close()
    journal._lines = FullDisk(file, room=9)
    with pytest.raises(UserError) as error:
        journal.record("account", {"add": 2})
    assert error.value.code == "disk-failed"
    assert "No space left" in error.value.detail
    assert account.total == 1
    assert file.read_bytes() == whole
    journal.record("account", {"add": 4})  # there is room again
    assert account.total == opened_total(tmp_path) == 5


def test_checkpoints_replace_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECKPOINT_BYTES", 200)
    journal, account = opened(tmp_path)
    for _ in range(100):
        journal.record("account", {"add": 1})
        if journal.checkpoint_due():
            journal.checkpoint(lambda: [("account", {"add": account.total})])
            journal.wait()
    left = sorted((tmp_path / "journal").iterdir())
    assert [file.suffix for file in left] == [".checkpoint", ".lines"]
    assert sum(file.stat().st_size for file in left) < 1_000
    assert opened_total(tmp_path) == 100


def test_a_crash_while_a_checkpoint_is_written_changes_nothing(tmp_path: Path) -> None:
    journal, account = opened(tmp_path)
    journal.record("account", {"add": 1})
    journal._write_checkpoint = lambda number, facts: None  # type: ignore[method-assign]
    journal.checkpoint(lambda: [("account", {"add": account.total})])
    journal.record("account", {"add": 2})
    (tmp_path / "journal" / ".000000000001.checkpoint.staged").write_text('{"headgate": 1}\n[["account"')
    assert opened_total(tmp_path) == 3


def test_a_damaged_checkpoint_and_one_of_another_version_are_refused(tmp_path: Path) -> None:
    journal, account = opened(tmp_path)
    journal.record("account", {"add": 1})
    journal.checkpoint(lambda: [("account", {"add": account.total})])
    journal.close()
    (checkpoint,) = (tmp_path / "journal").glob("*.checkpoint")
    whole = checkpoint.read_text()
    checkpoint.write_text("\n".join(whole.splitlines()[:-1]))
    with pytest.raises(UserError, match="cannot be used"):
        opened(tmp_path)
    checkpoint.write_text(whole.replace('{"headgate": 2', '{"headgate": 3'))
    with pytest.raises(UserError, match="another version"):
        opened(tmp_path)


def test_a_missing_checkpoint_or_segment_is_named(tmp_path: Path) -> None:
    journal, account = opened(tmp_path)
    for amount in (1, 2):
        journal.record("account", {"add": amount})
        journal.checkpoint(lambda: [("account", {"add": account.total})])
        journal.wait()
    journal.close()
    (checkpoint,) = (tmp_path / "journal").glob("*.checkpoint")
    (lines,) = (tmp_path / "journal").glob("*.lines")
    whole = lines.read_bytes()
    lines.unlink()
    with pytest.raises(UserError, match=r"lines.* cannot be used"):
        opened(tmp_path)
    lines.write_bytes(whole)
    assert opened_total(tmp_path) == 3
    checkpoint.unlink()
    with pytest.raises(UserError, match=r"checkpoint.* cannot be used"):
        opened(tmp_path)


def test_an_interrupt_while_a_line_is_written_takes_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, account = opened(tmp_path)
    journal.record("account", {"add": 1})

    def interrupted(number: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            journal.record("account", {"add": 2})
    assert account.total == opened_total(tmp_path) == 1
    journal.record("account", {"add": 4})
    assert account.total == opened_total(tmp_path) == 5


def test_no_room_for_a_new_segment_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, account = opened(tmp_path)
    journal.record("account", {"add": 1})

    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(module, "synced", full)
        journal.checkpoint(lambda: [("account", {"add": account.total})])
    journal.record("account", {"add": 2})
    assert account.total == opened_total(tmp_path) == 3


def test_what_memory_does_not_follow_ends_all(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path)

    def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        journal.record("account", {"add": 1}, then=broken)
    with pytest.raises(UserError, match="nothing can be written"):
        journal.record("account", {"add": 2})
    assert opened_total(tmp_path) == 1


def test_only_the_end_of_the_last_line_may_be_missing(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path)
    journal.record("account", {"add": 1})
    journal.record("account", {"add": 2})
    journal.close()
    (file,) = (tmp_path / "journal").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    again, account = opened(tmp_path)
    assert account.total == 3, "the line is there, whole"
    again.record("account", {"add": 4})
    assert opened_total(tmp_path) == 7
    for damaged in (
        whole[:-1] + b"\v",
        whole.replace(b'"add":2', b'"add":3'),
        whole + whole.splitlines(keepends=True)[1],
    ):
        file.write_bytes(damaged)
        with pytest.raises(UserError, match="torn-file"):
            opened(tmp_path)
        assert file.read_bytes() == damaged, "nothing is cut off"


def test_lines_cannot_be_taken_away_or_exchanged(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path)
    for amount in (1, 2, 4):
        journal.record("account", {"add": amount})
    journal.close()
    (file,) = (tmp_path / "journal").iterdir()
    heading, one, two, four = file.read_bytes().splitlines(keepends=True)
    for lines in (
        (heading, two, four),
        (heading, one, four),
        (heading, two, one, four),
        (heading, one, one, two, four),
    ):
        file.write_bytes(b"".join(lines))
        with pytest.raises(UserError, match="torn-file"):
            opened(tmp_path)


def test_a_segment_that_was_begun_is_there_or_missed(tmp_path: Path) -> None:
    journal, account = opened(tmp_path)
    journal.record("account", {"add": 1})
    journal._write_checkpoint = lambda number, facts: None  # type: ignore[method-assign]
    journal.checkpoint(lambda: [("account", {"add": account.total})])  # there is no room for it
    journal.record("account", {"add": 2})
    journal.close()
    first, second = sorted((tmp_path / "journal").iterdir())
    lines, more = first.read_bytes(), second.read_bytes()
    for left in (None, b"", more[:10]):
        second.unlink() if left is None else second.write_bytes(left)
        with pytest.raises(UserError, match=second.name):
            opened(tmp_path)
    end = lines.rindex(b"\n", 0, -1) + 1
    for cut in (end, end + 5):  # it died after it had made the file and before it said so
        first.write_bytes(lines[:cut])
        second.write_bytes(more.splitlines(keepends=True)[0])
        again, account = opened(tmp_path)
        again.record("account", {"add": 4})
        again.close()
        assert opened_total(tmp_path) == 5
        assert not second.exists()


def test_a_journal_of_format_1_goes_on_in_format_2(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    text = b'[["account",{"add":1}]]'
    old = tmp_path / "journal" / "000000000000.lines"
    old.write_bytes(b'{"headgate": 1}\n%08x %s\n%08x %s' % (crc32(text), text, crc32(text), text[:-4]))
    for total in (1, 3, 5):
        journal, account = opened(tmp_path)
        assert account.total == total
        journal.record("account", {"add": 2})
        journal.close()
    assert sorted(file.name for file in (tmp_path / "journal").iterdir()) == [
        "000000000000.lines",
        "000000000001.lines",
    ]
