"""The command line. Help and `explain` start no JVM; errors the user can mend are printed without a stack trace."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn

from headgate import __version__
from headgate.errors import UserError, report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.engine import Engine
    from headgate.observe.otlp import Collector
    from headgate.testing.cases import Case

app = typer.Typer(
    help="Continuous queries in CQL on Spark: right at every instant, whatever clocks and silent feeds do.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)

USER_MISTAKE, DEFECT, INTERRUPTED, BROKEN_PIPE = 2, 70, 130, 141
SHORT_BYTES = 32 * 2**20
"""A run over less input than this is over before it pays to have Java compile well."""

TABLE_WIDTH = 160
"""The least width of a table, in columns: a terminal wraps lines that do not fit, and a file need not."""


class EngineKind(Enum):
    """What evaluates test cases: the engine on Spark, or the reference evaluator."""

    spark = "spark"
    reference = "reference"


class LogKind(Enum):
    """How log lines are written: for people, or one JSON object a line."""

    text = "text"
    json = "json"


class LogLevel(Enum):
    """The least that is logged."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


class Replay(Enum):
    """The order in which history is replayed."""

    arrival = "arrival"


def show_traces(wanted: bool) -> None:
    """Show stack traces of errors in this process, and in Spark when it is started."""
    if wanted:
        os.environ["HEADGATE_DEBUG"] = "1"


Debug = Annotated[
    bool,
    typer.Option(
        "--debug", callback=show_traces, help="Show stack traces of errors, also Spark's; as HEADGATE_DEBUG=1."
    ),
]

Opentelemetry = Annotated[
    bool,
    typer.Option(
        "--opentelemetry", help="Export traces of heartbeats by OTLP, to where the environment's OTEL_ variables say."
    ),
]


