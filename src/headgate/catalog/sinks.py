"""The sinks: one row for each, with what it promises, which options it takes, how they are checked, and its class.

`SINKS` feeds the checks of INTO, the error texts, `explain`, the shell's completion and `deliver.sinks.sink_for`, which
makes the sink of a query. A new sink is a row of `SINKS` and a module in `deliver/sinks` (docs/sinks.md says how).

Options reach a sink checked and spelled as in its row. Five options mean one thing for all sinks:

    'deliver' = 'changes' | 'upserts' | 'current'     what of a relation goes out; a stream has only additions
    'key' = 'a, b'                                    the columns that tell the rows of the relation apart
    'flush_rows' = '10000'                            how many results go out at once; of changes only
    'reflects' = 'true'                               each row has the label of its delivery, in the column _reflects
    'partial' = 'true'                                early answers go out too, marked in the column _partial

This module imports no Spark, so that INTO is checked without a JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit

from headgate.catalog.entries import Connector
from headgate.errors import UserError, nearest, quoted
from headgate.paths import is_elsewhere, local
from headgate.sql.database import table

MODES = ("changes", "upserts", "current")
EXISTING = ("refuse", "append", "replace")
"""The values of 'existing': what to do where another engine has put results."""


@dataclass(frozen=True, slots=True)
class Objection:
    """Why the value of an option, or the option itself, is refused."""

    message: str
    detail: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a sink: its name as Spark or the sink spells it, and the check of its value."""

    name: str
    check: Check | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkKind:
    """All that is known of a sink without Spark."""

    name: str
    made_by: str
    """The class of the sink as `module:class`, in `headgate.deliver.sinks`."""

    guarantee: str
    """How often a result arrives: "exactly once" or "at least once", and on which condition."""

    needs: tuple[Option, ...] = ()
    takes: tuple[Option, ...] = ()
    prefixes: tuple[Option, ...] = ()
    """Beginnings of further options, which reach the sink as they were written."""

    modes: tuple[str, ...] = ("changes",)
    """The values that 'deliver' can have."""

    keyed: tuple[str, ...] = ("upserts",)
    """The modes in which a key is of use."""

    flushes: bool = True
    """True if an epoch's results may be cut into pieces (`flush_rows`)."""

    labelled: bool = True
    """True if rows can have the label of their delivery (`reflects`), and say whether they are early (`partial`)."""

    together: str = ""
    """The class that delivers several queries at once, as `module:class`; empty if that cannot be done."""

    whole: tuple[str, ...] = ()
    """Options that hold for all queries of a group, because they are delivered together."""

    identified: bool = True
    """True if the sink tells deliveries of this query from those of another, by a file in the query's folder."""

    needs_connector: bool = False
    """True if Spark needs a connector for it that does not come with Spark."""

    needs_jvm: bool = False
    """True if it talks to the driver's JVM, which a client of Spark Connect does not have."""

    unwritable: tuple[str, ...] = ()
    """How the types of columns begin that it cannot write."""

    example: str = ""

    @property
    def known(self) -> tuple[Option, ...]:
        """All options that it knows by name, those it needs first."""
        shared = (Option("deliver", _mode), Option("key")) if len(self.modes) > 1 else ()
        flush = (Option("flush_rows", _number),) if self.flushes else ()
        label = (Option("reflects", _yes_or_no), Option("partial", _yes_or_no)) if self.labelled else ()
        return (*self.needs, *shared, *self.takes, *flush, *label)

    @property
    def options(self) -> tuple[str, ...]:
        """The names of all options that it knows by name."""
        return tuple(option.name for option in self.known)

    def objection(self, option: str, value: str) -> Objection | None:
        """Why an option cannot have this value; None if it can."""
        known = next((one for one in self.known if one.name == option), None) or next(
            (one for one in self.prefixes if option.lower().startswith(one.name)), None
        )
        return known.check(self, option, value) if known is not None and known.check is not None else None


Check: TypeAlias = Callable[[SinkKind, str, str], Objection | None]
"""Given a sink, an option and its value: why it is refused, or None."""


# checks of options


def _one_of(values: Iterable[str], kind: SinkKind, option: str, value: str) -> Objection | None:
    if value in values:
        return None
    return Objection(
        f'option "{option}" of the {kind.name} sink cannot be "{value}"',
        detail=f"It is one of {quoted(values)}.",
        hint=nearest(value, values),
    )


