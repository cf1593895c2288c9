"""Jars by their Maven coordinates, with all that they need: fetched once by this machine's Maven, kept outside any
project.

    ~/.cache/headgate/jars/spark-sql-kafka-0-10_2.13-4.3.0/*.jar

Maven's own settings, mirrors and proxies say where it fetches from.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import UserError

TIMEOUT_SECONDS = 600
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>headgate</groupId><artifactId>jars</artifactId><version>1</version>
  <repositories>
    {unused}
  </repositories>
  <dependencies>
    {dependencies}
  </dependencies>
</project>
"""
UNUSED = ("gcs-maven-central-mirror",)
"""Mirrors that poms of Spark name and that not every machine can reach: what they have, the usual repository has."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A package of Maven: `group:name:version`."""

    group: str
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"


def cache() -> Path:
    """The folder in which jars are kept."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "headgate" / "jars"


def kept(name: str) -> list[Path]:
    """The jars that were fetched under this name; none if nothing was."""
    return sorted((cache() / name).glob("*.jar"))


def fetched(name: str, artifacts: Sequence[Artifact], unwanted: Sequence[str] = ()) -> list[Path]:
    """The jars of these artifacts and of what they need, without those whose names begin with one of `unwanted`."""
    there = kept(name)
    if there:
        return there
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache(), prefix=".fetching-") as scratch:
        folder = Path(scratch)
        (folder / "pom.xml").write_text(pom(artifacts), encoding="utf-8")
        ask(
            [
                "-f",
                str(folder / "pom.xml"),
                "dependency:copy-dependencies",
                "-DincludeScope=runtime",
                f"-DoutputDirectory={folder / 'jars'}",
            ],
            artifacts,
        )
        for jar in (folder / "jars").glob("*.jar"):
            if jar.name.startswith(tuple(unwanted)):
                jar.unlink()
        with suppress(OSError):  # another process was quicker
            (folder / "jars").rename(cache() / name)
    return kept(name)


def pom(artifacts: Sequence[Artifact]) -> str:
    """The project file by which Maven fetches these artifacts."""
    never = "<releases><enabled>false</enabled></releases><snapshots><enabled>false</enabled></snapshots>"
    unused = (f"<repository><id>{one}</id><url>file:.</url>{never}</repository>" for one in UNUSED)
    dependencies = (
        f"<dependency><groupId>{one.group}</groupId><artifactId>{one.name}</artifactId><version>{one.version}</version></dependency>"
        for one in artifacts
    )
    return POM.format(unused="\n    ".join(unused), dependencies="\n    ".join(dependencies))


def published(artifact: Artifact) -> list[str]:
    """All versions of an artifact that Maven knows of.

    Maven's local repository lists them after it was asked for one of them.
    """
    ask(
        ["dependency:get", f"-Dartifact={artifact.group}:{artifact.name}:RELEASE:pom", "-Dtransitive=false"], [artifact]
    )
    folder = Path.home() / ".m2" / "repository" / artifact.group.replace(".", "/") / artifact.name
    listed = [file.read_text(encoding="utf-8") for file in folder.glob("maven-metadata-*.xml")]
    return [version for text in listed for version in re.findall(r"<version>([^<]+)</version>", text)]


def found() -> bool:
    """True if Maven is on this machine."""
    return shutil.which("mvn") is not None


def ask(arguments: Sequence[str], artifacts: Sequence[Artifact]) -> None:
    """Run Maven; an error of ours if it is missing, takes too long or fails."""
    wanted = ", ".join(map(str, artifacts))
    if not found():
        raise UserError(
            "no-maven",
            f"Maven is needed to fetch {wanted}, and none was found",
            hint="Install it (Debian: apt-get install maven).",
        )
    command = ["mvn", "-q", "-B", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise UserError("maven-failed", f"Maven did not fetch {wanted} in {TIMEOUT_SECONDS} seconds") from None
    if done.returncode:
        said = next((line for line in done.stdout.splitlines() if "[ERROR]" in line), done.stderr.strip())
        raise UserError("maven-failed", f"Maven cannot fetch {wanted}", detail=said.partition("[ERROR] ")[2] or said)
