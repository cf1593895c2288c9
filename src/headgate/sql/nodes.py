"""What an expression may consist of: kinds of nodes, types, units, and words that stand in it unquoted.

`refusal` judges one node. It is asked twice: of every node of a statement when it has been read, where the user is told
the place; and by the printer, of every node that becomes text for Spark. What is not listed here is refused.
"""

from __future__ import annotations

import re

from sqlglot import exp

LONGEST_NUMBER = 100
"""How many characters a number may have. Spark's largest decimal has 38 digits."""

NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?([LSYDF]|BD)?", re.IGNORECASE | re.ASCII)
HEX = re.compile(r"[0-9A-Fa-f]*")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

OPERATORS = frozenset(
    """
    Add Alias And Array AtTimeZone Between BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift
    BitwiseXor Boolean Bracket Case Cast Collate Column ColumnDef DPipe DataType DataTypeParam Distinct Div Dot EQ
    Escape Filter GT GTE HexString Identifier If IgnoreNulls In IntDiv Interval IntervalSpan Is LT LTE Lambda Literal
    Map Mod Mul NEQ Neg Not Null NullSafeEQ NullSafeNEQ Or Order Ordered Paren PropertyEQ RespectNulls Slice Star
    Struct Sub TryCast Tuple Var Where Window WindowSpec WithinGroup Xor
    """.split()
)

FUNCTIONS = frozenset(
    """
    Abs Acos Acosh AddMonths Anonymous AnonymousAggFunc Any AnyValue ApproxDistinct ApproxQuantile ApproxTopK
    ApproxTopKAccumulate ApproxTopKCombine ApproxTopKEstimate ArgMax ArgMin ArrayAgg ArrayAppend ArrayCompact
    ArrayConcat ArrayContains ArrayDistinct ArrayExcept ArrayFilter ArrayInsert ArrayIntersect ArrayMax ArrayMin
    ArrayPosition ArrayPrepend ArrayRemove ArraySize ArraySlice ArraySort ArrayToString ArrayUniqueAgg ArraysZip Ascii
    Asin Asinh Atan Atan2 Atanh Avg BitLength BitmapBitPosition BitmapBucketNumber BitmapConstructAgg BitmapCount
    BitmapOrAgg BitwiseAndAgg BitwiseCount BitwiseOrAgg BitwiseXorAgg Cbrt Ceil Chr Coalesce Collation Concat ConcatWs
    Contains ConvertTimezone Corr Cos Cosh Cot Count CountIf CovarPop CovarSamp Csc CumeDist CurrentTimezone DateAdd
    DateDiff DateFromParts DateFromUnixDate DateSub DateTrunc Day DayOfMonth DayOfWeek DayOfYear Dayname Decode
    DecodeCase Degrees DenseRank Elt Encode EndsWith EqualNull Exists Exp Explode Extract Factorial First
    FirstValue Flatten Floor Format FromBase32 FromBase64 FromJson FromTimeZone GenerateSeries Getbit Greatest
    GroupConcat Grouping GroupingId Hex Hour ILike Initcap Inline IsNan JSONFormat JSONKeys Kurtosis Lag
    Last LastDay LastValue Lead Least Left Length Levenshtein Like Ln Log LogicalAnd LogicalOr Lower MD5 MakeInterval
    MapContainsKey MapFromEntries MapKeys Max Median Min Minute Mode Month Monthname MonthsBetween Nanvl
    Negative NextDay NthValue Ntile Nullif Nvl2 Overlay Pad ParseUrl PercentRank PercentileCont PercentileDisc Pi
    Posexplode PosexplodeOuter Pow Quantile Quarter Radians Rank Reduce RegexpCount RegexpExtract RegexpExtractAll
    RegexpILike RegexpInstr RegexpLike RegexpReplace RegexpSplit RegexpSubstr RegrAvgx RegrAvgy RegrCount
    RegrIntercept RegrR2 RegrSlope RegrSxx RegrSxy RegrSyy Repeat Replace Reverse Right Rint Round RowNumber SHA SHA2
    SafeAdd SafeDivide SafeMultiply SafeSubtract Sec Second Sign Sin Sinh Skewness Soundex Space Split
    SplitPart Sqrt Stack StarMap StartsWith Stddev StddevPop StddevSamp StrPosition StrToDate StrToMap StrToTime
    StrToUnix Substring SubstringIndex Sum Tan Tanh TimeDiff TimeStrToTime TimeToStr TimeTrunc TimestampAdd
    TimestampDiff TimestampFromParts TimestampSub TimestampTrunc ToBase32 ToBase64 ToBinary ToChar ToNumber Transform
    Translate Trim TsOrDsAdd TsOrDsDiff TsOrDsToDate Typeof Unhex Unicode UnixDate UnixMicros UnixMillis UnixSeconds
    UnixToStr UnixToTime Upper VarMap Variance VariancePop Week WeekOfYear WidthBucket Year _ExplodeOuter
    CurrentCatalog CurrentDatabase CurrentDate CurrentDatetime CurrentRole CurrentSchema CurrentTime CurrentTimestamp
    CurrentUser Localtime Localtimestamp Rand Randn Randstr SessionUser Shuffle Systimestamp Uniform UtcDate UtcTime
    UtcTimestamp Uuid
    """.split()
)
"""Kinds of calls. The names that are printed for them are judged by `functions`."""

