"""headgate: continuous queries in CQL on Spark, right at every instant, whatever clocks and silent feeds do.

`Engine` is all that most programs need. It is imported when it is asked for, because it brings Spark with it: parsing,
explaining and testing against the reference work without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.errors import NotYet, UserError

if TYPE_CHECKING:
    from headgate.engine import Engine
    from headgate.heartbeat.bounds import Bound
    from headgate.heartbeat.clock import ManualClock
    from headgate.heartbeat.declared import Party
    from headgate.sinks.files import Commit, read_commits
    from headgate.sinks.sink import Delivery, Result

__version__ = "0.1.0"
__all__ = [
    "Bound", "Commit", "Delivery", "Engine", "ManualClock", "NotYet", "Party", "Result", "UserError", "__version__",
    "read_commits",
]  # fmt: skip

_HOMES = {
    "Bound": "headgate.heartbeat.bounds",
    "Commit": "headgate.sinks.files",
    "Delivery": "headgate.sinks.sink",
    "Engine": "headgate.engine",
    "ManualClock": "headgate.heartbeat.clock",
    "Party": "headgate.heartbeat.declared",
    "Result": "headgate.sinks.sink",
    "read_commits": "headgate.sinks.files",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'headgate' has no attribute '{name}'")
