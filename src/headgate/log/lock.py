"""One engine a directory: a lock that the operating system gives back when its owner ends, however it ends.

The directory itself is locked, so that nobody can delete the lock while the engine runs. Where folders cannot be locked
(NFS), the file `lock` in it is; it also says which process works there.

The directory is its owner's alone (0700), whatever Spark and the engine put into it and whatever the umask says.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
from contextlib import suppress
from pathlib import Path

from headgate.errors import UserError

logger = logging.getLogger("headgate.engine")

IN_USE = (errno.EWOULDBLOCK, errno.EAGAIN)


class Lock:
    """Keeps other engines out of a directory for as long as it is held."""

    def __init__(self, directory: Path) -> None:
        """Make the directory if it is not there, and lock it; one that is in use or cannot be used is an error."""
        self._held: list[int] = []
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._held += [os.open(directory, os.O_RDONLY), os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)]
            in_use = [_in_use(number) for number in self._held]
            owner = os.pread(self._held[1], 100, 0).decode(errors="replace").strip()
            if not any(in_use):
                _keep_private(self._held[0], directory)
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


def _keep_private(number: int, directory: Path) -> None:
    """Let nobody but the owner look into the directory: rows, results and passwords in statements lie there."""
    there = os.fstat(number)
    if not there.st_mode & 0o077:
        return
    shared = there.st_mode & stat.S_ISVTX or there.st_uid != os.geteuid()
    try:
        if shared:  # /tmp, or somebody else's
            raise PermissionError
        os.fchmod(number, 0o700)
    except OSError:
        logger.warning('others can look into directory "%s": give the engine one of its own', directory)
    else:
        logger.warning('others could look into directory "%s": now only its owner can', directory)


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
