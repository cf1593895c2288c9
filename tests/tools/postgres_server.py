"""A PostgreSQL server for tests: its own cluster in a temporary folder, on a free port of the loopback, gone when they
end.

The server refuses to run as root; then it runs as the user `postgres` or `nobody`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOMES = [
    *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
    Path("/usr/local/bin"),
    Path("/usr/local/pgsql/bin"),
]
DRIVER = "org.postgresql:postgresql:42.7.7"


@dataclass(frozen=True, slots=True)
class Server:
    port: int
    binaries: Path

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def ask(self, sql: str) -> list[list[str]]:
        """The rows of an answer, as text; nulls are ∅."""
        command = [
            str(self.binaries / "psql"),
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-U",
            "tester",
            "-d",
            "postgres",
            "-X",
        ]
        command += ["-v", "ON_ERROR_STOP=1", "-At", "-F", "\t", "-P", "null=∅", "-c", sql]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        return [line.split("\t") for line in answer.splitlines()]


def binaries() -> Path | None:
    """Where the server's programs are; None if there are none."""
    found = shutil.which("initdb")
    homes = [*([Path(os.path.realpath(found)).parent] if found else []), *HOMES]
    return next((home for home in homes if all((home / name).exists() for name in ("initdb", "pg_ctl", "psql"))), None)


@contextmanager
def running(home: Path) -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="headgate-postgres-"))
    prefix: list[str] = []
    if os.geteuid() == 0:
        owner = next(user for name in ("postgres", "nobody") if (user := _user(name)))
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        prefix = ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"

    def run(*command: str) -> None:
        subprocess.run(
            [*prefix, str(home / command[0]), *command[1:]],
            cwd=folder,
            timeout=60,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    options = (
        f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off -c max_connections=20"
    )
    try:
        run("initdb", "-D", str(data), "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync")
        run("pg_ctl", "-D", str(data), "-l", str(folder / "log"), "-o", options, "-w", "-t", "50", "start")
        try:
            yield Server(port, home)
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None
