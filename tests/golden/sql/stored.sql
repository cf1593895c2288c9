-- == a base relation
-- SELECT k, e FROM r
-- reads log_r_1: r in (since, until]
stored_1 AS (
  SELECT k, e, _t, CAST(NULL AS BIGINT) AS _x, _n
  FROM log_r_1
)
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == with a key a row goes when the next one comes
-- SELECT k, e FROM keyed
-- reads log_keyed_1: keyed in (since, until]
-- keeps rows_1: last_1, with the columns of arriving_1
every_1 AS (
  SELECT k, e, _t, _s, _n
  FROM rows_1
  UNION ALL
  SELECT k, e, _t, _s, _n
  FROM log_keyed_1
)
in_order_1 AS (
  SELECT k, e, _t, _s, _n, LEAD(_t) OVER (PARTITION BY k ORDER BY _t, _s) AS _x
  FROM every_1
)
last_1 AS (
  SELECT k, e, _t, _s, _n
  FROM in_order_1
  WHERE _x IS NULL AND _n = 1
)
arriving_1 AS (
  SELECT k, e, _t, _s, _n
  FROM log_keyed_1
)
coming_1 AS (
  SELECT k
  FROM log_keyed_1
  GROUP BY k
)
changes_1 AS (
  SELECT h.k, h.e, h._t, h._s, h._n
  FROM rows_1 AS h
  JOIN coming_1 AS c ON h.k <=> c.k
  UNION ALL
  SELECT k, e, _t, _s, _n
  FROM log_keyed_1
)
replaced_1 AS (
  SELECT k, e, _t, _s, _n, LEAD(_t) OVER (PARTITION BY k ORDER BY _t, _s) AS _x
  FROM changes_1
)
stored_1 AS (
  SELECT k, e, _t, _x, _n
  FROM replaced_1
  WHERE _t > :since AND _n = 1 AND (_x IS NULL OR _x > _t)
  UNION ALL
  SELECT k, e, _x AS _t, CAST(NULL AS BIGINT) AS _x, -_n AS _n
  FROM replaced_1
  WHERE _t <= :since AND _x IS NOT NULL
)
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1
