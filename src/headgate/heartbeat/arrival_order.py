"""Arrival order: the instants of streams with latent time, whose tuples are numbered as they come."""

from __future__ import annotations

from headgate.ticks import Tick


class ArrivalOrder:
    """Hands out instants of arrival order. All streams with latent time share them."""

    def __init__(self, last: Tick = 0) -> None:
        self.last = last
        """The last instant that was handed out."""

    def reserve(self, count: int) -> Tick:
        """Reserve so many instants, which nobody else gets; the first of them."""
        self.last += count
        return self.last - count + 1

    def skip_to(self, last: Tick) -> None:
        """Hand out no instant up to this one any more."""
        self.last = max(self.last, last)
