"""Finds Flink: the virtual environment with PyFlink that `make flink` makes, and the jars by which it reads Parquet."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import headgate
from headgate.errors import UserError
from headgate.spark.packages import Artifact, fetched

HADOOP = "3.4.1"
"""The version of Hadoop's classes, without which Flink's Parquet format does not load."""

HEAP = os.environ.get("HEADGATE_DRIVER_MEMORY", "2g")
"""As much heap as Spark's driver gets."""

RUN = "import runpy, sys; sys.path.append({source!r}); runpy.run_module({module!r}, run_name='__main__')"
"""headgate's sources come last on the path: Flink's environment has its own versions of what both need."""


@dataclass(frozen=True, slots=True)
class Flink:
    """A usable Flink."""

    python: Path
    version: str
    jars: tuple[Path, ...]

    def command(self, parallelism: int) -> list[str]:
        """The command that starts its worker."""
        source = str(Path(headgate.__file__).resolve().parent.parent)
        run = RUN.format(source=source, module="headgate.bench.yardstick.flink_worker")
        return [str(self.python), "-c", run, str(parallelism), *map(str, self.jars)]

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which its worker is started."""
        return {"JVM_ARGS": f"-Xmx{HEAP}"}


def find_flink(folder: Path) -> Flink:
    """The Flink of a virtual environment; its jars are fetched by Maven, once. An error says what is missing."""
    python = folder.absolute() / "bin" / "python"
    if not python.exists():
        raise UserError("no-flink", f"there is no Flink in {folder}", hint="make flink puts it there.")
    ask = "from importlib.metadata import version; print(version('apache-flink'))"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError("no-flink", f"{folder} has no PyFlink", hint="make flink puts it there.")
    version = done.stdout.strip()
    artifacts = [
        Artifact("org.apache.flink", "flink-sql-parquet", version),
        Artifact("org.apache.hadoop", "hadoop-client-api", HADOOP),
        Artifact("org.apache.hadoop", "hadoop-client-runtime", HADOOP),
    ]
    return Flink(python, version, tuple(fetched(f"flink-{version}", artifacts)))


if __name__ == "__main__":
    flink = find_flink(Path(sys.argv[1]))
    print(f"Flink {flink.version} is ready in {sys.argv[1]}")
