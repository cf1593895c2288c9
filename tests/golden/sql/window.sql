-- == what comes in and what goes out are ranges of the log
-- SELECT k, v FROM s [RANGE 4]
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
window_1 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 5 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_1
  )
  WHERE _t > :since AND _t <= :until
)
-- project_1: linear
window_2 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 5 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_2
  )
  WHERE _t <= :since AND _x > :since AND _x <= :until
)
-- project_2: linear
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == a slide delays the begin and the end
-- SELECT k, v FROM s [RANGE 4 SLIDE 2]
-- reads log_s_1: s in (since - 1, until]
-- reads log_s_2: s in (since - 6, until - 5 or since]
window_1 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, (_t + PMOD(-_t, 2)) AS _t, ((_t + 4) - PMOD((_t + 4), 2)) + 2 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_1
  )
  WHERE _t > :since AND _t <= :until AND _t < _x
)
-- project_1: linear
window_2 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, (_t + PMOD(-_t, 2)) AS _t, ((_t + 4) - PMOD((_t + 4), 2)) + 2 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_2
  )
  WHERE _t <= :since AND _x > :since AND _x <= :until AND _t < _x
)
-- project_2: linear
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == without a bound nothing ends
-- SELECT DISTINCT k FROM s [RANGE UNBOUNDED] INTERSECT SELECT k FROM t [NOW]
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_t_2: t in (until - 1, until]
-- keeps sums_1: totals_1, with the columns of shape_1
-- keeps kept_1: keep_1, with the columns of shape_2
-- keeps sums_2: totals_2, with the columns of shape_3
window_1 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, CAST(NULL AS BIGINT) AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_1
  )
  WHERE _t > :since AND _t <= :until
)
-- project_1: linear
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
-- shape_1: running
-- swept_1: running
-- timeline_1: running
-- spans_1: sweep
-- sweep_1: sweep
-- project_2: linear
window_2 AS (
  SELECT k, w, _t, _x, _n
  FROM (
    SELECT k, w, _t AS _t, _t + 1 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_t_1
  )
  WHERE _t > :since AND _t <= :until
)
-- project_3: linear
-- union_1: linear
-- shape_2: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- touched_2: running
-- events_2: running
-- moves_2: running
-- totals_2: running
-- shape_3: running
window_3 AS (
  SELECT k, w, _t, _x, _n
  FROM (
    SELECT k, w, _t AS _t, _t + 1 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_t_2
  )
  WHERE _t <= :until AND _x > :until
)
-- project_4: linear
-- dealt_1: running
-- touched_3: running
-- moves_3: running
-- swept_2: running
-- timeline_2: running
-- timeline_3: sweep
-- timeline_4: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == over a derived stream what lives is kept
-- SELECT k FROM (ISTREAM(SELECT k, COUNT(*) AS n FROM s [RANGE 3] GROUP BY k)) [RANGE 4]
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 4, until - 4 or since]
-- reads log_s_3: s in (until - 4, until]
-- keeps sums_1: totals_1, with the columns of shape_1
-- keeps kept_1: keep_1, with the columns of shape_2
window_1 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 4 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_1
  )
  WHERE _t > :since AND _t <= :until
)
window_2 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 4 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_2
  )
  WHERE _t <= :since AND _x > :since AND _x <= :until
)
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
-- shape_1: running
window_3 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 4 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_3
  )
  WHERE _t <= :until AND _x > :until
)
-- living_1: running
-- living_totals_1: running
-- dealt_1: running
-- touched_2: running
-- moves_2: running
-- swept_1: running
-- timeline_1: running
-- timeline_2: sweep
-- steps_1: sweep
-- inserts_1: sweep
window_4 AS (
  SELECT k, n, _t AS _t, _t + 5 AS _x, CAST(1 AS BIGINT) AS _n
  FROM inserts_1
)
-- project_1: linear
-- shape_2: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == over a derived stream with a slide tuples wait
-- SELECT k FROM (ISTREAM(SELECT k, COUNT(*) AS n FROM s [RANGE 3] GROUP BY k)) [RANGE 4 SLIDE 3]
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 4, until - 4 or since]
-- reads log_s_3: s in (until - 4, until]
-- keeps sums_1: totals_1, with the columns of shape_1
-- keeps waiting_1: later_1, with the columns of window_4
-- keeps kept_1: keep_1, with the columns of shape_2
window_1 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 4 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_1
  )
  WHERE _t > :since AND _t <= :until
)
window_2 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 4 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_2
  )
  WHERE _t <= :since AND _x > :since AND _x <= :until
)
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
-- shape_1: running
window_3 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 4 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_3
  )
  WHERE _t <= :until AND _x > :until
)
-- living_1: running
-- living_totals_1: running
-- dealt_1: running
-- touched_2: running
-- moves_2: running
-- swept_1: running
-- timeline_1: running
-- timeline_2: sweep
-- steps_1: sweep
-- inserts_1: sweep
window_4 AS (
  SELECT k, n, _t, _x, _n
  FROM (
    SELECT k, n, (_t + PMOD(-_t, 3)) AS _t, ((_t + 4) - PMOD((_t + 4), 3)) + 3 AS _x, CAST(1 AS BIGINT) AS _n
    FROM inserts_1
  )
  WHERE _t < _x
)
stamped_1 AS (
  SELECT k, n, _t, _x, _n
  FROM waiting_1
  UNION ALL
  SELECT k, n, _t, _x, _n
  FROM window_4
)
later_1 AS (
  SELECT k, n, _t, _x, _n
  FROM stamped_1
  WHERE _t > :until
)
window_5 AS (
  SELECT k, n, _t, _x, _n
  FROM stamped_1
  WHERE _t <= :until
)
-- project_1: linear
-- shape_2: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1
