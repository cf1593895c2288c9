"""Plans and programs as text for people: the query with its defaults, the plan as a tree, the SQL of an epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headgate.catalog import sinks
from headgate.catalog.entries import Query
from headgate.cql.stages import Shuffle, shuffles
from headgate.masking import masked
from headgate.plan.fragments import all_parts, split
from headgate.plan.join_orders import described as described_joins
from headgate.plan.needs import Need, needs
from headgate.plan.nodes import Node, children, is_stream, sources
from headgate.plan.weights import MAX, SUM, is_partial
from headgate.scope import described
from headgate.sql import spelled

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
    shared: Mapping[str, Sequence[str]] | None = None,
    low_level: bool = False,
) -> str:
    """Everything `headgate explain` says of a query that runs in these parts, the last of which gives the answer.

    `time` is what is known of its progress, `waits` for which streams each part waits, `groups` how their sources are
    grouped, `shared` which other queries read each part that is shared, `low_level` whether logs keep only what is
    needed.
    """
    said = [
        f"query {query.name} ({parts[-1][1].kind})",
        _section("with all defaults", query.resolved),
    ]
    if query.gsql is not None:
        said[1:1] = [_section("in GSQL", query.gsql.text), _section("which amounts to this CQL", query.text)]
    if query.family is not None:
        said.append(_section(f"for each row of {query.family.relation}, which amounts to", query.family.text))
    said.append(_section("plan", tree(query.bound)))
    if query.rules:
        said.append(_section(f"plan rewritten: {', '.join(query.rules)}", tree(query.plan)))
    if query.connector is not None:
        said.append(_section("goes", sinks.described(query.connector)))
    if query.skips:
        said.append(_section("on error skip", _on_error(query)))
    if query.early is not None:
        said.append(_section("answers early", _early(query)))
    said.append(_section("consistency", _consistency(query, [part for part, _ in parts], parts[-1][1].by_arrival)))
    if low_level:
        wanted = (f"{stream}: {kept(need)}" for stream, need in sorted(needs(query.plan).items()))
        said.append(_section("needs of its streams; their logs keep what any query needs", "\n".join(wanted)))
    if len(parts) > 1:
        waits = waits or {part.name: part.streams for part, _ in parts}
        cuts = [
            f"{part.name}: waits for {', '.join(sorted(waits[part.name]))}\n{tree(part.plan, '  ')}"
            for part, _ in parts
        ]
        said.append(_section(f"cut into fragments, heartbeats by {query.heartbeats}", "\n".join(cuts)))
    if shared:
        with_whom = [f"{name}: with {', '.join(others) or 'no other query now'}" for name, others in shared.items()]
        said.append(_section("shares", "\n".join(with_whom)))
    if time:
        said.append(_section("time", time))
    if shown := _groups(query, parts, groups or {}):
        said.append(_section("groups", "\n".join(shown)))
    if query.ordering == "needed" and is_stream(query.plan) and query.plan.flowing:
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


def _on_error(query: Query) -> str:
    """What becomes of rows that cannot be evaluated."""
    if not query.left_out:
        return "nothing in it can fail"
    return f"rows that cannot be evaluated are left out, and kept: ERRORS({spelled(query.name)})"


def _early(query: Query) -> str:
    """When it answers from what has come beyond its heartbeats."""
    assert query.early is not None
    every = f", {query.early.every_us / 1e6:g} s apart at the least" if query.early.every_us else ""
    return (
        f"from what has come beyond the heartbeats{every}: an epoch up to the newest tuple, of which nothing counts;\n"
        "it gives way to the settled answer when the heartbeats get there"
    )


def _consistency(query: Query, parts: Sequence[Part], by_arrival: bool) -> str:
    """Which level its answers have, by construction or by a method, and what that costs."""
    early = query.early
    settled = "settled answers are synchronized by construction: all inputs up to one instant; it costs nothing"
    if by_arrival:
        settled = "input-prefix consistent by construction: each tuple is answered as it comes; it costs nothing"
    elif query.by_groups:
        settled = (
            "settled answers of each group are synchronized by construction; one group may be further than another"
        )
    if early is None or by_arrival:
        return settled
    if len(parts) == 1 or query.by_groups:
        cut = ", cut at the last instant that every stream has reached" if early.level == "synchronized" else ""
        whole = not query.by_groups and len(all_parts(split(query.plan, "stages"))) > 1
        cost = (
            "its statement is long, which costs more than draining if it has to be divided"
            if whole
            else "it costs nothing"
        )
        return (
            f"early answers are input-prefix consistent by construction{cut}: one fragment reads all inputs up to one\n"
            f"point of their order of arrival; {cost}\n{settled}"
        )
    stages = len(parts)
    unsure = "given, and marked" if early.marked else "held back"
    match early.level, early.method:
        case "none", _:
            said = f"none: {stages} stages run side by side, and an answer may have part of an update; it costs nothing"
        case level, "tokens":
            said = (
                f"{level}, by tokens ({early.tokens}): {stages} stages run side by side and wait for one another at\n"
                f"each token, so that an answer is as many turns old as stages lie on its way; others are {unsure}"
            )
        case level, "draining":
            said = (
                f"{level}, by draining: {stages} stages run in turn, one statement for each level of the plan; no\n"
                "answer has to be held back or marked"
            )
        case level, method:
            how = "a look through all queues" if method == "heeding-scan" else "a look at the labels that are counted"
            said = (
                f"{level}, by heeding: {stages} stages run side by side, {how} in each turn; an answer is consistent\n"
                f"when nothing of what it has is under way, which may take until input pauses; others are {unsure}"
            )
    return f"{said}\n{settled}"


def _order(part: Part) -> str:
    if len(sources(part.plan)) == 1:
        return "each tuple is answered as it comes, in whatever order they come"
    return "timestamps in order; the tuples of an instant do not wait for one another"


def _program(program: Program, whose: str) -> list[str]:
    parts = []
    if program.inputs:
        parts.append(_section(f"{whose}reads", "\n".join(map(str, program.inputs))))
    targets = {"results": program.result, **{synopsis.name: synopsis.contents for synopsis in program.synopses}}
    scans = [f"{what}: {_times(program.scans(step))}" for what, step in targets.items()]
    parts.append(_section(f"{whose}scans", "\n".join(scans)))
    stages = [f"{what}: {_stages(shuffles(program.texts(step)))}" for what, step in targets.items()]
    parts.append(_section(f"{whose}stages of a large epoch", "\n".join(stages)))
    if program.groups:
        pairs = zip(program.groups, program.arrangements, strict=True)
        lines = [line for group, arrangement in pairs for line in described_joins(group, arrangement)]
        parts.append(_section(f"{whose}join orders, which follow counted rows", "\n".join(lines)))
    parts.append(_section(f"{whose}keeps", "\n".join(map(str, program.state())) or "nothing"))
    if program.assumed:
        said = "\n".join(map(str, sorted(program.assumed)))
        parts.append(_section(f"{whose}takes for granted, until a chunk says otherwise", said))
    if program.fallbacks:
        parts.append(_section(f"{whose}runs by the universal rule", "\n".join(program.fallbacks)))
    parts.append(_section(f"{whose}an epoch (since, until]", program.output()))
    for synopsis in program.synopses:
        parts.append(_section(f"{whose}{synopsis.name} as of until", program.step_statement(synopsis.contents)))
        if synopsis.from_logs is not None:
            text = program.step_statement(synopsis.from_logs)
            parts.append(_section(f"{whose}{synopsis.name} as of until, where less of the log is read that way", text))
    return parts


def _times(scans: Mapping[str, int]) -> str:
    """The inputs that are scanned, each with the number of scans if there are several."""
    return ", ".join(f"{name} {times} times" if times > 1 else name for name, times in scans.items()) or "nothing"


def _stages(found: Sequence[Shuffle]) -> str:
    """How many stages there are, and where rows are dealt to the tasks anew between two of them."""
    if not found:
        return "1"
    return f"{len(found) + 1}, dealt anew at {'; '.join(map(str, found))}"


def _section(title: str, body: str) -> str:
    return f"-- {title}\n{masked(body)}"


def kept(need: Need) -> str:
    """What is needed of a stream, in words."""
    which = "of all tuples" if need.condition is None else f"of tuples with {need.condition}"
    read = sorted(name for name in need.columns if not is_partial(name))
    return f"{', '.join(read) or 'no column'} {which}{_put_together(need)}"


def _put_together(need: Need) -> str:
    """Which tuples are kept as one, in words."""
    if need.told is None:
        return ""
    instants = "of one instant"
    if need.coarse:
        widths = sorted({width for _, width in need.told.grains})
        instants = f"in one bucket of {' and of '.join(f'{width:,}' for width in widths)} ticks"
    values = {name: [kind for mark, kind in ((SUM, "sum"), (MAX, "largest")) if mark + name in need.columns]
              for name in sorted(need.columns - need.told.columns) if not is_partial(name)}  # fmt: skip
    kept = [f"the {' and the '.join(kinds)} of {name}" for name, kinds in values.items() if kinds]
    return f", equal ones {instants} once, with their number{''.join(f', {one}' for one in kept)}"


def tree(node: Node, prefix: str = "", joint: str = "") -> str:
    lines = [f"{joint}{node.label}"]
    below = children(node)
    for position, child in enumerate(below):
        last = position == len(below) - 1
        text = tree(child).splitlines()
        lines.append(f"{'└─ ' if last else '├─ '}{text[0]}")
        lines += [f"{'   ' if last else '│  '}{line}" for line in text[1:]]
    return "\n".join(prefix + line for line in lines)
