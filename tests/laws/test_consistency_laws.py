"""The law of consistency: what is said to be consistent is, at whatever pace stages run; at rest everything is.

`tools/schedules.py` says how it is judged. `make test-schedules` runs ten thousand schedules, or some on Spark.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tools.schedules import Verdict, played, staged_cases

from headgate.testing.cases import Case


@settings(max_examples=6)
@given(staged_cases(), st.integers(0, 1_000_000))
def test_early_answers_in_stages_are_what_they_say(case: Case, number: int) -> None:
    played(case, number, Verdict())
