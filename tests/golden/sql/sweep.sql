-- == a group's rows as elements
-- SELECT x.k, n, w FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 4] GROUP BY k) x, t [RANGE 3] y WHERE x.k = y.k
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
-- reads log_s_3: s in (until - 5, until]
-- reads log_t_1: t in (since, until]
-- reads log_t_2: t in (since - 4, since]
-- expires t in (since - 4, until - 4 or since]
-- keeps sums_1: totals_1, with the columns of shape_1
-- keeps kept_1: keep_1, with the columns of shape_2
-- keeps kept_2: keep_2, with the columns of shape_3
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
-- swept_1: running
-- timeline_1: running
spans_1 AS (
  SELECT k, count, _t, LEAD(_t) OVER (PARTITION BY _k1 ORDER BY _t) AS _x, _live
  FROM timeline_1
)
sweep_1 AS (
  SELECT k, count, _t, _x, CAST(1 AS BIGINT) AS _n
  FROM spans_1
  WHERE _live AND _t > :since
  UNION ALL
  SELECT k, count, _x AS _t, CAST(NULL AS BIGINT) AS _x, CAST(-1 AS BIGINT) AS _n
  FROM spans_1
  WHERE _live AND _t <= :since AND _x IS NOT NULL
)
-- project_1: linear
-- window_4: window
-- project_2: linear
-- window_5: window
-- project_3: linear
-- all_1: lower
-- shape_2: netting
-- keep_1: netting
-- live_1: netting
-- project_4: linear
-- join_1: join
-- project_5: linear
-- shape_3: netting
-- keep_2: netting
-- live_2: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == filter and project carry a timeline
-- SELECT k, n + 1 AS n FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 4] GROUP BY k) WHERE n > 1
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
-- reads log_s_3: s in (until - 5, until]
-- keeps sums_1: totals_1, with the columns of shape_1
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
-- swept_1: running
-- timeline_1: running
timeline_2 AS (
  SELECT k, count, _k1, _t, CASE WHEN _live THEN COALESCE(count > 1, FALSE) ELSE FALSE END AS _live
  FROM timeline_1
)
timeline_3 AS (
  SELECT k AS k, CASE WHEN _live THEN count + 1 END AS n, _k1, _t, _live AS _live
  FROM timeline_2
)
steps_1 AS (
  SELECT k, n, _t, _live,
    COALESCE(LAG(_live) OVER (PARTITION BY _k1 ORDER BY _t), FALSE) AS _was, LAG(n) OVER (PARTITION BY _k1 ORDER BY _t) AS _old2
  FROM timeline_3
)
changes_1 AS (
  SELECT CASE WHEN _kind = -1 THEN k ELSE k END AS k, CASE WHEN _kind = -1 THEN _old2 ELSE n END AS n, _t, CAST(CASE WHEN _kind = 1 THEN 1 ELSE -1 END AS BIGINT) AS _n
  FROM steps_1
  LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _kind
  WHERE CASE _kind WHEN 1 THEN _t > :since AND _live AND NOT (_was AND n <=> _old2) WHEN -1 THEN _t > :since AND _was AND NOT (_live AND _was AND n <=> _old2) END
)
-- result_1: netting
-- result: result_1
