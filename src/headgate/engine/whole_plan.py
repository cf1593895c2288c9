"""The plan of all queries of an engine as text: SHOW PLAN.

Streams and relations come first, then what queries share, then the queries, each with what it computes over the logs
above it and what it keeps for that. Of every log it is said who reads it, and of what is computed how far it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.engine.core import Core
from headgate.execute.fragment import Fragment
from headgate.explain import kept, tree
from headgate.schedule.query import RunningQuery


def drawn(core: Core) -> Iterator[str]:
    """Give the lines of the whole plan."""
    queries = core.queries()
    shared = core.loop.shared()
    fragments = [*shared, *(one for query in queries for one in query.own)]
    names = {one: _name(one) for one in fragments}

    def readers(log: str) -> str:
        found = [names[one] for one in fragments if log in one.program.logs()]
        return f"read by {', '.join(found)}" if found else "read by no query"

    catalog = core.catalog
    for kind, known in (("stream", catalog.streams), ("relation", catalog.relations)):
        for one in known.values():
            yield f"{kind} {one.name}: {_counted(core.inputs.logs[one.name].rows, 'tuple')}, {readers(one.name)}"
            if (low := core.inputs.inlets[one.name].low) is not None:
                yield f"  its log keeps {kept(low)}"
    for fragment in shared:
        yield f"{_name(fragment)}: {_upto(fragment)}, {_put_out(fragment)}, {readers(fragment.part.name)}"
        yield from _computed(fragment)
    for query in queries:
        for fragment in query.own:
            more = f"{_put_out(fragment)}, {readers(fragment.part.name)}" if fragment.output else _gives(query)
            yield f"{names[fragment]}: {_upto(fragment)}, {more}"
            yield from _computed(fragment)


def _name(fragment: Fragment) -> str:
    return fragment.full_name if fragment.part.log is not None else f"query {fragment.full_name}"


def _upto(fragment: Fragment) -> str:
    if fragment.failed:
        return "has failed"
    return f"complete up to {fragment.program.domain.moment(fragment.after)}" if fragment.begun else "not begun"


def _put_out(fragment: Fragment) -> str:
    return _counted(fragment.output.rows if fragment.output is not None else 0, "element")


def _gives(query: RunningQuery) -> str:
    return f"gives a {query.kind}"


def _counted(rows: int, what: str) -> str:
    return f"{rows:,} {what}{'' if rows == 1 else 's'}"


def _computed(fragment: Fragment) -> Iterator[str]:
    """Give what a fragment computes, and the synopses that it keeps."""
    yield from tree(fragment.part.plan, "  ").splitlines()
    for synopsis in fragment.program.synopses:
        yield f"  keeps {synopsis.name}: {synopsis.bound}"
