"""Statements about time, from their syntax to the declarations of the catalog, each checked.

Two clocks are told apart. Timestamps are application time: their differences are ticks of the streams' own time. Delays
are lengths of the engine's clock, in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Any

from sqlglot import exp

from headgate.catalog.catalog import Catalog
from headgate.catalog.declarations import Counter, Declarations, Enabling, Estimation, Grouping, Party, Sensors
from headgate.catalog.entries import Stream
from headgate.catalog.skew import Bounds, SkewBound, problem
from headgate.cql import syntax
from headgate.cql.time_parts import PartReader, Places, Timed, all_timed, has_sources, unit_of
from headgate.errors import UserError, nearest, quoted, unknown
from headgate.ticks import UNLIMITED, Tick, TimeDomain, micros_per

ENVIRONMENTS = {"sensors": ("DEVIATION", "RATE"), "global_counter": ("PROCESSING",)}
"""Each with its parameters; the first must be given."""

CLOCK = "clock"
"""In place of a stream behind SKEW FROM: the date on the engine's clock, unless there is a stream of that name."""

LISTED = 5
"""So many declarations are named where one is missing."""

MOST_TUPLES = 10_000
"""The longest delay in tuples: the time manager keeps what was known before each of the last so many tuples of every
source.
"""

MOST_GROUPS = 100_000
"""More groups than this share nothing."""

ESTIMATION = ("HORIZON", "WINDOW", "WEIGHT", "FIXED", "CONFIDENCE")


@dataclass(frozen=True, slots=True)
class Promised:
    """What the clauses of CREATE STREAM declare."""

    party: Party
    disorder: Bounds | None
    latency_us: int | None
    enabling: Enabling | None = None

    def remember(self, declarations: Declarations) -> None:
        """Add it to what was declared."""
        if self.disorder is not None:
            declarations.disorders[self.party] = self.disorder
        if self.latency_us is not None:
            declarations.latencies_us[self.party] = self.latency_us
        if self.enabling is not None:
            declarations.enablings[self.party.stream] = self.enabling


def promised(tree: syntax.CreateStream, stream: Stream, catalog: Catalog, place: Places) -> Promised:
    """Read the clauses about time of a CREATE STREAM."""
    reader, disorder, latency = _Reader(catalog, place), tree.args.get("disorder"), tree.args.get("latency")
    enabling = tree.args.get("enabling")
    for given in (*(disorder or ()), *([latency] if latency else ())):
        reader.refuse_without_clock(stream, given)
    return Promised(
        Party(stream.name),
        reader.own_bounds(disorder, stream.domain) if disorder else None,
        reader.delay(latency, "LATENCY") if latency else None,
        reader.enabling(enabling, stream, tree.this) if enabling else None,
    )


def ahead(length: syntax.Length | None, stream: Stream, catalog: Catalog, place: Places) -> Tick | None:
    """How far in the future a timestamp may lie, as FUTURE says it."""
    if length is None:
        return None
    if stream.stamped != "external":
        raise UserError(
            "needs-no-bounds",
            f'no tuple of stream "{stream.name}" lies in the future: its timestamps are the engine\'s own',
            place=place(length),
        )
    return (
        UNLIMITED if unit_of(length) == "UNLIMITED" else _Reader(catalog, place).ticks(length, "FUTURE", stream.domain)
    )


def declare(tree: syntax.TimeStatement, catalog: Catalog, place: Places) -> None:
    """Carry out a statement. What it says replaces what was said of the same parties before."""
    reader = _Reader(catalog, place)
    match tree:
        case syntax.Skew():
            reader.skew(tree)
        case syntax.Disorder():
            found, (party,) = reader.parties(tree.this)
            catalog.declarations.disorders[party] = reader.own_bounds(tree.args["promises"], reader.domain(found))
        case syntax.Latency():
            _, (party,) = reader.parties(tree.this)
            catalog.declarations.latencies_us[party] = reader.delay(tree.args["length"], "LATENCY")
        case syntax.Environment():
            reader.environment(tree)
        case syntax.Estimate():
            catalog.declarations.estimations[reader.timed(tree.this).name] = reader.estimation(tree.args["parameters"])
        case syntax.Groups():
            reader.groups(tree)
        case syntax.Late():
            stream = catalog.only_stream(tree.name, "LATE", place(tree.this))
            catalog.streams[stream.name.lower()] = replace(stream, late=tree.args["policy"])
        case syntax.Future():
            stream = catalog.only_stream(tree.name, "FUTURE", place(tree.this))
            limit = ahead(tree.args["length"], stream, catalog, place)
            catalog.streams[stream.name.lower()] = replace(stream, ahead=limit)
        case syntax.Heartbeat():
            reader.heartbeat(tree)
        case syntax.Timeout():
            micros = reader.delay(tree.args["length"], "TIMEOUT")
            catalog.settings = replace(catalog.settings, timeout_us=micros)
        case _:
            raise AssertionError(tree)


