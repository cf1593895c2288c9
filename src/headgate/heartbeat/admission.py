"""Which timestamps a stream takes: what an inlet needs to know to judge the rows of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.ticks import Tick


@dataclass(frozen=True, slots=True)
class Admission:
    """The lateness limits of a stream, and what is known of its timestamps. The limit in the future is asked for
    separately, because it depends on the date.
    """

    closed: Tick | None = None
    """Timestamps up to here are late; None: none is."""

    closed_by_source: Mapping[str, Tick] = field(default_factory=dict)
    """By source, where the limit is another instant."""

    first_open: Tick = 0
    """The first instant at which something can still happen on the stream."""

    largest: Tick | None = None
    """The largest timestamp that came on the stream, late ones included."""

    unheard: bool = False
    """True if no tuple came yet and no reader of the whole stream was promised anything."""

    settled: bool = True
    """True if it is known which timestamps are too far in the future; if not, a large batch is compared with itself."""

    wants_sample: bool = False
    """True if the summary of a batch is to tell how its timestamps are distributed."""
