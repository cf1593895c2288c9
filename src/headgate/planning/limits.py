"""How much work and memory the planning of a text from outside may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """The limits of the process that plans a text."""

    statement_seconds: int = 2
    """Of processor time, for one statement. So long may the engine be held up, too, by one that is carried out."""

    waited: float = 5.0
    """A statement that gets no processor, because others want it too, may take so many times as long."""

    text_seconds: float = 30.0
    """Of processor time, for all statements of a text."""

    bytes: int = 2**29
    """So much memory may the process have beside what it began with."""

    answer_bytes: int = 2**24
    """So long may the answers to a text be that are made where it is planned."""
