"""Connectors: which Maven package lets the installed Spark read or write a format, where its jars are, and whether a
session has it.

The package is that of the installed Spark and Scala version, read off the jars that come with pyspark. If it was not
published in that version, the newest older one of the same major version stands in for it, and `listed` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from headgate.errors import UserError
from headgate.spark import packages as maven
from headgate.spark.failures import condition
from headgate.spark.packages import Artifact

KNOWN = {
    "kafka": ("spark-sql-kafka-0-10", "spark-token-provider-kafka-0-10"),
    "avro": ("spark-avro",),
    "delta": ("delta-spark",),
    "jdbc": ("postgresql",),
}
"""The packages of the connectors that do not come with Spark, the main one first. For jdbc: PostgreSQL's driver."""

ELSEWHERE = {"delta-spark": ("io.delta", "4.4.0"), "postgresql": ("org.postgresql", "42.7.7")}
"""Packages that are not versioned with Spark."""

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""Settings without which Delta refuses to work."""


MISSING = (
    "DATA_SOURCE_NOT_FOUND",
    "KAFKA_DATA_SOURCE_NOT_ENABLED",
    "AVRO_NOT_LOADED_SQL_FUNCTIONS_UNUSABLE",
    "AVRO_DATA_SOURCE_NOT_ENABLED",
)
"""The conditions by which Spark says that it has no connector of a name."""


@dataclass(frozen=True, slots=True)
class Installed:
    """The versions and jars of the Spark that comes with pyspark."""

    spark: str
    scala: str
    jars: tuple[str, ...]


@cache
def installed() -> Installed:
    """The Spark that is installed, read off the names of its jars."""
    jars = tuple(sorted(file.name for file in Path(pyspark.__file__).parent.glob("jars/*.jar")))
    named = (re.fullmatch(r"spark-sql_(\d+\.\d+)-(.+)\.jar", jar) for jar in jars)
    scala, spark = next((found.groups() for found in named if found), ("2.13", pyspark.__version__))
    return Installed(spark, scala, jars)


def among(formats: Iterable[str]) -> list[str]:
    """The formats among these that need a connector."""
    return sorted(set(formats) & set(KNOWN))


def is_missing(error: BaseException) -> bool:
    """True if an error of Spark says that it has no connector of that name, or not its classes."""
    return condition(error) in MISSING or "ClassNotFoundException" in str(error)


def check_connected(session: SparkSession, format: str) -> None:
    """Raise an error if a session has no connector for a format.

    Asks for a table that is not there: Spark looks for the connector first.
    """
    try:
        session.read.format(format).load("/no such table")
    except Exception as error:
        if is_missing(error):
            package = next(iter(packages(format)), "")
            raise UserError(
                "no-connector",
                f"Spark's session has no connector for {format}",
                hint=f"Start Spark with the package {package}, or let headgate start it.",
            ) from error


def packages(format: str) -> tuple[Artifact, ...]:
    """The packages of a connector for the installed Spark, the main one first.

    There are none if Spark has the format itself, or the format is unknown.
    """
    spark = installed()
    artifacts = []
    for package in KNOWN.get(format, ()):
        group, version = ELSEWHERE.get(package, ("org.apache.spark", spark.spark))
        artifacts.append(Artifact(group, package if package == "postgresql" else f"{package}_{spark.scala}", version))
    return tuple(artifacts)


def settings_for(formats: Iterable[str]) -> dict[str, str]:
    """Spark's settings for a new session that needs these formats.

    They name the jars, or, where there is no Maven, the packages for Spark to fetch by itself.
    """
    needed = among(formats)
    if not needed:
        return {}
    more = DELTA if "delta" in needed else {}
    if maven.found() or all(maven.kept(_folder(format)) for format in needed):
        return {"spark.jars": ",".join(map(str, jars(needed))), **more}
    return {"spark.jars.packages": ",".join(str(packages(format)[0]) for format in needed), **more}


def jars(formats: Iterable[str]) -> list[Path]:
    """The jars of the connectors that these formats need, fetched if they are not here."""
    files = {file.name: file for format in among(formats) for file in _jars(format)}
    return list(files.values())


def _jars(format: str) -> list[Path]:
    wanted = packages(format)
    name = _folder(format)
    # what Spark has already, in its own version
    own = [re.sub(r"-\d[^-]*\.jar$", "-", jar) for jar in installed().jars]
    try:
        return maven.fetched(name, wanted, own)
    except UserError as error:
        instead = tuple(stand_in(artifact) for artifact in wanted) if error.code == "maven-failed" else wanted
        if instead == wanted:
            raise
        return maven.fetched(name, instead, own)


def _folder(format: str) -> str:
    first, *_ = packages(format)
    return f"{first.name}-{first.version}"


def stand_in(wanted: Artifact) -> Artifact:
    """The newest release of the same major version that is not newer than the wanted one; the wanted one if there is
    none.
    """
    releases = [version for version in maven.published(wanted) if re.fullmatch(r"\d+(\.\d+)*", version)]
    older = [
        version
        for version in releases
        if _major(version) == _major(wanted.version) and _order(version) <= _order(wanted.version)
    ]
    return Artifact(wanted.group, wanted.name, max(older, key=_order, default=wanted.version))


def _major(version: str) -> str:
    return version.partition(".")[0]


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def listed(format: str) -> str:
    """The package of a connector, and whether it is here."""
    instead = stand_ins(format)
    here = f"here, with {', '.join(instead)} instead" if instead else "here"
    return f"{packages(format)[0]}: {here if maven.kept(_folder(format)) else 'not fetched'}"


def stand_ins(format: str) -> list[str]:
    """The jars that are here in another version than the wanted one."""
    wanted = packages(format)
    exact = {f"{one.name}-{one.version}.jar" for one in wanted}
    of_them = tuple(f"{one.name}-" for one in wanted)
    return [jar.name for jar in maven.kept(_folder(format)) if jar.name.startswith(of_them) and jar.name not in exact]
