"""How much the server takes on at a time, how much it gives out at once, and how much of that one client may have.

All limits stand here. What goes beyond one is refused, with an error that names it, or let go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from headgate.planning.limits import PlanLimits


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server."""

    client_share: float = 0.5
    """Which part of what is limited below one client may take, by its address."""

    # connections

    connections: int = 1_500
    """How many may be open, and no more than half of the files that the process may open. One more, and the one is
    let go that has been idle, or has taken too little, for the longest time."""
    idle: int = 200
    """How many may be open without a request under way."""
    header_seconds: float = 10.0
    """How long a connection may be idle: new, half-way through its headers, or kept open after an answer."""
    pipelined: int = 16
    """How many requests are answered that were sent before the answer to the first; then the connection is closed."""
    send_seconds: float = 10.0
    send_bytes: int = 2**14
    """A reader that does not take so much of what is sent to it within this time is let go."""
    unsent_bytes: int = 2**27
    """How much may lie ready for readers who have not taken it. Beyond this the slowest are let go."""
    socket_bytes: int = 2**18
    """How much the system keeps for one reader beside that."""
    silent_seconds: float = 30.0
    """After how long a connection is given up whose other side confirms nothing of what was sent."""

    # requests

    requests: int = 1_000
    """How many may be under way, those that follow results among them. Probes are not counted."""
    strangers: int = 100
    """How many without the token may be under way where there is one: they ask for the console's files."""

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
    heartbeat_bytes: int = 2**12

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
    quiet_seconds: float = 15.0
    """A follower hears something at least so often, so that both sides know that the other is there."""
    status_seconds: float = 0.5
    """All who ask for the status within this time get the same."""

    def of_client(self, most: int) -> int:
        """Return how much one client may take of what there is."""
        return max(ceil(most * self.client_share), 1)


# of JSON, for every server

ROW_LETTERS = 2**20
"""How long the text of one row may be."""

ROW_PARTS = 2**16
"""How many lists and objects there may be in the text of a row that is longer than a part."""

PART_LETTERS = 2**16
"""How much of a text is looked at for the next row at first."""

NESTED = 64
"""How deep a value may be nested."""

READ_AT_ONCE = 4
"""How many bodies are made rows at a time."""
