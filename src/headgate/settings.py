"""The settings: everything that `SET name = 'value'` can change, in one table.

`TABLE` feeds SET, SHOW SETTINGS, the shell's completion, the error texts and docs/settings.md, which
`python -m headgate.settings > docs/settings.md` writes anew. A new setting is a field of `Settings` and a row of
`TABLE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

from headgate.errors import Place, UserError, nearest, quoted, unknown
from headgate.ticks import MICROSECONDS_PER_UNIT, micros_per

Level: TypeAlias = Literal["none", "update-complete", "input-prefix", "synchronized"]
"""How far an early answer must be the answer to one input, from nothing at all to the strictest demand."""

Method: TypeAlias = Literal["fused", "draining", "heeding", "heeding-scan", "tokens"]
"""How it is known that an early answer is consistent (package `consistency`)."""

Scheduling: TypeAlias = Literal["fifo", "greedy", "chain"]
"""Which of the fragments that are ready runs first (`schedule.priorities`)."""


@dataclass(frozen=True, slots=True)
class TokenPeriod:
    """How far apart synchronization tokens are: always as far, or as near as a goal lets them."""

    every_us: int | None = None
    """The period, if it is fixed."""

    latency_us: int | None = 1_000_000
    """A token is to be out so many microseconds after it was put in."""

    throughput: int | None = None
    """So many tuples a second are to be taken."""

    def __str__(self) -> str:
        if self.every_us is not None:
            return _seconds(self.every_us)
        if self.throughput is not None:
            return f"throughput {self.throughput}"
        return f"latency {_seconds(self.latency_us)}"


@dataclass(frozen=True, slots=True)
class Settings:
    """The values in force, with their defaults. `TABLE` says what each one means."""

    dialect: Literal["cql", "stream", "oracle", "gsql"] = "cql"
    range: Literal["closed", "half-open"] = "closed"
    empty_aggregate: Literal["row", "no-row"] = "row"
    unit_seconds: Fraction = Fraction(1)
    timeout_us: int | None = None
    state: Literal["any", "bounded"] = "any"
    estimation: Literal["on", "off"] = "on"
    clock_unit_us: int = 1_000
    heartbeats: Literal["query", "operator", "memory-aware"] = "query"
    ordering: Literal["needed", "always"] = "needed"
    sharing: Literal["on", "off"] = "on"
    join_order: Literal["adaptive", "fixed"] = "adaptive"
    join_caches: Literal["adaptive", "none"] = "adaptive"
    epoch_rows: int | None = None
    flush_rows: int | None = None
    failed_after_us: int | None = None
    system_interval_us: int = 1_000_000
    families: Literal["on", "off"] = "on"
    low_level: Literal["on", "off"] = "off"
    profile: Literal["on", "off"] = "on"
    detection: Literal["on", "off"] = "on"
    scheduling: Scheduling = "fifo"
    consistency: Level = "input-prefix"
    consistency_method: Method = "draining"
    inconsistent: Literal["hold", "mark"] = "hold"
    token_period: TokenPeriod = field(default_factory=TokenPeriod)


DIALECTS = {
    "cql": {"range": "closed", "empty_aggregate": "row"},
    "stream": {"range": "half-open", "empty_aggregate": "no-row"},
    "oracle": {"range": "half-open", "empty_aggregate": "row"},
    "gsql": {"range": "closed", "empty_aggregate": "row"},
}
"""The settings that each dialect implies. In Stanford's prototype (`stream`), `A UNION B` of bare names is also a
union of bags. GSQL is another language, which becomes CQL (`gsql`); what CQL it is mixed with is the papers'.
"""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting: its name in CQL, its field, how its value is read from text and shown, and what it means."""

    name: str
    field: str
    meaning: str
    read: Callable[[str, Place | None], Any] | None
    """Reads a value, or raises an error. None: another statement than SET changes it."""

    show: Callable[[Any], str] = str
    values: tuple[str, ...] = ()
    """The values it can have, where they can be listed."""

    takes: str = ""
    """What its values are, in words, where they cannot be listed."""


def _choice(name: str, meaning: str, *values: str) -> SettingRow:
    """A setting that has one of a few values."""

    def read(value: str, place: Place | None) -> str:
        if value.lower() in values:
            return value.lower()
        raise UserError(
            "bad-setting",
            f'setting "{name}" has no value "{value}"',
            place=place,
            detail=f"Values are {quoted(values)}.",
            hint=nearest(value, values),
        )

    return SettingRow(name, name, meaning, read, values=values)


LONGEST_VALUE = 100
"""So many letters may the value of a setting have."""


