"""Mutated statements: nothing but what is listed becomes text for Spark, however it is spelled.

`make test-attacks MUTATIONS=1000000` sends a million; `make test` some thousands, always the same.
"""

from __future__ import annotations

import os
from itertools import islice

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from tools.mutations import STREAMS, mutated

from headgate.catalog.catalog import Catalog
from headgate.cql.calls import KNOWN, called_functions, sql_texts
from headgate.cql.definitions import define
from headgate.errors import UserError
from headgate.permissions import permissions
from headgate.sql.functions import REFUSED
from headgate.sql.nodes import PARAMETERS, refusal
from headgate.sql.reading import parsed

MUTATIONS = int(os.environ.get("MUTATIONS", "4000"))
SEED = int(os.environ.get("SEED", "1"))


CATALOG = Catalog()
define(STREAMS, CATALOG)
CATALOG.permissions = permissions("nothing")
EMPTY = CATALOG.state()


def accepted(text: str) -> list[str] | None:
    """The texts that Spark would see of a statement; None if it is refused."""
    catalog = CATALOG
    catalog.put_back(EMPTY)
    try:
        define(text, catalog)
    except UserError:
        return None
    plans = [query.plan for query in catalog.queries.values()] + [view.plan for view in catalog.views.values()]
    texts = [str(sql) for plan in plans for sql in sql_texts(plan)]
    texts += [function.body for function in catalog.functions.values()]
    columns = [column for stream in catalog.streams.values() for column in stream.columns]
    texts += [f"CAST(NULL AS {column.type})" for column in columns]
    return texts + [column.check for column in columns if column.check is not None]


def outside(sql: str) -> str | None:
    """What of a text is on no list."""
    tree = parsed(sql)
    if tree is None:
        return "it cannot be read"
    for node in tree.walk():
        if type(node).__name__ == "Placeholder" and node.name in PARAMETERS:
            continue
        reason = refusal(node)
        if reason is not None:
            return reason
    called = {name for name in called_functions(sql) if name in REFUSED or name not in KNOWN}
    return f"it calls {sorted(called)}" if called else None


def test_nothing_but_what_is_listed_reaches_spark() -> None:
    taken = 0
    for text in islice(mutated(SEED), MUTATIONS):
        texts = accepted(text)
        taken += texts is not None
        for sql in texts or ():
            assert outside(sql) is None, (text, sql, outside(sql))
    assert taken > MUTATIONS / 100, "almost nothing is accepted: this test would find nothing"


@pytest.mark.spark
def test_sparks_own_parser_reads_nothing_else_in_them(spark: SparkSession) -> None:
    """Spark reads SQL by a grammar of its own; what it finds must be on the list of the second wall."""
    from headgate.execute.wall import refuse_parsed
    from headgate.spark.plan_nodes import PlanNodes

    nodes, parser = PlanNodes(spark), spark._jsparkSession.sessionState().sqlParser()
    for text in islice(mutated(SEED + 1), MUTATIONS // 4):
        for sql in accepted(text) or ():
            statement = f"SELECT ({sql.replace(':since', '1').replace(':until', '1')}) FROM laid"
            try:
                plan = parser.parsePlan(statement)
            except ParseException:
                continue  # Spark refuses it
            for node in nodes.of(plan):
                refuse_parsed(node, {"laid"})
