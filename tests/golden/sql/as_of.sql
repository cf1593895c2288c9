-- == the last row of a key
-- SELECT ISTREAM(s.k, v, w) FROM s [NOW], t [PARTITION BY k ROWS 1] WHERE s.k = t.k AND v < w
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- keeps tail_1: last_1, with the columns of arriving_1
-- keeps kept_1: keep_1, with the columns of shape_1
-- window_1: window
-- project_1: linear
-- rows_1: tail
-- displaced_1: tail
-- last_1: tail
-- arriving_1: tail
-- window_2: tail
-- project_2: linear
-- window_3: tail
-- held_1: tail
-- project_3: linear
-- all_1: lower
events_1 AS (
  SELECT s_k, v, s_k AS _k1, _t, _x, _n, 2 AS _kind, NULL AS _row
  FROM project_1
  UNION ALL
  SELECT NULL AS s_k, NULL AS v, t_k AS _k1, _t AS _t, NULL AS _x, NULL AS _n, 1 AS _kind, STRUCT(t_k, w, TRUE AS _there) AS _row
  FROM all_1
  WHERE _n > 0 AND (_x IS NULL OR _x > _t)
  UNION ALL
  SELECT NULL AS s_k, NULL AS v, t_k AS _k1, _x AS _t, NULL AS _x, NULL AS _n, 0 AS _kind, STRUCT(t_k, w, FALSE AS _there) AS _row
  FROM all_1
  WHERE _n > 0 AND (_x IS NULL OR _x > _t) AND _x <= :until
  UNION ALL
  SELECT NULL AS s_k, NULL AS v, t_k AS _k1, _t AS _t, NULL AS _x, NULL AS _n, 0 AS _kind, STRUCT(t_k, w, FALSE AS _there) AS _row
  FROM all_1
  WHERE _n < 0
)
beside_1 AS (
  SELECT s_k, v, _row.t_k AS t_k, _row.w AS w, _t, _x, _n
  FROM (
    SELECT s_k, v, _t, _x, _n, _kind, LAST_VALUE(_row) IGNORE NULLS OVER (PARTITION BY _k1 ORDER BY _t, _kind ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS _row
    FROM events_1
  )
  WHERE _kind = 2 AND _row._there
)
as_of_1 AS (
  SELECT s_k, v, t_k, w, _t, _x, _n
  FROM beside_1
  WHERE s_k = t_k AND (v < w)
)
-- project_4: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- result_1: lower
-- result: result_1

-- == a relation with a key
-- SELECT ISTREAM(s.k, v, e) FROM keyed, s [NOW] WHERE s.k = keyed.k
-- reads log_keyed_1: keyed in (since, until]
-- reads log_s_1: s in (since, until]
-- keeps rows_1: last_1, with the columns of arriving_1
-- keeps kept_1: keep_1, with the columns of shape_1
-- changes_1: stored
-- replaced_1: stored
-- last_1: stored
-- arriving_1: stored
-- stored_1: stored
-- project_1: linear
-- window_1: window
-- project_2: linear
-- held_1: stored
-- project_3: linear
-- all_1: lower
events_1 AS (
  SELECT s_k, v, s_k AS _k1, _t, _x, _n, 2 AS _kind, NULL AS _row
  FROM project_2
  UNION ALL
  SELECT NULL AS s_k, NULL AS v, keyed_k AS _k1, _t AS _t, NULL AS _x, NULL AS _n, 1 AS _kind, STRUCT(keyed_k, e, TRUE AS _there) AS _row
  FROM all_1
  WHERE _n > 0 AND (_x IS NULL OR _x > _t)
  UNION ALL
  SELECT NULL AS s_k, NULL AS v, keyed_k AS _k1, _x AS _t, NULL AS _x, NULL AS _n, 0 AS _kind, STRUCT(keyed_k, e, FALSE AS _there) AS _row
  FROM all_1
  WHERE _n > 0 AND (_x IS NULL OR _x > _t) AND _x <= :until
  UNION ALL
  SELECT NULL AS s_k, NULL AS v, keyed_k AS _k1, _t AS _t, NULL AS _x, NULL AS _n, 0 AS _kind, STRUCT(keyed_k, e, FALSE AS _there) AS _row
  FROM all_1
  WHERE _n < 0
)
beside_1 AS (
  SELECT s_k, v, _row.keyed_k AS keyed_k, _row.e AS e, _t, _x, _n
  FROM (
    SELECT s_k, v, _t, _x, _n, _kind, LAST_VALUE(_row) IGNORE NULLS OVER (PARTITION BY _k1 ORDER BY _t, _kind ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS _row
    FROM events_1
  )
  WHERE _kind = 2 AND _row._there
)
as_of_1 AS (
  SELECT keyed_k, e, s_k, v, _t, _x, _n
  FROM beside_1
  WHERE keyed_k = s_k
)
-- project_4: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- result_1: lower
-- result: result_1

-- == an aggregate of another stream
-- SELECT ISTREAM(s.k, v, n) FROM s [NOW], (SELECT k, COUNT(*) AS n FROM t [RANGE 5] GROUP BY k HAVING COUNT(*) > 1) c WHERE s.k = c.k
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_t_2: t in (since - 6, until - 6 or since]
-- keeps sums_1: totals_1, with the columns of shape_1
-- keeps kept_1: keep_1, with the columns of shape_2
-- keeps kept_2: keep_2, with the columns of shape_3
-- window_1: window
-- project_1: linear
-- window_2: window
-- window_3: window
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
-- shape_1: running
-- swept_1: running
-- timeline_1: running
-- spans_1: sweep
-- sweep_1: sweep
-- filter_1: linear
-- project_2: linear
-- shape_2: netting
-- keep_1: netting
-- live_1: netting
-- project_3: linear
-- all_1: lower
events_2 AS (
  SELECT s_k, v, s_k AS _k1, _t, _x, _n, 2 AS _kind, NULL AS _row
  FROM project_1
  UNION ALL
  SELECT NULL AS s_k, NULL AS v, c_k AS _k1, _t AS _t, NULL AS _x, NULL AS _n, 1 AS _kind, STRUCT(c_k, n, TRUE AS _there) AS _row
  FROM all_1
  WHERE _n > 0 AND (_x IS NULL OR _x > _t)
  UNION ALL
  SELECT NULL AS s_k, NULL AS v, c_k AS _k1, _x AS _t, NULL AS _x, NULL AS _n, 0 AS _kind, STRUCT(c_k, n, FALSE AS _there) AS _row
  FROM all_1
  WHERE _n > 0 AND (_x IS NULL OR _x > _t) AND _x <= :until
  UNION ALL
  SELECT NULL AS s_k, NULL AS v, c_k AS _k1, _t AS _t, NULL AS _x, NULL AS _n, 0 AS _kind, STRUCT(c_k, n, FALSE AS _there) AS _row
  FROM all_1
  WHERE _n < 0
)
beside_1 AS (
  SELECT s_k, v, _row.c_k AS c_k, _row.n AS n, _t, _x, _n
  FROM (
    SELECT s_k, v, _t, _x, _n, _kind, LAST_VALUE(_row) IGNORE NULLS OVER (PARTITION BY _k1 ORDER BY _t, _kind ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS _row
    FROM events_2
  )
  WHERE _kind = 2 AND _row._there
)
as_of_1 AS (
  SELECT s_k, v, c_k, n, _t, _x, _n
  FROM beside_1
  WHERE s_k = c_k
)
-- project_4: linear
-- shape_3: netting
-- keep_2: netting
-- live_2: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- result_1: lower
-- result: result_1

-- == an aggregate without a key
-- SELECT ISTREAM(v, n) FROM s [NOW], (SELECT MAX(w) AS n FROM t [ROWS 2]) c
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- keeps tail_1: last_1, with the columns of arriving_1
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps kept_2: keep_2, with the columns of shape_2
-- window_1: window
-- project_1: linear
-- rows_1: tail
-- displaced_1: tail
-- last_1: tail
-- arriving_1: tail
-- window_2: tail
-- held_1: tail
-- window_3: tail
-- all_1: lower
-- elements_1: extremes
-- instants_1: recomputed
-- moments_1: recomputed
-- numbered_1: extremes
-- present_1: extremes
-- stretches_1: extremes
-- nodes_1: extremes
-- above_1: extremes
-- extreme_1: extremes
-- timeline_1: extremes
-- spans_1: sweep
-- sweep_1: sweep
-- project_2: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- project_3: linear
-- all_2: lower
events_1 AS (
  SELECT k, v, name, _t, _x, _n, 2 AS _kind, NULL AS _row
  FROM window_1
  UNION ALL
  SELECT NULL AS k, NULL AS v, NULL AS name, _t AS _t, NULL AS _x, NULL AS _n, 1 AS _kind, STRUCT(n, TRUE AS _there) AS _row
  FROM all_2
  WHERE _n > 0 AND (_x IS NULL OR _x > _t)
  UNION ALL
  SELECT NULL AS k, NULL AS v, NULL AS name, _x AS _t, NULL AS _x, NULL AS _n, 0 AS _kind, STRUCT(n, FALSE AS _there) AS _row
  FROM all_2
  WHERE _n > 0 AND (_x IS NULL OR _x > _t) AND _x <= :until
  UNION ALL
  SELECT NULL AS k, NULL AS v, NULL AS name, _t AS _t, NULL AS _x, NULL AS _n, 0 AS _kind, STRUCT(n, FALSE AS _there) AS _row
  FROM all_2
  WHERE _n < 0
)
beside_1 AS (
  SELECT k, v, name, _row.n AS n, _t, _x, _n
  FROM (
    SELECT k, v, name, _t, _x, _n, _kind, LAST_VALUE(_row) IGNORE NULLS OVER (ORDER BY _t, _kind ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS _row
    FROM events_1
  )
  WHERE _kind = 2 AND _row._there
)
as_of_1 AS (
  SELECT k, v, name, n, _t, _x, _n
  FROM beside_1
)
-- project_4: linear
-- shape_2: netting
-- keep_2: netting
-- live_2: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- result_1: lower
-- result: result_1

-- == single task: a join
-- SELECT ISTREAM(s.k, v, w) FROM s [NOW], t [PARTITION BY k ROWS 1] WHERE s.k = t.k
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- keeps tail_1: last_1, with the columns of arriving_1
-- keeps kept_1: keep_1, with the columns of shape_1
-- window_1: window
-- project_1: linear
-- rows_1: tail
-- displaced_1: tail
-- last_1: tail
-- arriving_1: tail
-- window_2: tail
-- project_2: linear
-- window_3: tail
-- held_1: tail
-- project_3: linear
-- all_1: lower
events_1 AS (
  SELECT /*+ COALESCE(1) */ *
  FROM (
    SELECT s_k, v, s_k AS _k1, _t, _x, _n, 2 AS _kind, NULL AS _row
    FROM project_1
    UNION ALL
    SELECT NULL AS s_k, NULL AS v, t_k AS _k1, _t AS _t, NULL AS _x, NULL AS _n, 1 AS _kind, STRUCT(t_k, w, TRUE AS _there) AS _row
    FROM all_1
    WHERE _n > 0 AND (_x IS NULL OR _x > _t)
    UNION ALL
    SELECT NULL AS s_k, NULL AS v, t_k AS _k1, _x AS _t, NULL AS _x, NULL AS _n, 0 AS _kind, STRUCT(t_k, w, FALSE AS _there) AS _row
    FROM all_1
    WHERE _n > 0 AND (_x IS NULL OR _x > _t) AND _x <= :until
    UNION ALL
    SELECT NULL AS s_k, NULL AS v, t_k AS _k1, _t AS _t, NULL AS _x, NULL AS _n, 0 AS _kind, STRUCT(t_k, w, FALSE AS _there) AS _row
    FROM all_1
    WHERE _n < 0
  )
)
beside_1 AS (
  SELECT s_k, v, _row.t_k AS t_k, _row.w AS w, _t, _x, _n
  FROM (
    SELECT s_k, v, _t, _x, _n, _kind, LAST_VALUE(_row) IGNORE NULLS OVER (PARTITION BY _k1 ORDER BY _t, _kind ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS _row
    FROM events_1
  )
  WHERE _kind = 2 AND _row._there
)
as_of_1 AS (
  SELECT s_k, v, t_k, w, _t, _x, _n
  FROM beside_1
  WHERE s_k = t_k
)
-- project_4: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- result_1: lower
-- result: result_1