@app.callback(invoke_without_command=True)
def options(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        out.print(f"headgate {__version__}")
        raise typer.Exit


@app.command()
def demo(
    seconds: Annotated[int, typer.Option(help="How long the feeds speak.", min=5)] = 24, debug: Debug = False
) -> None:
    """Three feeds whose clocks disagree, three continuous queries; one feed goes silent, the answers do not."""
    from headgate.demo import play

    play(out, seconds)


@app.command()
def run(
    script: Annotated[Path, typer.Argument(help="A file of CQL statements.")],
    once: Annotated[bool, typer.Option("--once", help="Process what is there, in order of time, and end.")] = False,
    close: Annotated[
        bool | None,
        typer.Option(
            "--close/--leave-open",
            show_default=False,
            help="At the end of --once: answer up to the end of the last slide and of the last final group, or only "
            "up to the "
            "last timestamp. Default: close, but with --directory leave open, since the next run may bring more.",
        ),
    ] = None,
    replay: Annotated[
        Replay | None,
        typer.Option(
            help="As --once, but rows come in their order in the files and by the declared bounds, so some can be late."
        ),
    ] = None,
    batch_rows: Annotated[
        int, typer.Option(help="With --replay arrival: how many rows come at a time.", min=1)
    ] = 1_000,
    directory: Annotated[
        Path | None,
        typer.Option(help="Where logs, results and all that must be remembered are kept; the same one resumes."),
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark master; default: this machine.")] = None,
    conf: Annotated[
        list[str] | None, typer.Option(help="A setting of Spark, key=value; can be given several times.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Take rows over HTTP; HEADGATE_TOKEN is the token to ask for."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONNECTOR[=PLACE]",
            help="Let the script use only these, such as parquet=/data/in,kafka; can be given several times.",
        ),
    ] = None,
    opentelemetry: Opentelemetry = False,
    debug: Debug = False,
) -> None:
    """Run the queries of a script until stopped, or once over all input. Queries without INTO print their answers."""
    from headgate.engine import Engine
    from headgate.server.listener import address
    from headgate.sources.replay import ReplayClock

    text, bounded = read_script(script), once or replay is not None
    if replay is not None and directory is not None:
        raise UserError(
            "no-replay", "a replay in the order of arrival is a trial, and leaves nothing in a directory", hint="--once"
        )
    collector = collector_for(opentelemetry, note)
    running: list[Engine] = []
    stop = stop_on_signals(running)
    session = session_for(text, script, directory, master, conf or [], bounded, allow)
    stop_on_signals(running, stop)  # Spark has put a handler of its own in the place of ours
    clock = ReplayClock() if replay else None
    with (
        collector or nullcontext(),
        Engine(session, directory, clock=clock, default_sink="console", allow=allow or None) as engine,
    ):
        running.append(engine)
        if collector is not None:
            engine.export_traces(collector.provider)
        if stop.is_set():
            engine.stop()
        if engine.resumed:
            tell_resumed(engine, directory)
        print_answers(engine, text, script)
        warn(engine, bounded)
        if listen is not None:
            listener = engine.listen(*address(listen), os.environ.get("HEADGATE_TOKEN"))
            err.print(f"listening on {listener.url}", markup=False)
        if replay is not None:
            engine.replay(batch_rows, close=close)
        elif once:
            engine.run_once(close=close)
        else:
            engine.run(tell=note)
        tell_totals(engine)


def collector_for(wanted: bool, tell: Callable[[str], None]) -> Collector | None:
    """Return where traces of heartbeats go, if they are to be exported. What is missing is said before Spark starts."""
    if not wanted:
        return None
    from headgate.observe.spans import missing

    try:
        from headgate.observe.otlp import Collector
    except ImportError:
        raise missing("opentelemetry-sdk") from None
    return Collector(tell)


def stop_on_signals(running: list[Engine], asked: threading.Event | None = None) -> threading.Event:
    """Let SIGINT and SIGTERM end the engines that run after the epoch they are in.

    The event is set by a signal that comes while Spark is being started, before there is an engine.
    """
    asked = asked or threading.Event()

    def stop(*_: object) -> None:
        asked.set()
        for engine in running:
            engine.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    return asked


def session_for(
    text: str,
    script: Path,
    directory: Path | None,
    master: str | None,
    conf: list[str],
    bounded: bool,
    allow: list[str] | None,
    more: Iterable[str] = (),
) -> SparkSession:
    """Start Spark with the connectors that a script and its directory need, and some more, when all else has been
    checked.

    For `bounded` input that is small, Java is told not to spend time on compiling well.
    """
    from headgate.catalog.catalog import Catalog
    from headgate.compile import compile_script
    from headgate.cql.readers import check_paths, files_read, formats
    from headgate.engine.statements import remembered_statements
    from headgate.permissions import permissions
    from headgate.spark import connectors
    from headgate.spark.session import SHORT_LIVED, check_java, settings_from, started

    check_java()
    files, alone = files_read(text, str(script))
    check_paths(files)
    short = bounded and alone and sum(one.size() for one in files) <= SHORT_BYTES
    if directory is not None:
        check_directory(directory)
    remembered = remembered_statements(directory) if directory is not None else []
    if not remembered:  # otherwise only the engine knows what the script's names stand for
        catalog = Catalog()
        catalog.permissions = permissions(allow or None)
        compile_script(text, catalog, str(script))
    used = {format for cql in (text, *remembered) for format in formats(cql, str(script))}
    needed = connectors.among({*used, *more})
    session = started(master, settings_from(conf), needed, SHORT_LIVED if short else ())
    for format in needed:
        if instead := connectors.stand_ins(format):
            note(f"{connectors.packages(format)[0]} was not to be had; {', '.join(instead)} stands in")
    return session


def note(text: str) -> None:
    """Print something that the user should know and need not act on."""
    err.print(f"note: {text}", markup=False)


def tell_resumed(engine: Engine, directory: Path | None) -> None:
    """Print from where an engine goes on."""
    reached = ", ".join(f"{query.name} up to {query.complete}" for query in engine.queries())
    note(f'goes on from "{directory}": {reached or "no query"}')


def print_answers(engine: Engine, text: str, script: Path) -> None:
    """Carry out a script, and print what its questions (SHOW, WHY, SNAPSHOT, EXPLAIN) are answered."""
    from headgate.compile import explanation
    from headgate.cql.definitions import Explanation, Listing
    from headgate.engine.snapshot import Snapshot
    from headgate.heartbeat.why import Why

    for definition in engine.execute(text, str(script)):
        if isinstance(definition, Listing | Why | Snapshot):
            out.print(str(definition), markup=False, highlight=False)
        elif isinstance(definition, Explanation):
            out.print(explanation(definition.query, engine.catalog), markup=False, highlight=False)


def warn(engine: Engine, bounded: bool) -> None:
    """Print which queries can wait for ever without a timeout, unless the input ends, and whose state grows."""
    waits = not bounded and engine.catalog.settings.timeout_us is None
    for query in engine.queries():
        if waits and query.needs_timeout:
            note(f'query "{query.name}" {query.progress()}')
        for growth in query.growing():
            err.print(f'warning: the state of query "{query.name}" grows without limit: {growth.reason}', markup=False)


def tell_totals(engine: Engine) -> None:
    """Print how many results each query gave, and what became of the tuples of each stream."""
    for query in engine.queries():
        err.print(f"query {query.name}: {query.count} results, complete up to {query.complete}", markup=False)
    for stream in engine.catalog.streams.values():
        counts = ", ".join(f"{count} {what}" for what, count in engine.counts(stream.name).items())
        err.print(f"stream {stream.name}: {counts}", markup=False)
        if worst := engine.worst(stream.name):
            err.print(f"  the latest by {worst}; SELECT * FROM LATE({stream.name}) has them all", markup=False)


@app.command()
def serve(
    script: Annotated[
        Path | None, typer.Argument(help="A file of CQL statements to begin with; it may use all.")
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(help="Where all that must be remembered is kept; the same one resumes. Default: a temporary one."),
    ] = None,
    listen: Annotated[
        str,
        typer.Option(metavar="[HOST:]PORT", help="Where to listen; beyond this machine HEADGATE_TOKEN must be set."),
    ] = "127.0.0.1:8080",
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONNECTOR[=PLACE]",
            help="Let statements from outside use these, such as parquet=/data/in,kafka; without it, no connector.",
        ),
    ] = None,
    tls_certificate: Annotated[Path | None, typer.Option(help="Speak TLS, by this certificate (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The key of the certificate (PEM).")] = None,
    log: Annotated[LogKind, typer.Option(help="How log lines are written.")] = LogKind.text,
    log_level: Annotated[
        LogLevel, typer.Option(help="The least that is logged; info has every request.")
    ] = LogLevel.info,
    body_bytes: Annotated[int, typer.Option(help="The largest body of a request.", min=1)] = 2**24,
    requests: Annotated[int, typer.Option(help="How many requests may be under way.", min=1)] = 1_000,
    followers: Annotated[int, typer.Option(help="How many requests may follow results.", min=0)] = 500,
    page_rows: Annotated[int, typer.Option(help="The most results in a page.", min=1)] = 10_000,
    page_bytes: Annotated[int, typer.Option(help="The most bytes in a page.", min=1_000)] = 2**22,
    statement_bytes: Annotated[int, typer.Option(help="The longest text of statements.", min=1)] = 2**16,
    statement_seconds: Annotated[float, typer.Option(help="How long a request waits for statements.", min=0.1)] = 60.0,
    master: Annotated[str | None, typer.Option(help="Spark master; default: this machine.")] = None,
    conf: Annotated[
        list[str] | None, typer.Option(help="A setting of Spark, key=value; can be given several times.")
    ] = None,
    opentelemetry: Opentelemetry = False,
    debug: Debug = False,
) -> None:
    """Run an engine with an HTTP server: rows and statements come in, results and how everything is go out."""
    from headgate.engine import Engine
    from headgate.observe.logs import configure
    from headgate.server.limits import Limits
    from headgate.server.listener import address, opened
    from headgate.server.serving import Serving, outside

    limits = Limits(
        body_bytes=body_bytes,
        held_bytes=max(body_bytes, Limits().held_bytes),
        requests=requests,
        followers=followers,
        page_rows=min(page_rows, Limits().page_rows),
        most_page_rows=page_rows,
        page_bytes=page_bytes,
        statement_bytes=statement_bytes,
        statement_seconds=statement_seconds,
    )
    text, serving = "" if script is None else read_script(script), Serving(outside(allow or ()), limits)
    door = opened(*address(listen), os.environ.get("HEADGATE_TOKEN"), tls_certificate, tls_key)
    configure(log.value, log_level.value)
    tell = logging.getLogger("headgate.engine").warning
    collector = collector_for(opentelemetry, tell)
    running: list[Engine] = []
    stop = stop_on_signals(running)
    named = {grant.connector for grant in serving.allowed.grants or ()}
    session = session_for(text, script or Path("nothing"), directory, master, conf or [], False, None, named)
    stop_on_signals(running, stop)  # Spark has put a handler of its own in the place of ours
    with collector or nullcontext(), Engine(session, directory) as engine:
        running.append(engine)
        if collector is not None:
            engine.export_traces(collector.provider)
        if stop.is_set():
            engine.stop()
        if engine.resumed:
            tell_resumed(engine, directory)
        if script is not None:
            print_answers(engine, text, script)
        if door.in_the_clear:
            note(
                "the token and all data go over the network in the clear; --tls-certificate and --tls-key encrypt them"
            )
        err.print(f"serving on {engine.serve(door, serving).url}", markup=False)
        engine.run(tell=tell)


