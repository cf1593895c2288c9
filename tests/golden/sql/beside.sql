-- == a tuple beside the statistics of its key
-- SELECT ISTREAM(x.k, x.v, r.m) FROM s [NOW] x, (SELECT k, AVG(v) AS m FROM s [RANGE 4] GROUP BY k) r WHERE x.k = r.k
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
-- reads log_s_3: s in (until - 5, until]
-- reads log_s_4: s in (until - 1, until]
-- keeps sums_1: totals_1, with the columns of shape_1
-- keeps kept_1: keep_1, with the columns of shape_2
-- window_1: window
-- window_2: window
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
-- shape_1: running
-- window_3: window
-- living_1: running
-- living_totals_1: running
-- dealt_1: running
-- touched_2: running
-- moves_2: running
-- carrying_1: running
-- walked_1: running
-- seen_1: running
-- project_1: linear
met_1 AS (
  SELECT r_k AS x_k, _b1 AS v, r_k AS r_k, m AS m, _t, _t + 1 AS _x, _b0 AS _n
  FROM project_1
)
beside_1 AS (
  SELECT *
  FROM met_1
  WHERE x_k = r_k
)
-- project_2: linear
-- shape_2: netting
-- keep_1: netting
-- window_4: window
-- project_3: linear
-- living_groups_1: running
-- project_4: linear
alive_beside_1 AS (
  SELECT x_k, v, r_k, m, l._t AS _t, _x, _n
  FROM project_3 AS l
  JOIN project_4 AS r ON x_k = r_k
)
-- project_5: linear
-- keep_alive_1: netting
-- live_1: netting
-- ends_1: lower
-- before_1: netting
-- more_1: netting
-- repeated_1: netting
-- result_1: lower
-- result: result_1

-- == with a condition on the group, and a condition of the join
-- SELECT x.k, x.v, r.n FROM s [NOW] x, (SELECT k, COUNT(*) AS n, SUM(v) AS t FROM s [RANGE 4] GROUP BY k HAVING COUNT(*) > 1) r WHERE x.k = r.k AND x.v < r.t
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
-- reads log_s_3: s in (until - 5, until]
-- reads log_s_4: s in (until - 1, until]
-- keeps sums_1: totals_1, with the columns of shape_1
-- keeps kept_1: keep_1, with the columns of shape_2
-- window_1: window
-- window_2: window
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
-- shape_1: running
-- window_3: window
-- living_1: running
-- living_totals_1: running
-- dealt_1: running
-- touched_2: running
-- moves_2: running
-- carrying_1: running
-- walked_1: running
-- seen_1: running
-- filter_1: linear
-- project_1: linear
met_1 AS (
  SELECT r_k AS x_k, _b1 AS v, r_k AS r_k, n AS n, t AS t, _t, _t + 1 AS _x, _b0 AS _n
  FROM project_1
)
beside_1 AS (
  SELECT *
  FROM met_1
  WHERE x_k = r_k AND (v < t)
)
-- project_2: linear
-- shape_2: netting
-- keep_1: netting
-- window_4: window
-- project_3: linear
-- living_groups_1: running
-- filter_2: linear
-- project_4: linear
alive_beside_1 AS (
  SELECT x_k, v, r_k, n, t, l._t AS _t, _x, _n
  FROM project_3 AS l
  JOIN project_4 AS r ON x_k = r_k AND (v < t)
)
-- project_5: linear
-- keep_alive_1: netting
-- live_1: netting
-- ends_1: lower
-- before_1: netting
-- more_1: netting
-- repeated_1: netting
-- netted_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == among the rows of a timeline
-- SELECT x.k, r.m FROM s [NOW] x, (SELECT k, MAX(v) AS m FROM s [RANGE 4] GROUP BY k) r WHERE x.k = r.k
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (until - 5, until]
-- reads log_s_3: s in (until - 1, until]
-- expires s in (since - 5, until - 5 or since]
-- keeps leaders_1: leading_1, with the columns of shape_1
-- keeps kept_1: keep_1, with the columns of shape_2
-- window_1: window
-- project_1: linear
looking_1 AS (
  SELECT x_k AS _k1, _t, _n AS _b0
  FROM project_1
)
-- window_2: window
-- window_3: window
-- elements_1: leaders
-- ranked_1: leaders
-- leading_1: leaders
-- shape_1: leaders
-- living_1: leaders
-- ranked_2: leaders
-- leading_2: leaders
-- elements_2: framed
-- walked_1: framed
-- swept_1: framed
-- timeline_1: framed
-- timeline_2: sweep
walked_2 AS (
  SELECT _k1, _t, STRUCT(r_k, m, _live) AS _row, FALSE AS _looks, NULL AS _b0
  FROM timeline_2
  UNION ALL
  SELECT _k1, _t, NULL AS _row, TRUE AS _looks, _b0
  FROM looking_1
)
seen_1 AS (
  SELECT _t, _looks, _b0, LAST_VALUE(_row) IGNORE NULLS OVER (PARTITION BY _k1 ORDER BY _t) AS _row
  FROM walked_2
)
found_1 AS (
  SELECT _row.r_k AS r_k, _row.m AS m, _t, _b0
  FROM seen_1
  WHERE _looks AND _row._live
)
met_1 AS (
  SELECT r_k AS x_k, r_k AS r_k, m AS m, _t, _t + 1 AS _x, _b0 AS _n
  FROM found_1
)
beside_1 AS (
  SELECT *
  FROM met_1
  WHERE x_k = r_k
)
-- project_2: linear
-- shape_2: netting
-- keep_1: netting
-- window_4: window
-- project_3: linear
-- live_1: netting
-- ends_1: lower
-- before_1: netting
-- more_1: netting
-- repeated_1: netting
-- netted_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1
