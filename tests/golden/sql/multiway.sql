-- == three inputs in a chain, in the order they are written
-- SELECT ISTREAM(s.v, t.w, r.e) FROM s [RANGE 4], t [RANGE 4], r WHERE s.k = t.k AND t.k = r.k
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_t_2: t in (since - 5, since]
-- reads log_s_2: s in (since - 5, since]
-- reads log_r_1: r in (since, until]
-- expires s in (since - 5, until - 5 or since]
-- expires t in (since - 5, until - 5 or since]
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps kept_2: keep_2, with the columns of shape_2
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
-- window_3: window
-- project_3: linear
-- window_4: window
-- project_4: linear
-- stored_1: stored
-- project_5: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- project_6: linear
-- all_1: lower
-- all_2: lower
-- all_3: lower
-- placed_1: buckets
-- spread_1: buckets
join_1 AS (
  SELECT s_k, v, t_k, w,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_1 AS l
  JOIN spread_1 AS r ON s_k = t_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
join_2 AS (
  SELECT v, t_k, w, r_k, e,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM join_1 AS l
  JOIN all_3 AS r ON t_k = r_k AND s_k = r_k AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
-- placed_2: buckets
-- spread_2: buckets
join_3 AS (
  SELECT s_k, v, t_k, w,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_2 AS l
  JOIN spread_2 AS r ON t_k = s_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
join_4 AS (
  SELECT v, t_k, w, r_k, e,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM join_3 AS l
  JOIN all_3 AS r ON t_k = r_k AND s_k = r_k AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
join_5 AS (
  SELECT s_k, v, r_k, e,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM project_5 AS l
  JOIN project_4 AS r ON r_k = s_k AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
-- placed_3: buckets
-- spread_3: buckets
join_6 AS (
  SELECT v, t_k, w, r_k, e,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_3 AS l
  JOIN spread_3 AS r ON s_k = t_k AND r_k = t_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
joined_1 AS (
  SELECT v, t_k, w, r_k, e, _t, _x, _n
  FROM join_2
  UNION ALL
  SELECT v, t_k, w, r_k, e, _t, _x, _n
  FROM join_4
  UNION ALL
  SELECT v, t_k, w, r_k, e, _t, _x, _n
  FROM join_6
)
-- project_7: linear
-- shape_2: netting
-- keep_2: netting
-- live_2: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- result_1: lower
-- result: result_1

-- == tiny: three windows, one of them of an instant
-- SELECT s.v, t.w, m.x FROM s [RANGE 4], t [NOW], m [RANGE 2] WHERE s.k = t.k AND m.k = s.k AND s.v < t.w
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_s_2: s in (since - 5, since]
-- reads log_m_1: m in (since, until]
-- reads log_m_2: m in (since - 3, since]
-- keeps kept_1: keep_1, with the columns of shape_1
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
-- window_3: window
-- project_3: linear
-- window_4: window
-- project_4: linear
-- window_5: window
-- project_5: linear
-- all_1: lower
-- all_2: lower
-- placed_1: buckets
-- spread_1: buckets
join_1 AS (
  SELECT s_k, v, t_k, w,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_1 AS l
  JOIN spread_1 AS r ON s_k = t_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807) AND ((v < w))
)
-- placed_2: buckets
-- spread_2: buckets
join_2 AS (
  SELECT s_k, v, w, m_k, x,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_2 AS l
  JOIN spread_2 AS r ON s_k = m_k AND t_k = m_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
-- placed_3: buckets
-- spread_3: buckets
join_3 AS (
  SELECT s_k, v, t_k, w,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_3 AS l
  JOIN spread_3 AS r ON t_k = s_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807) AND ((v < w))
)
-- placed_4: buckets
-- spread_4: buckets
join_4 AS (
  SELECT s_k, v, w, m_k, x,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_4 AS l
  JOIN spread_4 AS r ON s_k = m_k AND t_k = m_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
-- placed_5: buckets
-- spread_5: buckets
join_5 AS (
  SELECT s_k, v, m_k, x,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_5 AS l
  JOIN spread_5 AS r ON m_k = s_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
joined_1 AS (
  SELECT s_k, v, w, m_k, x, _t, _x, _n
  FROM join_2
  UNION ALL
  SELECT s_k, v, w, m_k, x, _t, _x, _n
  FROM join_4
)
-- project_6: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- before_1: netting
-- more_1: netting
-- repeated_1: netting
-- netted_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1
