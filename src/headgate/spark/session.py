"""Spark sessions: finding one, starting one, and a session of its own for each query, so that the user's stays as it
is.

What differs between this machine, a cluster and Spark Connect is decided here and nowhere else.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, cast

from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from pyspark.util import inheritable_thread_target

from headgate import masking
from headgate.errors import UserError
from headgate.spark import connectors
from headgate.spark.failures import sentence
from headgate.spark.statements import run, selected
from headgate.sql import Sql, literal

T = TypeVar("T")

JAVA_NEEDED = 17

REMEMBERED: dict[str, bool | float | int | str | None] = {
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.ui.dagGraph.retainedRootRDDs": "20",
    "spark.sql.ui.retainedExecutions": "10",
}
"""How much Spark keeps to show in its web interface. It keeps the whole plan of each statement, even with the interface
off.
"""


SHORT_LIVED = ("-XX:TieredStopAtLevel=1",)
"""Java's options for a JVM that ends soon: it compiles quickly and not well, and leaves the processor to the work."""

CODE_CACHE = "spark.sql.codegen.cache.maxEntries"
"""Spark's setting for how many pieces of generated code stay compiled. It is fixed when the JVM starts."""

CODE_KEPT = 4_000
"""Enough for the plans that are kept (`kept_plans`), of which each has a few pieces."""

OWN_FUNCTIONS = {"headgate_try": "TryEval", "headgate_once": "SparkPartitionID"}
"""Functions of our sessions alone, and the expressions of Spark that they are (`plan.left_out`)."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

INTERRUPT = "spark.job.interruptOnCancel"
"""Spark's setting that interrupts the tasks of an interrupted job too. Otherwise they keep their core until they look.
"""


def debugging() -> bool:
    """True if what Spark and Java log is to be seen, with their stacks: HEADGATE_DEBUG=1 in the environment."""
    return os.environ.get("HEADGATE_DEBUG", "") not in ("", "0")


def java_version() -> int | None:
    """The major version of the Java that Spark would start; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not shutil.which(java):
        return None
    # starting Java to ask it takes as long as a tenth of all the rest
    release = Path(java).resolve().parent.parent / "release"
    try:
        return _major(release.read_text())
    except (OSError, ValueError):
        pass
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    try:
        return _major(answer)
    except ValueError:
        return None


def _major(text: str) -> int:
    """From `JAVA_VERSION="17.0.2"` in the file `release`, or from `java version "1.8.0_292"`."""
    found = re.search(r'version[ =]"(\d+)(?:\.(\d+))?', text, re.IGNORECASE)
    if found is None:
        raise ValueError("no version of Java")
    return int(found[2] or 0) if found[1] == "1" else int(found[1])


def check_java() -> None:
    """Raise an error if Java is missing or too old for Spark."""
    found = java_version()
    if found is None or found < JAVA_NEEDED:
        have = "no Java was found" if found is None else f"Java {found} was found"
        raise UserError(
            "no-java",
            f"Spark needs Java {JAVA_NEEDED} or newer, and {have}",
            hint="Install a JDK (Debian: apt-get install openjdk-17-jre-headless) or point JAVA_HOME at one.",
        )