def _mode(kind: SinkKind, option: str, value: str) -> Objection | None:
    return _one_of(kind.modes, kind, option, value)


def _existing(kind: SinkKind, option: str, value: str) -> Objection | None:
    return _one_of(EXISTING, kind, option, value)


def _yes_or_no(kind: SinkKind, option: str, value: str) -> Objection | None:
    return _one_of(("true", "false"), kind, option, value)


def _number(kind: SinkKind, option: str, value: str) -> Objection | None:
    if value.isdigit() and int(value):
        return None
    return Objection(f'option "{option}" of the {kind.name} sink is a number of 1 or more', detail=f'It is "{value}".')


def _folder(kind: SinkKind, option: str, value: str) -> Objection | None:
    if not is_elsewhere(value):
        try:
            local(value)
        except UserError as error:
            return Objection(error.message, hint=error.hint)
        return None
    return Objection(
        f'the {kind.name} sink writes into a folder of a file system, not to "{value.partition(":")[0]}"',
        detail="Deliveries are committed by renaming files.",
        hint="Give a local or mounted folder.",
    )


def _http_address(kind: SinkKind, option: str, value: str) -> Objection | None:
    if urlsplit(value).scheme in ("http", "https") and urlsplit(value).hostname:
        return None
    return Objection(f'"{value}" is not an address for a webhook', hint=kind.example)


def _jdbc_address(kind: SinkKind, option: str, value: str) -> Objection | None:
    return None if value.startswith("jdbc:") else Objection(f'"{value}" is not a JDBC address', hint=kind.example)


def _jdbc_table(kind: SinkKind, option: str, value: str) -> Objection | None:
    try:
        table(value)
    except ValueError:
        return Objection(f'"{value}" is not the name of a table', hint=kind.example)
    return None


def _function(kind: SinkKind, option: str, value: str) -> Objection | None:
    module, _, function = value.partition(":")
    if all(part.isidentifier() for part in [*module.split("."), *function.split(".")]):
        return None
    return Objection(f'"{value}" does not name a function', hint=kind.example)


def _header(kind: SinkKind, option: str, value: str) -> Objection | None:
    if option.lower() not in ("header.content-length", "header.transfer-encoding", "header.connection"):
        return None
    return Objection(f'the {kind.name} sink sets "{option.partition(".")[2]}" itself')


# the table


def _named(*names: str) -> tuple[Option, ...]:
    """Options whose values only the sink itself can judge."""
    return tuple(map(Option, names))


TEXTUAL = ("compression", "dateFormat", "timestampFormat", "lineSep", "encoding")
FILES = {
    "parquet": ("compression",),
    "orc": ("compression",),
    "json": (*TEXTUAL, "ignoreNullFields"),
    "csv": (*TEXTUAL, "header", "sep", "quote", "escape", "quoteAll", "nullValue", "emptyValue"),
}
"""The formats of files, and which of the options of Spark's writers each takes."""


def _file_sink(
    format: str, modes: tuple[str, ...], unwritable: tuple[str, ...] = (), more: tuple[Option, ...] = ()
) -> SinkKind:
    return SinkKind(
        name=format,
        made_by="files:FileSink",
        together="file_group:FileGroupSink",
        whole=("path", "existing", "deliver"),
        guarantee="exactly once for readers that follow the commits",
        needs=(Option("path", _folder),),
        takes=(Option("existing", _existing), *_named(*FILES[format]), *more),
        modes=modes,
        unwritable=unwritable,
        example=f"INTO {format} OPTIONS ('path' = 'folder')",
    )


