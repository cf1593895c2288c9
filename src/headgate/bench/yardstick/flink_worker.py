"""A process in which Flink does the yardstick's jobs: the statements of a job, the last of which writes the results.

Runs in Flink's environment, which has PyFlink and nothing of headgate's needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter

from headgate.bench.yardstick.serve import Answer, Job, serve


def start() -> Callable[[Job], Answer]:
    """Starts Flink; the command gives the parallelism and the jars."""
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    parallelism, jars = sys.argv[1], ";".join(f"file://{jar}" for jar in sys.argv[2:])
    settings = Configuration()
    for key, value in {
        "parallelism.default": parallelism,
        "pipeline.jars": jars,
        "pipeline.classpaths": jars,
        "table.local-time-zone": "UTC",
    }.items():
        settings.set_string(key, value)
    streaming = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(settings).build()

    def do(job: Job) -> Answer:
        begun = perf_counter()
        tables = TableEnvironment.create(streaming)
        *definitions, insert = job["statements"]
        for definition in definitions:
            tables.execute_sql(definition)
        tables.execute_sql(insert).wait()
        return {"seconds": perf_counter() - begun}

    return do


if __name__ == "__main__":
    serve(start)
