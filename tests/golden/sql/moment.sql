-- == groups of one instant
-- SELECT RSTREAM(k, COUNT(*) AS n, MAX(v) AS most) FROM s [NOW] GROUP BY k
-- reads log_s_1: s in (since, until]
-- window_1: window
keyed_1 AS (
  SELECT *, k AS _k1
  FROM window_1
)
groups_1 AS (
  SELECT _k1 AS k, COUNT(*) AS count, MAX(v) AS max_v, _t, _t + 1 AS _x, CAST(1 AS BIGINT) AS _n
  FROM keyed_1
  GROUP BY _k1, _t
)
-- project_1: linear
-- rstream_1: stream
-- result_1: lower
-- result: result_1

-- == distinct rows of one instant
-- SELECT RSTREAM(DISTINCT k) FROM s [NOW]
-- reads log_s_1: s in (since, until]
-- window_1: window
-- project_1: linear
distinct_1 AS (
  SELECT DISTINCT k, _t, _t + 1 AS _x, CAST(1 AS BIGINT) AS _n
  FROM project_1
)
-- rstream_1: stream
-- result_1: lower
-- result: result_1

-- == rows that may be taken back
-- SELECT ISTREAM(k, COUNT(*) AS n) FROM (SELECT k FROM s [NOW] EXCEPT ALL SELECT k FROM t [NOW]) GROUP BY k
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps sums_1: totals_1, with the columns of shape_2
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
-- union_1: linear
keyed_1 AS (
  SELECT *, k AS _k1
  FROM union_1
)
groups_1 AS (
  SELECT _k1 AS k, SUM(sides_l) AS sides_l, SUM(sides_r) AS sides_r, _t, _t + 1 AS _x, CAST(1 AS BIGINT) AS _n
  FROM keyed_1
  GROUP BY _k1, _t
)
-- weight_1: linear
-- project_3: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
-- shape_2: running
-- dealt_1: running
-- touched_2: running
-- moves_2: running
-- swept_1: running
-- timeline_1: running
-- timeline_2: sweep
-- steps_1: sweep
-- inserts_1: sweep
-- result_1: lower
-- result: result_1
