"""Labels of answers: the input that they reflect, for each stream and relation that the query reads.

    {"bids": Reflects(tuples=1204, complete=17), "asks": Reflects(tuples=33, complete=17)}

The answers up to `complete` are those of the query over just these tuples: the first 1204 of `bids` and the first 33 of
`asks`, in the order in which they came to the logs, cut at 17. Tuples that come later are stamped behind `complete`, or
are dead letters and not in the log. So a label stays true.

An epoch has one label, however many rows it puts out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Reflects:
    """How much of one stream or relation answers reflect."""

    tuples: int
    """How many had come to its log, from the beginning of the stream on."""

    complete: Any
    """The instant at which they are cut: up to there the answers will not change. None while there is none."""


Label: TypeAlias = Mapping[str, Reflects]
"""By stream and relation; empty if it is not known."""


def label(tuples: Mapping[str, int], complete: Any) -> dict[str, Reflects]:
    """Return the label of answers that are complete up to an instant, given the tuples they come from."""
    return {stream: Reflects(count, complete) for stream, count in sorted(tuples.items())}


def most(counted: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return how many tuples several fragments have seen together, by stream: as many as the one that saw most.

    Each is complete up to the answer's instant. So what one of them saw and another did not is stamped behind that
    instant, or comes from sources that the other does not see.
    """
    found: dict[str, int] = {}
    for one in counted:
        for stream, count in one.items():
            found[stream] = max(count, found.get(stream, 0))
    return found


def as_text(reflects: Label) -> str | None:
    """Return a label as JSON, for sinks; None if it is not known."""
    if not reflects:
        return None
    said = {stream: {"tuples": one.tuples, "complete": _plain(one.complete)} for stream, one in reflects.items()}
    return json.dumps(said)


def _plain(instant: Any) -> Any:
    return instant.isoformat() if isinstance(instant, datetime) else instant


def in_words(reflects: Label) -> str:
    """Return a label for people to read; nothing if it is not known."""
    if not reflects:
        return ""
    complete = next(iter(reflects.values())).complete
    return f"{prefixes(reflects)}, up to {'no instant yet' if complete is None else complete}"


def prefixes(reflects: Label) -> str:
    """Return the tuples of a label for people to read, without the instant at which they are cut."""
    counts = [f"the first {one.tuples} tuples of {stream}" for stream, one in reflects.items()]
    return counts[0] if len(counts) == 1 else f"{', '.join(counts[:-1])} and {counts[-1]}"