SINKS: dict[str, SinkKind] = {
    kind.name: kind
    for kind in (
        SinkKind(
            name="memory",
            made_by="memory:MemorySink",
            guarantee="exactly once",
            flushes=False,
            labelled=False,
            identified=False,
        ),
        SinkKind(
            name="console",
            made_by="console:ConsoleSink",
            guarantee="at least once: what was printed just before a crash is printed again",
            labelled=False,
            identified=False,
        ),
        _file_sink("parquet", MODES, more=(Option("ordered", _yes_or_no),)),
        _file_sink("orc", MODES),
        _file_sink("json", MODES[:2]),  # text does not give back exactly what was written: no current rows in it
        _file_sink("csv", MODES[:2], unwritable=("ARRAY", "MAP", "STRUCT", "BINARY", "VARIANT")),
        SinkKind(
            name="delta",
            made_by="delta:DeltaSink",
            guarantee="exactly once: Delta skips a delivery that it has",
            needs=_named("path"),
            needs_connector=True,
            example="INTO delta OPTIONS ('path' = 'folder')",
        ),
        SinkKind(
            name="kafka",
            made_by="kafka:KafkaSink",
            guarantee="at least once: a delivery cut short by a crash is completed and not repeated, but a Spark task "
            "that is retried sends again; headers tell such records apart",
            needs=_named("kafka.bootstrap.servers", "topic"),
            prefixes=_named("kafka."),
            modes=("changes", "upserts"),
            keyed=("changes", "upserts"),
            needs_connector=True,
            needs_jvm=True,
            example="INTO kafka OPTIONS ('kafka.bootstrap.servers' = 'localhost:9092', 'topic' = 'alerts')",
        ),
        SinkKind(
            name="jdbc",
            made_by="jdbc:JdbcSink",
            together="jdbc_group:JdbcGroupSink",
            whole=("url", "user", "password", "driver"),
            guarantee="exactly once: rows and the number of their delivery change in one transaction",
            needs=(Option("url", _jdbc_address), Option("dbtable", _jdbc_table)),
            takes=(
                *_named("user", "password", "driver"),
                Option("existing", _existing),
                Option("batchsize", _number),
                Option("queryTimeout", _number),
                *_named("createTableOptions", "createTableColumnTypes"),
            ),
            modes=MODES,
            keyed=("upserts", "current"),
            needs_jvm=True,
            example="INTO jdbc OPTIONS ('url' = 'jdbc:postgresql://localhost/db', 'dbtable' = 'alerts')",
        ),
        SinkKind(
            name="webhook",
            made_by="webhook:WebhookSink",
            guarantee="at least once: a batch that comes again has the same Idempotency-Key",
            needs=(Option("url", _http_address),),
            takes=(Option("rows", _number), Option("timeout", _number)),
            prefixes=(Option("header.", _header),),
            modes=("changes", "upserts"),
            example="INTO webhook OPTIONS ('url' = 'http://localhost:8000/alerts')",
        ),
        SinkKind(
            name="callback",
            made_by="callback:CallbackSink",
            guarantee="at least once: a delivery may come again after a crash, with the same number",
            needs=(Option("function", _function),),
            modes=("changes", "upserts"),
            identified=False,
            example="INTO callback OPTIONS ('function' = 'module:name')",
        ),
    )
}


# what the options of a query say


def mode(connector: Connector) -> str:
    """How a relation is delivered: as changes, upserts or current rows."""
    return connector.options.get("deliver", "changes")


def key(connector: Connector) -> tuple[str, ...]:
    """The columns of the option 'key'."""
    return tuple(name for part in connector.options.get("key", "").split(",") if (name := part.strip()))


def flush_rows(connector: Connector | None, default: int | None) -> int | None:
    """How many results a sink gets at once; None: all of an epoch.

    Upserts and current rows are what a relation is at an instant. Half of them would be what it never was, so they stay
    whole.
    """
    if connector is None:
        return default
    return int(connector.options.get("flush_rows", 0)) or default if mode(connector) == "changes" else None


def reflects(connector: Connector) -> bool:
    """True if each row is to have the label of its delivery."""
    return connector.options.get("reflects") == "true"


def partial(connector: Connector) -> bool:
    """True if early answers are to go out as well, marked as partial."""
    return connector.options.get("partial") == "true"


def takes_back(connector: Connector) -> bool:
    """True if the sink holds what a relation is, so that an early answer can be taken back."""
    return mode(connector) != "changes"


def linked(connector: Connector) -> bool:
    """True if files of results can reach the sink as they are: Parquet, all changes, and no wish how it is written."""
    more = reflects(connector) or partial(connector)
    written = any(option in connector.options for option in FILES["parquet"]) or more
    return connector.format == "parquet" and mode(connector) == "changes" and not written


def takes_files_in_order(connector: Connector) -> bool:
    """True if it pays to put each file of results in order: the sink then gets them as they are."""
    return linked(connector) and not ordered(connector) and "flush_rows" not in connector.options


def ordered(connector: Connector) -> bool:
    """True if the files of a delivery are to follow one another in time."""
    return connector.options.get("ordered") == "true"


def described(connector: Connector) -> str:
    """Where results go, as what, and how often each arrives, in words."""
    by = f" by {', '.join(key(connector))}" if key(connector) else ""
    return f"into {connector.format} as {mode(connector)}{by}, {SINKS[connector.format].guarantee}"
