"""What a server would allow, and to whom, if it were started so: `headgate doctor --security`.

Nothing is started. The command's options are those of `headgate serve`, and so are the words that decide: the same
grants, the same address, the same token.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from headgate.paths import is_elsewhere, real
from headgate.permissions import ADDRESS, Grant, Permissions
from headgate.server.listener import address, is_local
from headgate.sql.functions import COMPUTES, REFUSED
from headgate.table import Table

SHORT_TOKEN = 16
"""A token with fewer characters can be guessed."""

FROM_ANYWHERE = {
    "kafka": "any Kafka broker that this machine reaches",
    "jdbc": "any database that this machine reaches, by addresses without parameters",
    "webhook": "any HTTP server that this machine reaches",
    "callback": "any function of any module of Python: that is any code",
    "socket": "any port that this machine reaches",
    "interface": "any network interface of this machine",
    "rate": "rows that Spark makes by itself, as fast as a statement asks",
}
"""What a grant without a place means, by connector."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a server is to be started."""

    listen: str
    token: str | None
    allowed: Permissions
    directory: Path | None = None
    encrypted: bool = False
    master: str | None = None

    @property
    def beyond(self) -> bool:
        """True if others than this machine reach it."""
        return not is_local(address(self.listen)[0])


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that should not be so, or should be known."""

    what: str
    hint: str


def exposed(plan: Plan) -> Table:
    """Who may do what."""
    return Table(("who", "may"), tuple(_exposed(plan)), below=_walls(plan))


def _exposed(plan: Plan) -> Iterator[tuple[str, str]]:
    host, port = address(plan.listen)
    reach = f"whoever reaches {host}:{port}" if plan.beyond else "every program on this machine, of any user"
    yield reach, "ask /health and /ready; load the console's page, which holds no data"
    trusted = f"{reach} and has the token" if plan.token is not None else reach
    yield trusted, "push rows and heartbeats; read status, plans, results, early answers, metrics (secrets masked)"
    yield trusted, "CREATE, ALTER, DROP and SET everything there is, also what others made"
    yield trusted, "call Spark's functions that compute, and those that were registered with the engine"
    grants = plan.allowed.grants or ()
    for grant in grants:
        yield f"{trusted}, by a statement", _granted(grant)
    if not grants:
        yield f"{trusted}, by a statement", "use no connector: no file, no host, no database"
    yield "whoever starts it", f"everything that user {_user()} may: the script on its command line is not restricted"


def _granted(grant: Grant) -> str:
    verb = {"from": "read from", "into": "write into", None: "read from and write into"}[grant.direction]
    if grant.at is None:
        where = FROM_ANYWHERE.get(grant.connector, f"any folder that user {_user()} may use")
        return f"{verb} {grant.connector}: {where}"
    if ADDRESS[grant.connector] == "path" and not is_elsewhere(grant.at):
        return f"{verb} {grant.connector} files in or below {real(grant.at)}"
    return f"{verb} {grant.connector}: {grant.at}"


def _walls(plan: Plan) -> str:
    """What stands between a statement and this machine."""
    spark = (
        "none: over Spark Connect, statements from outside are refused"
        if plan.master is not None and plan.master.startswith("sc://")
        else "Spark's parsed plan is looked at before it is analysed, and the analysed one after"
    )
    return "\n".join(
        (
            "walls between a statement from outside and this machine:",
            "  text      what reaches Spark is printed from a list of nodes, and read again",
            f"  functions {len(COMPUTES)} compute; {len(REFUSED)} are refused by name, and all that nobody has judged",
            f"  plans     {spark}",
            "  budget    a statement is read and planned in a process of its own, with limits of memory and seconds",
        )
    )


def findings(plan: Plan) -> list[Finding]:
    """What should be otherwise, or at least be known."""
    return [*_at_the_door(plan), *_at_home(plan), *_in_grants(plan.allowed.grants or (), plan.directory)]


def _at_the_door(plan: Plan) -> Iterator[Finding]:
    if plan.token is None and not plan.beyond:
        yield Finding(
            "there is no token: every user of this machine may do all of this",
            "Set HEADGATE_TOKEN to a long random text.",
        )
    if plan.token is not None and len(plan.token) < SHORT_TOKEN:
        yield Finding(f"the token has {len(plan.token)} characters", f"Take {2 * SHORT_TOKEN} or more at random.")
    if plan.beyond and not plan.encrypted:
        yield Finding(
            "the token, rows and results are sent in the clear",
            "--tls-certificate and --tls-key, or a proxy on this machine that speaks TLS.",
        )


def _at_home(plan: Plan) -> Iterator[Finding]:
    if _user() == "root":
        yield Finding("it runs as root, and so does everything that goes wrong in it", "Give it a user of its own.")
    if plan.directory is None:
        yield Finding("there is no --directory: what is pushed and created is gone when it ends", "--directory state")
    elif plan.directory.exists() and plan.directory.stat().st_mode & 0o077:
        yield Finding(
            f"{plan.directory} can be read by others: {oct(plan.directory.stat().st_mode & 0o777)}",
            "The server narrows it when it starts.",
        )


def _in_grants(grants: Iterable[Grant], directory: Path | None) -> Iterator[Finding]:
    for grant in grants:
        if grant.connector == "callback" and grant.at is None:
            yield Finding("--allow callback lets statements run any code", "--allow callback=module:function")
        elif grant.at is None and ADDRESS.get(grant.connector) == "path":
            yield Finding(
                f"--allow {grant} lets statements use every file of user {_user()}",
                f"--allow {grant}=/a/folder",
            )
        if grant.at is None or ADDRESS[grant.connector] != "path" or is_elsewhere(grant.at):
            continue
        folder = real(grant.at)
        if folder in ("/", "/etc", "/home", "/root", "/var") or folder == os.path.expanduser("~"):
            yield Finding(
                f"--allow {grant} reaches {folder}, which holds more than data", "Name a folder for data alone."
            )
        if directory is not None and (
            Path(real(str(directory))) == Path(folder) or Path(folder) in Path(real(str(directory))).parents
        ):
            yield Finding(
                f"--allow {grant} reaches the engine's own directory {directory}",
                "Keep the folders for data and the engine's directory apart.",
            )


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name