def _length_us(value: str, place: Place | None) -> Fraction:
    """A length of time such as '10 milliseconds', in microseconds."""
    amount, _, unit = value.strip().partition(" ")
    named = unit.strip().upper().removesuffix("S")
    micros = micros_per(named) if named in (*MICROSECONDS_PER_UNIT, "NANOSECOND") else None
    if micros is None or not amount.replace(".", "", 1).isdigit() or not Fraction(amount):
        raise UserError("bad-setting", f'"{value}" is not a length of time', place=place, hint="Write '1 minute'.")
    return Fraction(amount) * micros


def _unit_seconds(value: str, place: Place | None) -> Fraction:
    return _length_us(value, place) / 1_000_000


def _whole_us(value: str, place: Place | None) -> int:
    micros = _length_us(value, place)
    if micros.denominator != 1:
        raise UserError("bad-setting", f'"{value}" is not a whole number of microseconds', place=place)
    return int(micros)


def _length_or_none(value: str, place: Place | None) -> int | None:
    return None if value.lower() == "none" else max(int(_length_us(value, place)), 1)


def _count(what: str, hint: str, unset: str) -> Callable[[str, Place | None], int | None]:
    """A reader of numbers from 1 on, and of the word that stands for no number."""

    def read(value: str, place: Place | None) -> int | None:
        if value.lower() == unset:
            return None
        if not value.isdigit() or not int(value):
            raise UserError("bad-setting", f'"{value}" is not a number of {what}', place=place, hint=hint)
        return int(value)

    return read


def _token_period(value: str, place: Place | None) -> TokenPeriod:
    """A fixed period ('1 second'), or a goal that it adapts to ('latency 1 second', 'throughput 5000')."""
    word, _, rest = value.strip().partition(" ")
    match word.lower():
        case "latency" if rest.strip():
            return TokenPeriod(latency_us=max(int(_length_us(rest, place)), 1))
        case "throughput" if rest.strip().isdigit() and int(rest):
            return TokenPeriod(latency_us=None, throughput=int(rest))
        case "latency" | "throughput":
            raise UserError(
                "bad-setting",
                f'"{value}" is not a goal for tokens',
                place=place,
                hint="SET token_period = 'latency 1 second', or 'throughput 5000' (tuples a second)",
            )
        case _:
            return TokenPeriod(max(int(_length_us(value, place)), 1), latency_us=None)


def _seconds(length_us: int | None) -> str:
    return "none" if length_us is None else f"{length_us / 1_000_000:g} seconds"


