"""The lock on an engine's directory."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.errors import UserError
from headgate.log.lock import Lock


def test_a_directory_that_is_locked_cannot_be_locked_again(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    with pytest.raises(UserError, match="another engine works in directory"):
        Lock(tmp_path)
    lock.release()
    Lock(tmp_path).release()


def test_a_released_directory_is_free_although_a_child_process_has_the_files_open(tmp_path: Path) -> None:
    """A process that is being started has them open for a moment; here it keeps them."""
    lock = Lock(tmp_path)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=lock._held)
    try:
        lock.release()
        Lock(tmp_path).release()
    finally:
        child.communicate(b"\n", timeout=20)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_can_look_into_a_directory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = os.umask(0)
    try:
        lock = Lock(tmp_path / "state")
        assert (mode(tmp_path / "state"), mode(tmp_path / "state" / "lock")) == (0o700, 0o600)
        lock.release()
    finally:
        os.umask(before)
    assert not caplog.records, "a new one was never open"


def test_a_directory_that_was_open_to_others_is_closed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o755)
    for _ in range(2):
        Lock(tmp_path / "state").release()
        assert mode(tmp_path / "state") == 0o700
    assert [one.getMessage() for one in caplog.records] == [
        f'others could look into directory "{tmp_path}/state": now only its owner can'
    ]


def test_a_directory_that_others_share_stays_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Such as /tmp: to close it would stop everybody else."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o1777)
    Lock(tmp_path / "state").release()
    assert mode(tmp_path / "state") == 0o1777
    (record,) = caplog.records
    assert record.getMessage().endswith("give the engine one of its own")
