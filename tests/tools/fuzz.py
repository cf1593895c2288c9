"""Random queries against the reference for as long as one likes: `make fuzz SECONDS=600 SEED=1`.

Prints its seed; a case that differs is shrunk, printed and kept in tests/cases/found.jsonl, which the normal tests run.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import zlib
from dataclasses import replace

from hypothesis import HealthCheck, given, seed, settings
from rich.progress import Progress

from headgate.testing.cases import Case, difference, to_json
from headgate.testing.reference import evaluate
from tools.duck import Duck, compiled
from tools.places import CASES
from tools.random_queries import cases, cuttings

FOUND = CASES / "found.jsonl"
BATCH = 50

Failure = tuple[Case, tuple[list[int], list[bool]]]


def kept(case: Case, cutting: tuple[list[int], list[bool]]) -> str:
    """A line of the file of found cases: what `testing.cases` reads, and how time was cut."""
    case = replace(case, id=f"found-{zlib.crc32(repr(case).encode()):08x}", expected=tuple(evaluate(case)[1]))
    return json.dumps({**to_json(case), "cuts": cutting[0], "moves": cutting[1]})


def batch(number: int, depth: int, failures: list[Failure]) -> None:
    @seed(number)
    @settings(
        max_examples=BATCH, deadline=None, database=None, print_blob=False, suppress_health_check=list(HealthCheck)
    )
    @given(cases(depth=depth), cuttings())
    def same_as_reference(case: Case, cutting: tuple[list[int], list[bool]]) -> None:
        failures.append((case, cutting))
        differs = difference(evaluate(case)[1], Duck(case, compiled(case)).run(*cutting), case.horizon)
        assert differs is None, f"{case.query}\n{differs}"
        failures.pop()

    same_as_reference()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    started, done = time.monotonic(), 0
    failures: list[Failure] = []
    with Progress(transient=True) as bar:
        task = bar.add_task("fuzzing", total=arguments.seconds)
        while (elapsed := time.monotonic() - started) < arguments.seconds:
            bar.update(task, completed=elapsed, description=f"{done} cases")
            try:
                batch(arguments.seed + done, 1 + done // BATCH % 3, failures)
            except Exception as error:
                case, cutting = failures[-1]  # hypothesis runs the smallest one last
                print("".join(f"{view.name}: {view.query}\n" for view in case.views) + f"{case.query}\n{error}")
                line = kept(case, cutting)
                with FOUND.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
                print(f"kept in {FOUND}\n{done} passed, 1 failed")
                sys.exit(1)
            done += BATCH
    print(f"{done} passed, 0 failed")


if __name__ == "__main__":
    main()