def take_back(tree: syntax.TakeBack, catalog: Catalog, place: Places) -> None:
    """Forget what was declared, by the same words. Heartbeats that were given out stand."""
    reader, said = _Reader(catalog, place), tree.this
    if not reader.forget(said) and not tree.args.get("if_exists"):
        word = said.key.upper()
        raise UserError(
            "nothing-declared",
            f"no such {word} is declared, so there is none to take back",
            place=place(said),
            detail=reader.declared(said),
            hint=f"DROP {word} IF EXISTS takes nothing back without an error.",
        )


@dataclass(frozen=True, slots=True)
class _Reader(PartReader):
    """Reads statements about time into the declarations of the catalog."""

    def skew(self, tree: syntax.Skew) -> None:
        """SKEW FROM one party, or the clock, TO another."""
        start, target = tree.this, tree.args["to"]
        if self.from_clock(tree):
            self.skew_from_clock(tree)
            return
        (first, (one,)), (second, (other,)) = self.parties(start), self.parties(target)
        bounds = self.bounds(tree.args["promises"], self.same_domain([(first, start.this), (second, target.this)]))
        if one == other and (one.source is not None or not has_sources(first)):
            self.catalog.declarations.disorders[one] = bounds
        else:
            self.catalog.declarations.skews[one, other] = bounds

    def from_clock(self, tree: syntax.Skew) -> bool:
        """True if a SKEW is from the engine's clock, and not from a stream called CLOCK."""
        start = tree.this
        return start.name.lower() == CLOCK and not start.args.get("sources") and not self.catalog.has_source(CLOCK)

    def forget(self, tree: syntax.TimeStatement) -> bool:
        """Take a declaration back; whether it was there."""
        known, catalog = self.catalog.declarations, self.catalog
        match tree:
            case syntax.Timeout():
                before, catalog.settings = catalog.settings, replace(catalog.settings, timeout_us=None)
                return before.timeout_us is not None
            case syntax.Late():
                stream = catalog.only_stream(tree.name, "LATE", self.place(tree.this))
                catalog.streams[stream.name.lower()] = replace(stream, late="keep")
                return stream.late != "keep"
            case syntax.Future():
                stream = catalog.only_stream(tree.name, "FUTURE", self.place(tree.this))
                catalog.streams[stream.name.lower()] = replace(stream, ahead=None)
                return stream.ahead is not None
            case syntax.Heartbeat():
                found = None if tree.this is None else self.known(tree.this).name
                return known.enablings.pop(found, None) is not None
            case syntax.Estimate():
                return known.estimations.pop(self.timed(tree.this).name, None) is not None
            case syntax.Groups():
                return known.groupings.pop(self.timed(tree.this).name, None) is not None
            case syntax.Disorder():
                return known.disorders.pop(self.parties(tree.this)[1][0], None) is not None
            case syntax.Latency():
                return known.latencies_us.pop(self.parties(tree.this)[1][0], None) is not None
            case syntax.Skew():
                return self.forget_skew(tree)
            case syntax.Environment():
                return self.forget_environment(tree)
        raise AssertionError(tree)

    def forget_skew(self, tree: syntax.Skew) -> bool:
        """Forget a SKEW; True if there was one."""
        known = self.catalog.declarations
        if self.from_clock(tree):
            return known.calendar.pop(self.parties(tree.args["to"])[0].name, None) is not None
        (first, (one,)), (_, (other,)) = self.parties(tree.this), self.parties(tree.args["to"])
        if one == other and (one.source is not None or not has_sources(first)):
            return known.disorders.pop(one, None) is not None
        return known.skews.pop((one, other), None) is not None

    def forget_environment(self, tree: syntax.Environment) -> bool:
        """Of those that OF names: a stream that is no member itself stands for its sources that are. Without OF, of
        all.
        """
        name = tree.name.lower()
        if name not in ENVIRONMENTS:
            raise unknown("environment", tree.name, ENVIRONMENTS, self.place(tree.this))
        known: dict[Party, Any] = getattr(self.catalog.declarations, "sensors" if name == "sensors" else "counters")
        gone = list(known) if not tree.args.get("members") else []
        for member in tree.args.get("members") or ():
            _, parties = self.parties(member)
            if parties[0].source is None and parties[0] not in known:
                parties = [party for party in known if party.stream == parties[0].stream]
            gone += parties
        there = [party for party in dict.fromkeys(gone) if party in known]
        for party in there:
            del known[party]
        return bool(there) and len(there) == len({*gone})

    def declared(self, tree: syntax.TimeStatement) -> str:
        """What of the kind is declared, in words."""
        known = self.catalog.declarations
        pairs = [f"FROM {one} TO {other}" for one, other in known.skews] + [
            f"FROM CLOCK TO {name}" for name in known.calendar
        ]
        environments: dict[str, Iterable[Party]] = {"sensors": known.sensors, "global_counter": known.counters}
        found: dict[str, Iterable[Any]] = {
            "skew": pairs,
            "disorder": (f"OF {party}" for party in known.disorders),
            "latency": (f"OF {party}" for party in known.latencies_us),
            "environment": (f"{name} OF {party}" for name, parties in environments.items() for party in parties),
            "estimate": (f"OF {name}" for name in known.estimations),
            "groups": (f"OF {name}" for name in known.groupings),
            "heartbeat": (f"OF {name}" if name else "of all" for name in known.enablings),
        }
        listed = list(islice(found.get(tree.key, ()), LISTED))
        return f"Declared are {tree.key.upper()} {', '.join(listed)}." if listed else ""

    def skew_from_clock(self, tree: syntax.Skew) -> None:
        """SKEW FROM CLOCK TO a stream."""
        target = tree.args["to"]
        found, (party,) = self.parties(target)
        if party.source is not None:
            raise self.bad("the clock speaks of a stream, not of one source of it", target.args["sources"][0])
        if found.domain is not TimeDomain.TIMESTAMP:
            raise UserError(
                "time-domains-differ",
                f'the clock shows TIMESTAMP time and "{found.name}" has {found.domain}',
                place=self.place(target.this),
                detail="Which of its integers is now, the date does not say.",
                hint=f"HEARTBEAT OF {found.name} ON DEMAND WITHIN ... counts from its last tuple, in units of SET "
                "time_unit.",
            )
        bounds = self.bounds(tree.args["promises"], found.domain)
        for promise, bound in zip(tree.args["promises"], bounds, strict=True):
            if bound.tuples:
                raise self.bad("what the clock says waits for a time, not for tuples", promise)
        self.catalog.declarations.calendar[found.name] = bounds

    def heartbeat(self, tree: syntax.Heartbeat) -> None:
        """HEARTBEAT OF a stream, or of all that have none of their own."""
        found = self.known(tree.this) if tree.this is not None else None
        said = self.enabling(tree, found, tree.this)
        self.catalog.declarations.enablings[None if found is None else found.name] = said

    def enabling(self, tree: syntax.Heartbeat, found: Timed | None, named: exp.Identifier | None) -> Enabling:
        """When the clock is to say how far a stream is, and how far behind the clock the stream may be."""
        how, every, within = (tree.args.get(part) for part in ("how", "every", "within"))
        if found is not None and named is not None and found.domain in (None, TimeDomain.ARRIVAL):
            kind, why = (
                ("relation", "never changes")
                if found.domain is None
                else ("stream", "is taken in the order of arrival")
            )
            raise UserError(
                "needs-no-bounds", f'{kind} "{found.name}" {why} and follows no clock', place=self.place(named)
            )
        every_us = self.delay(every, "EVERY") if every is not None else 0
        if every is not None and not every_us:
            raise self.bad("EVERY must be longer than nothing", every)
        if within is None:
            return Enabling(how, every_us)
        if found is None:
            raise self.bad("WITHIN is said of one stream", within, "HEARTBEAT OF stream ... WITHIN ...")
        if how == "none":
            raise self.bad("HEARTBEAT NONE takes nothing from the clock, so it has no WITHIN", within)
        self.refuse_without_clock(found, within)
        in_time = found.domain is TimeDomain.TIMESTAMP
        tick_us = Fraction(1) if in_time else self.catalog.settings.unit_seconds * 1_000_000
        return Enabling(how, every_us, self.ticks(within, "WITHIN", self.domain(found)), tick_us)

    def own_bounds(self, promises: Sequence[syntax.Length | syntax.Promise], domain: TimeDomain) -> Bounds:
        """Of a source with itself. `DISORDER d` lets a tuple come d behind the largest: later than d and a tick behind
        it.
        """
        if isinstance(promises[0], syntax.Length):
            return (SkewBound(self.ticks(promises[0], "DISORDER", domain) + 1),)
        return self.bounds(promises, domain)

    def bounds(self, promises: Sequence[syntax.Promise], domain: TimeDomain) -> Bounds:
        """A set of bounds, checked."""
        bounds: list[SkewBound] = []
        for promise in promises:
            within = self.ticks(promise.args["within"], "WITHIN", domain)
            after = promise.args.get("after")
            if after is None:
                bounds.append(SkewBound(within))
            elif unit_of(after) == "TUPLE":
                bounds.append(SkewBound(within, tuples=self.no_more(self.whole(after, "AFTER", 0), MOST_TUPLES, after)))
            else:
                bounds.append(SkewBound(within, after_us=self.delay(after, "AFTER")))
            if (wrong := problem(bounds)) is not None:
                raise self.bad(wrong, promise)
        return tuple(bounds)

    def environment(self, tree: syntax.Environment) -> None:
        """ENVIRONMENT of sensors or of a global counter."""
        name = tree.name.lower()
        if name not in ENVIRONMENTS:
            raise unknown("environment", tree.name, ENVIRONMENTS, self.place(tree.this))
        given = self.parameters(tree.args["parameters"], f'environment "{name}"', ENVIRONMENTS[name])
        required = ENVIRONMENTS[name][0]
        if required not in given:
            raise self.bad(f'environment "{name}" needs {required}', tree.this)
        members, parties, hint = self.members(tree)
        domain = self.same_domain(members, hint)
        if name == "sensors":
            sensors = Sensors(
                self.ticks(self.value(given[required]), required, domain), self.rate(given.get("RATE"), domain)
            )
            self.catalog.declarations.sensors.update(dict.fromkeys(parties, sensors))
            return
        if domain is not TimeDomain.INTEGER:
            raise UserError(
                "time-domains-differ",
                f'a global counter gives integers, and "{members[0][0].name}" has {domain}',
                place=self.place(tree.this),
                hint="ENVIRONMENT sensors is for clocks.",
            )
        counter = self.counter(given[required])
        self.catalog.declarations.counters.update(dict.fromkeys(parties, counter))

    def members(self, tree: syntax.Environment) -> tuple[list[tuple[Timed, exp.Expression]], list[Party], str]:
        """Who belongs to an environment: those that OF names, or all; in the latter case with the hint to name them."""
        if tree.args.get("members"):
            named = [(*self.parties(member), member.this) for member in tree.args["members"]]
            return (
                [(found, where) for found, _, where in named],
                [party for _, parties, _ in named for party in parties],
                "",
            )
        everyone = all_timed(self.catalog)
        if not everyone:
            raise UserError(
                "no-such-stream",
                "there is no stream for this environment yet",
                place=self.place(tree.this),
                hint="Say it behind CREATE STREAM.",
            )
        hint = f"Say which are meant: OF {everyone[0].name}."
        return [(found, tree.this) for found in everyone], [Party(found.name) for found in everyone], hint

    def rate(self, parameter: syntax.Parameter | None, domain: TimeDomain) -> Fraction | None:
        """How far clocks advance at least, in ticks a second of the engine's clock."""
        if parameter is None:
            return None
        length, per = self.value(parameter), parameter.args.get("per") or "SECOND"
        if per == "TICK":
            raise self.bad("PER is measured on the engine's clock, not in ticks", parameter.this)
        ticks = self.exact_ticks(length, "RATE", domain)
        if not 0 < ticks < UNLIMITED:
            raise self.bad("RATE must be more than nothing", length, "Leave it out if the clocks may stand still.")
        return ticks * 1_000_000 / micros_per(per)

    def counter(self, parameter: syntax.Parameter) -> Counter:
        """The environment of a global counter."""
        least, most = self.value(parameter), parameter.args.get("to")
        if most is None:
            raise self.bad(
                "PROCESSING needs the least and the most that it takes",
                parameter.this,
                "Write PROCESSING 1 MILLISECOND TO 5 SECONDS.",
            )
        counter = Counter(self.delay(least, "PROCESSING"), self.delay(most, "PROCESSING"))
        if counter.least_us > counter.most_us:
            raise self.bad(
                "the least that PROCESSING takes is more than the most", most, "Write the shorter length first."
            )
        return counter

    def parameters(
        self, given: Sequence[syntax.Parameter], owner: str, known: Sequence[str]
    ) -> dict[str, syntax.Parameter]:
        """Parameters by their names, each known and given once, with TO and PER only where they belong."""
        found: dict[str, syntax.Parameter] = {}
        for parameter in given:
            word = parameter.name.upper()
            if word not in known:
                raise UserError(
                    "no-such-parameter",
                    f'{owner} has no parameter "{parameter.name}"',
                    place=self.place(parameter.this),
                    detail=f"There are {quoted(known)}.",
                    hint=nearest(word, known),
                )
            if word in found:
                raise self.bad(f"{word} stands twice", parameter.this)
            for part, owning in (("to", "PROCESSING"), ("per", "RATE")):
                if parameter.args.get(part) is not None and word != owning:
                    raise self.bad(f"{part.upper()} belongs to {owning}, not to {word}", parameter.this)
            found[word] = parameter
        return found

    def value(self, parameter: syntax.Parameter) -> syntax.Length:
        """The value of a parameter, which must be given."""
        value = parameter.args.get("value")
        if value is None:
            raise self.bad(f"{parameter.name.upper()} needs a value", parameter.this)
        assert isinstance(value, syntax.Length)
        return value

    def estimation(self, given: Sequence[syntax.Parameter]) -> Estimation:
        """How bounds are to be learnt, by the parameters of ESTIMATE."""
        chosen: dict[str, Any] = {}
        for word, parameter in self.parameters(given, "ESTIMATE", ESTIMATION).items():
            match word:
                case "FIXED":
                    if parameter.args.get("value") is not None:
                        raise self.bad("FIXED has no value", parameter.args["value"])
                    chosen["adaptive"] = False
                case "HORIZON":
                    chosen["horizon_us"] = self.delay(self.value(parameter), word)
                case "WINDOW":
                    chosen["window_tuples"], chosen["window_us"] = self.window(self.value(parameter))
                case "WEIGHT":
                    weight = self.number(self.value(parameter), word)
                    if weight > 1:
                        raise self.bad("WEIGHT is a part of one, from 0 to 1", self.value(parameter))
                    chosen["weight"] = float(weight)
                case _:
                    confidence = self.number(self.value(parameter), word)
                    if not 0 < confidence < 1:
                        raise self.bad(
                            "CONFIDENCE is a part of one, between 0 and 1", self.value(parameter), "Write 0.99."
                        )
                    chosen["confidence"] = float(confidence)
        return Estimation(**chosen)

    def window(self, length: syntax.Length) -> tuple[int | None, int | None]:
        """How much must pass before an estimate is lowered: tuples or microseconds; for ever, neither."""
        match unit_of(length):
            case "UNLIMITED":
                return None, None
            case "TUPLE":
                return self.whole(length, "WINDOW", 1), None
            case None:
                written = length.args["amount"]
                raise self.bad("WINDOW needs a unit", length, f"Write {written} TUPLES or {written} SECONDS.")
            case _:
                if not (micros := self.micros(length, "WINDOW")):
                    raise self.bad("WINDOW must be longer than nothing", length)
                return None, micros

    def groups(self, tree: syntax.Groups) -> None:
        """GROUPS OF a stream: so many, or sets of sources."""
        found, count = self.timed(tree.this), tree.args.get("count")
        if not has_sources(found):
            raise self.no_sources(found, tree.this)
        seen: set[str] = set()
        for source in (source for group in tree.args.get("sets") or () for source in group.expressions):
            if source.name in seen:
                raise self.bad(f"source '{source.name}' stands in the groups twice", source)
            seen.add(source.name)
        if count is not None:
            self.number(count, "GROUPS")
            grouping = Grouping(count=self.no_more(self.whole(count, "GROUPS", 1), MOST_GROUPS, count))
        else:
            grouping = Grouping(
                sets=tuple(tuple(source.name for source in group.expressions) for group in tree.args["sets"])
            )
        self.catalog.declarations.groupings[found.name] = grouping
