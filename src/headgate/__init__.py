"""headgate: continuous queries in CQL on Spark, right at every instant, whatever clocks and silent feeds do.

`Engine` is all that most programs need. It is imported when it is asked for, because it brings Spark with it: parsing,
explaining and testing against the reference work without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.errors import NotYet, UserError

if TYPE_CHECKING:
    from headgate.catalog.declarations import Party
    from headgate.catalog.skew import Bound
    from headgate.deliver.reflects import Reflects
    from headgate.deliver.sinks.files import Commit, read_commits
    from headgate.deliver.sinks.sink import Delivery, Result
    from headgate.engine import Engine
    from headgate.engine.snapshot import Snapshot
    from headgate.heartbeat.clock import ManualClock

__version__ = "0.1.0"
__all__ = [
    "Bound",
    "Commit",
    "Delivery",
    "Engine",
    "ManualClock",
    "NotYet",
    "Party",
    "Reflects",
    "Result",
    "Snapshot",
    "UserError",
    "__version__",
    "read_commits",
]

_HOMES = {
    "Bound": "headgate.catalog.skew",
    "Commit": "headgate.deliver.sinks.files",
    "Delivery": "headgate.deliver.sinks.sink",
    "Engine": "headgate.engine",
    "ManualClock": "headgate.heartbeat.clock",
    "Party": "headgate.catalog.declarations",
    "Reflects": "headgate.deliver.reflects",
    "Result": "headgate.deliver.sinks.sink",
    "Snapshot": "headgate.engine.snapshot",
    "read_commits": "headgate.deliver.sinks.files",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'headgate' has no attribute '{name}'")
