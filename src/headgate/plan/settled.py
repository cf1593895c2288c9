"""When all that has come by an instant has taken effect, if nothing else comes: the end of the last slide, the last
final group.

A tuple is seen by a window with a slide from the next multiple on, by `EVERY` at the next multiple, and by `EMIT FINAL`
when its group closes. A replay goes on behind its last tuple up to the instant that is found here, and no further, so
that windows do not run empty. A group by a column that was declared to be ordered is closed by another tuple alone, and
stays open.
"""

from __future__ import annotations

from collections.abc import Callable

from headgate.plan.nodes import Node
from headgate.plan.nodes.operator import Closing
from headgate.sql import Sql
from headgate.ticks import Tick


def settled(node: Node, last: Tick, closing: Callable[[Sql, Tick], Tick | None]) -> Tick:
    """The instant at which what came by `last` has taken effect; `closing` evaluates SQL over one `_t`."""
    return _settled(node, last, lambda sql, tick: closing(sql, last if tick is None else tick))


def _settled(node: Node, last: Tick, closing: Closing) -> Tick:
    below = max((_settled(child, last, closing) for child in node.children), default=last)
    return node.shown_at(below, closing)
