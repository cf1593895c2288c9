"""The ways in which the yardstick's questions are answered: which process does it, and what it is told to do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Literal, TypeAlias

import pyarrow as pa

from headgate.bench.yardstick import data
from headgate.bench.yardstick.flink import Flink
from headgate.bench.yardstick.serve import Job
from headgate.bench.yardstick.worker import Worker
from headgate.bench.yardstick.workloads import STREAMS, Workload

Way: TypeAlias = Literal["batch", "native", "flink", "headgate", "durable", "json", "batch-json"]
TITLES: dict[Way, str] = {
    "batch": "batch",
    "native": "Structured Streaming",
    "flink": "Flink SQL",
    "headgate": "headgate",
    "durable": "headgate, durable",
    "json": "headgate, from JSON",
    "batch-json": "JSON to Parquet, then batch",
}
WAYS = tuple(TITLES)

INEXPRESSIBLE = "not expressible"

SPLIT_BYTES = 32 * 2**20
"""Flink cuts larger files into pieces, and reads the pieces in any order."""


def cores() -> int:
    """How many cores there are for this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files of the streams, in each form that a way reads."""

    folder: Path
    shape: data.Shape

    def of(self, form: str, stream: str) -> Path:
        """The folder with a stream's files in a form: parquet, json, or dealt."""
        return self.folder / form / stream

    def write(self, ways: Iterable[Way], streams: Iterable[str] = STREAMS) -> None:
        """Writes the streams in the forms that these ways read."""
        forms = {form_of(way) for way in ways}
        for stream in streams:
            table = data.tuples(self.shape, seed=1 + STREAMS.index(stream))
            for form in sorted(forms):
                self._write(form, stream, table)

    def _write(self, form: str, stream: str, table: pa.Table) -> None:
        folder = self.of(form, stream)
        match form:
            case "json":
                data.write_json(data.pieces(table, self.shape.files), folder)
            case "dealt":
                data.write_parquet(data.dealt(table, cores()), folder)
            case _:
                data.write_parquet(data.pieces(table, self.shape.files), folder)

    def streams(self, form: str, workload: Workload) -> dict[str, str]:
        """The folders of the streams that a workload reads."""
        return {stream: str(self.of(form, stream)) for stream in workload.streams}


def form_of(way: Way) -> str:
    """The form in which a way reads its input.

    Flink's source reads files in any order. To be read in order, they are as many as it has readers.
    """
    return {"json": "json", "batch-json": "json", "flink": "dealt"}.get(way, "parquet")


def worker_of(way: Way, log: Path, flink: Flink | None) -> Worker:
    """The process that answers in a way."""
    module = "headgate.bench.yardstick.{}"
    match way:
        case "headgate" | "durable" | "json":
            return Worker([sys.executable, "-m", module.format("headgate_worker")], log)
        case "flink":
            assert flink is not None
            return Worker(flink.command(cores()), log, flink.environment)
        case _:
            ours = {"batch-json": "from_json"}.get(way, way)
            return Worker([sys.executable, "-m", module.format("spark_worker"), ours], log)


def reason_against(way: Way, workload: Workload, inputs: Inputs) -> str | None:
    """Why a way cannot answer a question over these files; None if it can."""
    if way == "native" and workload.native is None:
        return INEXPRESSIBLE
    if way == "flink":
        files = (file for stream in workload.streams for file in inputs.of("dealt", stream).iterdir())
        if max(file.stat().st_size for file in files) > SPLIT_BYTES:
            return "files over 32 MB, which Flink reads out of order"
    return None


def job_for(way: Way, workload: Workload, inputs: Inputs, out: Path, settings: str = "") -> Job:
    """What the worker is told, to answer a question into an empty folder; `settings` are further ones for headgate."""
    streams = inputs.streams(form_of(way), workload)
    match way:
        case "headgate" | "durable" | "json":
            script = script_of(workload, "json" if way == "json" else "parquet", streams, inputs.shape, out, settings)
            return {"script": script, "out": str(out), "directory": f"{out}-state" if way == "durable" else None}
        case "batch" | "batch-json":
            return {"streams": streams, "sql": workload.batch, "out": str(out)}
        case "native":
            disorder = inputs.shape.disorder_ms
            return {"streams": streams, "sql": workload.native, "disorder_ms": disorder, "out": str(out)}
        case "flink":
            return {"statements": flink_statements(workload, streams, inputs.shape, out)}


def script_of(
    workload: Workload, form: str, streams: Mapping[str, str], shape: data.Shape, out: Path, settings: str = ""
) -> str:
    """A question as a whole script of CQL."""
    declared = (
        f"CREATE STREAM {name} ({data.COLUMNS}) TIMESTAMP BY ts DISORDER {shape.disorder_ms} "
        f"FROM {form} OPTIONS ('path' = '{folder}');"
        for name, folder in streams.items()
    )
    query = f"CREATE QUERY q AS {workload.cql} INTO parquet OPTIONS ('path' = '{out}');"
    return "\n".join([settings, workload.settings, *declared, query])


def flink_statements(workload: Workload, streams: Mapping[str, str], shape: data.Shape, out: Path) -> list[str]:
    """A question as statements of Flink, the last of which answers it."""
    files = "WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = 'file://{}')"
    delay = f"INTERVAL '{shape.disorder_ms / 1_000:.3f}' SECONDS"
    declared = [
        f"CREATE TEMPORARY TABLE {name} ({data.COLUMNS}, et AS TO_TIMESTAMP_LTZ(ts, 3), "
        f"WATERMARK FOR et AS et - {delay}) {files.format(folder)}"
        for name, folder in streams.items()
    ]
    sink = f"CREATE TEMPORARY TABLE results ({workload.columns}) {files.format(out)}"
    return [*declared, sink, f"INSERT INTO results {workload.flink}"]


def complete_to(way: Way, workload: Workload, shape: data.Shape) -> float:
    """Up to which instant a way must have answered: the end of its input may not be the end of the stream."""
    match way:
        case "flink":
            return inf  # it takes the end of files as the end of time
        case "native" if workload.windowed:
            return shape.last_ms - shape.disorder_ms
        case "batch" | "batch-json":
            return inf
        case _:
            return shape.last_ms
