"""How much the server takes on at a time, and how much it gives out at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.planning.limits import PlanLimits


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server. What goes beyond one is refused, with an error that names it."""

    # bodies of requests

    body_bytes: int = 2**24
    held_bytes: int = 2**26
    """How much all bodies together may have, those that are still coming and those that wait for their turn."""
    reading: int = 64
    """How many bodies may be coming. One more, and the one that has been coming longest is refused."""
    waiting: int = 64
    """How many requests whose body is there may wait for their turn."""
    body_seconds: float = 30.0
    """How long the sending of a body may take at the most."""
    pause_seconds: float = 5.0
    bytes_a_second: int = 2**16
    """A body may take `pause_seconds`, and a second more for so many bytes that have come."""

    # requests

    requests: int = 1_000
    """How many may be under way, those that follow results among them."""

    # statements

    statement_bytes: int = 2**16
    statement_seconds: float = 60.0
    """How long a request waits for its statements. Those that have not begun by then are not carried out."""
    statements_waiting: int = 16
    planning: PlanLimits = field(default_factory=PlanLimits)
    """What may be spent to plan statements, in a process of its own."""

    # results

    page_rows: int = 1_000
    """How many results a page has unless the request says so, and an event at the most."""
    most_page_rows: int = 10_000
    page_bytes: int = 2**22
    followers: int = 500
    """How many requests may follow results."""
    send_seconds: float = 10.0
    """A follower that does not take what is sent to it within this time is let go."""
    quiet_seconds: float = 15.0
    """A follower hears something at least so often, so that both sides know that the other is there."""
    status_seconds: float = 0.5
    """All who ask for the status within this time get the same."""
