"""Functions, predicates and aggregates of GSQL that have another name in CQL."""

from __future__ import annotations

AGGREGATES = frozenset(
    """count sum min max avg and_aggr or_aggr xor_aggr first last stddev variance median percentile mode
    approx_count_distinct count_if max_by min_by collect_list collect_set bool_and bool_or bit_and bit_or bit_xor
    any_value corr covar_pop covar_samp stddev_pop stddev_samp var_pop var_samp skewness kurtosis listagg""".split()
)
"""Functions whose arguments are attributes of the tuples of a group."""

SUPERAGGREGATES = ("count", "sum", "min", "max", "count_distinct")

WRITTEN = {
    "str_match_start": ("STARTSWITH({}, {})", "bool"),
    "str_exists_substr": ("CONTAINS({}, {})", "bool"),
    "str_regex_match": ("({} RLIKE {})", "bool"),
    "str_extract_regex": ("REGEXP_EXTRACT({}, {}, 0)", "string"),
    "strlen": ("LENGTH({})", "int"),
    "str_truncate": ("SUBSTRING({}, 1, {})", "string"),
}
"""By name: what a function or predicate of GSQL's library is in CQL, and the type it gives. A function of the user's
own that has the name goes first.
"""
