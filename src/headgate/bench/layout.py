"""What the reports of all measurements look like: their tables and their progress bars."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn
from rich.table import Table


def empty_table(title: str, *headings: str) -> Table:
    """An empty table in the style of the report."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="right" if position else "left", no_wrap=True)
    return table


def progress_bar() -> Progress:
    """A progress bar on stderr, if that is a terminal; it is gone when the work is done."""
    err = Console(stderr=True)
    columns = (*Progress.get_default_columns(), TimeElapsedColumn())
    return Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
