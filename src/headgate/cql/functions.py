"""Spark's aggregate functions that sqlglot does not know as such: without this list they would pass for scalar ones."""

from __future__ import annotations

AGGREGATES = frozenset(
    """
    aggregate_list any approx_percentile approx_top_k array_agg bit_and bit_or bit_xor bitmap_construct_agg
    bitmap_or_agg bool_and bool_or collect_list collect_set corr count_if count_min_sketch covar_pop covar_samp every
    first first_value grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg kurtosis last last_value
    listagg max_by mean median min_by mode percentile percentile_approx percentile_cont percentile_disc regr_avgx
    regr_avgy regr_count regr_intercept regr_slope regr_sxx regr_sxy regr_syy schema_of_json_agg skewness some std
    stddev stddev_pop stddev_samp string_agg try_avg try_sum var_pop var_samp variance
    """.split()
)
