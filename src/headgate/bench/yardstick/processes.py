"""Memory and processor time of a process and all its children, read from /proc; unknown where there is none."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def tree(root: int) -> list[int]:
    """The process and all that descend from it."""
    found = [root]
    for process in found:
        for thread in PROC.glob(f"{process}/task/*/children"):
            with suppress(OSError):
                found += map(int, thread.read_text().split())
    return found


def forget_peaks(root: int) -> None:
    """Lets the peaks of memory begin anew at what is used now."""
    for process in tree(root):
        with suppress(OSError):
            (PROC / str(process) / "clear_refs").write_text("5")


def peak_bytes(root: int) -> int | None:
    """The most memory that each of the processes had at a time, summed up; None if that is unknown."""
    peaks = [_peak(process) for process in tree(root)]
    return sum(peaks) or None


def _peak(process: int) -> int:
    with suppress(OSError):
        for line in (PROC / str(process) / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def processor_s(root: int) -> float:
    """Seconds of processor time that the processes have used so far."""
    return sum(map(_used_s, tree(root)))


def _used_s(process: int) -> float:
    try:
        text = (PROC / str(process) / "stat").read_text()
    except OSError:
        return 0.0
    # user and system time, and those of children that have ended; the name before them may hold spaces
    fields = text.rpartition(")")[2].split()[11:15]
    return sum(map(int, fields)) / TICKS


def machine_busy_s() -> float | None:
    """Seconds that the machine's cores have worked since it started, for whomever; None if that is unknown."""
    try:
        fields = (PROC / "stat").read_text().splitlines()[0].split()[1:]
    except OSError:
        return None
    user, nice, system, _idle, _waiting, *interrupts = map(int, fields[:8])
    return (user + nice + system + sum(interrupts)) / TICKS
