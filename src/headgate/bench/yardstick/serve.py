"""The worker's side of the talk with the yardstick: a line of JSON with a job comes in, a line with an answer goes out.

Needs nothing but Python itself, so that it runs in Flink's environment too. What libraries print goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

Job: TypeAlias = dict[str, Any]
Answer: TypeAlias = dict[str, Any]


def serve(start: Callable[[], Callable[[Job], Answer]]) -> None:
    """Starts an engine, says that it is ready, and does jobs until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(answer: Answer) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    do = start()
    say({"ready": True})
    for line in sys.stdin:
        try:
            answer = do(json.loads(line))
        except Exception as error:  # whatever an engine throws is its answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        say(answer)
