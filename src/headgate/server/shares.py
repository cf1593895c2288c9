"""Fair shares: how many places there are for something, and how many of them one client may take.

A client is an address. The addresses of one network of IPv6 (/64) are one client, because whoever has one of them has
all. Clients behind a proxy are one client as well.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from headgate.errors import UserError
from headgate.server.limits import Limits

NETWORK = 64
"""Of an address of IPv6, so many bits name the client."""


class Shares:
    """Places for requests of one kind."""

    def __init__(self, most: int, limits: Limits, what: str) -> None:
        """`what` says in errors what those do that have a place: "are under way"."""
        self.most = most
        self.of_client = limits.of_client(most)
        self.what = what
        self.taken = 0
        self._by_client: Counter[str] = Counter()

    def check(self, client: str) -> None:
        """Raise an error if there is no place left, or none for this client."""
        if self.taken >= self.most:
            raise UserError("busy", f"{self.taken} requests {self.what}", hint="Send it again a little later.")
        if self._by_client[client] >= self.of_client:
            raise UserError(
                "busy",
                f"{self._by_client[client]} requests of this client {self.what}",
                detail="One client may not take all places.",
                hint="Send it again a little later.",
            )

    def enter(self, client: str) -> None:
        """Take a place."""
        self.check(client)
        self.taken += 1
        self._by_client[client] += 1

    def leave(self, client: str) -> None:
        """Give a place back."""
        self.taken -= 1
        self._by_client[client] -= 1
        if not self._by_client[client]:
            del self._by_client[client]

    @contextmanager
    def place(self, client: str) -> Iterator[None]:
        """Take a place for a while."""
        self.enter(client)
        try:
            yield
        finally:
            self.leave(client)


def client_of(scope: Mapping[str, Any]) -> str:
    """Return who sends a request: what its address is of."""
    address = scope.get("client")
    return client_at(address[0]) if address else ""


@lru_cache(10_000)
def client_at(address: str) -> str:
    """Return the client that an address is of."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return address
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip, NETWORK), strict=False))
