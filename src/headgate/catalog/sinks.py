"""The sinks there are: what each one promises, and which options it takes.

Options reach a sink checked and spelled as here. Three mean the same everywhere:

    'deliver' = 'changes' | 'upserts' | 'current'     what of a relation goes out; a stream has only additions
    'key' = 'a, b'                                    the columns that tell the rows of the relation apart
    'flush_rows' = '10000'                            how many results go out at once; of changes only
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.catalog.entries import Connector

MODES = ("changes", "upserts", "current")
EXISTING = ("refuse", "append", "replace")
"""What becomes of results that another engine has put where these go."""


@dataclass(frozen=True, slots=True)
class SinkKind:
    """What a sink promises and takes: options it needs, options it knows, beginnings of options that it passes on."""

    guarantee: str
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    modes: tuple[str, ...] = ("changes",)
    keyed: bool = False
    """Whether a key is of use although every change is delivered."""

    flushes: bool = True
    """Whether what it gets can be cut into pieces; what stays where it is need not be."""

    example: str = ""
    options: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        own = ("deliver", "key") if len(self.modes) > 1 else ()
        object.__setattr__(
            self, "options", (*self.needs, *own, *self.takes, *(("flush_rows",) if self.flushes else ()))
        )


TEXTUAL = ("compression", "dateFormat", "timestampFormat", "lineSep", "encoding")
FILES = {
    "parquet": ("compression",),
    "orc": ("compression",),
    "json": (*TEXTUAL, "ignoreNullFields"),
    "csv": (*TEXTUAL, "header", "sep", "quote", "escape", "quoteAll", "nullValue", "emptyValue"),
}
"""The formats of files, and which of the options of Spark's writers each takes."""

EXACT = ("parquet", "orc")
"""Formats that give back what was written, so that current rows can be kept in them."""

SINKS = {
    "memory": SinkKind("exactly once", flushes=False),
    "console": SinkKind("at least once: what was printed just before a crash is printed again"),
    **{
        name: SinkKind(
            "exactly once for readers that follow the commits",
            ("path",),
            ("existing", *options),
            (),
            MODES if name in EXACT else MODES[:2],
            example=f"INTO {name} OPTIONS ('path' = 'folder')",
        )
        for name, options in FILES.items()
    },
    "delta": SinkKind(
        "exactly once: Delta skips a delivery that it has", ("path",), example="INTO delta OPTIONS ('path' = 'folder')"
    ),
    "kafka": SinkKind(
        "at least once: a delivery cut short by a crash is completed and not repeated, but a Spark task that is "
        "retried sends "
        "again; headers tell such records apart",
        ("kafka.bootstrap.servers", "topic"),
        (),
        ("kafka.",),
        ("changes", "upserts"),
        keyed=True,
        example="INTO kafka OPTIONS ('kafka.bootstrap.servers' = 'localhost:9092', 'topic' = 'alerts')",
    ),
    "jdbc": SinkKind(
        "exactly once: rows and the number of their delivery change in one transaction",
        ("url", "dbtable"),
        (
            "user",
            "password",
            "driver",
            "existing",
            "batchsize",
            "queryTimeout",
            "createTableOptions",
            "createTableColumnTypes",
        ),
        (),
        MODES,
        example="INTO jdbc OPTIONS ('url' = 'jdbc:postgresql://localhost/db', 'dbtable' = 'alerts')",
    ),
    "webhook": SinkKind(
        "at least once: a batch that comes again has the same Idempotency-Key",
        ("url",),
        ("rows", "timeout"),
        ("header.",),
        ("changes", "upserts"),
        example="INTO webhook OPTIONS ('url' = 'http://localhost:8000/alerts')",
    ),
    "callback": SinkKind(
        "at least once: a delivery may come again after a crash, with the same number",
        ("function",),
        (),
        (),
        ("changes", "upserts"),
        example="INTO callback OPTIONS ('function' = 'module:name')",
    ),
}


def mode(connector: Connector) -> str:
    return connector.options.get("deliver", "changes")


def key(connector: Connector) -> tuple[str, ...]:
    return tuple(name for part in connector.options.get("key", "").split(",") if (name := part.strip()))


def flush_rows(connector: Connector | None, default: int | None) -> int | None:
    """How many results a sink gets at once; None: all of an epoch.

    Upserts and current rows are what a relation is at an instant. Half of them would be what it never was, so they stay
    whole."""
    if connector is None:
        return default
    return int(connector.options.get("flush_rows", 0)) or default if mode(connector) == "changes" else None


def described(connector: Connector) -> str:
    """Where results go, as what, and how often each arrives."""
    by = f" by {', '.join(key(connector))}" if key(connector) else ""
    return f"into {connector.format} as {mode(connector)}{by}, {SINKS[connector.format].guarantee}"