@app.command()
def shell(
    script: Annotated[Path | None, typer.Argument(help="A file of CQL statements to begin with.")] = None,
    master: Annotated[str | None, typer.Option(help="Spark master; default: this machine.")] = None,
    debug: Debug = False,
) -> None:
    """A prompt for CQL: queries run while you type, and show their results. Without a terminal: reads a script."""
    from headgate.editing.entries import read
    from headgate.shell.start import interact, run_script

    begin = list(read(read_script(script).splitlines(keepends=True), str(script))) if script is not None else []
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    raise typer.Exit((interact if at_terminal else run_script)(begin, master, debug))


@app.command()
def explain(
    script: Annotated[Path, typer.Argument(help="A file of CQL statements.")],
    query: Annotated[str | None, typer.Argument(help="One of its queries; default: all.")] = None,
    debug: Debug = False,
) -> None:
    """Print each query with all defaults written out, its plan, and the SQL of an epoch. Starts no JVM."""
    from headgate.catalog.catalog import Catalog
    from headgate.compile import compile_script, explanation
    from headgate.cql.definitions import Explanation

    catalog = Catalog()
    definitions = compile_script(read_script(script), catalog, str(script))
    chosen = [catalog.query(query)] if query is not None else list(catalog.queries.values())
    if query is None:
        chosen += [definition.query for definition in definitions if isinstance(definition, Explanation)]
    if not chosen:
        raise UserError("no-query", f'script "{script}" has no query')
    for position, one in enumerate(chosen):
        out.print(("\n\n" if position else "") + explanation(one, catalog), markup=False)


