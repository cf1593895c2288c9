"""A Spark standalone cluster on this machine for tests: a master and workers, each a process of its own, on loopback.

    with Cluster() as cluster:
        cluster.master                      # spark://127.0.0.1:41233
        cluster.kill(cluster.workers[0])    # SIGKILL, together with its executors
        cluster.start_worker()

Everything is written to a temporary folder and every process is gone at the end, also after an error.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyspark

HOST = "127.0.0.1"
PATIENCE_S = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def waited_for(condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {patience_s:.0f} s for {what}"
        time.sleep(0.05)


def parent(pid: int) -> int:
    """The process that started a process; 0 if there is none, or it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def children(pid: int) -> list[int]:
    """The processes that a process has started itself."""
    running = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
    return [one for one in running if parent(one) == pid]


def killed(pid: int) -> None:
    """SIGKILL for a process and then for all that it had started: it cannot start others in between."""
    os.kill(pid, signal.SIGSTOP)
    offspring = children(pid)
    os.kill(pid, signal.SIGKILL)
    for child in offspring:
        killed(child)


class Cluster:
    def __init__(self, workers: int = 2, cores: int = 1, memory: str = "1g") -> None:
        self.size, self.cores, self.memory = workers, cores, memory
        self.folder = Path(tempfile.mkdtemp(prefix="headgate-cluster-"))
        self.port = free_port()
        self.master = f"spark://{HOST}:{self.port}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self._master: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Cluster:
        try:
            self._master = self._started(
                "master", "Master", "--host", HOST, "--port", str(self.port), "--webui-port", "0"
            )
            waited_for(lambda: "Starting Spark master" in self._log("master"), "the master")
            for _ in range(self.size):
                self.start_worker(wait=False)
            self._wait_for_workers()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start_worker(self, wait: bool = True) -> subprocess.Popen[bytes]:
        name = f"worker-{len(self.workers) + 1}"
        worker = self._started(
            name,
            "worker.Worker",
            "--host",
            HOST,
            "--webui-port",
            "0",
            "--cores",
            str(self.cores),
            "--memory",
            self.memory,
            "--work-dir",
            str(self.folder / name),
            self.master,
        )
        self.workers.append(worker)
        if wait:
            self._wait_for_workers()
        return worker

    def worker_of(self, pid: int) -> subprocess.Popen[bytes]:
        """The worker that a process belongs to: an executor, or a Python process of one."""
        while pid:
            for worker in self.workers:
                if worker.pid == pid:
                    return worker
            pid = parent(pid)
        raise AssertionError("no worker's process")

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """As if its machine lost power: the worker, its executors and their Python processes."""
        killed(worker.pid)
        worker.wait()

    def stop(self) -> None:
        for process in [*self.workers, *([self._master] if self._master is not None else [])]:
            if process.poll() is None:
                killed(process.pid)
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_for_workers(self) -> None:
        waited_for(
            lambda: len(re.findall("Registering worker ", self._log("master"))) >= len(self.workers), "the workers"
        )

    def _started(self, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        environment |= {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": HOST,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_MEMORY": "256m",
        }
        qualified = f"org.apache.spark.deploy.{'master.Master' if main == 'Master' else main}"
        with (self.folder / f"{name}.log").open("wb") as log:
            # No shell stays between: spark-class puts Java in its own place.
            return subprocess.Popen(
                [str(home / "bin" / "spark-class"), qualified, *arguments],
                env=environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")
