-- == extremes by window frames
-- SELECT k, MAX(v) AS most FROM s [RANGE 4] GROUP BY k
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (until - 5, until]
-- expires s in (since - 5, until - 5 or since]
-- keeps leaders_1: leading_1, with the columns of shape_1
-- window_1: window
-- window_2: window
-- elements_1: leaders
-- ranked_1: leaders
-- leading_1: leaders
-- shape_1: leaders
-- living_1: leaders
-- ranked_2: leaders
-- leading_2: leaders
elements_2 AS (
  SELECT _k1, _x - 5 AS _at, v AS _v0, 1 AS _one, _x
  FROM elements_1
)
walked_1 AS (
  SELECT _k1, _at, _v0, _one
  FROM elements_2
  UNION ALL
  SELECT _k1, _at, NULL AS _v0, NULL AS _one
  FROM (
    SELECT DISTINCT _k1, _x AS _at
    FROM elements_2
    WHERE _x <= :until
  )
  UNION ALL
  SELECT _k1, _at, NULL AS _v0, NULL AS _one
  FROM (
    SELECT DISTINCT _k1, CAST(:since AS BIGINT) AS _at
    FROM elements_2
    WHERE :since >= 0
  )
)
swept_1 AS (
  SELECT _k1, _at, MAX(_v0) OVER (PARTITION BY _k1 ORDER BY _at RANGE BETWEEN 4 PRECEDING AND CURRENT ROW) AS max_v, COUNT(_one) OVER (PARTITION BY _k1 ORDER BY _at RANGE BETWEEN 4 PRECEDING AND CURRENT ROW) AS _rows,
    LEAD(_at) OVER (PARTITION BY _k1 ORDER BY _at) AS _next
  FROM walked_1
)
timeline_1 AS (
  SELECT _k1 AS k, max_v, _k1, _at AS _t, _rows > 0 AS _live
  FROM swept_1
  WHERE _at >= :since AND (_next IS NULL OR _next > _at)
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == one row when there is nothing, with a filter
-- SELECT MIN(v) FILTER (WHERE k > 0) AS least FROM s [RANGE 4]
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (until - 5, until]
-- expires s in (since - 5, until - 5 or since]
-- keeps leaders_1: leading_1, with the columns of shape_1
-- window_1: window
-- window_2: window
-- elements_1: leaders
-- ranked_1: leaders
-- leading_1: leaders
-- shape_1: leaders
-- living_1: leaders
-- ranked_2: leaders
-- leading_2: leaders
elements_2 AS (
  SELECT _x - 5 AS _at, CASE WHEN k > 0 THEN v END AS _v0, 1 AS _one, _x
  FROM elements_1
)
walked_1 AS (
  SELECT _at, _v0, _one
  FROM elements_2
  UNION ALL
  SELECT _at, NULL AS _v0, NULL AS _one
  FROM (
    SELECT DISTINCT _x AS _at
    FROM elements_2
    WHERE _x <= :until
  )
  UNION ALL
  SELECT _at, NULL AS _v0, NULL AS _one
  FROM (
    SELECT DISTINCT CAST(:since AS BIGINT) AS _at
    FROM elements_2
    WHERE :since >= 0
  )
  UNION ALL
  SELECT _at, NULL AS _v0, NULL AS _one
  FROM (
    SELECT CAST(0 AS BIGINT) AS _at
    WHERE 0 > :since AND 0 <= :until
  )
)
swept_1 AS (
  SELECT _at, MIN(_v0) OVER (ORDER BY _at RANGE BETWEEN 4 PRECEDING AND CURRENT ROW) AS min_v, COUNT(_one) OVER (ORDER BY _at RANGE BETWEEN 4 PRECEDING AND CURRENT ROW) AS _rows,
    LEAD(_at) OVER (ORDER BY _at) AS _next
  FROM walked_1
)
timeline_1 AS (
  SELECT min_v, _at AS _t, TRUE AS _live
  FROM swept_1
  WHERE _at >= :since AND (_next IS NULL OR _next > _at)
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == every function that a frame can compute (text only)
-- SELECT k, MIN_BY(v, k) AS a, MAX_BY(v, k) AS b, SKEWNESS(v) AS c, KURTOSIS(v) AS d, BIT_AND(v) AS e, BIT_OR(v) AS f, BIT_XOR(v) AS g FROM s [RANGE 4] GROUP BY k
-- reads log_s_1: s in (since - 5, since]
-- reads log_s_2: s in (since, until]
-- expires s in (since - 5, until - 5 or since]
-- window_1: window
-- window_2: window
-- all_1: lower
elements_1 AS (
  SELECT k AS _k1, _x - 5 AS _at, v AS _v0, CASE WHEN NOT k IS NULL THEN STRUCT(k, NOT v IS NULL, v) END AS _v1, 1 AS _one, _x
  FROM all_1
)
walked_1 AS (
  SELECT _k1, _at, _v0, _v1, _one
  FROM elements_1
  UNION ALL
  SELECT _k1, _at, NULL AS _v0, NULL AS _v1, NULL AS _one
  FROM (
    SELECT DISTINCT _k1, _x AS _at
    FROM elements_1
    WHERE _x <= :until
  )
  UNION ALL
  SELECT _k1, _at, NULL AS _v0, NULL AS _v1, NULL AS _one
  FROM (
    SELECT DISTINCT _k1, CAST(:since AS BIGINT) AS _at
    FROM elements_1
    WHERE :since >= 0
  )
)
swept_1 AS (
  SELECT _k1, _at, MIN_BY(_v0, _v1) OVER (PARTITION BY _k1 ORDER BY _at RANGE BETWEEN 4 PRECEDING AND CURRENT ROW) AS arg_min_v, MAX_BY(_v0, _v1) OVER (PARTITION BY _k1 ORDER BY _at RANGE BETWEEN 4 PRECEDING AND CURRENT ROW) AS arg_max_v, SKEWNESS(_v0) OVER (PARTITION BY _k1 ORDER BY _at RANGE BETWEEN 4 PRECEDING AND CURRENT ROW) AS skewness_v, KURTOSIS(_v0) OVER (PARTITION BY _k1 ORDER BY _at RANGE BETWEEN 4 PRECEDING AND CURRENT ROW) AS kurtosis_v, BIT_AND(_v0) OVER (PARTITION BY _k1 ORDER BY _at RANGE BETWEEN 4 PRECEDING AND CURRENT ROW) AS bitwise_and_agg_v, BIT_OR(_v0) OVER (PARTITION BY _k1 ORDER BY _at RANGE BETWEEN 4 PRECEDING AND CURRENT ROW) AS bitwise_or_agg_v, BIT_XOR(_v0) OVER (PARTITION BY _k1 ORDER BY _at RANGE BETWEEN 4 PRECEDING AND CURRENT ROW) AS bitwise_xor_agg_v, COUNT(_one) OVER (PARTITION BY _k1 ORDER BY _at RANGE BETWEEN 4 PRECEDING AND CURRENT ROW) AS _rows,
    LEAD(_at) OVER (PARTITION BY _k1 ORDER BY _at) AS _next
  FROM walked_1
)
timeline_1 AS (
  SELECT _k1 AS k, arg_min_v, arg_max_v, skewness_v, kurtosis_v, bitwise_and_agg_v, bitwise_or_agg_v, bitwise_xor_agg_v, _k1, _at AS _t, _rows > 0 AS _live
  FROM swept_1
  WHERE _at >= :since AND (_next IS NULL OR _next > _at)
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1