TABLE: dict[str, SettingRow] = {
    row.name: row
    for row in (
        _choice(
            "dialect",
            "How a text is read where CQL's dialects differ, or as GSQL. It also sets `range` and `empty_aggregate`.",
            *DIALECTS,
        ),
        _choice("range", "Whether `[RANGE T]` includes its lower end.", "closed", "half-open"),
        _choice(
            "empty_aggregate",
            "Whether an aggregate without GROUP BY has a row over an empty relation.",
            "row",
            "no-row",
        ),
        _choice("state", "Whether queries whose state grows for as long as they run are accepted.", "any", "bounded"),
        _choice(
            "families",
            "Whether new queries that differ only in constants run as one program, as members of a family.",
            "on",
            "off",
        ),
        _choice("estimation", "Whether disorder bounds are estimated for streams that declare none.", "on", "off"),
        _choice(
            "heartbeats",
            "Where the plans of new queries are split into fragments, each with its own heartbeat (watermark).",
            "query",
            "operator",
            "memory-aware",
        ),
        _choice(
            "ordering",
            "Whether a query that only filters and projects answers in order of time, or as its tuples arrive.",
            "needed",
            "always",
        ),
        _choice(
            "sharing", "Whether new queries compute only once what their plans have in common with others.", "on", "off"
        ),
        _choice(
            "join_order",
            "Whether new queries join three or more inputs in orders that follow counted rows, or as they are written.",
            "adaptive",
            "fixed",
        ),
        _choice(
            "join_caches",
            "Whether such joins keep what they have joined in between where counted rows say that it pays.",
            "adaptive",
            "none",
        ),
        _choice(
            "low_level",
            "Whether the logs of streams keep only what the queries that run need: some tuples, some columns; of new "
            "queries that only count, equal tuples once.",
            "on",
            "off",
        ),
        _choice(
            "profile",
            "Whether figures are kept of what streams, fragments and operators do: rates, selectivities, time, state.",
            "on",
            "off",
        ),
        _choice(
            "detection",
            "Whether new queries use constraints that are `DETECTED`, whose k follows the data.",
            "on",
            "off",
        ),
        _choice(
            "scheduling",
            "Which of the fragments that are ready runs first: the one nearest the answer (`'fifo'`), or the one "
            "(`'greedy'`) or block of them (`'chain'`) that lets the rows that wait fall fastest, by the profile.",
            *get_args(Scheduling),
        ),
        _choice(
            "consistency",
            "What an early answer of a new query has to be: anything (`'none'`), without part of an update "
            "(`'update-complete'`), the answer to a prefix of each input (`'input-prefix'`), or to prefixes cut at one "
            "instant (`'synchronized'`).",
            *get_args(Level),
        ),
        _choice(
            "consistency_method",
            "How early answers of new queries get to be consistent: fragments in turn (`'draining'`), one fragment "
            "(`'fused'`), labels (`'heeding'`; `'heeding-scan'` looks through all queues), or `'tokens'`.",
            *get_args(Method),
        ),
        _choice(
            "inconsistent",
            "What becomes of early answers of new queries that are not yet consistent: held back, or given and marked.",
            "hold",
            "mark",
        ),
        SettingRow(
            "token_period",
            "token_period",
            "How far apart the tokens of new queries are that synchronize their fragments.",
            _token_period,
            takes="a length of time, or a goal: `'latency 1 second'`, `'throughput 5000'` (tuples a second)",
        ),
        SettingRow(
            "time_unit",
            "unit_seconds",
            "How long one unit of integer time is.",
            _unit_seconds,
            lambda one: f"{one} seconds",
            takes="a length of time, such as `'1 minute'`",
        ),
        SettingRow(
            "clock_unit",
            "clock_unit_us",
            "How finely delays on the engine's clock are told apart.",
            _whole_us,
            _seconds,
            takes="a length of time, a whole number of microseconds",
        ),
        SettingRow(
            "timeout",
            "timeout_us",
            "After how long nobody waits for a silent source any more. `TIMEOUT 10 SECONDS;` sets it, not SET.",
            None,
            _seconds,
            takes="a length of time, or none",
        ),
        SettingRow(
            "system_interval",
            "system_interval_us",
            "How far apart the samples of system streams are that queries read (`SYSTEM.queries` and the like).",
            _whole_us,
            _seconds,
            takes="a length of time, a whole number of microseconds",
        ),
        SettingRow(
            "epoch_rows",
            "epoch_rows",
            "About how many tuples one epoch (micro-batch) takes; `'auto'`: as many as Spark's memory holds at once.",
            _count("tuples", "SET epoch_rows = 1000000, or 'auto'", unset="auto"),
            lambda rows: str(rows or "auto"),
            takes="a number of 1 or more, or `'auto'`",
        ),
        SettingRow(
            "flush_rows",
            "flush_rows",
            "How many results a sink gets at once; `'none'`: all of an epoch.",
            _count("results", "SET flush_rows = 100000, or 'none'", unset="none"),
            lambda rows: str(rows or "none"),
            takes="a number of 1 or more, or `'none'`",
        ),
        SettingRow(
            "failed_after",
            "failed_after_us",
            "How long an epoch may take, or a stream stand still while others go on, before it counts as failed.",
            _length_or_none,
            _seconds,
            takes="a length of time, or `'none'`",
        ),
    )
}


def changed(settings: Settings, name: str, value: str, place: Place | None = None) -> Settings:
    """The settings after `SET name = 'value'`."""
    row = TABLE.get(name.lower())
    if row is None or row.read is None:
        raise unknown("setting", name, settable(), place)
    if len(value) > LONGEST_VALUE:
        raise UserError("too-large", f"a setting takes at most {LONGEST_VALUE} letters", place=place)
    chosen = {row.field: row.read(value, place)}
    if row.name == "dialect":
        chosen |= DIALECTS[chosen["dialect"]]
    return replace(settings, **chosen)


def listed(settings: Settings) -> list[tuple[str, str, str]]:
    """Each setting with its value and the values it can have."""
    return [(row.name, row.show(getattr(settings, row.field)), ", ".join(row.values)) for row in TABLE.values()]


def settable() -> Iterable[str]:
    """The names that SET knows."""
    return [row.name for row in TABLE.values() if row.read is not None]


def page() -> str:
    """The text of docs/settings.md."""
    defaults = Settings()
    lines = [
        "# Settings",
        "",
        "`SET name = 'value';` changes a setting of the engine, and `SHOW SETTINGS;` lists those in force. Names and",
        "listed values may be written in upper or lower case. Settings are kept in the engine's directory. Those of",
        "the language (`dialect`, `range`, `empty_aggregate`, `state`, `families`, `sharing`, `heartbeats`,",
        "`ordering`, `join_order`, `join_caches`, `consistency`, `consistency_method`, `inconsistent`, `token_period`,",
        "`time_unit`) count for",
        "statements after them, the others at once.",
        "",
        "| setting | values | default | meaning |",
        "| --- | --- | --- | --- |",
    ]
    for row in TABLE.values():
        values = ", ".join(f"`'{value}'`" for value in row.values) or row.takes
        lines.append(f"| `{row.name}` | {values} | {row.show(getattr(defaults, row.field))} | {row.meaning} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
