"""Plans and programs as text for people: the query with its defaults, the plan as a tree, the SQL of an epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, assert_never

from headgate.catalog import sinks
from headgate.catalog.entries import Query
from headgate.plan.monotone import applied
from headgate.plan.nodes import (
    Aggregate,
    Distinct,
    Dstream,
    Exploded,
    Filter,
    Final,
    Frame,
    Istream,
    Join,
    Needed,
    Node,
    Now,
    Passed,
    Piped,
    Project,
    Range,
    Ranked,
    Rows,
    Rstream,
    Source,
    Stored,
    Unbounded,
    Union,
    Values,
    Weight,
    Window,
    children,
    domain,
    sources,
)
from headgate.plan.properties import flowing
from headgate.scope import described
from headgate.ticks import Tick, TimeDomain

if TYPE_CHECKING:
    from headgate.delta.program import Program
    from headgate.plan.fragments import Part
    from headgate.scope import Groups


def explained(
    query: Query,
    parts: Sequence[tuple[Part, Program]],
    time: str = "",
    waits: Mapping[str, frozenset[str]] | None = None,
    groups: Mapping[str, Groups] | None = None,
) -> str:
    """Everything `headgate explain` says of a query that runs in these parts, the last of which gives the answer.

    `time` is what is known of its progress, `waits` for which streams each part waits, `groups` how their sources are
    grouped."""
    said = [
        f"query {query.name} ({parts[-1][1].kind})",
        _section("with all defaults", query.resolved),
        _section("plan", tree(query.bound)),
    ]
    if query.rules:
        said.append(_section(f"plan rewritten: {', '.join(query.rules)}", tree(query.plan)))
    if query.connector is not None:
        said.append(_section("goes", sinks.described(query.connector)))
    if len(parts) > 1:
        waits = waits or {part.name: part.streams for part, _ in parts}
        cuts = [
            f"{part.name}: waits for {', '.join(sorted(waits[part.name]))}\n{tree(part.plan, '  ')}"
            for part, _ in parts
        ]
        said.append(_section(f"cut into fragments, heartbeats by {query.heartbeats}", "\n".join(cuts)))
    if time:
        said.append(_section("time", time))
    if shown := _groups(query, parts, groups or {}):
        said.append(_section("groups", "\n".join(shown)))
    if query.ordering == "needed" and flowing(query.plan):
        said.append(_section("order", _order(parts[-1][0])))
    for part, program in parts:
        said += _program(program, f"{part.name}: " if len(parts) > 1 else "")
    return "\n\n".join(said)


def _groups(query: Query, parts: Sequence[tuple[Part, Program]], groups: Mapping[str, Groups]) -> list[str]:
    """For which groups of sources it waits, or each of its parts does."""
    if query.by_groups:
        return [f"a part of its own, which waits for no other, for group {described(seen)}" for seen in query.by_groups]
    several = len(parts) > 1
    return [
        f"{f'{part.name}: ' if several else ''}sees of {stream} only {scope}"
        + (f", waits for group {groups[stream].waited_for(scope)}" if stream in groups else "")
        for part, _ in parts
        for stream, scope in part.scopes.items()
    ]


def _order(part: Part) -> str:
    if len(sources(part.plan)) == 1:
        return "each tuple is answered as it comes, in whatever order they come"
    return "timestamps in order; the tuples of an instant do not wait for one another"


def _program(program: Program, whose: str) -> list[str]:
    parts = []
    if program.inputs:
        parts.append(_section(f"{whose}reads", "\n".join(map(str, program.inputs))))
    parts.append(_section(f"{whose}keeps", "\n".join(map(str, program.state())) or "nothing"))
    if program.fallbacks:
        parts.append(_section(f"{whose}runs by the universal rule", "\n".join(program.fallbacks)))
    parts.append(_section(f"{whose}an epoch (since, until]", program.output()))
    for synopsis in program.synopses:
        parts.append(_section(f"{whose}{synopsis.name} as of until", program.contents(synopsis)))
    return parts


def _section(title: str, body: str) -> str:
    return f"-- {title}\n{body}"


def tree(node: Node, prefix: str = "", joint: str = "") -> str:
    lines = [f"{joint}{label(node)}"]
    below = children(node)
    for position, child in enumerate(below):
        last = position == len(below) - 1
        text = tree(child).splitlines()
        lines.append(f"{'└─ ' if last else '├─ '}{text[0]}")
        lines += [f"{'   ' if last else '│  '}{line}" for line in text[1:]]
    return "\n".join(prefix + line for line in lines)


def label(node: Node) -> str:
    match node:
        case Source(stream):
            return f"stream {stream}"
        case Istream():
            return "istream"
        case Dstream():
            return "dstream"
        case Rstream(every=every):
            return f"rstream{f' every {span(every, domain(node))}' if every else ''}"
        case Window(frame=frame, stamp=stamp):
            return f"window {frame_label(frame, domain(node))}{f' with its timestamps as {stamp}' if stamp else ''}"
        case Filter(condition=condition):
            return f"filter {condition.sql}"
        case Project(items=items):
            shown = (
                i.expression.sql if i.expression.column == i.name else f"{i.expression.sql} AS {i.name}" for i in items
            )
            return f"project {', '.join(shown)}"
        case Join(equalities=equalities, condition=condition):
            on = [f"{e.left.sql} {'<=>' if e.null_safe else '='} {e.right.sql}" for e in equalities]
            on += [condition.sql] if condition else []
            return f"join on {' AND '.join(on)}" if on else "cross join"
        case Union():
            return "union all"
        case Aggregate(keys=keys, calls=calls):
            by = f" by {', '.join(key.expression.sql for key in keys)}" if keys else ""
            return f"aggregate {', '.join(call.sql for call in calls) or 'nothing'}{by}"
        case Distinct():
            return "distinct"
        case Weight(factor=factor):
            return "taken away" if factor.sql == "-1" else f"as often as {factor.sql}"
        case Exploded(generator=generator, outer=outer, made=made):
            return f"lateral view {'outer ' if outer else ''}{generator.sql} as {', '.join(made)}"
        case Ranked(items=items):
            return f"ranked {', '.join(f'{item.expression.sql} AS {item.name}' for item in items)}"
        case Needed(because=because):
            return f"needed while there can be a partner by {because}"
        case Stored(relation):
            return f"relation {relation}"
        case Piped(log=log):
            return f"what {log} puts out"
        case _:
            assert_never(node)


def frame_label(frame: Frame, time: TimeDomain) -> str:
    match frame:
        case Now():
            return "[now]"
        case Unbounded():
            return "[range unbounded]"
        case Range(length, slide, closed):
            bound = "" if closed else ", half-open"
            return f"[range {span(length, time)}{f' slide {span(slide, time)}' if slide else ''}{bound}]"
        case Rows(count, by, lasting, slide, step):
            partition = f"partition by {', '.join(by)} " if by else ""
            spanned = f" for {span(lasting, time)}" if lasting is not None else ""
            sliding = f" slide {span(slide, time) if slide else f'{step} rows'}" if slide or step else ""
            return f"[{partition}rows {count}{spanned}{sliding}]"
        case Final(values):
            return (
                f"[final when {' or '.join(applied(one.value.steps, one.value.column) for one in values)} has passed]"
            )
        case Passed(value=value, rises=rises):
            return f"[final when {value} {'rises' if rises else 'falls'}]"
        case Values(column, _, length, closed):
            return f"[range {length} on {column}{'' if closed else ', half-open'}]"
        case _:
            assert_never(frame)


def span(length: Tick, time: TimeDomain) -> str:
    return f"{length / 1_000_000:g} seconds" if time is TimeDomain.TIMESTAMP else str(length)
