"""The lock on an engine's directory."""

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
