-- == what lives and what is born together, and what ends
-- SELECT k, MEDIAN(v) AS middle FROM (SELECT s.k, v FROM s [RANGE 4], r WHERE s.k = r.k) GROUP BY k
-- reads log_s_1: s in (since, until]
-- reads log_r_1: r in (since, until]
-- reads log_s_2: s in (since - 5, since]
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps kept_2: keep_2, with the columns of shape_2
-- window_1: window
-- project_1: linear
-- stored_1: stored
-- project_2: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
all_1 AS (
  SELECT r_k, _t, _x, _n
  FROM live_1
  UNION ALL
  SELECT r_k, _t, _x, _n
  FROM project_2
)
-- window_2: window
-- project_3: linear
-- join_1: join
-- project_4: linear
-- shape_2: netting
-- keep_2: netting
-- live_2: netting
all_2 AS (
  SELECT k, v, _t, _x, _n
  FROM live_2
  UNION ALL
  SELECT k, v, _t, _x, _n
  FROM project_4
)
-- elements_1: recomputed
-- instants_1: recomputed
-- moments_1: recomputed
-- alive_1: recomputed
-- timeline_1: recomputed
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == what ends of what is kept
-- SELECT k, COUNT(*) AS n FROM (SELECT s.k, v FROM s [RANGE 4], r WHERE s.k = r.k) GROUP BY k
-- reads log_s_1: s in (since, until]
-- reads log_r_1: r in (since, until]
-- reads log_s_2: s in (since - 5, since]
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps kept_2: keep_2, with the columns of shape_2
-- keeps sums_1: totals_1, with the columns of shape_3
-- window_1: window
-- project_1: linear
-- stored_1: stored
-- project_2: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
all_1 AS (
  SELECT r_k, _t, _x, _n
  FROM live_1
  UNION ALL
  SELECT r_k, _t, _x, _n
  FROM project_2
)
-- window_2: window
-- project_3: linear
-- join_1: join
-- project_4: linear
-- shape_2: netting
-- keep_2: netting
-- live_2: netting
ends_1 AS (
  SELECT *
  FROM live_2
  WHERE _x > :since AND _x <= :until
)
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
-- shape_3: running
-- dealt_1: running
-- touched_2: running
-- moves_2: running
-- swept_1: running
-- timeline_1: running
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == a stream
-- SELECT ISTREAM(k) FROM s [NOW]
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 1, until - 1 or since]
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
-- before_1: netting
-- more_1: netting
-- repeated_1: netting
result_1 AS (
  SELECT k, _t, CAST(1 AS BIGINT) AS _n
  FROM repeated_1
)
-- result: result_1
