-- == filter and project
-- SELECT k + 1 AS k FROM s [RANGE 4] WHERE v > 1
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
-- window_1: window
filter_1 AS (
  SELECT k, v, name, _t, _x, _n
  FROM window_1
  WHERE v > 1
)
project_1 AS (
  SELECT k + 1 AS k, _t, _x, _n
  FROM filter_1
)
-- window_2: window
filter_2 AS (
  SELECT k, v, name, _t, _x, _n
  FROM window_2
  WHERE v > 1
)
project_2 AS (
  SELECT k + 1 AS k, _t, _x, _n
  FROM filter_2
)
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == union all takes the names of the left side
-- SELECT k FROM s [RANGE 4] UNION ALL SELECT w FROM t [RANGE 4]
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
-- reads log_t_2: t in (since - 5, until - 5 or since]
-- window_1: window
project_1 AS (
  SELECT k, _t, _x, _n
  FROM window_1
)
-- window_2: window
project_2 AS (
  SELECT w, _t, _x, _n
  FROM window_2
)
union_1 AS (
  SELECT k, _t, _x, _n
  FROM project_1
  UNION ALL
  SELECT w, _t, _x, _n
  FROM project_2
)
-- window_3: window
project_3 AS (
  SELECT k, _t, _x, _n
  FROM window_3
)
-- window_4: window
project_4 AS (
  SELECT w, _t, _x, _n
  FROM window_4
)
union_2 AS (
  SELECT k, _t, _x, _n
  FROM project_3
  UNION ALL
  SELECT w, _t, _x, _n
  FROM project_4
)
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == a weight multiplies the counts
-- SELECT k FROM s [RANGE 4] EXCEPT ALL SELECT k FROM t [RANGE 4]
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
-- reads log_t_2: t in (since - 5, until - 5 or since]
-- reads log_s_3: s in (until - 5, until]
-- reads log_t_3: t in (until - 5, until]
-- keeps sums_1: totals_1, with the columns of shape_1
-- window_1: window
project_1 AS (
  SELECT k, 1 AS sides_l, 0 AS sides_r, _t, _x, _n
  FROM window_1
)
-- window_2: window
project_2 AS (
  SELECT k, 0 AS sides_l, 1 AS sides_r, _t, _x, _n
  FROM window_2
)
union_1 AS (
  SELECT k, sides_l, sides_r, _t, _x, _n
  FROM project_1
  UNION ALL
  SELECT k, sides_l, sides_r, _t, _x, _n
  FROM project_2
)
-- window_3: window
project_3 AS (
  SELECT k, 1 AS sides_l, 0 AS sides_r, _t, _x, _n
  FROM window_3
)
-- window_4: window
project_4 AS (
  SELECT k, 0 AS sides_l, 1 AS sides_r, _t, _x, _n
  FROM window_4
)
union_2 AS (
  SELECT k, sides_l, sides_r, _t, _x, _n
  FROM project_3
  UNION ALL
  SELECT k, sides_l, sides_r, _t, _x, _n
  FROM project_4
)
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
-- shape_1: running
-- window_5: window
project_5 AS (
  SELECT k, 1 AS sides_l, 0 AS sides_r, _t, _x, _n
  FROM window_5
)
-- window_6: window
project_6 AS (
  SELECT k, 0 AS sides_l, 1 AS sides_r, _t, _x, _n
  FROM window_6
)
union_3 AS (
  SELECT k, sides_l, sides_r, _t, _x, _n
  FROM project_5
  UNION ALL
  SELECT k, sides_l, sides_r, _t, _x, _n
  FROM project_6
)
-- living_1: running
-- living_totals_1: running
-- dealt_1: running
-- touched_2: running
-- moves_2: running
-- swept_1: running
-- timeline_1: running
-- spans_1: sweep
-- sweep_1: sweep
weight_1 AS (
  SELECT k, sides_l, sides_r, _t, _x, _n * CAST(GREATEST(sides_l - sides_r, 0) AS BIGINT) AS _n
  FROM sweep_1
  WHERE CAST(GREATEST(sides_l - sides_r, 0) AS BIGINT) <> 0
)
project_7 AS (
  SELECT k, _t, _x, _n
  FROM weight_1
)
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == explode (text only)
-- SELECT k, part FROM s [RANGE 4] LATERAL VIEW EXPLODE(SPLIT(name, ',')) e AS part
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
-- window_1: window
exploded_1 AS (
  SELECT k, v, name, part, _t, _x, _n
  FROM window_1
  LATERAL VIEW EXPLODE(SPLIT(name, ',')) e AS part
)
project_1 AS (
  SELECT k, part, _t, _x, _n
  FROM exploded_1
)
-- window_2: window
exploded_2 AS (
  SELECT k, v, name, part, _t, _x, _n
  FROM window_2
  LATERAL VIEW EXPLODE(SPLIT(name, ',')) e AS part
)
project_2 AS (
  SELECT k, part, _t, _x, _n
  FROM exploded_2
)
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1