QUERIES = frozenset(
    """
    All CTE Command Cube Except From Group GroupingSets Having Intersect Join Lateral Limit Offset Parameter Placeholder
    Qualify Rollup Select Subquery Table TableAlias TableSample Union Values Version With
    """.split()
)
"""Kinds of nodes that a statement has besides: queries, which the binder turns into plans, and what it refuses with
better words. They never become text.
"""

PARAMETERS = frozenset(("since", "until", "after"))
"""The instants of an epoch, which stand in texts of the engine's own."""

UNITS = frozenset(
    """
    DAY DAYOFWEEK DAYOFWEEK_ISO DAYOFYEAR DAYS DD DOW DOY EPOCH HOUR HOURS ISODOW MICROSECOND MICROSECONDS MILLISECOND
    MILLISECONDS MINUTE MINUTES MM MON MONTH MONTHS NANOSECOND NANOSECONDS QUARTER QUARTERS SECOND SECONDS WEEK WEEKS
    YEAR YEARS YEAROFWEEK YY YYYY
    """.split()
)
"""Units of time and parts of dates."""

WORDS = frozenset(
    "RANGE ROWS UNBOUNDED PRECEDING FOLLOWING OVER BOTH LEADING TRAILING INCREASING DECREASING".split()
) | {"CURRENT ROW"}
"""Words of windows, of frames, of TRIM and of ordered columns."""

TYPES = frozenset(
    kind
    for kind in exp.DataType.Type
    if kind.name
    in """
    ARRAY BIGINT BINARY BOOLEAN CHAR DATE DATETIME DECIMAL DOUBLE FLOAT INT INTERVAL MAP NULL SMALLINT STRUCT TEXT TIME
    TIMESTAMP TIMESTAMPLTZ TIMESTAMPNTZ TIMESTAMPTZ TINYINT VARBINARY VARCHAR VARIANT
    """.split()
)


def refusal(node: exp.Expression) -> str | None:
    """Say why a node may not stand in an expression; None if it may."""
    kind = type(node).__name__
    if kind not in OPERATORS and kind not in FUNCTIONS:
        return f"{_spelled(kind)} cannot stand in an expression"
    return unfit(node)


def refusal_in_statement(node: exp.Expression) -> str | None:
    """Say why a node may not stand in a statement; None if it may. Nodes of CQL's own are judged by the binder."""
    if _is_ours(node) or type(node).__name__ in QUERIES or (isinstance(node, exp.Var) and _is_ours(node.parent)):
        return None
    if isinstance(node, exp.DataType) and not isinstance(node.parent, exp.ColumnDef | exp.DataType):
        return None  # a window where none can stand is read as a type; the binder says what is wrong
    return refusal(node)


def _is_ours(node: exp.Expression | None) -> bool:
    return type(node).__module__.startswith("headgate.")


def unfit(node: exp.Expression) -> str | None:
    """Say what is wrong with the words in a node, whatever its kind; None if nothing is."""
    match node:
        case exp.Identifier():
            return _name(node.name)
        case exp.Literal() if node.is_string:
            return None if _is_text(node.name) else "a text holds half of a character (a lone surrogate)"
        case exp.Literal():
            return _number(node.name)
        case exp.Var() if isinstance(node.parent, exp.Collate):
            return None if WORD.fullmatch(node.name) else f'"{node.name[:40]}" is no collation'
        case exp.HexString():
            return None if HEX.fullmatch(str(node.this)) else "X'...' holds hexadecimal digits"
        case exp.Var():
            return (
                None if node.name.upper() in UNITS else f'"{node.name[:40]}" is no unit of time and no part of a date'
            )
        case exp.IntervalSpan() | exp.Anonymous(this=exp.Identifier()):
            return None
        case exp.Anonymous():
            return None if FUNCTION.fullmatch(node.name) else f'"{node.name[:40]}" is no name of a function'
        case exp.DataType():
            return _type(node)
        case _:
            return _words(node)


def _words(node: exp.Expression) -> str | None:
    """Texts that would be printed as they are."""
    for key, value in node.args.items():
        for part in value if isinstance(value, list) else (value,):
            if isinstance(part, str) and part.upper() not in WORDS:
                return f'"{part[:40]}" cannot stand in {_spelled(type(node).__name__)}'
            if part is not None and not isinstance(part, str | bool | int | exp.Expression):
                return f"{key} cannot stand in {_spelled(type(node).__name__)}"
    return None


def _type(node: exp.DataType) -> str | None:
    kinds = (exp.DataType, exp.ColumnDef, exp.DataTypeParam)
    if isinstance(node.this, exp.Interval):
        return None
    if node.this not in TYPES:
        return f'"{str(node.args.get("kind") or node.this)[:40].removeprefix("DType.")}" is no type'
    if any(node.args.get(key) for key in ("kind", "prefix", "values")):
        return "this form of a type is not known"
    if not all(isinstance(part, kinds) for part in node.expressions):
        return "a type holds types and whole numbers"
    return None


def _name(name: str) -> str | None:
    if not _is_text(name):
        return "a name holds half of a character (a lone surrogate)"
    if not name.isprintable():
        return "a name holds a character that cannot be printed"
    return None


def _number(number: str) -> str | None:
    if len(number) > LONGEST_NUMBER:
        return f"a number has more than {LONGEST_NUMBER} digits"
    return None if NUMBER.fullmatch(number) else f'"{number[:40]}" is no number'


def _is_text(text: str) -> bool:
    """Whether a text can be written as UTF-8: it can, unless it has half of a character."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _spelled(kind: str) -> str:
    """A kind of node in words: "QueryTransform" is QUERY TRANSFORM."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).upper()
