"""What the time manager knows, as JSON and back: sources and what they sent, promises under way, what was learnt.

Every object is written with the name of its class and all its attributes, arrays compressed. What belongs to others is
left out: the streams and the declarations, which the catalog has. Only the classes named here are ever made again.

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
from headgate.catalog.skew import Bound
from headgate.errors import UserError
from headgate.heartbeat.arrivals import NEVER
from headgate.heartbeat.estimate import Estimator
from headgate.heartbeat.future import Pace
from headgate.heartbeat.generator import Cohort, Counted, Generator
from headgate.heartbeat.groups import Kind, Partition
from headgate.heartbeat.manager import Heartbeats
from headgate.heartbeat.maxima import Delayed, Maxima, Top
from headgate.heartbeat.timeline import Timeline
from headgate.scope import Groups, Scope

CLASSES = {
    kind.__name__: kind
    for kind in (
        Bound,
        Cohort,
        Counted,
        Counter,
        Delayed,
        Estimation,
        Estimator,
        Generator,
        Groups,
        Kind,
        Maxima,
        Pace,
        Partition,
        Party,
        Scope,
        Sensors,
        Timeline,
        Top,
    )
}
KEPT = ("timelines", "generator", "estimators", "date_offset_us", "asked_us", "_arrivals")
"""What of the manager itself is saved; the rest follows from the catalog."""

SEQUENCES: dict[str, Any] = {"tuple": tuple, "deque": deque, "set": set, "frozenset": frozenset}


def saved(heartbeats: Heartbeats) -> dict[str, Any]:
    kinds: dict[Kind, int] = {}
    state = {name.lstrip("_"): _written(getattr(heartbeats, name), kinds) for name in KEPT}
    return {"kinds": [_written_fields(kind, kinds) for kind in kinds], **state}


def restore(heartbeats: Heartbeats, state: dict[str, Any], catalog: Catalog) -> None:
    """Put the manager where it was when its state was saved. The catalog must have the same streams."""
    try:
        kinds = [_read(kind, []) for kind in state["kinds"]]
        for name in KEPT:
            setattr(heartbeats, name, _read(state[name.lstrip("_")], kinds))
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise UserError(
            "other-version",
            "what was known of the streams' time was saved by another version of headgate",
            detail=str(error),
        ) from error
    streams: list[Stream | Relation] = [*catalog.streams.values(), *catalog.relations.values()]
    for known in streams:
        heartbeats.timelines[known.name].stream = known
    for cohort in heartbeats.generator.cohorts.values():
        if not hasattr(cohort, "awaited_us"):  # of a directory written before sources were waited for by name
            cohort.awaited_us = np.full(len(cohort.largest), NEVER)
    heartbeats.forget_owners()
    if any(kind.group is not None for line in heartbeats.timelines.values() for kind in line.cohorts):
        heartbeats.heed()  # sources that an earlier version kept at one place get places of their own
    heartbeats.resumed()


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
        case _ if type(value).__name__ in CLASSES:
            return _written_fields(value, kinds)
        case _ if type(value).__name__ in SEQUENCES:
            return {type(value).__name__: [_written(one, kinds) for one in value]}
    raise TypeError(f"a {type(value).__name__} cannot be saved")


def _written_fields(value: Any, kinds: dict[Kind, int]) -> dict[str, Any]:
    fields = {name: _written(getattr(value, name), kinds) for name in _attributes(value)}
    return {"is": type(value).__name__, **fields}


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
    made: Any = object.__new__(kind)
    for name, value in {**_defaults(kind), **attributes}.items():
        object.__setattr__(made, name, value)  # also of those that are frozen
    if isinstance(made, (Cohort, Estimator, Generator)):
        made.complete()
    return made


def _defaults(kind: type) -> dict[str, Any]:
    """What attributes are that were not known yet when the state was saved."""
    known = fields(kind) if is_dataclass(kind) else ()
    made = {field.name: field.default_factory() for field in known if field.default_factory is not MISSING}
    return made | {field.name: field.default for field in known if field.default is not MISSING}


def _attributes(value: Any) -> Iterator[str]:
    names = value._fields if isinstance(value, Top) else getattr(value, "__slots__", None) or vars(value)
    return (name for name in names if not (isinstance(value, Timeline) and name == "stream"))
