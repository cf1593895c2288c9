"""One engine a directory: a lock that the operating system gives back when its owner ends, however it ends.

The directory itself is locked, so that nobody can delete the lock while the engine runs. Where folders cannot be locked
(NFS), the file `lock` in it is; it also says which process works there.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

from headgate.errors import UserError

IN_USE = (errno.EWOULDBLOCK, errno.EAGAIN)


class Lock:
    """Keeps other engines out of a directory for as long as it is held."""

    def __init__(self, directory: Path) -> None:
        """Make the directory if it is not there, and lock it; one that is in use or cannot be used is an error."""
        self._held: list[int] = []
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._held += [os.open(directory, os.O_RDONLY), os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)]
            in_use = [_in_use(number) for number in self._held]
            owner = os.pread(self._held[1], 100, 0).decode(errors="replace").strip()
            if not any(in_use):
                os.ftruncate(self._held[1], 0)
                os.pwrite(self._held[1], str(os.getpid()).encode(), 0)
        except OSError as error:
            self.release()
            raise _unusable(directory, error) from None
        if any(in_use):
            self.release()
            raise UserError(
                "directory-in-use",
                f'another engine works in directory "{directory}"',
                detail=f"It is process {owner or 'unknown'}.",
                hint="Stop it first, or give each its own directory.",
            )

    def release(self) -> None:
        """Give the directory back; releasing twice does nothing.

        Closing alone is not enough: a process that another thread of ours is just starting has copies of our open
        files until it runs its program, and a lock stays for as long as any copy is open.
        """
        while self._held:
            number = self._held.pop()
            with suppress(OSError):
                fcntl.flock(number, fcntl.LOCK_UN)
            os.close(number)


def _in_use(number: int) -> bool:
    """Lock an open file or folder; True if another process has it locked. What cannot be locked is not in use."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in IN_USE
    return False


def _unusable(directory: Path, error: OSError) -> UserError:
    said = (
        "It is no folder" if isinstance(error, FileExistsError) else f"{error.strerror}: {error.filename or directory}"
    )
    return UserError(
        "bad-directory",
        f'directory "{directory}" cannot be used',
        detail=f"{said}.",
        hint="Give a folder that the engine may write to, on a disk with room.",
    )
