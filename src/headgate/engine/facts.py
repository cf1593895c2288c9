"""The facts that an engine's journal holds about the engine itself, as it reads and writes them.

Every kind of fact is a class below, and `KINDS` is the list of all of them by the word that names a kind on disk:

    {"statement": {"cql": "CREATE STREAM s (v INT)", "said": [...], "now": 5, ...}}    Statement
    {"statement": {"cql": "CREATE GROUP g OF q", "group": "g", ...}, "v": 2}           the same of a group
    {"statement": {"cql": "select time from TCP", "language": "gsql", ...}, "v": 3}    the same of GSQL
    {"joined": ["q", "family of q", 1, 17]}                                            MemberJoined
    {"joined": ["q", "family of q", 1, 17, [[5], [60]]], "v": 2}                       the same, with lengths of windows
    {"left": ["family of q", 1]}                                                       MemberLeft
    {"sensors": ["s", {"a": 3}, "2"]}                                                  SensorsDeclared
    {"aggregate": "spread"}                                                            AggregateRegistered
    {"system": ["SYSTEM.late", "system%2Elate", 5]}                                    SystemOpened
    {"unread": "SYSTEM.late"}                                                          SystemClosed
    {"parameter": ["q", "least", 61, "100"]}                                           ParameterChanged
    {"heartbeats": {...}, "now": 5}                                                    HeartbeatsSaved
    {"told": ["pause", "s"], "now": 5}                                                 Paused
    {"told": ["resume", "s"], "now": 5}                                                Resumed
    {"told": ["finish", "s", "a"], "now": 5}                                           Finished
    {"told": ["punctuated", "s", null, 17], "now": 5}                                  Punctuated

The words belong to the format on disk and to nothing else: classes and methods can be renamed without them. A fact may
carry "v", the version of its kind, which is 1 where it is missing. A kind whose contents change gets a higher version,
and goes on reading the lower ones. A kind or a version that is not known here was written by a later version of
headgate, and is refused.

Streams, sources, queries and fragments keep facts of their own under subjects of their own: see `log.journal`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias

from headgate.errors import UserError
from headgate.sql import Sql, checked_literal
from headgate.ticks import Tick

SUBJECT = "engine"
"""The subject in the journal whose facts these are."""

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of CQL or GSQL was carried out."""

    word: ClassVar[str] = "statement"
    version: ClassVar[int] = 3
    """Version 2 has `group`, version 3 has `language`. A statement without them is written as version 1."""

    cql: str
    said: tuple[str, ...]
    """What the user wrote, if more or something else than `cql`: a query without a name was given one, a query may have
    been altered several times."""

    now: int
    """When it was carried out, in microseconds on the engine's clock."""

    query: str | None = None
    """The query that it registers."""

    folder: str | None = None
    """The folder of its files in the engine's directory: a name that is used again gets another folder."""

    groups: int = 0
    """How many parts the query runs as, if it runs by groups of sources; 0 if it runs as a whole."""

    group: str | None = None
    """The group that it registers."""

    language: Literal["cql", "gsql"] = "cql"

    def to_json(self) -> Json:
        known = {**asdict(self), "said": list(self.said)}
        version = 3 if self.language != "cql" else 2 if self.group is not None else 1
        if version < 3:
            del known["language"]
        if version < 2:
            del known["group"]
            return {"statement": known}
        return {"statement": known, "v": version}

    @classmethod
    def from_json(cls, what: Json) -> Statement:
        return cls(**{**what["statement"], "said": tuple(what["statement"]["said"])})


@dataclass(frozen=True, slots=True)
class MemberJoined:
    """A query became a member of a family that was found."""

    word: ClassVar[str] = "joined"
    version: ClassVar[int] = 2
    """Version 2 has `lengths`. A fact without them is written as version 1."""

    query: str
    family: str
    """The folder of the family's files."""

    number: int
    start: Tick | None
    """The instant behind which the query sees its streams."""

    lengths: tuple[tuple[int, ...], ...] = ()
    """The lengths of windows that the family lists, also those of members that have gone; empty if all are the same."""

    def to_json(self) -> Json:
        known = [self.query, self.family, self.number, self.start]
        if not self.lengths:
            return {"joined": known}
        return {"joined": [*known, [list(one) for one in self.lengths]], "v": 2}

    @classmethod
    def from_json(cls, what: Json) -> MemberJoined:
        query, family, number, start, *more = what["joined"]
        return cls(query, family, number, start, tuple(tuple(one) for some in more for one in some))


@dataclass(frozen=True, slots=True)
class MemberLeft:
    """A member of a family that was found was dropped or altered."""

    word: ClassVar[str] = "left"
    version: ClassVar[int] = 1

    family: str
    number: int

    def to_json(self) -> Json:
        return {"left": [self.family, self.number]}

    @classmethod
    def from_json(cls, what: Json) -> MemberLeft:
        return cls(*what["left"])


@dataclass(frozen=True, slots=True)
class SensorsDeclared:
    """A program has declared how far the clocks of some sources of a stream deviate."""

    word: ClassVar[str] = "sensors"
    version: ClassVar[int] = 1

    stream: str
    deviations: Mapping[str, Tick] = field(hash=False)
    rate: Fraction | None = None
    """How many ticks a second their clocks advance at least."""

    def to_json(self) -> Json:
        return {"sensors": [self.stream, dict(self.deviations), None if self.rate is None else str(self.rate)]}

    @classmethod
    def from_json(cls, what: Json) -> SensorsDeclared:
        stream, deviations, rate = what["sensors"]
        return cls(stream, deviations, None if rate is None else Fraction(rate))


