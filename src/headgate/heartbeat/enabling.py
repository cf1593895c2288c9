"""Enabling timestamps: up to when nothing will still come on a stream, as the clock alone says it, although no tuple
does.

    stamped by the engine                   the clock itself
    stamped by its source, WITHIN d         t + s - d, where t is its largest timestamp and s the time since that came
    SKEW FROM CLOCK TO it (WITHIN d)        the date less d

What the clock says of a source it says of what has been sent. A tuple that was sent and has not been read is not late
because of that, so the last two go by the instant as of which everything that was there had been read, and not by now.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from headgate.catalog.skew import Bounds

if TYPE_CHECKING:
    from headgate.ticks import Tick


def since_largest(largest: Tick, came_us: int, read_us: int, within: Tick, tick_us: Fraction) -> Tick:
    """t + s - d. What has come since everything was read is part of what was read: it counts as having come just
    then.
    """
    return largest + int(max(read_us - came_us, 0) // tick_us) - within


def by_date(date_us: int, bounds: Bounds, latency_us: int) -> Tick:
    """The furthest that bounds from the clock to a source say, when the clock shows this date."""
    return date_us - latency_us - min(bound.after_us + bound.within for bound in bounds)


def last_beat_us(now_us: int, every_us: int) -> int:
    """The instant of the engine's clock at which a heartbeat that comes every so often came last."""
    return now_us - now_us % every_us
