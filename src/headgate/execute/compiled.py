"""A fragment as the compiler hands it over: what it computes and what it reads, before it has run anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from headgate.delta.program import Program
from headgate.plan.fragments import Part

Ahead: TypeAlias = Literal["nothing", "an instant", "everything"]
"""What a fragment takes beyond its heartbeat: nothing; the tuples of the first open instant, because all before them
are there; or everything that has come, in any order."""


@dataclass(frozen=True, slots=True)
class CompiledFragment:
    """A part of a query that runs by itself: its plan, and the programs that run an epoch of it."""

    part: Part
    program: Program
    tiny_program: Program
    """For epochs of a few rows: rules that look at every row at every instant, in fewer steps, on equal synopses."""

    ahead: Ahead = "nothing"
    sees: Mapping[str, str] = field(default_factory=dict)
    """By stream: a condition in SQL for the tuples that it reads, where it does not read those of all sources."""

    group: str = ""
    """The group of sources whose answers it gives, in a query that runs by groups."""
