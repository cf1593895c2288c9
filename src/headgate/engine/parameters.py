"""Parameters of queries while they run: another value from an instant on, durable, and without a restart.

The value counts for tuples stamped at that instant or later. It lies behind everything that has come, so no answer that
was given, or is being computed, depends on it; the programs of the queries that read the parameter are written anew
and go on with what they have kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.compile import CompiledFragment, compile_query
from headgate.cql.definitions import ParameterSet, parameter
from headgate.engine.core import Core
from headgate.engine.facts import ParameterChanged
from headgate.errors import UserError
from headgate.plan.parameters import parameters
from headgate.schedule.query import RunningQuery
from headgate.ticks import Tick


def set_parameter(core: Core, asked: ParameterSet) -> ParameterSet:
    """Give a parameter another value; returns what was asked for, with the instant from which on it counts."""
    known = parameter(asked.query, asked.name, core.catalog, asked.place)
    readers = _readers(core, known.full_name)
    first = max((_last(running) for running in readers), default=-1) + 1
    last_change = known.changes[-1][0]
    first = first if last_change is None else max(first, last_change + 1)
    if asked.since is not None and asked.since < first:
        raise UserError(
            "too-late",
            f"instant {asked.since} is not behind everything that has come",
            place=asked.place,
            detail=f"The first instant from which another value can count is {first}.",
            hint="Leave FROM out.",
        )
    fact = ParameterChanged(known.query, known.name, asked.since if asked.since is not None else first, asked.value)
    with core.journal.turn, core.catalog.undone_on_error():
        apply_parameter(core, fact)
        compiled = [compile_query(running.definition, core.catalog) for running in readers]
        core.record(fact, then=lambda: _change(core, readers, compiled))
    return ParameterSet(known.query, known.name, asked.value, fact.since, asked.place)


def apply_parameter(core: Core, fact: ParameterChanged) -> None:
    """Remember another value of a parameter, of a query that is still there."""
    name = f"{fact.query}.{fact.name}".lower()
    if name in core.catalog.parameters:
        core.catalog.parameters[name] = core.catalog.parameters[name].changed(fact.since, fact.value)


def parameter_facts(core: Core) -> Iterator[ParameterChanged]:
    """The changes so far, for a checkpoint."""
    for one in core.catalog.parameters.values():
        for since, value in one.changes:
            if since is not None:
                yield ParameterChanged(one.query, one.name, since, value)


def _readers(core: Core, name: str) -> list[RunningQuery]:
    """The running queries whose plans read a parameter: its own, and those that read that one."""
    return [running for running in core.programs() if name in parameters(running.definition.plan)]


def _last(running: RunningQuery) -> Tick:
    """The last instant of which something has come to a query, or that it has answered."""
    found = [fragment.after for fragment in running.fragments]
    for fragment in running.fragments:
        for name in fragment.program.logs():
            log = fragment.inputs.logs[name]
            found += [instant for instant in (log.newest(), log.forgotten) if instant is not None]
    return max(found)


def _change(core: Core, readers: list[RunningQuery], compiled: list[list[CompiledFragment]]) -> None:
    for running, programs in zip(readers, compiled, strict=True):
        for fragment, program in zip(running.fragments, programs, strict=True):
            fragment.compute_by(program)
    core.wake.set()
