"""Which aggregate calls can be kept up to date without the rows they are over: by sums, or by extremes so far."""

from __future__ import annotations

from headgate.plan.expressions import NUMERIC, Call
from headgate.sql import Sql

SUMS = frozenset({"count", "sum", "avg"})
SPREADS = {
    "variance": ("var", 1),
    "variance_pop": ("var", 0),
    "stddev": ("dev", 1),
    "stddev_samp": ("dev", 1),
    "stddev_pop": ("dev", 0),
    "covar_samp": ("cov", 1),
    "covar_pop": ("cov", 0),
    "corr": ("corr", 0),
}
"""Name -> what is computed, and whether it divides by one less than the count."""

EXTREMES = {"min": Sql("MIN"), "max": Sql("MAX"), "arg_min": Sql("MIN"), "arg_max": Sql("MAX")}


def additive(call: Call) -> bool:
    """True if a row can be added to the call's value and taken away again."""
    if call.distinct or call.function not in SUMS | SPREADS.keys():
        return False
    return call.function == "count" or all(argument.type.startswith(NUMERIC) for argument in call.arguments)


def growing(call: Call) -> bool:
    """True if the call's value can be kept up to date as long as nothing leaves."""
    return call.function in EXTREMES


def summed(call: Call) -> bool:
    """True if the call's value over rows that never leave follows from what was kept of the rows before."""
    return not call.outside and (additive(call) or (growing(call) and not call.distinct))
