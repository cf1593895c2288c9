-- == analytic functions at each instant of change
-- SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS nr FROM s [RANGE 4]
-- reads log_s_1: s in (since - 5, since]
-- reads log_s_2: s in (since, until]
-- expires s in (since - 5, until - 5 or since]
-- window_1: window
-- window_2: window
-- all_1: lower
elements_1 AS (
  SELECT k, v, name, k AS _k1, _t, _x, _n
  FROM all_1
)
instants_1 AS (
  SELECT DISTINCT _k1, _at
  FROM (
    SELECT _k1, _t AS _at
    FROM elements_1
    WHERE _t > :since
    UNION ALL
    SELECT _k1, _x AS _at
    FROM elements_1
    WHERE _x > :since AND _x <= :until
  )
)
moments_1 AS (
  SELECT _k1, _at
  FROM instants_1
  UNION ALL
  SELECT DISTINCT _k1, CAST(:since AS BIGINT) AS _at
  FROM instants_1
)
spans_1 AS (
  SELECT _k1, _at, LEAD(_at) OVER (PARTITION BY _k1 ORDER BY _at) AS _next
  FROM moments_1
)
alive_1 AS (
  SELECT k, v, name, _at, _next
  FROM (
    SELECT e.k, e.v, e.name, m._at, m._next, SUM(e._n) AS _n
    FROM spans_1 AS m
    JOIN elements_1 AS e ON m._k1 <=> e._k1 AND e._t <= m._at AND m._at < COALESCE(e._x, 9223372036854775807)
    GROUP BY e.k, e.v, e.name, m._at, m._next
    HAVING SUM(e._n) > 0
  )
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy
)
ranked_1 AS (
  SELECT k, v, name, ROW_NUMBER() OVER (PARTITION BY _at, k ORDER BY v, k, v, name) AS ranked, _at, _next
  FROM alive_1
)
ranked_2 AS (
  SELECT k, v, name, ranked, _at AS _t, _next AS _x, CAST(1 AS BIGINT) AS _n
  FROM ranked_1
  WHERE _at > :since
  UNION ALL
  SELECT k, v, name, ranked, _next AS _t, CAST(NULL AS BIGINT) AS _x, CAST(-1 AS BIGINT) AS _n
  FROM ranked_1
  WHERE _at <= :since AND _next IS NOT NULL
)
-- project_1: linear
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1
