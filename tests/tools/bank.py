"""The bank: transfers between accounts as two streams, debits and credits, each out of order within its bound; balances
are a continuous query. Money is only moved, so the sum of all balances is zero at every instant: also in every output
that says it is complete, and however often the process is killed and started again on its directory.

    PYTHONPATH=tests python -m tools.bank --transfers 1000000 --kills 20 --seed 1
    PYTHONPATH=tests python -m tools.bank --transfers 20000 --kills 10 --pictures

The input is made by NumPy from a seed and put where the engine looks for files, a few at a time. The process, with its
JVM, is killed at random moments; in the end it processes what is left and stops. Then every change of every balance
must be there once: they are computed beside, and compared as a whole. What each test alone can catch: the total finds
one leg without the other, the comparison finds a transfer that is missing or counted twice in both.

With `--pictures`, the process also takes pictures of its queries while it runs, early and settled: see `bank_pictures`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tools.bank_pictures import QUERIES, Pictures

Numbers = NDArray[np.int64]

BEGIN_SECONDS = 120
EPOCH_US = 1_767_225_600_000_000
"""The first instant of TIMESTAMP time: 2026-01-01; one unit of integer time is a millisecond there."""

SCRIPT = """SET epoch_rows = {epoch_rows};
CREATE STREAM debits (transfer BIGINT, account INT, amount BIGINT, at {kind}) TIMESTAMP BY at
  FROM parquet OPTIONS ('path' = '{folder}/debits');
CREATE STREAM credits (transfer BIGINT, account INT, amount BIGINT, at {kind}) TIMESTAMP BY at
  FROM parquet OPTIONS ('path' = '{folder}/credits');
DISORDER OF debits {debits_within};
DISORDER OF credits {credits_within};
CREATE QUERY balances AS
  SELECT account, SUM(amount) AS balance
  FROM (SELECT account, -amount AS amount FROM debits UNION ALL SELECT account, amount FROM credits) AS legs
  GROUP BY account
  INTO parquet OPTIONS ('path' = '{folder}/balances');
"""


class Changes(NamedTuple):
    """Changes of balances: when, whose, +1 or -1, and the balance that came or went."""

    at: Numbers
    account: Numbers
    sign: Numbers
    balance: Numbers

    def in_order(self) -> Changes:
        order = np.lexsort((self.balance, self.sign, self.account, self.at))
        return Changes(*(column[order] for column in self))


@dataclass(frozen=True, slots=True)
class Transfers:
    """All of them, in order of time; the same for the same seed."""

    at: Numbers
    debtor: Numbers
    creditor: Numbers
    amount: Numbers

    @classmethod
    def drawn(cls, count: int, accounts: int, seed: int) -> Transfers:
        chance = np.random.default_rng(seed)
        at = np.cumsum(chance.integers(0, 3, count)).astype(np.int64)
        debtor = chance.integers(0, accounts, count)
        creditor = (debtor + chance.integers(1, accounts, count)) % accounts
        return cls(at, debtor, creditor, chance.integers(1, 1_000, count))

    def changes(self) -> Changes:
        """Every change of every balance, by running sums over each account's instants."""
        account = np.concatenate([self.debtor, self.creditor])
        amount = np.concatenate([-self.amount, self.amount])
        at = np.concatenate([self.at, self.at])
        order = np.lexsort((at, account))
        account, amount, at = account[order], amount[order], at[order]
        last = np.append((account[1:] != account[:-1]) | (at[1:] != at[:-1]), True)  # of an account's instant
        running = np.cumsum(amount)[last]
        account, at = account[last], at[last]
        first = np.insert(account[1:] != account[:-1], 0, True)  # of an account
        before_account = np.repeat(
            np.insert(running[:-1], 0, 0)[first], np.diff(np.append(np.flatnonzero(first), len(first)))
        )
        balance = running - before_account
        old = np.insert(balance[:-1], 0, 0)
        came = first | (balance != old)
        went = came & ~first

        def both(some: Numbers, others: Numbers) -> Numbers:
            return np.concatenate([some[came], others[went]])

        return Changes(
            both(at, at), both(account, account), np.repeat([1, -1], [came.sum(), went.sum()]), both(balance, old)
        ).in_order()

    def pictures(self, file: Path) -> Pictures:
        """Judge pictures by these transfers."""
        account = np.concatenate([self.debtor, self.creditor])
        return Pictures(file, np.concatenate([self.at, self.at]), account, np.concatenate([-self.amount, self.amount]))

    def write(self, folder: Path, files: int, within: dict[str, int], in_time: bool, seed: int) -> list[Path]:
        """Both legs as files, out of order by less than their bounds; the files in the order in which they come."""
        chance = np.random.default_rng(seed + 1)
        paths: list[tuple[float, Path]] = []
        for name, account in (("debits", self.debtor), ("credits", self.creditor)):
            (folder / name).mkdir(parents=True)
            arrival = np.argsort(self.at + chance.integers(0, within[name], len(self.at)), kind="stable")
            stamps = (
                pa.array(self.at * 1_000 + EPOCH_US, pa.timestamp("us", tz="UTC")) if in_time else pa.array(self.at)
            )
            legs = pa.table(
                {
                    "transfer": np.arange(len(self.at)),
                    "account": account.astype(np.int32),
                    "amount": self.amount,
                    "at": stamps,
                }
            )
            for number, part in enumerate(np.array_split(arrival, files)):
                path = folder / name / f"{number:06d}.parquet"
                pq.write_table(legs.take(part), path)
                paths.append((number + chance.random() / 2, path))
        return [path for _, path in sorted(paths)]