def started(
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    formats: Iterable[str] = (),
    java: Iterable[str] = (),
) -> SparkSession:
    """The active Spark session, or a new one with the connectors for `formats`, on this machine or on the cluster of
    `master`.

    `settings` take precedence over ours, and ours over those in Spark's own files. `java` are further options of the
    driver's JVM.
    """
    active = SparkSession.getActiveSession()
    if active is not None and master is None:
        return active
    check_java()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    chosen = master or f"local[{cores}]"
    check_master(chosen)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if _on_loopback(chosen):  # beyond it, workers must be able to call the driver back
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    log = "error" if debugging() else "off"
    quiet = resources.files("headgate.spark").joinpath("log4j2.properties")
    ours = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.redaction.regex": masking.SPARK,
        **REMEMBERED,
        "spark.scheduler.mode": "FAIR",  # sources are read beside epochs, in a pool of their own
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": os.environ.get("HEADGATE_DRIVER_MEMORY", "2g"),
        "spark.sql.catalogImplementation": "in-memory",
        CODE_CACHE: str(CODE_KEPT),
        "spark.driver.extraJavaOptions": " ".join(
            [f"-Dlog4j2.configurationFile={quiet}", f"-Dheadgate.log={log}", "-XX:+UseParallelGC", *java]
        ),
    }
    if chosen.startswith("local"):  # a value that overflows a stack or the heap fails its query, and ends no process
        ours["spark.executor.killOnFatalError.depth"] = "0"
    builder = SparkSession.builder.master(chosen).appName("headgate")
    for key, value in {**ours, **connectors.settings_for(formats), **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except (PySparkRuntimeError, Py4JError, OSError) as error:
        if debugging():
            raise
        raise UserError(
            "no-spark",
            "Spark could not be started",
            detail=sentence(error),
            hint="headgate doctor checks what it needs; --debug shows all that Spark says.",
        ) from None
    logging.getLogger("py4j").setLevel(logging.ERROR if debugging() else logging.CRITICAL)
    warnings.filterwarnings("ignore", category=ResourceWarning, module="py4j")
    return session


def settings_from(pairs: Iterable[str]) -> dict[str, str]:
    """Spark's settings from texts such as "spark.executor.memory=4g"."""
    known = {}
    for pair in pairs:
        key, given, value = (part.strip() for part in pair.partition("="))
        if not given or not key.startswith("spark."):
            raise UserError("bad-setting", f'"{pair}" is no setting of Spark', hint="--conf spark.executor.memory=4g")
        known[key] = value
    return known


def check_master(master: str) -> None:
    """Raise an error if no standalone master answers. Spark itself would try for a minute and say little."""
    if master.startswith("sc://"):
        raise UserError(
            "bad-master",
            f'"{master}" is a Spark Connect server, not a Spark master',
            hint='In Python: Engine(SparkSession.builder.remote("sc://host").getOrCreate(), directory).',
        )
    if not master.startswith("spark://"):
        return
    addresses = master.removeprefix("spark://").split(",")
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise UserError("bad-master", f'"{master}" is no Spark master', hint="--master spark://host:7077")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        except OSError:
            continue
        return
    raise UserError(
        "no-master", f'no Spark master answers at "{master}"', hint="Start one, or leave --master out: this machine."
    )


def _on_loopback(master: str) -> bool:
    hosts = [address.rpartition(":")[0] for address in master.removeprefix("spark://").split(",")]
    return master.startswith("local") or all(
        host in ("localhost", "[::1]") or host.startswith("127.") for host in hosts
    )


def over_connect(session: SparkSession) -> bool:
    """True if the session is a client of a Spark Connect server, which has no `sparkContext`."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def check_zone(zone: str) -> None:
    """Refuse a session in another time zone than UTC: dates are computed in UTC, and its user would expect others."""
    if re.fullmatch(
        r"(Etc/)?(UTC|UCT|GMT|Zulu|Universal|Greenwich|Z|GMT0)|((UTC|GMT)?[+-]0{1,2}(:?00)?)", zone, re.IGNORECASE
    ):
        return
    raise UserError(
        "not-utc",
        f'the time zone of this Spark session is "{zone}", and headgate computes in UTC',
        detail="Timestamps without a zone, HOUR(at), TO_DATE(at), DATE_TRUNC and slides would be others than the "
        "session says.",
        hint="spark.conf.set('spark.sql.session.timeZone', 'UTC'), perhaps in spark.newSession(); in CQL, "
        f"FROM_UTC_TIMESTAMP(at, '{zone}') gives the time of day there.",
    )


@contextmanager
def active(sessions: Any, own: Any) -> Iterator[None]:
    """In here a session is the one that Spark finds in this thread: plans that are made belong to it.

    `sessions` is Spark's class of sessions and `own` the session, both of the JVM.
    """
    before = sessions.getActiveSession()
    sessions.setActiveSession(own)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def scala_object(jvm: Any, name: str) -> Any:
    """An object of Scala, by the full name of its class."""
    result = jvm
    for part in f"{name}$".split("."):
        result = getattr(result, part)
    return getattr(result, "MODULE$")


class SessionFunctions:
    """The functions that a user has registered with a session, by name. Spark is asked for each."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            return False
        return bool(run(self._session, f"SHOW USER FUNCTIONS LIKE {literal(name)}").count())


def columns_of(session: SparkSession, ddl: Sql) -> StructType:
    """Declared columns as Spark's schema.

    An empty frame would give it as well, but takes long in a session that was just started.
    """
    if isinstance(session, SparkSession):
        return cast("StructType", StructType.fromDDL(ddl))
    return session.createDataFrame([], ddl).schema  # over Spark Connect


def elsewhere(session: SparkSession) -> bool:
    """True if tasks may run on other machines, which see our files only if the storage is shared."""
    return over_connect(session) or not str(session.conf.get("spark.master")).startswith("local")


def parallelism(session: SparkSession) -> int:
    """How many tasks run side by side now. In a cluster, workers come and go."""
    if not over_connect(session):
        return session.sparkContext.defaultParallelism
    return max(1, selected(session.range(10_000), Sql("SPARK_PARTITION_ID() AS piece")).distinct().count())


RESERVED_BYTES = 300 * 2**20
"""What Spark leaves of a heap to everything else than tasks, beside the share of `spark.memory.fraction`."""

SIZES = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def task_memory(session: SparkSession) -> int:
    """How many bytes all tasks together have for what they sort and group. Beyond that they go to disk."""
    share = float(session.conf.get("spark.memory.fraction", "0.6") or 0.6)
    if over_connect(session) or elsewhere(session):
        heap, heaps = _bytes(str(session.conf.get("spark.executor.memory", "1g"))), 1
        if not over_connect(session):
            each = int(str(session.conf.get("spark.executor.cores", "0") or 0)) or parallelism(session)
            heaps = max(1, parallelism(session) // each)
    else:
        heap, heaps = int(session._jvm.java.lang.Runtime.getRuntime().maxMemory()), 1  # type: ignore[union-attr]
    return max(0, round(heaps * (heap - RESERVED_BYTES) * share))


def _bytes(size: str) -> int:
    """A size as Spark's settings have it: 1g, 512m, 2048 (in megabytes)."""
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", size.strip().lower())
    return int(found[1]) * SIZES[found[2] or "m"] if found else 2**30


def _cloned(session: SparkSession) -> SparkSession:
    if over_connect(session):
        return cast("SparkSession", session.cloneSession())  # type: ignore[attr-defined]
    return SparkSession(session.sparkContext, session._jsparkSession.cloneSession())


def own_session(session: SparkSession, partitions: int | None = None) -> SparkSession:
    """A new session with our settings, and with the functions and data sources that the user registered.

    The user's session stays as it is.
    """
    mine = _cloned(session)
    # errors are reported by us, once and without a stack trace
    logging.getLogger("SQLQueryContextLogger").disabled = True
    width = str(partitions or parallelism(session))
    for key, value in {
        "spark.sql.shuffle.partitions": width,
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.runSQLOnFiles": "false",  # FROM text.`/etc/hosts` is no file
        "spark.sql.redaction.options.regex": masking.SPARK,
        "spark.sql.variable.substitute": "false",  # '${env:HOME}' in a query is a text, not the environment
        "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
        "spark.sql.parser.escapedStringLiterals": "false",  # so that a literal means what cql.strings reads in it
        "spark.sql.window.segmentTree.enabled": "true",
        "spark.sql.analyzer.maxIterations": "1000",  # a program may be deeper than the statements people write
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.sql.files.openCostInBytes": "65536",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Every range of a log is listed once and never again; Spark would keep each listing until they take 250 MB.
        "spark.sql.hive.filesourcePartitionFileCacheSize": "0",
    }.items():
        mine.conf.set(key, value)
    if not over_connect(mine):
        _register_own_functions(mine)
    return mine


def _register_own_functions(session: SparkSession) -> None:
    """Make functions known in a session of ours: Spark has the expressions, or another name for them.

    HEADGATE_TRY(value) is the value, or null where it cannot be evaluated. Over Spark Connect it cannot be reached.
    """
    jvm: Any = session._jvm
    classes = jvm.java.lang.Class
    base, tag = (
        classes.forName(name).getField("MODULE$").get(None)
        for name in ("org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase$", "scala.reflect.ClassTag$")
    )
    registry = session._jsparkSession.sessionState().functionRegistry()
    for name, expression in OWN_FUNCTIONS.items():
        kind = classes.forName(f"org.apache.spark.sql.catalyst.expressions.{expression}")
        built = base.build(name, jvm.scala.Option.empty(), tag.apply(kind))
        registry.createOrReplaceTempFunction(name, built._2(), "built-in")


@contextmanager
def tagged(session: SparkSession, tag: str) -> Iterator[None]:
    """Tag the jobs that this thread starts in the session, so that `interrupt` ends them, also if their tasks hang in
    the JVM.
    """
    if over_connect(session):
        session.addTag(tag)
        try:
            yield
        finally:
            session.removeTag(tag)
        return
    # in Spark's own process only the thread that has added a session's tags knows them
    context = session.sparkContext
    before = context.getLocalProperty(INTERRUPT)
    context.addJobTag(tag)
    context.setLocalProperty(INTERRUPT, "true")
    try:
        yield
    finally:
        context.removeJobTag(tag)
        context.setLocalProperty(INTERRUPT, before)  # type: ignore[arg-type]


def may_be_interrupted(session: SparkSession) -> bool:
    """Say whether the jobs of this thread have a tag by which `interrupt` ends them."""
    return session.sparkContext.getLocalProperty(INTERRUPT) == "true"


def use_pool(session: SparkSession, pool: str) -> None:
    """Put the jobs that this thread starts from now on into a pool of Spark's scheduler.

    Spark has pools if its mode is FAIR. Over Spark Connect none can be chosen.
    """
    context = getattr(session, "sparkContext", None)  # over Spark Connect there is none
    if context is not None:
        with suppress(Py4JError):  # if Spark is gone, the first job says so
            context.setLocalProperty("spark.scheduler.pool", pool)


def inheriting_tags(session: SparkSession, work: Callable[[], T]) -> Callable[[], T]:
    """Return the work for another thread, such that its jobs have the tags and the pool of this thread's."""
    return cast("Callable[[], T]", inheritable_thread_target(session)(work))


def interrupt(session: SparkSession, tag: str) -> None:
    """Make the jobs of a tag fail, and no others. Any thread may call it."""
    if over_connect(session):
        session.interruptTag(tag)
    else:
        session.sparkContext.cancelJobsWithTag(tag)


def let_go(mine: SparkSession) -> None:
    """End a session of `own_session`. On a Connect server it would stay, and the end of this process would ask for it
    again.
    """
    if over_connect(mine):
        client = mine.client  # its `stop` would end a server on this machine, and with it the user's session
        if not client.is_closed:
            client.release_session()
            client.close()
