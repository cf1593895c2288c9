"""What a server offers beyond taking rows: statements and results, and what statements from outside may use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from headgate.permissions import Permissions, permissions
from headgate.server.limits import Limits


@dataclass(frozen=True, slots=True)
class Serving:
    """How an engine is served. By default, statements from outside may use no connector at all."""

    allowed: Permissions = field(default_factory=lambda: outside(()))
    limits: Limits = field(default_factory=Limits)


def outside(allow: Iterable[str]) -> Permissions:
    """What statements from outside may use: what is named, and nothing else. The server's own console is no sink."""
    return replace(permissions(list(allow)), console=False)
