"""From compiled fragments to running ones: the one place where what was compiled meets Spark.

Each fragment gets a folder, and a log of its own if other fragments read what it puts out. A fragment comes behind
those that it reads, so their logs and columns are known when its own program is analysed.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql.types import StructType

from headgate.catalog.entries import Query
from headgate.compile import CompiledFragment
from headgate.execute.fragment import Fragment
from headgate.execute.workspaces import Workspaces
from headgate.log.checksum import writing
from headgate.log.journal import Journal
from headgate.log.log import Log
from headgate.ticks import Tick


def build_fragments(
    query: Query,
    fragments: Iterable[CompiledFragment],
    workspaces: Workspaces,
    logs: Mapping[str, Log],
    schemas: Mapping[str, StructType],
    directory: Path,
    journal: Journal,
    *,
    start: Tick | None = None,
    whole: frozenset[str] = frozenset(),
) -> list[Fragment]:
    """Make the fragments of a query, in their order; Spark analyses each program over empty inputs.

    `start` is the instant behind which the query sees its streams, and `whole` are the relations of which it sees
    every row. `logs` and `schemas` are those of the streams and relations.
    """
    built: list[Fragment] = []
    piped_logs: dict[str, Log] = {}
    piped_schemas: dict[str, StructType] = {}
    for number, compiled in enumerate(fragments, 1):
        part, group = compiled.part, compiled.group
        folder, output = directory / f"group-{number}" if group else directory, None
        if part.log is not None:
            folder = directory / f"part-{number}"
            output = Log(folder / "elements", journal, f"log queries/{directory.name}/part-{number}")
        with writing(folder):
            folder.mkdir(exist_ok=True)
        fragment = Fragment(
            query,
            compiled,
            workspaces,
            ChainMap(piped_logs, logs),  # type: ignore[arg-type]
            ChainMap(piped_schemas, schemas),  # type: ignore[arg-type]
            folder,
            start=start,
            whole=whole,
            journal=journal,
            output=output,
        )
        if part.log is not None and output is not None:
            piped_logs[part.log], piped_schemas[part.log] = output, fragment.result_schema
        built.append(fragment)
    return built
