"""The settings: everything that `SET name = 'value'` can change, in one table.

`TABLE` feeds SET, SHOW SETTINGS, the shell's completion, the error texts and docs/settings.md. A new setting is a field
of `Settings` and a row of `TABLE`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from headgate.errors import Place, UserError, nearest, quoted, unknown
from headgate.ticks import MICROSECONDS_PER_UNIT, micros_per


@dataclass(frozen=True, slots=True)
class Settings:
    """The values in force. `TABLE` says what each one means."""

    dialect: Literal["cql", "stream", "oracle"] = "cql"
    range: Literal["closed", "half-open"] = "closed"
    empty_aggregate: Literal["row", "no-row"] = "row"
    unit_seconds: Fraction = Fraction(1)
    timeout_us: int | None = None
    state: Literal["any", "bounded"] = "any"
    estimation: Literal["on", "off"] = "on"
    clock_unit_us: int = 1_000
    heartbeats: Literal["query", "operator", "memory-aware"] = "query"
    ordering: Literal["needed", "always"] = "needed"
    epoch_rows: int = 1_000_000
    flush_rows: int | None = None
    failed_after_us: int | None = None


DIALECTS = {
    "cql": {"range": "closed", "empty_aggregate": "row"},
    "stream": {"range": "half-open", "empty_aggregate": "no-row"},
    "oracle": {"range": "half-open", "empty_aggregate": "row"},
}
"""The settings that each dialect implies. In Stanford's prototype, `A UNION B` of bare names is a union of bags
besides.
"""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting: its name in CQL, its field, how its value is read from text and shown, and what it means."""

    name: str
    field: str
    meaning: str
    read: Callable[[str, Place | None], Any] | None
    """None: SET does not change it, another statement does."""

    show: Callable[[Any], str] = str
    values: tuple[str, ...] = ()
    """The values it can have, where they can be listed."""


def _choice(name: str, meaning: str, *values: str) -> SettingRow:
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


def _count(what: str, hint: str, may_be_none: bool = False) -> Callable[[str, Place | None], int | None]:
    def read(value: str, place: Place | None) -> int | None:
        if may_be_none and value.lower() == "none":
            return None
        if not value.isdigit() or not int(value):
            raise UserError("bad-setting", f'"{value}" is not a number of {what}', place=place, hint=hint)
        return int(value)

    return read


def _seconds(length_us: int | None) -> str:
    return "none" if length_us is None else f"{length_us / 1_000_000:g} seconds"


TABLE: dict[str, SettingRow] = {
    row.name: row
    for row in (
        _choice(
            "dialect", "How a text is read where CQL's dialects differ; sets `range` and `empty_aggregate`.", *DIALECTS
        ),
        _choice("range", "Whether `[RANGE T]` includes its lower end.", "closed", "half-open"),
        _choice(
            "empty_aggregate",
            "Whether an aggregate without GROUP BY has a row over an empty relation.",
            "row",
            "no-row",
        ),
        _choice("state", "Whether queries whose state grows for as long as they run are accepted.", "any", "bounded"),
        _choice("estimation", "Whether bounds are estimated for streams of which nothing is declared.", "on", "off"),
        _choice(
            "heartbeats",
            "Where the plans of queries registered from now on are split into fragments.",
            "query",
            "operator",
            "memory-aware",
        ),
        _choice("ordering", "Whether a query that needs no order waits for it all the same.", "needed", "always"),
        SettingRow(
            "time_unit",
            "unit_seconds",
            "How long one unit of integer time is.",
            _unit_seconds,
            lambda one: f"{one} seconds",
        ),
        SettingRow(
            "clock_unit",
            "clock_unit_us",
            "How finely delays on the engine's clock are told apart.",
            _whole_us,
            _seconds,
        ),
        SettingRow(
            "timeout",
            "timeout_us",
            "After how long a silent source is no longer waited for. `TIMEOUT 10 SECONDS;` sets it.",
            None,
            _seconds,
        ),
        SettingRow(
            "epoch_rows",
            "epoch_rows",
            "About how many tuples an epoch takes at once.",
            _count("tuples", "SET epoch_rows = 1000000"),
        ),
        SettingRow(
            "flush_rows",
            "flush_rows",
            "How many results go to a sink at once; 'none': all of an epoch.",
            _count("results", "SET flush_rows = 100000, or 'none'", may_be_none=True),
            lambda rows: str(rows or "none"),
        ),
        SettingRow(
            "failed_after",
            "failed_after_us",
            "How long an epoch may take, or a stream stand still while others go on, before it counts as failed.",
            _length_or_none,
            _seconds,
        ),
    )
}


def changed(settings: Settings, name: str, value: str, place: Place | None = None) -> Settings:
    """The settings after `SET name = 'value'`."""
    row = TABLE.get(name.lower())
    if row is None or row.read is None:
        raise unknown("setting", name, settable(), place)
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
