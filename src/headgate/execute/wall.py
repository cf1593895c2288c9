"""The second wall: what Spark makes of a program is looked at before it is analysed, and after.

The first wall is the printer (`sql.printer`). This one does not trust it. Whatever Spark's own parser reads in the text
of a program must be a relation that we laid, a function that somebody has judged, or a node on a list. The parsed plan
comes first, because to analyse one already lists files and loads classes.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headgate.errors import UserError
from headgate.spark.plan_nodes import PlanNode, PlanNodes
from headgate.spark.session import active, scala_object
from headgate.sql import Sql
from headgate.sql.functions import REFUSED

RELATION = "analysis.UnresolvedRelation"
CALLS = ("analysis.UnresolvedFunction", "analysis.UnresolvedGenerator")

PARSED_PLANS = frozenset(
    """
    analysis.UnresolvedHaving analysis.UnresolvedInlineTable analysis.UnresolvedSubqueryColumnAliases
    plans.logical.Aggregate plans.logical.Distinct plans.logical.Except plans.logical.Filter plans.logical.Generate
    plans.logical.GlobalLimit plans.logical.Intersect plans.logical.Join plans.logical.LocalLimit
    plans.logical.LocalRelation plans.logical.OneRowRelation plans.logical.Project plans.logical.Sort
    plans.logical.SubqueryAlias plans.logical.Union plans.logical.UnresolvedHint plans.logical.UnresolvedWith
    plans.logical.WithWindowDefinition
    """.split()
)
"""Operators that the rules of `delta` write."""

PARSED_EXPRESSIONS = frozenset(
    """
    analysis.UnresolvedAlias analysis.UnresolvedAttribute analysis.UnresolvedExtractValue analysis.UnresolvedStar
    expressions.Add expressions.Alias expressions.And expressions.Ascending$ expressions.Between
    expressions.BitwiseAnd expressions.BitwiseNot expressions.BitwiseOr expressions.BitwiseXor expressions.CaseWhen
    expressions.Cast expressions.Collate expressions.Concat expressions.CreateArray expressions.CreateNamedStruct
    expressions.CreateStruct expressions.CurrentRow$ expressions.Divide expressions.EqualNullSafe expressions.EqualTo
    expressions.Exists expressions.Extract expressions.GreaterThan expressions.GreaterThanOrEqual expressions.ILike
    expressions.If expressions.In expressions.InSubquery expressions.IntegralDivide expressions.IsNotNull
    expressions.IsNull expressions.LambdaFunction expressions.LessThan expressions.LessThanOrEqual expressions.Like
    expressions.ListQuery expressions.Literal expressions.Multiply expressions.Not expressions.Or expressions.Overlay
    expressions.Pmod expressions.RLike expressions.Remainder expressions.ScalarSubquery expressions.ShiftLeft
    expressions.ShiftRight expressions.SortOrder expressions.SpecifiedWindowFrame expressions.StringLocate
    expressions.StringTrim expressions.StringTrimLeft expressions.StringTrimRight expressions.Substring
    expressions.Subtract expressions.TimestampAdd expressions.TimestampDiff expressions.UnaryMinus
    expressions.UnaryPositive expressions.UnboundedFollowing$ expressions.UnboundedPreceding$
    expressions.UnresolvedCollation expressions.UnresolvedNamedLambdaVariable expressions.UnspecifiedFrame$
    expressions.WindowExpression expressions.WindowSpecDefinition expressions.aggregate.AnyValue
    expressions.aggregate.First expressions.aggregate.FirstValue expressions.aggregate.Last
    expressions.aggregate.PercentileCont expressions.aggregate.PercentileDisc
    """.split()
)
"""What Spark's parser makes of expressions: operators, and the few functions that have a syntax of their own. What
stands in a subquery is looked at like everything else.
"""

ANALYSED_PLANS = frozenset(
    """
    Aggregate CTERelationDef CTERelationRef Deduplicate Distinct Except Expand Filter Generate GlobalLimit Intersect
    Join LocalLimit LocalRelation OneRowRelation Project RebalancePartitions Repartition RepartitionByExpression
    ResolvedHint Sort SubqueryAlias Union View Window WithCTE
    """.split()
)
"""Operators of analysed plans over relations that hold nothing, as we lay them to analyse a program."""

LEAVING = frozenset(
    """
    CallMethodViaReflection CatalystDataToProtobuf Collations CurrentCatalog CurrentDatabase CurrentDate CurrentPath
    CurrentTime CurrentTimestamp CurrentUser FromProtobuf InputFileBlockLength InputFileBlockStart InputFileName
    LocalTimestamp MonotonicallyIncreasingID Now ProtobufDataToCatalyst Rand RandStr Randn SQLKeywords Shuffle
    SparkVersion ToProtobuf TryReflect Uniform Uuid
    """.split()
)
"""Classes of the functions that are refused. Those of XPATH have a package of their own."""

OF_USERS = (
    "org.apache.spark.sql.execution.python.",
    "org.apache.spark.sql.execution.aggregate.",
    "org.apache.spark.sql.hive.Hive",
)
"""Packages of functions that users register."""


class Wall:
    """Lets programs into one session, and nothing else. It needs the JVM: over Spark Connect there is no such wall."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._nodes = PlanNodes(session)
        jvm: Any = session._jvm
        self._own: Any = session._jsparkSession
        self._parser: Any = self._own.sessionState().sqlParser()
        self._sessions: Any = jvm.org.apache.spark.sql.classic.SparkSession
        self._datasets: Any = scala_object(jvm, "org.apache.spark.sql.classic.Dataset")

    def admitted(self, text: Sql, relations: Container[str]) -> DataFrame:
        """What a statement gives, analysed; `relations` are the names that it may read."""
        with active(self._sessions, self._own):  # Spark's parser goes by the settings of the session that is active
            parsed = self._parser.parsePlan(text)
            for node in self._nodes.of(parsed):
                refuse_parsed(node, relations)
            frame = DataFrame(self._datasets.ofRows(self._own, parsed), self._session)
        for node in self._nodes.of(frame._jdf.queryExecution().analyzed()):
            refuse_analysed(node)
        return frame


def refuse_parsed(node: PlanNode, relations: Container[str]) -> None:
    name = node.name.removeprefix("List(").removesuffix(")")
    if node.kind == RELATION:
        fine = name in relations
    elif node.kind in CALLS:
        fine = name.lower() not in REFUSED and "," not in name
    else:
        fine = node.kind in PARSED_PLANS or node.kind in PARSED_EXPRESSIONS
    if not fine:
        raise refusal(f"{node.short} {name}".rstrip())


def refuse_analysed(node: PlanNode) -> None:
    if ".xml.XPath" in node.kind or node.short in LEAVING:
        raise refusal(node.short)
    if not node.kind.startswith(("expressions.", *OF_USERS)) and node.short not in ANALYSED_PLANS:
        raise refusal(node.short)


def refusal(what: str) -> UserError:
    """The error for a node that no statement of ours has."""
    return UserError(
        "not-admitted",
        f"Spark reads {what} in this query, which no query may have",
        detail="A query reads what was declared, and calls functions that compute.",
        hint="This is looked at behind all other checks. Please report the text.",
    )
