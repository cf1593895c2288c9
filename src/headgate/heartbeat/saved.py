"""What the time manager knows, as JSON and back: sources and what they sent, promises under way, what was learnt.

Every object is written with the name of its class on disk and all its attributes, arrays compressed. Names on disk stay
as they are when a class or an attribute is renamed. The streams and the declarations are left out, because the catalog
has them. Only the classes named here are ever made again.

{"is": "Cohort", "size": 2, "largest": {"array": "<i8", "shape": [2], "bytes": "eJwL..."}, ...}
"""

from __future__ import annotations

import base64
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from headgate.catalog.catalog import Catalog
from headgate.catalog.declarations import Counter, Estimation, Party, Sensors
from headgate.catalog.entries import Relation, Stream
from headgate.catalog.skew import SkewBound
from headgate.errors import UserError
from headgate.heartbeat.arrivals import NEVER
from headgate.heartbeat.cohort import Cohort
from headgate.heartbeat.counted import Counted
from headgate.heartbeat.estimate import Estimator
from headgate.heartbeat.future import Pace
from headgate.heartbeat.generator import Generator
from headgate.heartbeat.groups import Kind, Partition
from headgate.heartbeat.maxima import Delayed, Maxima, Top
from headgate.heartbeat.model import TimeModel
from headgate.heartbeat.promises import Promises
from headgate.heartbeat.source_table import SourceTable
from headgate.heartbeat.stream_clock import StreamClock
from headgate.scope import Groups, Scope
from headgate.ticks import TimeDomain

CLASSES: dict[str, type] = {
    "Bound": SkewBound,
    "Cohort": Cohort,
    "Counted": Counted,
    "Counter": Counter,
    "Delayed": Delayed,
    "Estimation": Estimation,
    "Estimator": Estimator,
    "Generator": Generator,
    "Groups": Groups,
    "Kind": Kind,
    "Maxima": Maxima,
    "Pace": Pace,
    "Partition": Partition,
    "Party": Party,
    "Scope": Scope,
    "Sensors": Sensors,
    "Timeline": StreamClock,
    "Top": Top,
}
"""The classes by their names on disk."""

NAMES = {kind: name for name, kind in CLASSES.items()}

PARTS: dict[str, type] = {"promises": Promises, "table": SourceTable}
"""The parts of a stream clock. On disk their attributes stand among those of the clock."""

ON_DISK: dict[type, dict[str, str]] = {
    Promises: {"whole": "given", "by_scope": "given_to"},
    SourceTable: {"punctuated": "said"},
}
"""Attributes that have another name on disk."""

SEQUENCES: dict[str, Any] = {"tuple": tuple, "deque": deque, "set": set, "frozenset": frozenset}


def save(model: TimeModel) -> dict[str, Any]:
    """The state of the time manager as JSON."""
    kinds: dict[Kind, int] = {}
    state = {
        "timelines": model.clocks.by_name,
        "generator": model.clocks.generator,
        "estimators": model.bindings.estimators,
        "date_offset_us": model.enabling.date_offset_us,
        "asked_us": model.completeness.asked_us,
        "arrivals": model.order.last,
    }
    written = {name: _written(value, kinds) for name, value in state.items()}
    return {"kinds": [_written_object(kind, kinds) for kind in kinds], **written}


def restore(model: TimeModel, state: dict[str, Any], catalog: Catalog) -> None:
    """Put the time manager where it was when its state was saved. Streams that are in quarantine have no time."""
    try:
        kinds = [_read(kind, []) for kind in state["kinds"]]
        clocks = _read(state["timelines"], kinds)
        generator, estimators = (_read(state[name], kinds) for name in ("generator", "estimators"))
        date_offset_us, asked_us, arrivals = state["date_offset_us"], state["asked_us"], state["arrivals"]
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise UserError(
            "other-version",
            "what was known of the streams' time was saved by another version of headgate",
            detail=str(error),
        ) from error
    model.clocks.generator, model.bindings.estimators = generator, estimators
    model.enabling.date_offset_us, model.completeness.asked_us, model.order.last = date_offset_us, asked_us, arrivals
    read = [stream for stream in catalog.system.values() if stream.name in clocks]
    known: list[Stream | Relation] = [*catalog.streams.values(), *catalog.relations.values(), *read]
    streams = {one.name: one for one in known}
    new = [clock for clock in model.clocks if clock.name in streams.keys() - clocks.keys()]
    for name, clock in clocks.items():
        clock.stream = streams.get(name) or Stream(name, (), TimeDomain.INTEGER)
    for cohort in model.clocks.generator.cohorts.values():
        if not hasattr(cohort, "awaited_us"):  # of a directory written before sources were waited for by name
            cohort.awaited_us = np.full(len(cohort.largest), NEVER)
    model.restore(clocks)
    for name in clocks.keys() - streams.keys():  # it is in quarantine
        model.remove(name)
    for clock in new:  # it was in quarantine
        model.add(clock.stream, clock.since_us)


