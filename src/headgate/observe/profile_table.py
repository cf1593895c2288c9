"""The profile as lines of text: streams, fragments, operators, and what was adapted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headgate.log.statistics import Values
from headgate.observe.profile import Adaptation, Figures

MOST_COLUMNS = 8
"""Of so many columns of a stream the values are shown."""


def lines(figures: Sequence[Figures], adaptations: Sequence[Adaptation], now_us: int) -> list[str]:
    """Return the figures as tables, one for each kind, and the adaptations."""
    streams = [one for one in figures if one.subject.kind == "stream"]
    fragments = [one for one in figures if one.subject.kind == "fragment"]
    operators = [one for one in figures if one.subject.kind == "operator"]
    found: list[str] = []
    if streams:
        words = [(str(one.subject), _number(one.rate_in), str(one.rows_in), _values(one)) for one in streams]
        found += _table(("stream", "rows/s", "rows", "values"), words)
    if fragments:
        found += _table(
            ("fragment", "rows/s", "in", "out", "out/in", "us/row", "epochs", "waiting", "state rows", "state bytes"),
            [
                (
                    str(one.subject),
                    _number(one.rate_in),
                    *map(str, (one.rows_in, one.rows_out)),
                    *map(_known, (one.selectivity, one.us_per_row)),
                    *map(str, (one.epochs, one.waiting, one.state_rows, one.state_bytes)),
                )
                for one in fragments
            ],
        )
    if operators:
        found += _table(
            ("operator", "rows/s", "in", "out", "out/in", "state rows", "state bytes"),
            [
                (
                    str(one.subject),
                    _number(one.rate_in),
                    *map(str, (one.rows_in, one.rows_out)),
                    _known(one.selectivity),
                    *map(str, (one.state_rows, one.state_bytes)),
                )
                for one in operators
            ],
        )
    found += adapted(adaptations, now_us) or ["nothing was adapted"]
    return found


def adapted(adaptations: Iterable[Adaptation], now_us: int) -> list[str]:
    """Return a line for each adaptation: how long ago, what, and by which figures."""
    return [f"adapted {max(now_us - one.at_us, 0) / 1e6:.1f} s ago, {one}" for one in adaptations]


def _table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Give lines in which words of a column stand below each other, and a blank line behind them."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        yield "  ".join(f"{word:<{width}}" for word, width in zip(row, widths, strict=True)).rstrip()
    yield ""


def _number(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _known(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _values(one: Figures) -> str:
    """Return the ranges and null counts of a stream's columns of numbers."""
    shown = [f"{name} {_range(values)}" for name, values in list(one.columns.items())[:MOST_COLUMNS]]
    more = len(one.columns) - len(shown)
    return ", ".join([*shown, *([f"and {more} more columns"] if more > 0 else [])])


def _range(values: Values) -> str:
    nulls = f", {values.nulls} null" if values.nulls else ""
    return f"{_end(values.least)}..{_end(values.largest)}{nulls}" if values.least is not None else f"unknown{nulls}"


def _end(value: float | None) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
