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
-- every_1: stored
-- in_order_1: stored
-- last_1: stored
-- arriving_1: stored
-- coming_1: stored
-- changes_1: stored
-- replaced_1: stored
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
-- reads log_t_3: t in (until - 6, until]
-- reads log_s_2: s in (until - 1, until]
-- keeps sums_1: totals_1, with the columns of shape_1
-- keeps kept_1: keep_1, with the columns of shape_2
window_1 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 1 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_1
  )
  WHERE _t > :since AND _t <= :until
)
project_1 AS (
  SELECT k AS s_k, v, _t, _x, _n
  FROM window_1
)
looking_1 AS (
  SELECT s_k AS _k1, _t, v AS _b1, _n AS _b0
  FROM project_1
)
window_2 AS (
  SELECT k, w, _t, _x, _n
  FROM (
    SELECT k, w, _t AS _t, _t + 6 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_t_1
  )
  WHERE _t > :since AND _t <= :until
)
window_3 AS (
  SELECT k, w, _t, _x, _n
  FROM (
    SELECT k, w, _t AS _t, _t + 6 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_t_2
  )
  WHERE _t <= :since AND _x > :since AND _x <= :until
)
touched_1 AS (
  SELECT k AS _k1, _t, _x, _n AS _rows
  FROM window_2
  UNION ALL
  SELECT k AS _k1, _t, _x, _n AS _rows
  FROM window_3
)
events_1 AS (
  SELECT _k1, _t, _rows
  FROM (
    SELECT _k1, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows
    FROM touched_1
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
)
moves_1 AS (
  SELECT _k1, CAST(:since AS BIGINT) AS _t, _rows
  FROM sums_1
  UNION ALL
  SELECT _k1, _t, _rows
  FROM events_1
)
totals_1 AS (
  SELECT _k1, SUM(_rows) AS _rows
  FROM moves_1
  GROUP BY _k1
  HAVING SUM(_rows) <> 0
)
shape_1 AS (
  SELECT _k1, SUM(_rows) AS _rows
  FROM events_1
  GROUP BY _k1
)
window_4 AS (
  SELECT k, w, _t, _x, _n
  FROM (
    SELECT k, w, _t AS _t, _t + 6 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_t_3
  )
  WHERE _t <= :until AND _x > :until
)
living_1 AS (
  SELECT k AS _k1, _n AS _rows
  FROM window_4
)
living_totals_1 AS (
  SELECT _k1, SUM(_rows) AS _rows
  FROM living_1
  GROUP BY _k1
  HAVING SUM(_rows) <> 0
)
dealt_1 AS (
  SELECT /*+ REPARTITION(_k1) */ *
  FROM (
    SELECT k AS _k1, k, w, _t, _x, _n
    FROM window_2
    UNION ALL
    SELECT k AS _k1, k, w, _t, _x, _n
    FROM window_3
  )
)
touched_2 AS (
  SELECT _k1, _t, _x, _n AS _rows
  FROM dealt_1
)
moves_2 AS (
  SELECT _k1, _t, _rows
  FROM (
    SELECT _k1, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows
    FROM touched_2
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
  UNION ALL
  SELECT /*+ REPARTITION(_k1) */ _k1, CAST(:since AS BIGINT) AS _t, _rows
  FROM sums_1
)
walked_1 AS (
  SELECT _k1, _t, _rows, FALSE AS _looks, NULL AS _b0, NULL AS _b1
  FROM moves_2
  UNION ALL
  SELECT /*+ REPARTITION(_k1) */ _k1, _t, 0 AS _rows, TRUE AS _looks, _b0, _b1
  FROM looking_1
)
seen_1 AS (
  SELECT _k1 AS k, _rows AS count, _t, _b0, _b1
  FROM (
    SELECT *
    FROM (
      SELECT _k1, _t, _looks, _b0, _b1, SUM(_rows) OVER (PARTITION BY _k1 ORDER BY _t) AS _rows
      FROM walked_1
    )
    WHERE _looks AND _rows > 0
  )
)
filter_1 AS (
  SELECT k, count, _t, _b0, _b1
  FROM seen_1
  WHERE count > 1
)
project_2 AS (
  SELECT k AS c_k, count AS n, _t, _b0, _b1
  FROM filter_1
)
met_1 AS (
  SELECT c_k AS s_k, _b1 AS v, c_k AS c_k, n AS n, _t, _t + 1 AS _x, _b0 AS _n
  FROM project_2
)
beside_1 AS (
  SELECT *
  FROM met_1
  WHERE s_k = c_k
)
project_3 AS (
  SELECT s_k AS k, v, n, _t, _x, _n
  FROM beside_1
)
shape_2 AS (
  SELECT k, v, n, _x, _n
  FROM project_3
)
keep_1 AS (
  SELECT k, v, n, _x, _n
  FROM kept_1
  WHERE (_x IS NULL OR _x > :until)
  UNION ALL
  SELECT k, v, n, _x, _n
  FROM project_3
  WHERE (_x IS NULL OR _x > :until)
)
window_5 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 1 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_2
  )
  WHERE _t <= :until AND _x > :until
)
project_4 AS (
  SELECT k AS s_k, v, _t, _x, _n
  FROM window_5
)
living_groups_1 AS (
  SELECT _k1 AS k, _rows AS count, CAST(:until AS BIGINT) AS _t
  FROM (
    SELECT *
    FROM living_totals_1
    WHERE _rows > 0
  )
)
filter_2 AS (
  SELECT k, count, _t
  FROM living_groups_1
  WHERE count > 1
)
project_5 AS (
  SELECT k AS c_k, count AS n, _t
  FROM filter_2
)
alive_beside_1 AS (
  SELECT s_k, v, c_k, n, l._t AS _t, _x, _n
  FROM project_4 AS l
  JOIN project_5 AS r ON s_k = c_k
)
project_6 AS (
  SELECT s_k AS k, v, n, _t, _x, _n
  FROM alive_beside_1
)
keep_alive_1 AS (
  SELECT k, v, n, _x, _n
  FROM project_6
)
live_1 AS (
  SELECT k, v, n, CAST(:since AS BIGINT) AS _t, _x, _n
  FROM kept_1
)
ends_1 AS (
  SELECT *
  FROM live_1
  WHERE _x > :since AND _x <= :until
)
before_1 AS (
  SELECT k, v, n, _t, _n, COALESCE(SUM(_n) OVER (PARTITION BY k, v, n ORDER BY _t RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING), 0) AS _before
  FROM (
    SELECT k, v, n, _t, _n
    FROM project_3
    UNION ALL
    SELECT k, v, n, CAST(:since AS BIGINT) AS _t, _n
    FROM ends_1
  )
)
more_1 AS (
  SELECT *, SUM(_n) OVER (PARTITION BY k, v, n, _t ORDER BY _t ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS _there
  FROM before_1
)
repeated_1 AS (
  SELECT k, v, n, _t
  FROM (
    SELECT k, v, n, _t, LEAST(_n, _there - _before) AS _n
    FROM more_1
    WHERE _t > :since AND _there > _before
  )
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy
)
result_1 AS (
  SELECT k, v, n, _t, CAST(1 AS BIGINT) AS _n
  FROM repeated_1
)
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
-- join_1: join
-- project_4: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- result_1: lower
-- result: result_1