@dataclass(frozen=True, slots=True)
class AggregateRegistered:
    """A program has registered a Python function that is an aggregate."""

    word: ClassVar[str] = "aggregate"
    version: ClassVar[int] = 1

    function: str

    def to_json(self) -> Json:
        return {"aggregate": self.function}

    @classmethod
    def from_json(cls, what: Json) -> AggregateRegistered:
        return cls(what["aggregate"])


@dataclass(frozen=True, slots=True)
class SystemOpened:
    """A query has begun to read a system stream that no other read."""

    word: ClassVar[str] = "system"
    version: ClassVar[int] = 1

    stream: str
    folder: str
    now: int
    """When, in microseconds on the engine's clock."""

    def to_json(self) -> Json:
        return {"system": [self.stream, self.folder, self.now]}

    @classmethod
    def from_json(cls, what: Json) -> SystemOpened:
        return cls(*what["system"])


@dataclass(frozen=True, slots=True)
class SystemClosed:
    """No query reads a system stream any more."""

    word: ClassVar[str] = "unread"
    version: ClassVar[int] = 1

    stream: str

    def to_json(self) -> Json:
        return {"unread": self.stream}

    @classmethod
    def from_json(cls, what: Json) -> SystemClosed:
        return cls(what["unread"])


@dataclass(frozen=True, slots=True)
class ParameterChanged:
    """A parameter of a query has another value from an instant on."""

    word: ClassVar[str] = "parameter"
    version: ClassVar[int] = 1

    query: str
    name: str
    since: Tick
    value: Sql
    """A literal."""

    def to_json(self) -> Json:
        return {"parameter": [self.query, self.name, self.since, self.value]}

    @classmethod
    def from_json(cls, what: Json) -> ParameterChanged:
        query, name, since, value = what["parameter"]
        return cls(query, name, since, checked_literal(value))


@dataclass(frozen=True, slots=True)
class HeartbeatsSaved:
    """The state of the time manager, in a checkpoint."""

    word: ClassVar[str] = "heartbeats"
    version: ClassVar[int] = 1

    state: Json = field(hash=False)
    now: int

    def to_json(self) -> Json:
        return {"heartbeats": self.state, "now": self.now}

    @classmethod
    def from_json(cls, what: Json) -> HeartbeatsSaved:
        return cls(what["heartbeats"], what["now"])


@dataclass(frozen=True, slots=True)
class Paused:
    """A stream is not read for a while."""

    word: ClassVar[str] = "pause"
    version: ClassVar[int] = 1

    stream: str
    now: int

    def to_json(self) -> Json:
        return {"told": [self.word, self.stream], "now": self.now}

    @classmethod
    def from_json(cls, what: Json) -> Paused:
        _, stream = what["told"]
        return cls(stream, what["now"])


@dataclass(frozen=True, slots=True)
class Resumed:
    """A stream is read again."""

    word: ClassVar[str] = "resume"
    version: ClassVar[int] = 1

    stream: str
    now: int

    def to_json(self) -> Json:
        return {"told": [self.word, self.stream], "now": self.now}

    @classmethod
    def from_json(cls, what: Json) -> Resumed:
        _, stream = what["told"]
        return cls(stream, what["now"])


@dataclass(frozen=True, slots=True)
class Finished:
    """Nothing will come from a stream any more, or from one source of it."""

    word: ClassVar[str] = "finish"
    version: ClassVar[int] = 1

    stream: str
    source: Any
    now: int

    def to_json(self) -> Json:
        return {"told": [self.word, self.stream, self.source], "now": self.now}

    @classmethod
    def from_json(cls, what: Json) -> Finished:
        _, stream, source = what["told"]
        return cls(stream, source, what["now"])


@dataclass(frozen=True, slots=True)
class Punctuated:
    """A source has promised to send nothing stamped up to an instant any more."""

    word: ClassVar[str] = "punctuated"
    version: ClassVar[int] = 1

    stream: str
    source: Any
    upto: Tick
    now: int

    def to_json(self) -> Json:
        return {"told": [self.word, self.stream, self.source, self.upto], "now": self.now}

    @classmethod
    def from_json(cls, what: Json) -> Punctuated:
        _, stream, source, upto = what["told"]
        return cls(stream, source, upto, what["now"])


TimeFact: TypeAlias = Paused | Resumed | Finished | Punctuated
"""A fact about how far a stream or source is."""

EngineFact: TypeAlias = (
    Statement
    | MemberJoined
    | MemberLeft
    | SensorsDeclared
    | AggregateRegistered
    | SystemOpened
    | SystemClosed
    | ParameterChanged
    | HeartbeatsSaved
    | TimeFact
)

KINDS: dict[str, type[EngineFact]] = {
    kind.word: kind
    for kind in (
        Statement,
        MemberJoined,
        MemberLeft,
        SensorsDeclared,
        AggregateRegistered,
        SystemOpened,
        SystemClosed,
        ParameterChanged,
        HeartbeatsSaved,
        Paused,
        Resumed,
        Finished,
        Punctuated,
    )
}
"""All kinds of facts, by the word that names each on disk."""


def read_fact(what: Json) -> EngineFact:
    """Read a fact from the journal's JSON; one that this version does not know is an error."""
    word = what["told"][0] if "told" in what else next(iter(what), "")
    kind = KINDS.get(word)
    if kind is None or what.get("v", 1) > kind.version:
        raise UserError(
            "other-version",
            f'the journal holds a fact "{word}" that this version of headgate does not know',
            hint="Open the directory with the version that wrote it, or a later one.",
        )
    try:
        return kind.from_json(what)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UserError(
            "other-version", f'a fact "{word}" in the journal has another form', detail=repr(error)
        ) from None
