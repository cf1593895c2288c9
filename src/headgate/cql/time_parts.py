"""The parts of statements about time: lengths, numbers and parties, from their syntax to values, each checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from headgate.catalog.catalog import Catalog
from headgate.catalog.declarations import Party
from headgate.catalog.entries import Relation, Stream
from headgate.catalog.system import refuse_if_system
from headgate.cql import syntax
from headgate.errors import Place, UserError, unknown
from headgate.ticks import UNLIMITED, Tick, TimeDomain, micros_per

Places: TypeAlias = Callable[[exp.Expression], Place | None]
Timed: TypeAlias = Stream | Relation
"""What has timestamps of its own: a stream, or a relation that changes."""

LONGEST_US = 366 * 86_400_000_000
"""The longest delay on the engine's clock: what takes effect later than a year from now is a mistake in a unit."""


@dataclass(frozen=True, slots=True)
class PartReader:
    """Reads lengths and parties of a statement, over what the catalog knows."""

    catalog: Catalog
    place: Places

    def bad(self, message: str, tree: exp.Expression, hint: str = "") -> UserError:
        """The error for a bound that makes no sense, with its place."""
        return UserError("bad-bound", message, place=self.place(tree), hint=hint)

    # lengths and numbers

    def amount(self, length: syntax.Length, word: str) -> Fraction:
        """The number of a length, whatever its unit; not negative."""
        if unit_of(length) == "UNLIMITED":
            raise self.bad(f"{word} cannot be UNLIMITED", length)
        number = Fraction(length.args["amount"])
        if number < 0:
            raise self.bad(f"{word} cannot be negative", length)
        return number

    def number(self, length: syntax.Length, word: str) -> Fraction:
        """A number without a unit."""
        number = self.amount(length, word)
        if unit_of(length) is not None:
            raise self.bad(f"{word} is a number and has no unit", length)
        return number

    def whole(self, length: syntax.Length, word: str, least: int) -> int:
        """A whole number, `least` or more."""
        number = self.amount(length, word)
        if number.denominator != 1 or not least <= number < UNLIMITED:
            raise self.bad(f"{word} must be a whole number{f', {least} or more' if least else ''}", length)
        return int(number)

    def exact_ticks(self, length: syntax.Length, word: str, domain: TimeDomain) -> Fraction:
        """A length of a stream's time in ticks, not rounded."""
        self.amount(length, word)
        if unit_of(length) == "TUPLE":
            raise self.bad(f"{word} is a length of time, not a number of tuples", length)
        return self.catalog.exact_ticks(length.args["amount"], unit_of(length), domain, self.place(length))

    def ticks(self, length: syntax.Length, word: str, domain: TimeDomain) -> Tick:
        """A length of a stream's time in whole ticks."""
        if self.exact_ticks(length, word, domain) >= UNLIMITED:
            raise self.bad(f"{word} is longer than time itself", length)
        return self.catalog.ticks(length.args["amount"], unit_of(length), domain, self.place(length))

    def micros(self, length: syntax.Length, word: str) -> int:
        """A length of the engine's clock; a bare number is seconds."""
        number, unit = self.amount(length, word), unit_of(length) or "SECOND"
        if unit in ("TICK", "TUPLE"):
            counted = "in ticks" if unit == "TICK" else "in tuples"
            hint = f"Write {length.args['amount']} SECONDS, or another unit of time."
            raise self.bad(f"{word} is measured on the engine's clock, not {counted}", length, hint)
        micros = number * micros_per(unit)
        if micros.denominator != 1 or micros >= UNLIMITED:
            raise self.bad(f"{word} is not a whole number of microseconds that the engine's clock can count", length)
        return int(micros)

    def delay(self, length: syntax.Length, word: str) -> int:
        """A delay on the engine's clock: what waits for it is kept until then."""
        micros = self.micros(length, word)
        if micros > LONGEST_US:
            raise self.bad(f"{word} is longer than a year", length, "Is the unit the right one?")
        return micros

    def no_more(self, number: int, most: int, length: syntax.Length) -> int:
        """The number, which must not be larger than `most`."""
        if number > most:
            raise self.bad(f"{number:,} is too many: there can be {most:,}", length)
        return number

    # parties

    def timed(self, identifier: exp.Identifier) -> Timed:
        """The stream or changing relation of that name, which has a clock that can be spoken of."""
        found = self.known(identifier)
        self.refuse_without_clock(found, identifier)
        return found

    def known(self, identifier: exp.Identifier) -> Timed:
        """The stream or relation of that name, stamped by its source or by the engine."""
        catalog, name, place = self.catalog, identifier.name, self.place(identifier)
        if name.lower() in catalog.views:
            raise UserError(
                "wrong-kind",
                f'"{name}" is a view, and its time is that of the streams it reads',
                place=place,
                hint="Name one of those.",
            )
        found = catalog.streams.get(name.lower()) or catalog.relations.get(name.lower())
        refuse_if_system(name, place)
        if found is None:
            raise unknown("stream", name, (one.name for one in all_timed(catalog)), place)
        return found

    def refuse_without_clock(self, found: Timed, tree: exp.Expression) -> None:
        """Refuse a stream or relation whose timestamps do not come from its source."""
        reasons = {
            "internal": "is stamped on entry",
            "latent": "is taken in the order of arrival",
            "fixed": "never changes",
        }
        how = found.stamped if isinstance(found, Stream) else "external" if found.domain is not None else "fixed"
        if how in reasons:
            kind = type(found).__name__.lower()
            raise UserError(
                "needs-no-bounds",
                f'{kind} "{found.name}" {reasons[how]} and needs no bounds',
                place=self.place(tree),
                hint="They are for timestamps that the source gives: TIMESTAMP BY.",
            )

    def domain(self, found: Timed) -> TimeDomain:
        """The kind of time of a stream that its source stamps."""
        assert found.domain is not None  # see refuse_without_clock
        return found.domain

    def parties(self, tree: syntax.Party) -> tuple[Timed, list[Party]]:
        """The stream, and the sources of it that are named; without SOURCE the stream itself."""
        found, sources = self.timed(tree.this), tree.args.get("sources") or ()
        if sources and not has_sources(found):
            raise self.no_sources(found, sources[0])
        return found, [Party(found.name, source.name) for source in sources] or [Party(found.name)]

    def no_sources(self, found: Timed, tree: exp.Expression) -> UserError:
        """The error for a source of a stream that does not tell sources apart."""
        return UserError(
            "no-source-column",
            f'"{found.name}" holds one source: no column of it says which source a tuple comes from',
            place=self.place(tree),
            hint="Say SOURCE BY which column in CREATE STREAM.",
        )

    def same_domain(self, members: Sequence[tuple[Timed, exp.Expression]], hint: str = "") -> TimeDomain:
        """The kind of time they all have; each comes with where it was named."""
        first, _ = members[0]
        for other, tree in members[1:]:
            if other.domain is not first.domain:
                raise UserError(
                    "time-domains-differ",
                    f'"{first.name}" has {first.domain} and "{other.name}" has {other.domain}',
                    place=self.place(tree),
                    detail="Bounds compare timestamps, so both must be of one kind.",
                    hint=hint,
                )
        return self.domain(first)


def unit_of(length: syntax.Length) -> str | None:
    """The unit of a length as it was written; None: it was left out."""
    unit: str | None = length.args.get("unit")
    return unit


def has_sources(found: Timed) -> bool:
    """True if a stream tells sources apart (SOURCE BY)."""
    return isinstance(found, Stream) and found.source is not None


def all_timed(catalog: Catalog) -> list[Timed]:
    """All streams and relations whose timestamps come with their tuples."""
    streams: list[Timed] = [stream for stream in catalog.streams.values() if stream.stamped == "external"]
    return [*streams, *(relation for relation in catalog.relations.values() if relation.domain is not None)]
