-- == both sides old and new
-- SELECT s.k, v, w FROM s [RANGE 4] JOIN t [RANGE 3] ON s.k = t.k AND v < w
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_t_2: t in (since - 4, since]
-- reads log_s_2: s in (since - 5, since]
-- keeps kept_1: keep_1, with the columns of shape_1
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
-- window_3: window
-- project_3: linear
-- all_1: lower
-- window_4: window
-- project_4: linear
-- all_2: lower
-- twins_1: twins
-- marked_1: twins
-- twins_2: twins
-- marked_2: twins
alone_1 AS (
  SELECT *
  FROM marked_1
  WHERE NOT _twin
)
twinned_1 AS (
  SELECT *
  FROM marked_1
  WHERE _twin
)
alone_2 AS (
  SELECT *
  FROM marked_2
  WHERE NOT _twin
)
twinned_2 AS (
  SELECT *
  FROM marked_2
  WHERE _twin
)
-- placed_1: buckets
-- spread_1: buckets
join_1 AS (
  SELECT s_k, v, t_k, w,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_1 AS l
  JOIN spread_1 AS r ON s_k = t_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807) AND (v < w)
)
-- placed_2: buckets
-- spread_2: buckets
-- placed_3: buckets
-- spread_3: buckets
join_2 AS (
  SELECT s_k, v, t_k, w,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_2 AS l
  JOIN spread_2 AS r ON s_k = t_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807) AND (v < w)
  UNION ALL
  SELECT s_k, v, t_k, w,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_3 AS l
  JOIN spread_3 AS r ON s_k = t_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807) AND (v < w)
)
-- project_5: linear
-- project_6: linear
-- placed_4: buckets
-- spread_4: buckets
join_3 AS (
  SELECT s_k, v, t_k, w,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_4 AS l
  JOIN spread_4 AS r ON s_k = t_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807) AND (v < w)
)
-- project_7: linear
lasting_1 AS (
  SELECT *
  FROM all_2
  WHERE (_x IS NULL OR _x > :until)
)
lasting_2 AS (
  SELECT *
  FROM all_1
  WHERE (_x IS NULL OR _x > :until)
)
-- placed_5: buckets
-- spread_5: buckets
outliving_1 AS (
  SELECT s_k, v, t_k, w,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_5 AS l
  JOIN spread_5 AS r ON s_k = t_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807) AND (v < w)
)
-- project_8: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- come_1: netting
-- repeated_2: netting
-- go_1: netting
-- result_1: netting
-- result: result_1

-- == what lives for one instant meets what was there
-- SELECT s.k, e FROM s [NOW], r WHERE s.k = r.k
-- reads log_s_1: s in (since, until]
-- reads log_r_1: r in (since, until]
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps kept_2: keep_2, with the columns of shape_2
-- window_1: window
-- project_1: linear
-- stored_1: stored
-- project_2: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- project_3: linear
-- all_1: lower
join_1 AS (
  SELECT s_k, r_k, e,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM project_1 AS l
  JOIN all_1 AS r ON s_k = r_k AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
-- project_4: linear
-- shape_2: netting
-- keep_2: netting
-- live_2: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == single task: unions come back as one partition
-- SELECT s.k, v, w FROM s [RANGE 4] JOIN t [RANGE 3] ON s.k = t.k
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_t_2: t in (since - 4, since]
-- reads log_s_2: s in (since - 5, since]
-- keeps kept_1: keep_1, with the columns of shape_1
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
-- window_3: window
-- project_3: linear
-- all_1: lower
-- window_4: window
-- project_4: linear
-- all_2: lower
-- placed_1: buckets
-- spread_1: buckets
join_1 AS (
  SELECT s_k, v, t_k, w,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_1 AS l
  JOIN spread_1 AS r ON s_k = t_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
-- project_5: linear
lasting_1 AS (
  SELECT *
  FROM all_2
  WHERE (_x IS NULL OR _x > :until)
)
lasting_2 AS (
  SELECT *
  FROM all_1
  WHERE (_x IS NULL OR _x > :until)
)
-- placed_2: buckets
-- spread_2: buckets
outliving_1 AS (
  SELECT s_k, v, t_k, w,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_2 AS l
  JOIN spread_2 AS r ON s_k = t_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
-- project_6: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1
