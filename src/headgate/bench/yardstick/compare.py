"""Compares the results of an engine with those of the batch query, as multisets.

Two results are the same if their identity is equal and their values are, up to rounding. Results that occur several
times must occur as often on both sides. What may differ, because CQL says so: results that repeat the key's one before
(ISTREAM leaves them out), results when tuples leave a window, and windows that are still open at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.bench.yardstick.results import INSTANT, Columns
from headgate.bench.yardstick.workloads import Compared

RELATIVE = 1e-9
"""How far values may differ by rounding, in proportion."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many results of an engine are those of the batch query, and how many are not."""

    alike: int
    repeated: int = 0
    """Results that the engine leaves out, because they equal the key's result before."""

    between: int = 0
    """Results of the engine between arrivals, when tuples leave the window."""

    open: int = 0
    """Results of the batch query for windows that the engine holds back as still open."""

    different: int = 0
    """Results whose values differ."""

    missing: int = 0
    """Results that only the batch query has."""

    extra: int = 0
    """Results that only the engine has."""

    example: str = ""
    """The first result that is different, missing or extra."""

    @property
    def whole(self) -> bool:
        """True if nothing differs that must not."""
        return not (self.different or self.missing or self.extra)

    def __str__(self) -> str:
        said = [f"{self.alike:,}"]
        if self.repeated:
            said.append(f"{self.repeated:,} not repeated")
        if self.between:
            said.append(f"{self.between:,} more between arrivals")
        if self.open:
            said.append(f"{self.open:,} still open")
        if not self.whole:
            said.append(f"{self.different:,} DIFFERENT, {self.missing:,} MISSING, {self.extra:,} EXTRA")
            said.append(f"first {self.example}")
        return ", ".join(said)


def compare(engine: Columns, batch: Columns, how: Compared, complete_to: float) -> Agreement:
    """Compares results; the engine need not have those after `complete_to`."""
    if how.every_change:
        engine, batch = _once(engine, how), _once(batch, how)
    ours, theirs = _pairs(engine, batch, how)
    same = _close(engine, ours, batch, theirs, how.values)
    missing = _others(batch, theirs)
    extra = _others(engine, ours)
    late = batch[INSTANT][missing] > complete_to
    repeated = ~late & np.isin(missing, _repetitions(batch, how))
    missing, still_open, again = missing[~late & ~repeated], int(late.sum()), int(repeated.sum())
    between = 0
    if how.every_change:
        between, extra = len(extra), extra[:0]
    different = ours[~same]
    example = next(
        (
            f"{word}: {_text(side, rows[0])}"
            for word, side, rows in (
                ("different", engine, different),
                ("missing", batch, missing),
                ("extra", engine, extra),
            )
            if len(rows)
        ),
        "",
    )
    return Agreement(int(same.sum()), again, between, still_open, len(different), len(missing), len(extra), example)


def _pairs(engine: Columns, batch: Columns, how: Compared) -> tuple[np.ndarray, np.ndarray]:
    """Positions of results with the same identity, one of the engine's for one of the batch query's."""
    counts = [_occurrence(side, how) for side in (engine, batch)]
    digests = [
        _digest([*(side[name] for name in how.identity), counted])
        for side, counted in zip((engine, batch), counts, strict=True)
    ]
    _, ours, theirs = np.intersect1d(digests[0], digests[1], return_indices=True)
    equal = counts[0][ours] == counts[1][theirs]
    for name in how.identity:  # two identities may have one digest
        equal &= engine[name][ours] == batch[name][theirs]
    return ours[equal], theirs[equal]


def _occurrence(side: Columns, how: Compared) -> np.ndarray:
    """For each result how many come before it with the same identity, in order of their values."""
    digest = _digest([side[name] for name in how.identity])
    found = np.zeros(len(digest), np.int64)
    in_order = np.sort(digest)
    if (in_order[1:] == in_order[:-1]).any():
        order = np.lexsort([*(side[name] for name in reversed(how.values)), digest])
        new = np.ones(len(order), bool)
        new[1:] = digest[order][1:] != digest[order][:-1]
        place = np.arange(len(order))
        found[order] = place - np.maximum.accumulate(np.where(new, place, 0))
    return found


def _digest(columns: list[np.ndarray]) -> np.ndarray:
    """One number for the values of a row, by which it is found; equal numbers need not be equal rows."""
    digest = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        bits = column.view(np.uint64) if column.dtype == np.float64 else column.astype(np.int64).view(np.uint64)
        digest = (digest ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        digest ^= digest >> np.uint64(29)
        digest *= np.uint64(0xBF58476D1CE4E5B9)
        digest ^= digest >> np.uint64(32)
    return digest


def _close(one: Columns, ones: np.ndarray, other: Columns, others: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    close = np.ones(len(ones), bool)
    for name in names:
        close &= np.isclose(one[name][ones], other[name][others], rtol=RELATIVE, atol=0, equal_nan=True)
    return close


def _others(side: Columns, found: np.ndarray) -> np.ndarray:
    return np.setdiff1d(np.arange(len(side[INSTANT])), found, assume_unique=True)


def _repetitions(batch: Columns, how: Compared) -> np.ndarray:
    """Positions of results whose values equal those of the key's result before."""
    if not how.netted:
        return np.empty(0, np.intp)
    keys = [name for name in how.identity if name != INSTANT]
    order = np.lexsort([batch[name] for name in (INSTANT, *reversed(keys))])
    before, after = order[:-1], order[1:]
    again = _close(batch, after, batch, before, how.values)
    for name in keys:
        again &= batch[name][after] == batch[name][before]
    return after[again]


def _once(side: Columns, how: Compared) -> Columns:
    """The results without those that repeat another of the same identity."""
    order = np.lexsort([side[name] for name in reversed((*how.identity, *how.values))])
    before, after = order[:-1], order[1:]
    again = _close(side, after, side, before, how.values)
    for name in how.identity:
        again &= side[name][after] == side[name][before]
    kept = np.concatenate([order[:1], after[~again]])
    return {name: column[kept] for name, column in side.items()}


def _text(side: Columns, row: int) -> str:
    return ", ".join(f"{name} {column[row]}" for name, column in side.items())
