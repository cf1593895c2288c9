"""Random queries against the reference for as long as one likes: `make fuzz SECONDS=600 SEED=1`.

Prints its seed; a case that differs is shrunk, printed and kept in tests/cases/found.jsonl, which the normal tests run.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from duck import Duck, compiled
from generator import cases, cuttings
from hypothesis import HealthCheck, given, seed, settings
from rich.progress import Progress

from headgate.testing.cases import Case, difference
from headgate.testing.reference import evaluate

FOUND = Path(__file__).parent / "cases" / "found.jsonl"
BATCH = 50


def as_json(case: Case, cutting: tuple[list[int], list[bool]]) -> str:
    expected = [[ts, sign, dict(enumerate(row))] for ts, sign, row in evaluate(case)[1]]
    return json.dumps({
        "id": f"found-{abs(hash(case.query)) % 10**8}", "query": case.query, "range": case.range, "horizon": case.horizon,
        "streams": {name: {"schema": schema} for name, schema in case.streams.items()},
        "input": {
            name: [[ts, dict(zip(case.streams[name], row, strict=True))] for ts, row, _ in rows] for name, rows in case.input.items()
        },
        "expected": expected, "cuts": cutting[0], "moves": cutting[1],
    })  # fmt: skip


def batch(number: int, failures: list[tuple[Case, tuple[list[int], list[bool]]]]) -> None:
    @seed(number)
    @settings(
        max_examples=BATCH, deadline=None, derandomize=False, database=None, print_blob=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(cases(depth=3), cuttings())
    def same_as_reference(case: Case, cutting: tuple[list[int], list[bool]]) -> None:
        try:
            differs = difference(evaluate(case)[1], Duck(case, compiled(case)).run(*cutting), case.horizon)
        except Exception:
            failures.append((case, cutting))
            raise
        if differs is not None:
            failures.append((case, cutting))
            raise AssertionError(f"{case.query}\n{differs}")

    same_as_reference()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    started, done = time.monotonic(), 0
    failures: list[tuple[Case, tuple[list[int], list[bool]]]] = []
    with Progress(transient=True) as bar:
        task = bar.add_task("fuzzing", total=arguments.seconds)
        while (elapsed := time.monotonic() - started) < arguments.seconds:
            bar.update(task, completed=elapsed, description=f"{done} cases")
            try:
                batch(arguments.seed + done, failures)
            except Exception as error:
                case, cutting = failures[-1]
                print(f"{case.query}\n{error}")
                with FOUND.open("a", encoding="utf-8") as file:
                    file.write(as_json(case, cutting) + "\n")
                print(f"kept in {FOUND}\n{done} passed, 1 failed")
                sys.exit(1)
            done += BATCH
    print(f"{done} passed, 0 failed")


if __name__ == "__main__":
    main()
