"""Which sources of a stream a reader can see: those it names, or all but those it names.

A query with `WHERE device = 'roof'` can see one source of its stream. Where the sources are in groups it waits only for
the group of that one, and only tuples of that one are late behind what it was promised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce

from headgate.sql import Sql, literal, name


@dataclass(frozen=True, slots=True)
class Scope:
    """A set of sources of one stream: the named ones, or all but those."""

    sources: frozenset[str]
    others: bool = False
    """True if it is all sources but the named ones, those included that were not heard of yet."""

    def __contains__(self, source: str) -> bool:
        return (source in self.sources) != self.others

    def __or__(self, other: Scope) -> Scope:
        match self.others, other.others:
            case False, False:
                return Scope(self.sources | other.sources)
            case True, True:
                return Scope(self.sources & other.sources, True)
            case True, False:
                return Scope(self.sources - other.sources, True)
            case _:
                return other | self

    def __and__(self, other: Scope) -> Scope:
        return -(-self | -other)

    def __neg__(self) -> Scope:
        return Scope(self.sources, not self.others)

    def __le__(self, other: Scope) -> bool:
        """True if the other sees all sources that this one does."""
        return self | other == other

    def meets(self, sources: frozenset[str]) -> bool:
        """True if it sees any of these sources."""
        return not sources <= self.sources if self.others else not sources.isdisjoint(self.sources)

    def condition(self, column: str) -> Sql:
        """Which rows are of these sources, in SQL: a source is the value of its column as text, and none is the source
        ''.
        """
        if not self.sources:
            return Sql("TRUE") if self.others else Sql("FALSE")
        listed = ", ".join(map(literal, sorted(self.sources)))
        return f"COALESCE(CAST({name(column)} AS STRING), '') {'NOT IN' if self.others else 'IN'} ({listed})"

    def __str__(self) -> str:
        listed = f"({', '.join(map(literal, sorted(self.sources)))})"
        return f"all but {listed}" if self.others else listed


NOTHING, EVERYTHING = Scope(frozenset()), Scope(frozenset(), True)


@dataclass(frozen=True, slots=True)
class Groups:
    """The sources of a stream in groups. What stands in none of the sets is one more group, the rest."""

    sets: tuple[frozenset[str], ...]

    def scopes(self) -> tuple[Scope, ...]:
        """Each group as what a reader of it sees; the last one is the rest."""
        return (*map(Scope, self.sets), Scope(frozenset().union(*self.sets), True))

    def waited_for(self, scope: Scope) -> Scope:
        """All sources of the groups of which a reader can see any."""
        return _waited_for(self, scope)


@lru_cache(maxsize=4_096)
def _waited_for(groups: Groups, scope: Scope) -> Scope:
    return reduce(Scope.__or__, (group for group in groups.scopes() if group & scope != NOTHING), NOTHING)


Scopes = Mapping[str, Scope]
"""By stream; a stream that is not there is seen whole."""


def described(scopes: Scopes) -> str:
    """What a part of a query sees, in words. Streams that are read together are grouped alike, so one stands for
    all.
    """
    return ", ".join(dict.fromkeys(map(str, scopes.values())))
