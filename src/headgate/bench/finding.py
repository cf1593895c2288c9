"""The findings of an experiment: tables, sentences and charts, printed and written into a page of the documentation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; its first column names the rows."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def table(self) -> Table:
        """The table for the console."""
        table = Table(title=self.title, box=SIMPLE_HEAD, title_justify="left")
        for number, heading in enumerate(self.headings):
            table.add_column(heading, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        """The table in Markdown."""
        lines = [f"**{self.title}**", "", _row(self.headings), _row(["---", *("---:" for _ in self.headings[1:])])]
        return "\n".join([*lines, *map(_row, self.rows)])


@dataclass(frozen=True, slots=True)
class Finding:
    """What an experiment found, as tables, charts and remarks."""

    name: str
    """The name of its section in the page."""

    grids: list[Grid] = field(default_factory=list)
    charts: dict[str, str] = field(default_factory=dict)
    """SVG texts by file name, without the name of the page and `.svg`."""

    remarks: list[str] = field(default_factory=list)
    page: str = "papers"
    """The name of the page: `docs/papers.md`, whose charts are `docs/images/papers-*.svg`."""

    def show(self, console: Console) -> None:
        """Prints the tables and remarks."""
        for grid in self.grids:
            console.print(grid.table())
        for remark in self.remarks:
            console.print(remark, markup=False)
        console.print()

    def write(self, docs: Path) -> None:
        """Writes the charts to docs/images, and the tables and remarks between their markers in the page."""
        (docs / "images").mkdir(exist_ok=True)
        for name, svg in self.charts.items():
            (docs / "images" / f"{self.page}-{name}.svg").write_text(svg, encoding="utf-8")
        page = docs / f"{self.page}.md"
        page.write_text(with_section(page.read_text(encoding="utf-8"), self.name, self.markdown()), encoding="utf-8")

    def markdown(self) -> str:
        """The tables and remarks in Markdown."""
        return "\n\n".join([*(grid.markdown() for grid in self.grids), *self.remarks])


def has_place(page: str, name: str) -> bool:
    """True if the page has markers between which figures of that name can be written."""
    return _place(name).search(page) is not None


def with_section(page: str, name: str, text: str) -> str:
    """The page with a new text between the markers of that name."""
    if not has_place(page, name):
        raise ValueError(f'the page has no place for the figures "{name}"')
    return _place(name).sub(lambda found: f"{found[1]}\n\n{text}\n\n{found[2]}", page)


def _place(name: str) -> re.Pattern[str]:
    begin, end = (re.escape(f"<!-- {word}: {name} -->") for word in ("figures", "end of figures"))
    return re.compile(f"({begin}).*?({end})", re.DOTALL)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
