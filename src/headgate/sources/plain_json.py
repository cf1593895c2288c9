"""Plain files of JSON: large ones with one object a line, which Spark's own reader parses in half the time.

Rows of JSON are read as text and decoded, so that the text is at hand for a row that does not fit, for keys that are
spelled in another case than their columns, and for arrays. In a plain file none of that is needed. Whether it is one is
known in part before: every line begins with "{". The rest shows while it is read: a row in which a column is null may
have the key in another case, or not fit. Such a row is *unclear*. If there is one in a file, the whole file is read
again as text, and what was read of it before counts for nothing.
"""

from __future__ import annotations

from pathlib import Path

from headgate.sources.inlet import Inlet
from headgate.sql import Sql, literal, name

PLAIN_BYTES = 2**20
"""Smaller files are not worth the risk of being read twice."""

BLOCK_BYTES = 2**24

PACKED = (".gz", ".bz2", ".lz4", ".snappy", ".deflate", ".zst", ".xz", ".zip")
"""How the names of compressed files end."""

HARMLESS = {
    "pathglobfilter",
    "recursivefilelookup",
    "modifiedbefore",
    "modifiedafter",
    "dateformat",
    "timestampformat",
    "timestampntzformat",
    "timezone",
    "locale",
    "mode",
}
"""Options of Spark's reader under which a line that begins with "{" is read as its text would be decoded."""

UNCLEAR = "\0unclear"
"""What stands for the text of an unclear row. It gets nowhere: the file is read again."""


def is_plain(path: Path) -> bool:
    """True if a file is large, not compressed, and each of its lines begins with "{"."""
    if path.suffix in PACKED:
        return False
    try:
        if path.stat().st_size < PLAIN_BYTES:
            return False
        with path.open("rb") as file:
            begins = True
            while block := file.read(BLOCK_BYTES):
                lines = block.count(b"\n") - block.endswith(b"\n")
                if (begins and block[:1] != b"{") or block.count(b"\n{") != lines or b"\r" in block:
                    return False
                begins = block.endswith(b"\n")
    except OSError:
        return False
    return True


def unclear_sql(inlet: Inlet, corrupt: Sql) -> Sql:
    """The column of texts for rows of Spark's reader, in SQL: a mark where the row is unclear, else null."""
    missing = (f"{name(column)} IS NULL" for column in inlet.stream.row_columns())
    return f"IF({' OR '.join([f'{corrupt} IS NOT NULL', *missing])}, {literal(UNCLEAR)}, NULL)"