@app.command()
def check(
    script: Annotated[Path, typer.Argument(help="A file of CQL statements.")],
    spark: Annotated[bool, typer.Option("--spark/--no-spark", help="Let Spark look at functions and types.")] = True,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="CONNECTOR[=PLACE]", help="What the script may use, as for run.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Find what would be refused of a script, with its place, without reading data and without running anything."""
    from headgate.check import problems
    from headgate.cql.readers import formats
    from headgate.spark import connectors
    from headgate.spark.session import started

    text = read_script(script)
    session = None
    if spark and not list(problems(text, str(script), None, allow)):  # what needs no Spark is said at once
        session = started(formats=connectors.among(formats(text, str(script))))
    found = list(problems(text, str(script), session, allow))
    for problem in found:
        err.print(problem.render(), markup=False)
    if found:
        raise typer.Exit(USER_MISTAKE)
    out.print(
        f"{script}: nothing to complain of{'' if spark else ', as far as can be told without Spark'}", markup=False
    )


@app.command()
def top(
    url: Annotated[str | None, typer.Argument(help="A server; default: http://127.0.0.1:8080.")] = None,
    directory: Annotated[Path | None, typer.Option(help="Or the directory of a running engine.")] = None,
    token: Annotated[str | None, typer.Option(help="The server's token.", envvar="HEADGATE_TOKEN")] = None,
    once: Annotated[bool, typer.Option("--once", help="Print one picture and end; so too without a terminal.")] = False,
    debug: Debug = False,
) -> None:
    """Show the queries and streams of a running engine: how far each is, what waits, what holds it back."""
    from headgate import top as screen

    if url is not None and directory is not None:
        raise typer.BadParameter("a server or a directory, not both", param_hint="--directory")
    place: screen.Place = (
        screen.Server(url or "http://127.0.0.1:8080", token) if directory is None else screen.Directory(directory)
    )
    if once or not (sys.stdin.isatty() and sys.stdout.isatty()):
        screen.once(place, out)
    else:
        screen.watch(place, out)


@app.command()
def why(
    query: Annotated[str, typer.Argument(help="The name of a running query.")],
    directory: Annotated[
        Path, typer.Option(help="The directory of the engine that runs it.", envvar="HEADGATE_DIRECTORY")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON, for programs.")] = False,
    debug: Debug = False,
) -> None:
    """Which source holds a running query back, since when, by which bound, and what would release it. Starts no JVM."""
    from headgate.observe import status

    found, said = status.read(directory, query)
    text = found.pop("text")
    if remark := said.note():
        note(remark)
    if json:
        out.print_json(data={**found, "running": said.running})
    else:
        out.print(
            text if said.running else text.replace("nothing holds it back", "nothing held it back then"), markup=False
        )


@app.command()
def trace(
    query: Annotated[str, typer.Argument(help="The name of a running query.")],
    directory: Annotated[
        Path, typer.Option(help="The directory of the engine that runs it.", envvar="HEADGATE_DIRECTORY")
    ],
    last: Annotated[int, typer.Option(help="How many of the last heartbeats are listed.", min=1)] = 20,
    json: Annotated[bool, typer.Option("--json", help="All that are remembered, for programs.")] = False,
    debug: Debug = False,
) -> None:
    """When each stop on the way from the streams to the sink saw the last heartbeats, and where time goes. Starts no
    JVM.
    """
    from headgate.observe import status
    from headgate.observe.trace_table import shown

    traces, said = status.read_traces(directory, query)
    if remark := said.note():
        note(remark)
    if json:
        out.print_json(data=traces.rows())
    else:
        Console(width=max(out.width, TABLE_WIDTH), highlight=False).print(shown(traces, last))


@app.command()
def test(
    cases: Annotated[Path, typer.Argument(help="Cases, one JSON object a line.")],
    epochs: Annotated[str, typer.Option(help="How the input is cut: one, each, or random:SEED.")] = "one",
    engine: Annotated[EngineKind, typer.Option(help="What evaluates the queries.")] = EngineKind.spark,
    only: Annotated[str | None, typer.Option(help="Only the cases whose id begins with this.")] = None,
    debug: Debug = False,
) -> None:
    """Run continuous-query cases and print each that differs, with the first differing instant."""
    from headgate.testing.cases import read

    chosen = [case for case in read(cases) if only is None or case.id.startswith(only)]
    with_output = [case for case in chosen if case.expected is not None]
    failed = print_failures(with_output, engine, epochs)
    print_texts([case for case in chosen if case.expected is None])
    out.print(f"{len(with_output) - failed} passed, {failed} failed", markup=False)
    raise typer.Exit(1 if failed else 0)


def print_failures(cases: list[Case], engine: EngineKind, epochs: str) -> int:
    """Run cases and print each that differs; returns how many did."""
    from headgate.testing.runner import outcomes

    failed = 0
    with Progress(
        *Progress.get_default_columns(), TimeElapsedColumn(), console=err, transient=True, disable=not err.is_terminal
    ) as bar:
        task = bar.add_task("cases", total=len(cases))
        for outcome in outcomes(cases, engine.value, epochs):
            bar.advance(task)
            if not outcome.passed:
                failed += 1
                complaint = f"{outcome.case.id}: {outcome.case.query}\n  {outcome.complaint}"
                out.print(complaint.replace("\n", "\n  "), markup=False)
    return failed


def print_texts(cases: list[Case]) -> None:
    """Compile cases without an expected output, and print what was assumed or refused."""
    from headgate.testing.texts import assumptions_of

    refused = foreign = 0
    for case in cases:
        try:
            assumed = assumptions_of(case)
        except UserError as error:
            is_foreign = error.code == "foreign-construct"
            foreign, refused = foreign + is_foreign, refused + (not is_foreign)
            out.print(f"{case.id}: {error.code}: {error.message}. {error.hint}".rstrip(), markup=False)
        else:
            if assumed:
                out.print(f"{case.id}: explained, assuming {', '.join(assumed)}", markup=False)
    if cases:
        understood = len(cases) - refused - foreign
        out.print(f"texts without output: {understood} explained, {foreign} foreign, {refused} refused", markup=False)


bench_app = typer.Typer(invoke_without_command=True)
app.add_typer(bench_app, name="bench")


@bench_app.callback()
def bench(
    context: typer.Context,
    part: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this part (start, yardstick, growth, epochs, answers, queries, families, time, durability,"
            " packets, low-level)."
            " It can be repeated."
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            help="Tuples a stream; default: 2,000,000 (yardstick), 500,000 (growth, packets), 400,000 (low-level).",
            min=1,
        ),
    ] = None,
    turns: Annotated[
        int | None,
        typer.Option(help="Turns that are timed, after a warm-up; default: 3 (yardstick), 1 (growth).", min=1),
    ] = None,
    work: Annotated[str | None, typer.Option(help="Only these questions of the yardstick, such as W1,W3.")] = None,
    only: Annotated[
        str | None, typer.Option(help="Only these ways, such as headgate,flink; batch is always there to compare with.")
    ] = None,
    largest: Annotated[
        int,
        typer.Option(
            help="Tuples in the longest window of growth, and most keys; up to 10,000,000.", min=10_000, max=10_000_000
        ),
    ] = 1_000_000,
    epochs: Annotated[int, typer.Option(help="Small epochs that are timed.", min=1)] = 40,
    seconds: Annotated[float, typer.Option(help="How long each way of answers is fed.", min=1)] = 30,
    flink: Annotated[Path, typer.Option(help="The virtual environment with PyFlink; make flink makes it.")] = Path(
        ".venv-flink"
    ),
    write: Annotated[
        Path | None,
        typer.Option(
            help="The folder of documentation to write to (yardstick, growth, answers, queries, families, packets,"
            " low-level)."
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Time the start, the yardstick (replays beside batch, Structured Streaming and Flink), small epochs, arrival to
    answer, the time manager and durability; with --part growth how the cost of a tuple grows, with --part queries
    and --part families what many queries and the members of a family cost, with --part packets how fast a capture
    file becomes flows, with --part low-level what it saves if logs keep only what queries need, with --part profile
    what the profiler costs; or the papers' experiments.
    """
    if context.invoked_subcommand is not None:
        return
    from headgate.bench.report import PARTS, USUAL, WRITTEN, report
    from headgate.bench.yardstick.run import Options
    from headgate.bench.yardstick.ways import WAYS
    from headgate.bench.yardstick.workloads import WORKLOADS

    parts = [name for name in PARTS if name in chosen(",".join(part or USUAL), PARTS, "--part")]
    if write is not None:
        if not set(parts) & set(WRITTEN):
            every = f"{', '.join(WRITTEN[:-1])} and {WRITTEN[-1]}"
            raise typer.BadParameter(f"only {every} can be written", param_hint="--write")
        need_charts()
    names = chosen(work, [one.name for one in WORKLOADS], "--work")
    ways = chosen(only, WAYS, "--only") | {"batch"}
    options = Options(
        rows,
        turns,
        tuple(one for one in WORKLOADS if one.name in names),
        tuple(way for way in WAYS if way in ways),
        largest,
        flink,
        write,
    )
    wide = Console(width=max(out.width, TABLE_WIDTH), highlight=False)
    if not report(wide, parts, epochs, seconds, options):
        raise typer.Exit(1)


def chosen(text: str | None, names: Iterable[str], option: str) -> set[str]:
    """The names in a list separated by commas, all if there is none; one that does not exist is an error."""
    known = list(names)
    wanted = {name.strip() for name in text.split(",")} if text is not None else set(known)
    for name in sorted(wanted - set(known)):
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}", param_hint=option)
    return wanted


def need_charts() -> None:
    """Say what is missing to draw plots before anything is measured."""
    if find_spec("matplotlib") is None:
        raise UserError("no-module", "this needs matplotlib", hint="pip install 'headgate[bench]'")


@bench_app.command("papers")
def bench_papers(
    only: Annotated[list[str] | None, typer.Option(help="Only this experiment; can be given several times.")] = None,
    seconds: Annotated[
        float, typer.Option(help="How long streams flow; the other experiments in proportion.", min=3)
    ] = 36,
    write: Annotated[
        Path | None, typer.Option(help="The folder of documentation to write figures and plots to.")
    ] = None,
    debug: Debug = False,
) -> None:
    """The experiments of the papers on heartbeats and consistency, and some live beside Structured Streaming."""
    need_charts()
    from headgate.bench.papers.report import EXPERIMENTS, report

    for name in only or ():
        if name not in EXPERIMENTS:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(EXPERIMENTS)}", param_hint="--only")
    report(out, [name for name in EXPERIMENTS if not only or name in only], seconds, write)


@bench_app.command("serve")
def bench_serve(
    followers: Annotated[int, typer.Option(help="How many follow results.", min=1)] = 200,
    pushes: Annotated[int, typer.Option(help="Pushes a second, of which one in twenty is a result.", min=1)] = 1_000,
    seconds: Annotated[float, typer.Option(help="For how long.", min=4)] = 60,
    debug: Debug = False,
) -> None:
    """Load a server: many follow results while rows are pushed one by one; does its memory grow, is anything lost?"""
    import tempfile

    from headgate.bench.serving import measure, show

    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
        load = measure(Path(folder), followers, pushes, seconds)
    show(out, load)
    raise typer.Exit(0 if load.agreed else 1)


@app.command()
def doctor(debug: Debug = False) -> None:
    """Check what headgate needs: Python, Java, Spark."""
    import platform

    from headgate.spark.session import JAVA_NEEDED, check_java, java_version, started

    out.print(f"Python {platform.python_version()}")
    check_java()
    out.print(f"Java {java_version()} (needs {JAVA_NEEDED})")
    spark = started()
    total = spark.range(1000).selectExpr("sum(id)").collect()[0][0]
    out.print(f"Spark {spark.version} on {spark.sparkContext.master}: counted to {total}")
    out.print("all well")


@app.command("connectors")
def list_connectors(
    script: Annotated[Path | None, typer.Argument(help="A file of CQL statements: what it needs is fetched.")] = None,
    debug: Debug = False,
) -> None:
    """List the packages that let the installed Spark read and write more formats; those a script needs are fetched."""
    from headgate.cql.readers import formats
    from headgate.spark.connectors import KNOWN, installed, jars, listed

    needed = formats(read_script(script), str(script)) if script is not None else set()
    jars(needed)
    out.print(f"Spark {installed().spark}, Scala {installed().scala}")
    for format in KNOWN:
        out.print(f"{format:<6} {listed(format)}{', needed' if format in needed else ''}", markup=False)


def need_java() -> None:
    """Say what of Java is missing, and exit; the Makefile calls this before anything is started."""
    from headgate.spark.session import check_java

    try:
        check_java()
    except UserError as error:
        err.print(error.render(), markup=False)
        sys.exit(USER_MISTAKE)


def read_script(path: Path) -> str:
    """Read a file of CQL statements; one that cannot be read is an error of the user's."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError("no-such-file", f'script "{path}" does not exist') from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("bad-file", f'script "{path}" cannot be read', detail=str(error)) from None


def check_directory(directory: Path) -> None:
    """Raise an error if no engine can work in a directory, or another one does; called before Spark is started."""
    from headgate.log.folders import local_directory
    from headgate.log.lock import Lock

    Lock(local_directory(directory)).release()


def main() -> None:
    """Run the command line. No error shows a stack trace unless the user asks for it."""
    threading.excepthook = lambda arguments: complain(arguments.exc_value)
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it ends
        sys.exit(BROKEN_PIPE)
    except Exception as error:
        complain(error)
        sys.exit(USER_MISTAKE if isinstance(error, UserError) else DEFECT)


def complain(error: BaseException | None) -> None:
    """Print an error as the user should see it."""
    if error is None or isinstance(error, SystemExit):
        return
    if os.environ.get("HEADGATE_DEBUG") == "1":
        traceback.print_exception(error)
    err.print(error.render() if isinstance(error, UserError) else report(error), markup=False)
