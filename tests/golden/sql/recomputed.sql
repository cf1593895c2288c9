-- == any aggregate, at each instant of change
-- SELECT k, MEDIAN(v) AS middle FROM s [RANGE 4] GROUP BY k
-- reads log_s_1: s in (since - 5, since]
-- reads log_s_2: s in (since, until]
-- expires s in (since - 5, until - 5 or since]
-- window_1: window
-- window_2: window
-- all_1: lower
elements_1 AS (
  SELECT k AS _k1, v, _t, _x, _n
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
  WHERE :since >= 0
)
timeline_1 AS (
  SELECT m._k1 AS k, MEDIAN(v) FILTER (WHERE e._n IS NOT NULL) AS median_v, m._k1, m._at AS _t, COUNT(e._n) > 0 AS _live
  FROM moments_1 AS m
  LEFT JOIN elements_1 AS e ON m._k1 <=> e._k1 AND e._t <= m._at AND m._at < COALESCE(e._x, 9223372036854775807)
  GROUP BY m._k1, m._at
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == rows that may be taken back
-- SELECT MEDIAN(v) AS middle FROM s [ROWS 3]
-- reads log_s_1: s in (since, until]
-- keeps tail_1: last_1, with the columns of arriving_1
-- project_1: linear
-- rows_1: tail
-- displaced_1: tail
-- last_1: tail
-- arriving_1: tail
-- window_1: tail
-- held_1: tail
-- window_2: tail
-- all_1: lower
elements_1 AS (
  SELECT v, _t, _x, _n
  FROM all_1
)
instants_1 AS (
  SELECT DISTINCT _at
  FROM (
    SELECT _t AS _at
    FROM elements_1
    WHERE _t > :since
    UNION ALL
    SELECT _x AS _at
    FROM elements_1
    WHERE _x > :since AND _x <= :until
    UNION ALL
    SELECT CAST(0 AS BIGINT) AS _at
    WHERE 0 > :since AND 0 <= :until
  )
)
moments_1 AS (
  SELECT _at
  FROM instants_1
  UNION ALL
  SELECT DISTINCT CAST(:since AS BIGINT) AS _at
  FROM instants_1
  WHERE :since >= 0
)
alive_1 AS (
  SELECT _at, v, CAST(1 AS BIGINT) AS _n
  FROM (
    SELECT m._at, e.v, SUM(e._n) AS _n
    FROM moments_1 AS m
    JOIN elements_1 AS e ON e._t <= m._at AND m._at < COALESCE(e._x, 9223372036854775807)
    GROUP BY m._at, e.v
    HAVING SUM(e._n) > 0
  )
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy
)
timeline_1 AS (
  SELECT MEDIAN(v) FILTER (WHERE e._n IS NOT NULL) AS median_v, m._at AS _t, TRUE AS _live
  FROM moments_1 AS m
  LEFT JOIN alive_1 AS e ON m._at = e._at
  GROUP BY m._at
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == tiny: extremes too
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
  WHERE :since >= 0
)
timeline_1 AS (
  SELECT m._k1 AS k, MAX(v) FILTER (WHERE e._n IS NOT NULL) AS max_v, m._k1, m._at AS _t, COUNT(e._n) > 0 AS _live
  FROM moments_1 AS m
  LEFT JOIN elements_1 AS e ON m._k1 <=> e._k1 AND e._t <= m._at AND m._at < COALESCE(e._x, 9223372036854775807)
  GROUP BY m._k1, m._at
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1
