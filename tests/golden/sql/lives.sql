-- == groups of a clustered column have lives, while k is detected
-- SELECT k, SUM(v) AS total FROM grouped [RANGE UNBOUNDED] GROUP BY k
-- reads log_grouped_1: grouped in (since, until]
-- keeps k_of_seen_1: pace_1, with the columns of shape_1
-- keeps distances_1: recent_1, with the columns of shape_2
-- keeps places_1: placed_1, with the columns of shape_3
-- keeps violations_of_seen_1: violations_1, with the columns of shape_4
-- keeps sums_1: still_open_1, with the columns of shape_5
arriving_1 AS (
  SELECT k AS _v, _t, _s, CAST(ROW_NUMBER() OVER (ORDER BY _t, _s) AS BIGINT) + COALESCE((SELECT MAX(_p)
  FROM k_of_seen_1), CAST(0 AS BIGINT)) AS _p
  FROM log_grouped_1
)
walked_1 AS (
  SELECT _v, _p, _t, _s, _life, _new, LAG(_p) OVER (PARTITION BY _v ORDER BY _p) AS _last
  FROM (
    SELECT _v, _p, CAST(NULL AS BIGINT) AS _t, CAST(NULL AS BIGINT) AS _s, _life, FALSE AS _new
    FROM places_1
    UNION ALL
    SELECT _v, _p, _t, _s, CAST(NULL AS BIGINT) AS _life, TRUE AS _new
    FROM arriving_1
  )
)
blocks_1 AS (
  SELECT _block * 3 AS _p, _block, _d, FALSE AS _new
  FROM distances_1
  UNION ALL
  SELECT _p, (_p - 1) DIV 3 AS _block, _d, TRUE AS _new
  FROM (
    SELECT _p, CASE WHEN _p - _last - 1 <= 4 THEN _p - _last - 1 END AS _d
    FROM walked_1
    WHERE _new
    UNION ALL
    SELECT COALESCE(MAX(_p), CAST(0 AS BIGINT)) + 1 AS _p, CAST(NULL AS BIGINT) AS _d
    FROM (
      SELECT _p
      FROM k_of_seen_1
      UNION ALL
      SELECT _p
      FROM arriving_1
    )
  )
)
followed_1 AS (
  SELECT _p, _new, CASE WHEN _block = 0 THEN CAST(4 AS BIGINT) ELSE GREATEST(COALESCE(MAX(_d) OVER (PARTITION BY _block ORDER BY _p ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0), COALESCE(MAX(_d) OVER (ORDER BY _block RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING), 0)) END AS _k
  FROM blocks_1
)
paced_1 AS (
  SELECT _p, _k, GREATEST(MAX(_p - _k - 1) OVER (ORDER BY _p), COALESCE((SELECT MAX(_h)
  FROM k_of_seen_1), CAST(0 AS BIGINT))) AS _h
  FROM followed_1
  WHERE _new
)
pace_1 AS (
  SELECT _p - 1 AS _p, _k, _h
  FROM paced_1
  WHERE _p = (SELECT MAX(_p)
  FROM paced_1)
)
shape_1 AS (
  SELECT CAST(1 AS BIGINT) AS _p, CAST(1 AS BIGINT) AS _k, CAST(1 AS BIGINT) AS _h
)
recent_1 AS (
  SELECT _block, MAX(_d) AS _d
  FROM blocks_1
  WHERE _block >= (SELECT MAX(_block) - 1
  FROM blocks_1)
  GROUP BY _block
)
shape_2 AS (
  SELECT CAST(1 AS BIGINT) AS _block, CAST(1 AS BIGINT) AS _d
)
judged_1 AS (
  SELECT w._v, w._p, w._t, w._s, w._new, w._life, w._last, h._h
  FROM walked_1 AS w
  LEFT JOIN paced_1 AS h ON w._p = h._p
)
lived_1 AS (
  SELECT _v, _p, _t, _s, MAX(CASE WHEN NOT _new THEN _life WHEN _last IS NULL OR _last < _h THEN _p END) OVER (PARTITION BY _v ORDER BY _p) AS _life
  FROM judged_1
)
broken_1 AS (
  SELECT _p
  FROM judged_1
  WHERE _new AND _last < _h AND _p - _last - 1 <= 4
)
latest_1 AS (
  SELECT _v, MAX(_p) AS _p, MAX(_life) AS _life
  FROM lived_1
  GROUP BY _v
)
placed_1 AS (
  SELECT _v, _p, _life
  FROM latest_1
  WHERE _p >= (SELECT MAX(_p) - 4
  FROM latest_1)
)
shape_3 AS (
  SELECT k AS _v, CAST(1 AS BIGINT) AS _p, CAST(1 AS BIGINT) AS _life
  FROM log_grouped_1
)
-- shape_4: violations
-- violations_1: violations
open_1 AS (
  SELECT _v, _life
  FROM placed_1
  WHERE _p >= (SELECT _h
  FROM pace_1)
)
lives_1 AS (
  SELECT t.k, t.v, t._t, t._s, l._life AS _life
  FROM log_grouped_1 AS t
  LEFT JOIN lived_1 AS l ON t._t = l._t AND t._s = l._s
)
-- window_1: window
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
-- still_open_1: constraints
-- shape_5: running
-- swept_1: running
-- timeline_1: running
-- spans_1: sweep
-- sweep_1: sweep
-- project_1: linear
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == rows with an ordered column have lives, while k is detected
-- SELECT DISTINCT k FROM climbing [RANGE UNBOUNDED]
-- reads log_climbing_1: climbing in (since, until]
-- keeps k_of_ascent_1: pace_1, with the columns of shape_1
-- keeps distances_1: recent_1, with the columns of shape_2
-- keeps largest_1: last_1, with the columns of shape_3
-- keeps violations_of_ascent_1: violations_1, with the columns of shape_4
-- keeps sums_1: still_open_1, with the columns of shape_5
arriving_1 AS (
  SELECT k AS _v, _t, _s, CAST(ROW_NUMBER() OVER (ORDER BY _t, _s) AS BIGINT) + COALESCE((SELECT MAX(_p)
  FROM k_of_ascent_1), CAST(0 AS BIGINT)) AS _p
  FROM log_climbing_1
)
rising_1 AS (
  SELECT _v, _p, _t, _s, _new, COALESCE(_v > MAX(_v) OVER (ORDER BY _p ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), TRUE) AS _rises
  FROM (
    SELECT _m AS _v, _p, CAST(NULL AS BIGINT) AS _t, CAST(NULL AS BIGINT) AS _s, FALSE AS _new
    FROM largest_1
    UNION ALL
    SELECT _v, _p, _t, _s, TRUE AS _new
    FROM arriving_1
  )
  WHERE _v IS NOT NULL
)
walked_1 AS (
  SELECT _v, _p, _t, _s, _new, MIN(CASE WHEN _rises THEN _p END) OVER (ORDER BY _v DESC, _rises ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _first
  FROM rising_1
)
blocks_1 AS (
  SELECT _block * 3 AS _p, _block, _d, FALSE AS _new
  FROM distances_1
  UNION ALL
  SELECT _p, (_p - 1) DIV 3 AS _block, _d, TRUE AS _new
  FROM (
    SELECT _p, CASE WHEN _p - _first BETWEEN 1 AND 4 THEN _p - _first END AS _d
    FROM walked_1
    WHERE _new
    UNION ALL
    SELECT COALESCE(MAX(_p), CAST(0 AS BIGINT)) + 1 AS _p, CAST(NULL AS BIGINT) AS _d
    FROM (
      SELECT _p
      FROM k_of_ascent_1
      UNION ALL
      SELECT _p
      FROM arriving_1
    )
  )
)
followed_1 AS (
  SELECT _p, _new, CASE WHEN _block = 0 THEN CAST(4 AS BIGINT) ELSE GREATEST(COALESCE(MAX(_d) OVER (PARTITION BY _block ORDER BY _p ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0), COALESCE(MAX(_d) OVER (ORDER BY _block RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING), 0)) END AS _k
  FROM blocks_1
)
paced_1 AS (
  SELECT _p, _k, GREATEST(MAX(_p - _k - 1) OVER (ORDER BY _p), COALESCE((SELECT MAX(_h)
  FROM k_of_ascent_1), CAST(0 AS BIGINT))) AS _h
  FROM followed_1
  WHERE _new
)
pace_1 AS (
  SELECT _p - 1 AS _p, _k, _h
  FROM paced_1
  WHERE _p = (SELECT MAX(_p)
  FROM paced_1)
)
shape_1 AS (
  SELECT CAST(1 AS BIGINT) AS _p, CAST(1 AS BIGINT) AS _k, CAST(1 AS BIGINT) AS _h
)
recent_1 AS (
  SELECT _block, MAX(_d) AS _d
  FROM blocks_1
  WHERE _block >= (SELECT MAX(_block) - 1
  FROM blocks_1)
  GROUP BY _block
)
shape_2 AS (
  SELECT CAST(1 AS BIGINT) AS _block, CAST(1 AS BIGINT) AS _d
)
lived_1 AS (
  SELECT w._t, w._s, CASE WHEN w._first <= h._h THEN w._p END AS _life
  FROM walked_1 AS w
  JOIN paced_1 AS h ON w._p = h._p
)
broken_1 AS (
  SELECT _life
  FROM lived_1
  WHERE _life IS NOT NULL
)
last_1 AS (
  SELECT _v AS _m, _p
  FROM rising_1
  WHERE _rises AND _p >= COALESCE((SELECT MAX(_p)
  FROM rising_1
  WHERE _rises AND _p <= (SELECT MAX(_p) - 4
  FROM pace_1)), 0)
)
shape_3 AS (
  SELECT k AS _m, CAST(1 AS BIGINT) AS _p
  FROM log_climbing_1
)
-- shape_4: violations
-- violations_1: violations
lives_1 AS (
  SELECT t.k, t.v, t._t, t._s, l._life AS _life
  FROM log_climbing_1 AS t
  LEFT JOIN lived_1 AS l ON t._t = l._t AND t._s = l._s
)
-- window_1: window
-- project_1: linear
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
-- still_open_1: constraints
-- shape_5: running
-- swept_1: running
-- timeline_1: running
-- spans_1: sweep
-- sweep_1: sweep
-- project_2: linear
-- netted_1: netting
-- repeated_1: netting
-- result_1: lower
-- result: result_1