def _written(value: Any, kinds: dict[Kind, int]) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.integer():
            return int(value)
        case np.floating():
            return float(value)
        case np.ndarray():
            packed = base64.b64encode(zlib.compress(np.ascontiguousarray(value).tobytes(), 1)).decode()
            return {"array": value.dtype.str, "shape": list(value.shape), "bytes": packed}
        case Fraction():
            return {"fraction": str(value)}
        case Kind():  # few, and shared by many sources
            return {"kind": kinds.setdefault(value, len(kinds))}
        case dict():
            return {"dict": [[_written(key, kinds), _written(one, kinds)] for key, one in value.items()]}
        case list():
            return [_written(one, kinds) for one in value]
        case set() | frozenset():  # in whatever order it was filled
            return {type(value).__name__: sorted((_written(one, kinds) for one in value), key=str)}
        case _ if type(value) in NAMES:
            return _written_object(value, kinds)
        case _ if type(value).__name__ in SEQUENCES:
            return {type(value).__name__: [_written(one, kinds) for one in value]}
    raise TypeError(f"a {type(value).__name__} cannot be saved")


def _written_object(value: Any, kinds: dict[Kind, int]) -> dict[str, Any]:
    attributes = {name: _written(one, kinds) for name, one in _attributes(value)}
    return {"is": NAMES[type(value)], **attributes}


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes that are saved, with their names on disk."""
    names = value._fields if isinstance(value, Top) else getattr(value, "__slots__", None) or vars(value)
    on_disk = ON_DISK.get(type(value), {})
    for name in names:
        if isinstance(value, StreamClock) and name in PARTS:
            yield from _attributes(getattr(value, name))
        elif not (isinstance(value, StreamClock) and name == "stream"):
            yield on_disk.get(name, name), getattr(value, name)


def _read(value: Any, kinds: list[Kind]) -> Any:
    match value:
        case {"is": name}:
            fields = {key: _read(one, kinds) for key, one in value.items() if key != "is"}
            return _made(CLASSES[name], fields)
        case {"array": kind, "shape": shape, "bytes": packed}:
            return np.frombuffer(zlib.decompress(base64.b64decode(packed)), kind).reshape(shape).copy()
        case {"kind": number}:
            return kinds[number]
        case {"fraction": text}:
            return Fraction(text)
        case {"dict": pairs}:
            return {_read(key, kinds): _read(one, kinds) for key, one in pairs}
        case dict():
            ((name, members),) = value.items()
            return SEQUENCES[name](_read(one, kinds) for one in members)
        case list():
            return [_read(one, kinds) for one in value]
    return value


def _made(kind: type, attributes: dict[str, Any]) -> Any:
    if kind is Top:
        return Top(**attributes)
    if kind is StreamClock:
        attributes = _with_parts(attributes)
    made: Any = object.__new__(kind)
    for name, value in {**_defaults(kind), **attributes}.items():
        object.__setattr__(made, name, value)  # also of those that are frozen
    if isinstance(made, (Cohort, Estimator, Generator)):
        made.complete()
    return made


def _with_parts(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a stream clock, with those of its parts taken out and put together."""
    left, parts = dict(attributes), {}
    for name, kind in PARTS.items():
        named = {field.name: ON_DISK[kind].get(field.name, field.name) for field in fields(kind)}
        parts[name] = _made(kind, {own: left.pop(on_disk) for own, on_disk in named.items() if on_disk in left})
    return left | parts


def _defaults(kind: type) -> dict[str, Any]:
    """The values of attributes that were not there yet when the state was saved."""
    known = fields(kind) if is_dataclass(kind) else ()
    made = {field.name: field.default_factory() for field in known if field.default_factory is not MISSING}
    return made | {field.name: field.default for field in known if field.default is not MISSING}