# what came out


class Delivered(NamedTuple):
    """What one record of the sink says: with all before it, everything up to `complete` is there."""

    number: int
    complete: Any
    files: list[Path]


def deliveries(folder: Path) -> Iterator[Delivered]:
    """By the records beside the files; a folder without any is taken as one delivery."""
    records = [file for file in sorted((folder / "_commits").glob("*.json")) if file.stem[0].isdigit()]
    for line in [line for file in records for line in file.read_text(encoding="utf-8").splitlines()]:
        record = json.loads(line)
        yield Delivered(record["number"], record["complete"], [folder / file for file in record["files"]])
    if not (folder / "_commits").exists():
        yield Delivered(0, None, sorted(folder.glob("*.parquet")))


def changes(files: list[Path], in_time: bool) -> Changes:
    if not files:
        return Changes(*(np.empty(0, np.int64) for _ in range(4)))
    table = pa.concat_tables([pq.ParquetFile(file).read() for file in files], promote_options="default")
    at = table["_time"].cast(pa.int64()).to_numpy()
    sign = np.where(pc.equal(table["_change"], "+").to_numpy(), 1, -1)
    account, balance = (table[name].to_numpy().astype(np.int64) for name in ("account", "balance"))
    return Changes((at - EPOCH_US) // 1_000 if in_time else at, account, sign, balance)


@dataclass(slots=True)
class Auditor:
    """Reads what is delivered, also while it comes, and never again what it has read."""

    folder: Path
    in_time: bool
    last: int = 0
    total: int = 0
    numbers: int = 0
    complaints: list[str] = field(default_factory=list)

    def look(self) -> None:
        """The total must be zero after every delivery."""
        for delivered in deliveries(self.folder):
            if delivered.number <= self.last and self.numbers:
                continue
            found = changes(delivered.files, self.in_time)
            self.total += int((found.sign * found.balance).sum())
            self.last, self.numbers = delivered.number, self.numbers + 1
            if self.total:
                text = f"delivery {delivered.number}, complete up to {delivered.complete}: the total is {self.total}"
                self.complaints.append(text)

    def judge(self, expected: Changes) -> None:
        """All of it, once, and nothing else."""
        found = changes([file for one in deliveries(self.folder) for file in one.files], self.in_time).in_order()
        if len(found.at) != len(expected.at):
            self.complaints.append(f"{len(found.at)} changes instead of {len(expected.at)}")
        length = min(len(found.at), len(expected.at))
        differs = np.zeros(length, bool)
        for one, other in zip(found, expected, strict=True):
            differs |= one[:length] != other[:length]
        if differs.any():
            place = int(differs.argmax())
            first = [tuple(int(column[place]) for column in one) for one in (found, expected)]
            self.complaints.append(
                f"the first that differs (time, account, sign, balance): {first[0]} instead of {first[1]}"
            )
        instants = np.unique(found.at, return_inverse=True)[1]
        sums = np.zeros(int(instants.max(initial=-1)) + 1, np.int64)
        np.add.at(sums, instants, found.sign * found.balance)
        if sums.any():
            self.complaints.append(f"{np.count_nonzero(sums)} instants at which money appears or goes")


# the process under test


class Process:
    """`headgate run` on a directory, in a process group of its own, so that its JVM dies with it.

    With a file for pictures, `bank_pictures` runs instead.
    """

    def __init__(
        self, script: Path, directory: Path, log: IO[str], *options: str, pictures: Path | None = None
    ) -> None:
        if pictures is None:
            program = ["-c", "from headgate.cli import main; main()", "run", str(script), "--directory", str(directory)]
        else:
            program = ["-m", "tools.bank_pictures", str(script), str(directory), str(pictures)]
        self.child = subprocess.Popen(
            [sys.executable, *program, *options],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def at_work(self, directory: Path) -> None:
        """Wait until it writes down what it does."""
        began, end = time.time(), time.monotonic() + BEGIN_SECONDS
        while self.child.poll() is None and time.monotonic() < end:
            if any(file.stat().st_mtime > began for file in directory.glob("journal/*.lines")):
                return
            time.sleep(0.05)

    def kill(self) -> None:
        os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self.child.poll() is None:
            self.kill()


@dataclass(frozen=True, slots=True)
class Load:
    transfers: int = 1_000_000
    accounts: int = 1_000
    files: int = 60
    """Of each stream."""

    kills: int = 20
    seed: int = 1
    in_time: bool = False
    between_kills_s: tuple[float, float] = (0.5, 25.0)
    """How long a process lives, at random, counted from its start or from the moment it begins to work."""

    from_start: float = 0.3
    """The share of processes whose time is counted from their start: some of them die before they have done
    anything.
    """

    last_s: float = 1_800.0
    """The last one, which is not killed, must be done by then."""

    pictures: bool = False
    """Whether processes take pictures of their queries."""


def play(load: Load, folder: Path, console: Console) -> list[str]:
    """Run the load in a folder; what was wrong."""
    chance = random.Random(load.seed)
    drawn = Transfers.drawn(load.transfers, load.accounts, load.seed)
    within = {"debits": 50, "credits": 200}
    coming = drawn.write(folder / "prepared", load.files, within, load.in_time, load.seed)
    for name in within:
        (folder / name).mkdir()
    script = folder / "bank.cql"
    unit = " MILLISECONDS" if load.in_time else ""
    bounds = {f"{name}_within": f"{most}{unit}" for name, most in within.items()}
    kind, epoch_rows = (
        "TIMESTAMP" if load.in_time else "BIGINT",
        max(2_000, load.transfers // 20),
    )  # many outputs to look at
    text = SCRIPT.format(kind=kind, folder=folder, epoch_rows=epoch_rows, **bounds)
    script.write_text(text + (QUERIES if load.pictures else ""), encoding="utf-8")
    auditor, pictures = Auditor(folder / "balances", load.in_time), drawn.pictures(folder / "pictures.jsonl")
    seen = pictures.file if load.pictures else None
    each = -(-len(coming) // max(load.kills, 1))
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with (folder / "run.log").open("a") as log, bar:
        shown = bar.add_task("kills", total=load.kills)
        for _ in range(load.kills):
            with Process(script, folder / "state", log, pictures=seen) as process:
                if chance.random() >= load.from_start:
                    process.at_work(folder / "state")
                end = time.monotonic() + chance.uniform(*load.between_kills_s)
                feeding = min(each, len(coming))
                pause = (end - time.monotonic()) / (feeding + 1)
                while (left := end - time.monotonic()) > 0 and process.child.poll() is None:
                    time.sleep(min(pause, left))
                    if feeding and coming:
                        feeding -= 1
                        come(coming.pop(0), folder)
                if process.child.poll() is not None:
                    return [f"the engine ended by itself with {process.child.returncode}: see {log.name}"]
            bar.advance(shown)
            auditor.look()
            pictures.look()
        for path in coming:
            come(path, folder)
        began = time.monotonic()
        with Process(script, folder / "state", log, "--once", pictures=seen) as process:
            code = process.child.wait(load.last_s)
        console.print(f"the last run took {time.monotonic() - began:.1f} s")
        if code:
            return [f"the last run ended with {code}: see {log.name}"]
    auditor.look()
    pictures.look()
    auditor.judge(drawn.changes())
    console.print(
        f"{auditor.numbers} deliveries read, {load.kills} kills, {load.transfers} transfers, {load.accounts} accounts"
    )
    if load.pictures:
        console.print(
            f"{pictures.settled} settled pictures of {len(pictures.instants)} instants, {pictures.early} early ones, "
            f"{pictures.one_sided} of them with one leg of a transfer and not the other"
        )
        if not pictures.early or drawn.at[-1] not in pictures.instants:
            pictures.complaints.append("there is no early picture, or none of the end")
    return auditor.complaints + pictures.complaints


def come(path: Path, folder: Path) -> None:
    """A file appears where the engine looks for it, whole."""
    path.rename(folder / path.parent.name / path.name)


def main() -> None:
    options = argparse.ArgumentParser(
        description="Transfers, balances and kills: the total is zero whenever it is complete."
    )
    options.add_argument("--transfers", type=int, default=1_000_000)
    options.add_argument("--accounts", type=int, default=1_000)
    options.add_argument("--files", type=int, default=60, help="files of each stream")
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--pictures", action="store_true", help="read snapshots and early answers while it runs")
    options.add_argument("--time", choices=("integer", "timestamp"), default="integer")
    options.add_argument(
        "--directory", type=Path, help="kept afterwards; default: a temporary one that goes if all is well"
    )
    given = options.parse_args()
    console = Console(soft_wrap=True)
    folder = (given.directory or Path(tempfile.mkdtemp(prefix="bank-"))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    load = Load(
        given.transfers,
        given.accounts,
        given.files,
        given.kills,
        given.seed,
        given.time == "timestamp",
        between_kills_s=(5.0, 40.0) if given.pictures else (0.5, 25.0),  # long enough for some pictures
        pictures=given.pictures,
    )
    complaints = play(load, folder, console)
    for complaint in complaints:
        console.print(complaint, markup=False)
    if complaints:
        sys.exit(f"failed; everything is in {folder}")
    console.print("the total is zero in every complete output, and every change is there once")
    if given.directory is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
