"""Real kills: the load of `crashes` in processes that die by SIGKILL, with their JVMs, until it has come to its end.

    make test-faults            at least 100 kills
    PYTHONPATH=tests python -m tools.faults --kills 10 --seed 7

Every other kill is at a step (a rename, a deletion, a write made durable), the others are at random times. Some leave
what a torn write leaves: half a line behind the journal's last, half a file among the chunks. Whenever a load has come
to its end, its complete output is compared with that of an undisturbed run, and a new one begins.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn

from tools.places import ROOT, TESTS

LONGEST_S = 300


class Life:
    """One process that plays the load on a directory."""

    def __init__(self, where: Path, die_at: int = 0) -> None:
        (where / "files").mkdir(parents=True, exist_ok=True)
        self.log = (where / "stderr.txt").open("ab")
        arguments = [str(where / "state"), str(where / "out"), str(where / "files"), str(die_at)]
        paths = os.pathsep.join([str(TESTS), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tools.crashes", *arguments],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={**os.environ, "PYTHONPATH": paths},
            start_new_session=True,
        )

    def ended(self, within_s: float) -> dict[str, Any] | None:
        """What it says at its end; None if it was killed, by itself or now."""
        try:
            said, _ = self.process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
            return None
        finally:
            self.log.close()
        if self.process.returncode == -signal.SIGKILL:
            return None
        if self.process.returncode:
            raise SystemExit(f"a life ended by itself:\n{Path(self.log.name).read_text()[-4000:]}")
        found: dict[str, Any] = json.loads(said.splitlines()[-1])
        return found


def tear(where: Path, random: Random) -> None:
    """What a write that was cut short leaves behind: nothing that was acknowledged."""
    lines = sorted((where / "state" / "journal").glob("*.lines"))
    if lines and random.random() < 0.3:
        with lines[-1].open("ab") as file:
            file.write(b'0badc0de [["log streams/a",{"add":[["0000000'[: random.randrange(1, 40)])
    folders = [folder for folder in (where / "state" / "streams").glob("*") if folder.is_dir()]
    if folders and random.random() < 0.3:
        (random.choice(folders) / f"{random.randrange(900, 999):012d}.parquet").write_bytes(b"PAR1 half a file")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    random = Random(options.seed)
    console = Console()
    console.print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="headgate-faults-") as folder:
        undisturbed = Life(Path(folder) / "undisturbed").ended(LONGEST_S)
        assert undisturbed is not None, "the undisturbed run takes too long"
        steps, expected = undisturbed["steps"], undisturbed["outcome"]
        console.print(f"the undisturbed run has {steps} steps")
        kills = loads = 0
        at_steps: set[int] = set()
        with Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=console) as bar:
            task = bar.add_task("kills", total=options.kills)
            while kills < options.kills:
                loads += 1
                where = Path(folder) / f"load-{loads}"
                gone = 0
                while True:
                    enough = kills >= options.kills
                    die_at = 0 if enough or kills % 2 else random.randrange(1, max(2, steps // 3))
                    within_s = LONGEST_S if enough or die_at else random.uniform(4, 16)
                    found = Life(where, die_at).ended(within_s)
                    if found is not None:
                        break
                    kills += 1
                    gone += 1
                    if die_at:
                        at_steps.add(die_at)
                    bar.advance(task)
                    if not console.is_terminal and kills % 10 == 0:
                        console.print(f"{kills} kills")
                    tear(where, random)
                if found["outcome"] != expected:
                    (Path(tempfile.gettempdir()) / "faults-differ.json").write_text(
                        json.dumps([expected, found["outcome"]])
                    )
                    raise SystemExit(f"load {loads} came to another end after {gone} kills (seed {options.seed})")
                bar.console.print(f"load {loads}: {gone} kills, same output")
    console.print(
        f"{kills} kills, {len(at_steps)} different steps, {loads} loads: nothing lost, nothing twice, nothing out of order"
    )


if __name__ == "__main__":
    main()
