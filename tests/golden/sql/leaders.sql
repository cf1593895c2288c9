-- == the largest of a moving window
-- SELECT k, MAX(v) AS most FROM s [RANGE 4] GROUP BY k
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (until - 5, until]
-- expires s in (since - 5, until - 5 or since]
-- keeps leaders_1: leading_1, with the columns of shape_1
-- window_1: window
-- window_2: window
elements_1 AS (
  SELECT _k1, v, CAST(:since AS BIGINT) AS _t, _x, _n
  FROM leaders_1
  UNION ALL
  SELECT k AS _k1, v, _t, _x, _n
  FROM window_1
)
ranked_1 AS (
  SELECT _k1, v, _x, _n, ROW_NUMBER() OVER (PARTITION BY _k1 ORDER BY _x DESC, v DESC) AS _place0, v AS _v0, MAX(v) OVER (PARTITION BY _k1 ORDER BY _x DESC, v DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _best0
  FROM elements_1
  WHERE _x > :until
)
leading_1 AS (
  SELECT _k1, v, _x, _n
  FROM ranked_1
  WHERE (_place0 = 1 OR (_v0 IS NOT NULL AND COALESCE(_v0 > _best0, TRUE)))
)
shape_1 AS (
  SELECT k AS _k1, v, _x, _n
  FROM window_1
)
living_1 AS (
  SELECT k AS _k1, v, _t, _x, _n
  FROM window_2
)
ranked_2 AS (
  SELECT _k1, v, _x, _n, ROW_NUMBER() OVER (PARTITION BY _k1 ORDER BY _x DESC, v DESC) AS _place0, v AS _v0, MAX(v) OVER (PARTITION BY _k1 ORDER BY _x DESC, v DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _best0
  FROM living_1
)
leading_2 AS (
  SELECT _k1, v, _x, _n
  FROM ranked_2
  WHERE (_place0 = 1 OR (_v0 IS NOT NULL AND COALESCE(_v0 > _best0, TRUE)))
)
-- elements_2: framed
-- walked_1: framed
-- swept_1: framed
-- timeline_1: framed
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == tiny: the largest of a moving window
-- SELECT k, MAX(v) AS most FROM s [RANGE 4] GROUP BY k
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (until - 5, until]
-- expires s in (since - 5, until - 5 or since]
-- keeps leaders_1: leading_1, with the columns of shape_1
-- window_1: window
-- window_2: window
elements_1 AS (
  SELECT _k1, v, CAST(:since AS BIGINT) AS _t, _x, _n
  FROM leaders_1
  UNION ALL
  SELECT k AS _k1, v, _t, _x, _n
  FROM window_1
)
ranked_1 AS (
  SELECT _k1, v, _x, _n, ROW_NUMBER() OVER (PARTITION BY _k1 ORDER BY _x DESC, v DESC) AS _place0, v AS _v0, MAX(v) OVER (PARTITION BY _k1 ORDER BY _x DESC, v DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _best0
  FROM elements_1
  WHERE _x > :until
)
leading_1 AS (
  SELECT _k1, v, _x, _n
  FROM ranked_1
  WHERE (_place0 = 1 OR (_v0 IS NOT NULL AND COALESCE(_v0 > _best0, TRUE)))
)
shape_1 AS (
  SELECT k AS _k1, v, _x, _n
  FROM window_1
)
living_1 AS (
  SELECT k AS _k1, v, _t, _x, _n
  FROM window_2
)
ranked_2 AS (
  SELECT _k1, v, _x, _n, ROW_NUMBER() OVER (PARTITION BY _k1 ORDER BY _x DESC, v DESC) AS _place0, v AS _v0, MAX(v) OVER (PARTITION BY _k1 ORDER BY _x DESC, v DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _best0
  FROM living_1
)
leading_2 AS (
  SELECT _k1, v, _x, _n
  FROM ranked_2
  WHERE (_place0 = 1 OR (_v0 IS NOT NULL AND COALESCE(_v0 > _best0, TRUE)))
)
-- instants_1: recomputed
-- moments_1: recomputed
-- timeline_1: recomputed
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == two calls with leaders of their own, one with FILTER
-- SELECT MIN(v) AS least, MAX(v) FILTER (WHERE k > 1) AS most FROM s [RANGE 4]
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (until - 5, until]
-- expires s in (since - 5, until - 5 or since]
-- keeps leaders_1: leading_1, with the columns of shape_1
-- window_1: window
-- window_2: window
elements_1 AS (
  SELECT k, v, CAST(:since AS BIGINT) AS _t, _x, _n
  FROM leaders_1
  UNION ALL
  SELECT k, v, _t, _x, _n
  FROM window_1
)
ranked_1 AS (
  SELECT k, v, _x, _n, ROW_NUMBER() OVER (ORDER BY _x DESC, v ASC) AS _place0, v AS _v0, MIN(v) OVER (ORDER BY _x DESC, v ASC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _best0, ROW_NUMBER() OVER (ORDER BY _x DESC, CASE WHEN (k > 1) THEN v END DESC) AS _place1, CASE WHEN (k > 1) THEN v END AS _v1, MAX(CASE WHEN (k > 1) THEN v END) OVER (ORDER BY _x DESC, CASE WHEN (k > 1) THEN v END DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _best1
  FROM elements_1
  WHERE _x > :until
)
leading_1 AS (
  SELECT k, v, _x, _n
  FROM ranked_1
  WHERE (_place0 = 1 OR (_v0 IS NOT NULL AND COALESCE(_v0 < _best0, TRUE)) OR _place1 = 1 OR (_v1 IS NOT NULL AND COALESCE(_v1 > _best1, TRUE)))
)
shape_1 AS (
  SELECT k, v, _x, _n
  FROM window_1
)
living_1 AS (
  SELECT k, v, _t, _x, _n
  FROM window_2
)
ranked_2 AS (
  SELECT k, v, _x, _n, ROW_NUMBER() OVER (ORDER BY _x DESC, v ASC) AS _place0, v AS _v0, MIN(v) OVER (ORDER BY _x DESC, v ASC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _best0, ROW_NUMBER() OVER (ORDER BY _x DESC, CASE WHEN (k > 1) THEN v END DESC) AS _place1, CASE WHEN (k > 1) THEN v END AS _v1, MAX(CASE WHEN (k > 1) THEN v END) OVER (ORDER BY _x DESC, CASE WHEN (k > 1) THEN v END DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _best1
  FROM living_1
)
leading_2 AS (
  SELECT k, v, _x, _n
  FROM ranked_2
  WHERE (_place0 = 1 OR (_v0 IS NOT NULL AND COALESCE(_v0 < _best0, TRUE)) OR _place1 = 1 OR (_v1 IS NOT NULL AND COALESCE(_v1 > _best1, TRUE)))
)
-- elements_2: framed
-- walked_1: framed
-- swept_1: framed
-- timeline_1: framed
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1
