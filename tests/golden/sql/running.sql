-- == counts and sums of whole numbers
-- SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 4] GROUP BY k
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
-- reads log_s_3: s in (until - 5, until]
-- keeps sums_1: totals_1, with the columns of shape_1
-- window_1: window
-- window_2: window
touched_1 AS (
  SELECT k AS _k1, _t, _x, _n AS _rows, v * _n AS _a2
  FROM window_1
  UNION ALL
  SELECT k AS _k1, _t, _x, _n AS _rows, v * _n AS _a2
  FROM window_2
)
events_1 AS (
  SELECT _k1, _t, _rows, _a2
  FROM (
    SELECT _k1, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows, CASE WHEN _side = 1 THEN _a2 ELSE -_a2 END AS _a2
    FROM touched_1
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
)
moves_1 AS (
  SELECT _k1, CAST(:since AS BIGINT) AS _t, _rows, _a2
  FROM sums_1
  UNION ALL
  SELECT _k1, _t, _rows, _a2
  FROM events_1
)
totals_1 AS (
  SELECT _k1, SUM(_rows) AS _rows, SUM(_a2) AS _a2
  FROM moves_1
  GROUP BY _k1
  HAVING SUM(_rows) <> 0
)
shape_1 AS (
  SELECT _k1, SUM(_rows) AS _rows, SUM(_a2) AS _a2
  FROM events_1
  GROUP BY _k1
)
-- window_3: window
living_1 AS (
  SELECT k AS _k1, _n AS _rows, v * _n AS _a2
  FROM window_3
)
living_totals_1 AS (
  SELECT _k1, SUM(_rows) AS _rows, SUM(_a2) AS _a2
  FROM living_1
  GROUP BY _k1
  HAVING SUM(_rows) <> 0
)
dealt_1 AS (
  SELECT /*+ REPARTITION(_k1) */ *
  FROM (
    SELECT k AS _k1, k, v, name, _t, _x, _n
    FROM window_1
    UNION ALL
    SELECT k AS _k1, k, v, name, _t, _x, _n
    FROM window_2
  )
)
touched_2 AS (
  SELECT _k1, _t, _x, _n AS _rows, v * _n AS _a2
  FROM dealt_1
)
moves_2 AS (
  SELECT _k1, _t, _rows, _a2
  FROM (
    SELECT _k1, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows, CASE WHEN _side = 1 THEN _a2 ELSE -_a2 END AS _a2
    FROM touched_2
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
  UNION ALL
  SELECT /*+ REPARTITION(_k1) */ _k1, CAST(:since AS BIGINT) AS _t, _rows, _a2
  FROM sums_1
)
swept_1 AS (
  SELECT _k1, _t, LEAD(_t) OVER (PARTITION BY _k1 ORDER BY _t) AS _next,
    SUM(_rows) OVER (PARTITION BY _k1 ORDER BY _t) AS _rows, SUM(_a2) OVER (PARTITION BY _k1 ORDER BY _t) AS _a2
  FROM moves_2
)
timeline_1 AS (
  SELECT _k1 AS k, _rows AS count, CASE WHEN _rows > 0 THEN _a2 END AS sum_v, _k1, _t, _live
  FROM (
    SELECT _k1, _rows, _a2, _t, _rows > 0 AS _live
    FROM swept_1
    WHERE _next IS NULL OR _next > _t
  )
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == one row when there is nothing
-- SELECT COUNT(*) AS n FROM s [RANGE 4]
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
-- keeps sums_1: totals_1, with the columns of shape_1
-- window_1: window
-- window_2: window
touched_1 AS (
  SELECT _t, _x, _n AS _rows
  FROM window_1
  UNION ALL
  SELECT _t, _x, _n AS _rows
  FROM window_2
)
events_1 AS (
  SELECT _t, _rows
  FROM (
    SELECT CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows
    FROM touched_1
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
  UNION ALL
  SELECT CAST(0 AS BIGINT) AS _t, 0 AS _rows
  WHERE 0 > :since AND 0 <= :until
)
moves_1 AS (
  SELECT CAST(:since AS BIGINT) AS _t, _rows
  FROM sums_1
  UNION ALL
  SELECT _t, _rows
  FROM events_1
)
totals_1 AS (
  SELECT SUM(_rows) AS _rows
  FROM moves_1
  HAVING COUNT(*) > 0
)
shape_1 AS (
  SELECT SUM(_rows) AS _rows
  FROM events_1
)
swept_1 AS (
  SELECT _t, LEAD(_t) OVER (ORDER BY _t) AS _next,
    SUM(_rows) OVER (ORDER BY _t) AS _rows
  FROM moves_1
)
timeline_1 AS (
  SELECT _rows AS count, _t, _live
  FROM (
    SELECT _rows, _t, TRUE AS _live
    FROM swept_1
    WHERE _next IS NULL OR _next > _t
  )
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == panes where many rows end together
-- SELECT k, COUNT(*) AS n FROM s [RANGE 4 SLIDE 2] GROUP BY k
-- reads log_s_1: s in (since - 1, until]
-- reads log_s_2: s in (until - 6, until]
-- expires s in (since - 6, until - 5 or since]
-- keeps panes_1: shown_1, with the columns of new_panes_1
-- window_1: window
-- touched_1: panes
-- new_panes_1: panes
-- every_pane_1: panes
-- shown_1: panes
-- window_2: window
-- touched_2: panes
-- living_panes_1: panes
-- dealt_1: panes
-- looked_1: panes
-- at_slides_1: panes
timeline_1 AS (
  SELECT _k1 AS k, _rows AS count, _k1, _t, _live
  FROM (
    SELECT _k1, _rows, _t, TRUE AS _live
    FROM at_slides_1
  )
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == extremes where nothing leaves
-- SELECT k, MAX(v) AS most FROM s [RANGE UNBOUNDED] GROUP BY k
-- reads log_s_1: s in (since, until]
-- keeps sums_1: totals_1, with the columns of shape_1
-- window_1: window
touched_1 AS (
  SELECT k AS _k1, _t, _x, _n AS _rows, v AS _a1
  FROM window_1
)
events_1 AS (
  SELECT _k1, _t, _rows, _a1
  FROM touched_1
)
moves_1 AS (
  SELECT _k1, CAST(:since AS BIGINT) AS _t, _rows, _a1
  FROM sums_1
  UNION ALL
  SELECT _k1, _t, _rows, _a1
  FROM events_1
)
totals_1 AS (
  SELECT _k1, SUM(_rows) AS _rows, MAX(_a1) AS _a1
  FROM moves_1
  GROUP BY _k1
  HAVING SUM(_rows) <> 0
)
shape_1 AS (
  SELECT _k1, SUM(_rows) AS _rows, MAX(_a1) AS _a1
  FROM events_1
  GROUP BY _k1
)
swept_1 AS (
  SELECT _k1, _t, LEAD(_t) OVER (PARTITION BY _k1 ORDER BY _t) AS _next,
    SUM(_rows) OVER (PARTITION BY _k1 ORDER BY _t) AS _rows, MAX(_a1) OVER (PARTITION BY _k1 ORDER BY _t) AS _a1
  FROM moves_1
)
timeline_1 AS (
  SELECT _k1 AS k, _a1 AS max_v, _k1, _t, _live
  FROM (
    SELECT _k1, _rows, _a1, _t, _rows > 0 AS _live
    FROM swept_1
    WHERE _next IS NULL OR _next > _t
  )
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == doubles as whole numbers (text only)
-- SELECT k, SUM(x) AS total FROM m [RANGE 4] GROUP BY k
-- reads log_m_1: m in (since, until]
-- reads log_m_2: m in (since - 5, until - 5 or since]
-- reads log_m_3: m in (until - 5, until]
-- keeps sums_1: totals_1, with the columns of shape_1
-- window_1: window
-- window_2: window
touched_1 AS (
  SELECT k AS _k1, _t, _x, _n AS _rows, CAST(_d0xr1 * 65536.0D AS BIGINT) * _n AS _a3, CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * _n AS _a4, CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT) * _n AS _a5
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2
      FROM (
        SELECT *, _d0x AS _d0xr1
        FROM (
          SELECT *, CAST(x AS DOUBLE) AS _d0x
          FROM window_1
        )
      )
    )
  )
  UNION ALL
  SELECT k AS _k1, _t, _x, _n AS _rows, CAST(_d0xr1 * 65536.0D AS BIGINT) * _n AS _a3, CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * _n AS _a4, CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT) * _n AS _a5
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2
      FROM (
        SELECT *, _d0x AS _d0xr1
        FROM (
          SELECT *, CAST(x AS DOUBLE) AS _d0x
          FROM window_2
        )
      )
    )
  )
)
events_1 AS (
  SELECT _k1, _t, _rows, _a3, _a4, _a5
  FROM (
    SELECT _k1, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows, CASE WHEN _side = 1 THEN _a3 ELSE -_a3 END AS _a3, CASE WHEN _side = 1 THEN _a4 ELSE -_a4 END AS _a4, CASE WHEN _side = 1 THEN _a5 ELSE -_a5 END AS _a5
    FROM touched_1
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
)
moves_1 AS (
  SELECT _k1, CAST(:since AS BIGINT) AS _t, _rows, _a3, _a4, _a5
  FROM sums_1
  UNION ALL
  SELECT _k1, _t, _rows, _a3, _a4, _a5
  FROM events_1
)
totals_1 AS (
  SELECT _k1, SUM(_rows) AS _rows, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5
  FROM moves_1
  GROUP BY _k1
  HAVING SUM(_rows) <> 0
)
shape_1 AS (
  SELECT _k1, SUM(_rows) AS _rows, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5
  FROM events_1
  GROUP BY _k1
)
-- window_3: window
living_1 AS (
  SELECT k AS _k1, _n AS _rows, CAST(_d0xr1 * 65536.0D AS BIGINT) * _n AS _a3, CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * _n AS _a4, CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT) * _n AS _a5
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2
      FROM (
        SELECT *, _d0x AS _d0xr1
        FROM (
          SELECT *, CAST(x AS DOUBLE) AS _d0x
          FROM window_3
        )
      )
    )
  )
)
living_totals_1 AS (
  SELECT _k1, SUM(_rows) AS _rows, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5
  FROM living_1
  GROUP BY _k1
  HAVING SUM(_rows) <> 0
)
dealt_1 AS (
  SELECT /*+ REPARTITION(_k1) */ *
  FROM (
    SELECT k AS _k1, k, x, y, _t, _x, _n
    FROM window_1
    UNION ALL
    SELECT k AS _k1, k, x, y, _t, _x, _n
    FROM window_2
  )
)
touched_2 AS (
  SELECT _k1, _t, _x, _n AS _rows, CAST(_d0xr1 * 65536.0D AS BIGINT) * _n AS _a3, CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * _n AS _a4, CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT) * _n AS _a5
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2
      FROM (
        SELECT *, _d0x AS _d0xr1
        FROM (
          SELECT *, CAST(x AS DOUBLE) AS _d0x
          FROM dealt_1
        )
      )
    )
  )
)
moves_2 AS (
  SELECT _k1, _t, _rows, _a3, _a4, _a5
  FROM (
    SELECT _k1, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows, CASE WHEN _side = 1 THEN _a3 ELSE -_a3 END AS _a3, CASE WHEN _side = 1 THEN _a4 ELSE -_a4 END AS _a4, CASE WHEN _side = 1 THEN _a5 ELSE -_a5 END AS _a5
    FROM touched_2
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
  UNION ALL
  SELECT /*+ REPARTITION(_k1) */ _k1, CAST(:since AS BIGINT) AS _t, _rows, _a3, _a4, _a5
  FROM sums_1
)
swept_1 AS (
  SELECT _k1, _t, LEAD(_t) OVER (PARTITION BY _k1 ORDER BY _t) AS _next,
    SUM(_rows) OVER (PARTITION BY _k1 ORDER BY _t) AS _rows, SUM(_a3) OVER (PARTITION BY _k1 ORDER BY _t) AS _a3, SUM(_a4) OVER (PARTITION BY _k1 ORDER BY _t) AS _a4, SUM(_a5) OVER (PARTITION BY _k1 ORDER BY _t) AS _a5
  FROM moves_2
)
timeline_1 AS (
  SELECT _k1 AS k, CASE WHEN _rows > 0 THEN ((0 * 262144.0D + _a3 * 1.52587890625E-05D) + (_a4 * 8.881784197001252E-16D + _a5 * 5.169878828456423E-26D)) END AS sum_x, _k1, _t, _live
  FROM (
    SELECT _k1, _rows, _a3, _a4, _a5, _t, _rows > 0 AS _live
    FROM swept_1
    WHERE _next IS NULL OR _next > _t
  )
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == spreads (text only)
-- SELECT k, VARIANCE(v) AS spread FROM s [RANGE 4] GROUP BY k
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
-- reads log_s_3: s in (until - 5, until]
-- keeps sums_1: totals_1, with the columns of shape_1
-- window_1: window
-- window_2: window
touched_1 AS (
  SELECT k AS _k1, _t, _x, _n AS _rows, CAST(_d0xr1 * 65536.0D AS BIGINT) * _n AS _a3, CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * _n AS _a4, CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT) * _n AS _a5, CAST(_h0 * 5.169878828456423E-26D AS BIGINT) + CAST(_l0 * 5.169878828456423E-26D AS BIGINT) * _n AS _a6, CAST((_h0 % 1.9342813113834067E+25D) * 1.3877787807814457E-17D AS BIGINT) + CAST((_l0 % 1.9342813113834067E+25D) * 1.3877787807814457E-17D AS BIGINT) * _n AS _a7, CAST((_h0 % 7.205759403792794E+16D) * 3.725290298461914E-09D AS BIGINT) + CAST((_l0 % 7.205759403792794E+16D) * 3.725290298461914E-09D AS BIGINT) * _n AS _a8, CAST((_h0 % 268435456.0D) * 1.0D AS BIGINT) + CAST((_l0 % 268435456.0D) * 1.0D AS BIGINT) * _n AS _a9, CAST((_h0 % 1.0D) * 268435456.0D AS BIGINT) + CAST((_l0 % 1.0D) * 268435456.0D AS BIGINT) * _n AS _a10, CAST((_h0 % 3.725290298461914E-09D) * 7.205759403792794E+16D AS BIGINT) + CAST((_l0 % 3.725290298461914E-09D) * 7.205759403792794E+16D AS BIGINT) * _n AS _a11, CAST((_h0 % 1.3877787807814457E-17D) * 1.9342813113834067E+25D AS BIGINT) + CAST((_l0 % 1.3877787807814457E-17D) * 1.9342813113834067E+25D AS BIGINT) * _n AS _a12, CAST((_h0 % 5.169878828456423E-26D) * 5.192296858534828E+33D AS BIGINT) + CAST((_l0 % 5.169878828456423E-26D) * 5.192296858534828E+33D AS BIGINT) * _n AS _a13, CAST((_h0 % 1.925929944387236E-34D) * 1.393796574908164E+42D AS BIGINT) + CAST((_l0 % 1.925929944387236E-34D) * 1.393796574908164E+42D AS BIGINT) * _n AS _a14, CAST((_h0 % 7.174648137343064E-43D) * 3.7414441915671115E+50D AS BIGINT) + CAST((_l0 % 7.174648137343064E-43D) * 3.7414441915671115E+50D AS BIGINT) * _n AS _a15
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2, _d0x * _d0x AS _h0, ((_u0x * _u0x - _d0x * _d0x) + _u0x * (_d0x - _u0x) + (_d0x - _u0x) * _u0x) + (_d0x - _u0x) * (_d0x - _u0x) AS _l0
      FROM (
        SELECT *, _d0x AS _d0xr1, _d0x * 134217729D - (_d0x * 134217729D - _d0x) AS _u0x
        FROM (
          SELECT *, CAST(v AS DOUBLE) AS _d0x
          FROM window_1
        )
      )
    )
  )
  UNION ALL
  SELECT k AS _k1, _t, _x, _n AS _rows, CAST(_d0xr1 * 65536.0D AS BIGINT) * _n AS _a3, CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * _n AS _a4, CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT) * _n AS _a5, CAST(_h0 * 5.169878828456423E-26D AS BIGINT) + CAST(_l0 * 5.169878828456423E-26D AS BIGINT) * _n AS _a6, CAST((_h0 % 1.9342813113834067E+25D) * 1.3877787807814457E-17D AS BIGINT) + CAST((_l0 % 1.9342813113834067E+25D) * 1.3877787807814457E-17D AS BIGINT) * _n AS _a7, CAST((_h0 % 7.205759403792794E+16D) * 3.725290298461914E-09D AS BIGINT) + CAST((_l0 % 7.205759403792794E+16D) * 3.725290298461914E-09D AS BIGINT) * _n AS _a8, CAST((_h0 % 268435456.0D) * 1.0D AS BIGINT) + CAST((_l0 % 268435456.0D) * 1.0D AS BIGINT) * _n AS _a9, CAST((_h0 % 1.0D) * 268435456.0D AS BIGINT) + CAST((_l0 % 1.0D) * 268435456.0D AS BIGINT) * _n AS _a10, CAST((_h0 % 3.725290298461914E-09D) * 7.205759403792794E+16D AS BIGINT) + CAST((_l0 % 3.725290298461914E-09D) * 7.205759403792794E+16D AS BIGINT) * _n AS _a11, CAST((_h0 % 1.3877787807814457E-17D) * 1.9342813113834067E+25D AS BIGINT) + CAST((_l0 % 1.3877787807814457E-17D) * 1.9342813113834067E+25D AS BIGINT) * _n AS _a12, CAST((_h0 % 5.169878828456423E-26D) * 5.192296858534828E+33D AS BIGINT) + CAST((_l0 % 5.169878828456423E-26D) * 5.192296858534828E+33D AS BIGINT) * _n AS _a13, CAST((_h0 % 1.925929944387236E-34D) * 1.393796574908164E+42D AS BIGINT) + CAST((_l0 % 1.925929944387236E-34D) * 1.393796574908164E+42D AS BIGINT) * _n AS _a14, CAST((_h0 % 7.174648137343064E-43D) * 3.7414441915671115E+50D AS BIGINT) + CAST((_l0 % 7.174648137343064E-43D) * 3.7414441915671115E+50D AS BIGINT) * _n AS _a15
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2, _d0x * _d0x AS _h0, ((_u0x * _u0x - _d0x * _d0x) + _u0x * (_d0x - _u0x) + (_d0x - _u0x) * _u0x) + (_d0x - _u0x) * (_d0x - _u0x) AS _l0
      FROM (
        SELECT *, _d0x AS _d0xr1, _d0x * 134217729D - (_d0x * 134217729D - _d0x) AS _u0x
        FROM (
          SELECT *, CAST(v AS DOUBLE) AS _d0x
          FROM window_2
        )
      )
    )
  )
)
events_1 AS (
  SELECT _k1, _t, _rows, _a3, _a4, _a5, _a6, _a7, _a8, _a9, _a10, _a11, _a12, _a13, _a14, _a15
  FROM (
    SELECT _k1, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows, CASE WHEN _side = 1 THEN _a3 ELSE -_a3 END AS _a3, CASE WHEN _side = 1 THEN _a4 ELSE -_a4 END AS _a4, CASE WHEN _side = 1 THEN _a5 ELSE -_a5 END AS _a5, CASE WHEN _side = 1 THEN _a6 ELSE -_a6 END AS _a6, CASE WHEN _side = 1 THEN _a7 ELSE -_a7 END AS _a7, CASE WHEN _side = 1 THEN _a8 ELSE -_a8 END AS _a8, CASE WHEN _side = 1 THEN _a9 ELSE -_a9 END AS _a9, CASE WHEN _side = 1 THEN _a10 ELSE -_a10 END AS _a10, CASE WHEN _side = 1 THEN _a11 ELSE -_a11 END AS _a11, CASE WHEN _side = 1 THEN _a12 ELSE -_a12 END AS _a12, CASE WHEN _side = 1 THEN _a13 ELSE -_a13 END AS _a13, CASE WHEN _side = 1 THEN _a14 ELSE -_a14 END AS _a14, CASE WHEN _side = 1 THEN _a15 ELSE -_a15 END AS _a15
    FROM touched_1
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
)
moves_1 AS (
  SELECT _k1, CAST(:since AS BIGINT) AS _t, _rows, _a3, _a4, _a5, _a6, _a7, _a8, _a9, _a10, _a11, _a12, _a13, _a14, _a15
  FROM sums_1
  UNION ALL
  SELECT _k1, _t, _rows, _a3, _a4, _a5, _a6, _a7, _a8, _a9, _a10, _a11, _a12, _a13, _a14, _a15
  FROM events_1
)
totals_1 AS (
  SELECT _k1, SUM(_rows) AS _rows, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5, SUM(_a6) AS _a6, SUM(_a7) AS _a7, SUM(_a8) AS _a8, SUM(_a9) AS _a9, SUM(_a10) AS _a10, SUM(_a11) AS _a11, SUM(_a12) AS _a12, SUM(_a13) AS _a13, SUM(_a14) AS _a14, SUM(_a15) AS _a15
  FROM moves_1
  GROUP BY _k1
  HAVING SUM(_rows) <> 0
)
shape_1 AS (
  SELECT _k1, SUM(_rows) AS _rows, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5, SUM(_a6) AS _a6, SUM(_a7) AS _a7, SUM(_a8) AS _a8, SUM(_a9) AS _a9, SUM(_a10) AS _a10, SUM(_a11) AS _a11, SUM(_a12) AS _a12, SUM(_a13) AS _a13, SUM(_a14) AS _a14, SUM(_a15) AS _a15
  FROM events_1
  GROUP BY _k1
)
-- window_3: window
living_1 AS (
  SELECT k AS _k1, _n AS _rows, CAST(_d0xr1 * 65536.0D AS BIGINT) * _n AS _a3, CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * _n AS _a4, CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT) * _n AS _a5, CAST(_h0 * 5.169878828456423E-26D AS BIGINT) + CAST(_l0 * 5.169878828456423E-26D AS BIGINT) * _n AS _a6, CAST((_h0 % 1.9342813113834067E+25D) * 1.3877787807814457E-17D AS BIGINT) + CAST((_l0 % 1.9342813113834067E+25D) * 1.3877787807814457E-17D AS BIGINT) * _n AS _a7, CAST((_h0 % 7.205759403792794E+16D) * 3.725290298461914E-09D AS BIGINT) + CAST((_l0 % 7.205759403792794E+16D) * 3.725290298461914E-09D AS BIGINT) * _n AS _a8, CAST((_h0 % 268435456.0D) * 1.0D AS BIGINT) + CAST((_l0 % 268435456.0D) * 1.0D AS BIGINT) * _n AS _a9, CAST((_h0 % 1.0D) * 268435456.0D AS BIGINT) + CAST((_l0 % 1.0D) * 268435456.0D AS BIGINT) * _n AS _a10, CAST((_h0 % 3.725290298461914E-09D) * 7.205759403792794E+16D AS BIGINT) + CAST((_l0 % 3.725290298461914E-09D) * 7.205759403792794E+16D AS BIGINT) * _n AS _a11, CAST((_h0 % 1.3877787807814457E-17D) * 1.9342813113834067E+25D AS BIGINT) + CAST((_l0 % 1.3877787807814457E-17D) * 1.9342813113834067E+25D AS BIGINT) * _n AS _a12, CAST((_h0 % 5.169878828456423E-26D) * 5.192296858534828E+33D AS BIGINT) + CAST((_l0 % 5.169878828456423E-26D) * 5.192296858534828E+33D AS BIGINT) * _n AS _a13, CAST((_h0 % 1.925929944387236E-34D) * 1.393796574908164E+42D AS BIGINT) + CAST((_l0 % 1.925929944387236E-34D) * 1.393796574908164E+42D AS BIGINT) * _n AS _a14, CAST((_h0 % 7.174648137343064E-43D) * 3.7414441915671115E+50D AS BIGINT) + CAST((_l0 % 7.174648137343064E-43D) * 3.7414441915671115E+50D AS BIGINT) * _n AS _a15
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2, _d0x * _d0x AS _h0, ((_u0x * _u0x - _d0x * _d0x) + _u0x * (_d0x - _u0x) + (_d0x - _u0x) * _u0x) + (_d0x - _u0x) * (_d0x - _u0x) AS _l0
      FROM (
        SELECT *, _d0x AS _d0xr1, _d0x * 134217729D - (_d0x * 134217729D - _d0x) AS _u0x
        FROM (
          SELECT *, CAST(v AS DOUBLE) AS _d0x
          FROM window_3
        )
      )
    )
  )
)
living_totals_1 AS (
  SELECT _k1, SUM(_rows) AS _rows, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5, SUM(_a6) AS _a6, SUM(_a7) AS _a7, SUM(_a8) AS _a8, SUM(_a9) AS _a9, SUM(_a10) AS _a10, SUM(_a11) AS _a11, SUM(_a12) AS _a12, SUM(_a13) AS _a13, SUM(_a14) AS _a14, SUM(_a15) AS _a15
  FROM living_1
  GROUP BY _k1
  HAVING SUM(_rows) <> 0
)
dealt_1 AS (
  SELECT /*+ REPARTITION(_k1) */ *
  FROM (
    SELECT k AS _k1, k, v, name, _t, _x, _n
    FROM window_1
    UNION ALL
    SELECT k AS _k1, k, v, name, _t, _x, _n
    FROM window_2
  )
)
touched_2 AS (
  SELECT _k1, _t, _x, _n AS _rows, CAST(_d0xr1 * 65536.0D AS BIGINT) * _n AS _a3, CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * _n AS _a4, CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT) * _n AS _a5, CAST(_h0 * 5.169878828456423E-26D AS BIGINT) + CAST(_l0 * 5.169878828456423E-26D AS BIGINT) * _n AS _a6, CAST((_h0 % 1.9342813113834067E+25D) * 1.3877787807814457E-17D AS BIGINT) + CAST((_l0 % 1.9342813113834067E+25D) * 1.3877787807814457E-17D AS BIGINT) * _n AS _a7, CAST((_h0 % 7.205759403792794E+16D) * 3.725290298461914E-09D AS BIGINT) + CAST((_l0 % 7.205759403792794E+16D) * 3.725290298461914E-09D AS BIGINT) * _n AS _a8, CAST((_h0 % 268435456.0D) * 1.0D AS BIGINT) + CAST((_l0 % 268435456.0D) * 1.0D AS BIGINT) * _n AS _a9, CAST((_h0 % 1.0D) * 268435456.0D AS BIGINT) + CAST((_l0 % 1.0D) * 268435456.0D AS BIGINT) * _n AS _a10, CAST((_h0 % 3.725290298461914E-09D) * 7.205759403792794E+16D AS BIGINT) + CAST((_l0 % 3.725290298461914E-09D) * 7.205759403792794E+16D AS BIGINT) * _n AS _a11, CAST((_h0 % 1.3877787807814457E-17D) * 1.9342813113834067E+25D AS BIGINT) + CAST((_l0 % 1.3877787807814457E-17D) * 1.9342813113834067E+25D AS BIGINT) * _n AS _a12, CAST((_h0 % 5.169878828456423E-26D) * 5.192296858534828E+33D AS BIGINT) + CAST((_l0 % 5.169878828456423E-26D) * 5.192296858534828E+33D AS BIGINT) * _n AS _a13, CAST((_h0 % 1.925929944387236E-34D) * 1.393796574908164E+42D AS BIGINT) + CAST((_l0 % 1.925929944387236E-34D) * 1.393796574908164E+42D AS BIGINT) * _n AS _a14, CAST((_h0 % 7.174648137343064E-43D) * 3.7414441915671115E+50D AS BIGINT) + CAST((_l0 % 7.174648137343064E-43D) * 3.7414441915671115E+50D AS BIGINT) * _n AS _a15
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2, _d0x * _d0x AS _h0, ((_u0x * _u0x - _d0x * _d0x) + _u0x * (_d0x - _u0x) + (_d0x - _u0x) * _u0x) + (_d0x - _u0x) * (_d0x - _u0x) AS _l0
      FROM (
        SELECT *, _d0x AS _d0xr1, _d0x * 134217729D - (_d0x * 134217729D - _d0x) AS _u0x
        FROM (
          SELECT *, CAST(v AS DOUBLE) AS _d0x
          FROM dealt_1
        )
      )
    )
  )
)
moves_2 AS (
  SELECT _k1, _t, _rows, _a3, _a4, _a5, _a6, _a7, _a8, _a9, _a10, _a11, _a12, _a13, _a14, _a15
  FROM (
    SELECT _k1, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows, CASE WHEN _side = 1 THEN _a3 ELSE -_a3 END AS _a3, CASE WHEN _side = 1 THEN _a4 ELSE -_a4 END AS _a4, CASE WHEN _side = 1 THEN _a5 ELSE -_a5 END AS _a5, CASE WHEN _side = 1 THEN _a6 ELSE -_a6 END AS _a6, CASE WHEN _side = 1 THEN _a7 ELSE -_a7 END AS _a7, CASE WHEN _side = 1 THEN _a8 ELSE -_a8 END AS _a8, CASE WHEN _side = 1 THEN _a9 ELSE -_a9 END AS _a9, CASE WHEN _side = 1 THEN _a10 ELSE -_a10 END AS _a10, CASE WHEN _side = 1 THEN _a11 ELSE -_a11 END AS _a11, CASE WHEN _side = 1 THEN _a12 ELSE -_a12 END AS _a12, CASE WHEN _side = 1 THEN _a13 ELSE -_a13 END AS _a13, CASE WHEN _side = 1 THEN _a14 ELSE -_a14 END AS _a14, CASE WHEN _side = 1 THEN _a15 ELSE -_a15 END AS _a15
    FROM touched_2
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
  UNION ALL
  SELECT /*+ REPARTITION(_k1) */ _k1, CAST(:since AS BIGINT) AS _t, _rows, _a3, _a4, _a5, _a6, _a7, _a8, _a9, _a10, _a11, _a12, _a13, _a14, _a15
  FROM sums_1
)
swept_1 AS (
  SELECT _k1, _t, LEAD(_t) OVER (PARTITION BY _k1 ORDER BY _t) AS _next,
    SUM(_rows) OVER (PARTITION BY _k1 ORDER BY _t) AS _rows, SUM(_a3) OVER (PARTITION BY _k1 ORDER BY _t) AS _a3, SUM(_a4) OVER (PARTITION BY _k1 ORDER BY _t) AS _a4, SUM(_a5) OVER (PARTITION BY _k1 ORDER BY _t) AS _a5, SUM(_a6) OVER (PARTITION BY _k1 ORDER BY _t) AS _a6, SUM(_a7) OVER (PARTITION BY _k1 ORDER BY _t) AS _a7, SUM(_a8) OVER (PARTITION BY _k1 ORDER BY _t) AS _a8, SUM(_a9) OVER (PARTITION BY _k1 ORDER BY _t) AS _a9, SUM(_a10) OVER (PARTITION BY _k1 ORDER BY _t) AS _a10, SUM(_a11) OVER (PARTITION BY _k1 ORDER BY _t) AS _a11, SUM(_a12) OVER (PARTITION BY _k1 ORDER BY _t) AS _a12, SUM(_a13) OVER (PARTITION BY _k1 ORDER BY _t) AS _a13, SUM(_a14) OVER (PARTITION BY _k1 ORDER BY _t) AS _a14, SUM(_a15) OVER (PARTITION BY _k1 ORDER BY _t) AS _a15
  FROM moves_2
)
timeline_1 AS (
  SELECT _k1 AS k, CASE WHEN _rows > 1 THEN _q0xx / (_rows - 1) END AS variance_v, _k1, _t, _live
  FROM (
    SELECT *, CASE WHEN _rows > 0 THEN _q0xxm / _rows ELSE 0D END AS _q0xx
    FROM (
      SELECT *, CAST(CAST((_q0xxme4 - _q0xxmr4) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) AS DOUBLE) * 5.192296858534828E+33D + CAST(_q0xxmr4 AS DOUBLE) * 7.205759403792794E+16D + CAST(_q0xxmr3 AS DOUBLE) * 1.0D + CAST(_q0xxmr2 AS DOUBLE) * 1.3877787807814457E-17D + CAST(_q0xxmr1 AS DOUBLE) * 1.925929944387236E-34D + CAST(_q0xxmr0 AS DOUBLE) * 2.6727647100921956E-51D AS _q0xxm
      FROM (
        SELECT *, (_q0xxm_4 + CAST((_q0xxme3 - _q0xxmr3) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0))) AS _q0xxme4, PMOD((_q0xxm_4 + CAST((_q0xxme3 - _q0xxmr3) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0))) + CAST(36028797018963968 AS DECIMAL(38, 0)), CAST(72057594037927936 AS DECIMAL(38, 0))) - CAST(36028797018963968 AS DECIMAL(38, 0)) AS _q0xxmr4
        FROM (
          SELECT *, (_q0xxm_3 + CAST((_q0xxme2 - _q0xxmr2) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0))) AS _q0xxme3, PMOD((_q0xxm_3 + CAST((_q0xxme2 - _q0xxmr2) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0))) + CAST(36028797018963968 AS DECIMAL(38, 0)), CAST(72057594037927936 AS DECIMAL(38, 0))) - CAST(36028797018963968 AS DECIMAL(38, 0)) AS _q0xxmr3
          FROM (
            SELECT *, (_q0xxm_2 + CAST((_q0xxme1 - _q0xxmr1) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0))) AS _q0xxme2, PMOD((_q0xxm_2 + CAST((_q0xxme1 - _q0xxmr1) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0))) + CAST(36028797018963968 AS DECIMAL(38, 0)), CAST(72057594037927936 AS DECIMAL(38, 0))) - CAST(36028797018963968 AS DECIMAL(38, 0)) AS _q0xxmr2
            FROM (
              SELECT *, (_q0xxm_1 + CAST((_q0xxme0 - _q0xxmr0) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0))) AS _q0xxme1, PMOD((_q0xxm_1 + CAST((_q0xxme0 - _q0xxmr0) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0))) + CAST(36028797018963968 AS DECIMAL(38, 0)), CAST(72057594037927936 AS DECIMAL(38, 0))) - CAST(36028797018963968 AS DECIMAL(38, 0)) AS _q0xxmr1
              FROM (
                SELECT *, ((CAST(_a13 AS DECIMAL(38, 0)) + CAST(_a12 AS DECIMAL(38, 0)) * CAST(268435456 AS DECIMAL(38, 0))) * CAST(_rows AS DECIMAL(38, 0)) - _d0xs0 * _d0xs1 - _d0xs1 * _d0xs0) AS _q0xxm_1, ((CAST(_a11 AS DECIMAL(38, 0)) + CAST(_a10 AS DECIMAL(38, 0)) * CAST(268435456 AS DECIMAL(38, 0))) * CAST(_rows AS DECIMAL(38, 0)) - _d0xs0 * CAST((_d0xsm - _d0xs1) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) - _d0xs1 * _d0xs1 - CAST((_d0xsm - _d0xs1) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) * _d0xs0) AS _q0xxm_2, ((CAST(_a9 AS DECIMAL(38, 0)) + CAST(_a8 AS DECIMAL(38, 0)) * CAST(268435456 AS DECIMAL(38, 0))) * CAST(_rows AS DECIMAL(38, 0)) - _d0xs1 * CAST((_d0xsm - _d0xs1) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) - CAST((_d0xsm - _d0xs1) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) * _d0xs1) AS _q0xxm_3, ((CAST(_a7 AS DECIMAL(38, 0)) + CAST(_a6 AS DECIMAL(38, 0)) * CAST(268435456 AS DECIMAL(38, 0))) * CAST(_rows AS DECIMAL(38, 0)) - CAST((_d0xsm - _d0xs1) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) * CAST((_d0xsm - _d0xs1) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0))) AS _q0xxm_4, ((CAST(_a15 AS DECIMAL(38, 0)) + CAST(_a14 AS DECIMAL(38, 0)) * CAST(268435456 AS DECIMAL(38, 0))) * CAST(_rows AS DECIMAL(38, 0)) - _d0xs0 * _d0xs0) AS _q0xxme0, PMOD(((CAST(_a15 AS DECIMAL(38, 0)) + CAST(_a14 AS DECIMAL(38, 0)) * CAST(268435456 AS DECIMAL(38, 0))) * CAST(_rows AS DECIMAL(38, 0)) - _d0xs0 * _d0xs0) + CAST(36028797018963968 AS DECIMAL(38, 0)), CAST(72057594037927936 AS DECIMAL(38, 0))) - CAST(36028797018963968 AS DECIMAL(38, 0)) AS _q0xxmr0
                FROM (
                  SELECT *, (_d0xsu * CAST(4096 AS DECIMAL(38, 0)) + CAST((_d0xsl - _d0xs0) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0))) AS _d0xsm, PMOD((_d0xsu * CAST(4096 AS DECIMAL(38, 0)) + CAST((_d0xsl - _d0xs0) DIV CAST(72057594037927936 AS DECIMAL(38, 0)) AS DECIMAL(38, 0))), CAST(72057594037927936 AS DECIMAL(38, 0))) AS _d0xs1
                  FROM (
                    SELECT *, CAST(0 AS DECIMAL(38, 0)) * CAST(17179869184 AS DECIMAL(38, 0)) + CAST(_a3 AS DECIMAL(38, 0)) AS _d0xsu, (CAST(_a4 AS DECIMAL(38, 0)) * CAST(17179869184 AS DECIMAL(38, 0)) + CAST(_a5 AS DECIMAL(38, 0))) AS _d0xsl, PMOD((CAST(_a4 AS DECIMAL(38, 0)) * CAST(17179869184 AS DECIMAL(38, 0)) + CAST(_a5 AS DECIMAL(38, 0))), CAST(72057594037927936 AS DECIMAL(38, 0))) AS _d0xs0
                    FROM (
                      SELECT _k1, _rows, _a3, _a4, _a5, _a6, _a7, _a8, _a9, _a10, _a11, _a12, _a13, _a14, _a15, _t, _rows > 0 AS _live
                      FROM swept_1
                      WHERE _next IS NULL OR _next > _t
                    )
                  )
                )
              )
            )
          )
        )
      )
    )
  )
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == nothing assumed: doubles as whole numbers (text only)
-- SELECT k, SUM(x) AS total FROM m [RANGE 4] GROUP BY k
-- reads log_m_1: m in (since, until]
-- reads log_m_2: m in (since - 5, until - 5 or since]
-- reads log_m_3: m in (until - 5, until]
-- keeps sums_1: totals_1, with the columns of shape_1
-- may raise an error at a double that does not fit
-- window_1: window
-- window_2: window
touched_1 AS (
  SELECT k AS _k1, _t, _x, _n AS _rows, CASE WHEN x IS NOT NULL THEN _n ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) * _n AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) * _n AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) * _n AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) * _n AS _a5
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2
      FROM (
        SELECT *, _d0x - CAST(_d0x * 3.814697265625E-06D AS BIGINT) * 262144.0D AS _d0xr1
        FROM (
          SELECT *, CASE WHEN ABS(CAST(x AS DOUBLE)) < 4503599627370496.0D AND RINT(CAST(x AS DOUBLE) * 1.9342813113834067E+25D) = CAST(x AS DOUBLE) * 1.9342813113834067E+25D THEN CAST(x AS DOUBLE) WHEN CAST(x AS DOUBLE) IS NOT NULL THEN RAISE_ERROR('headgate: beyond the doubles that are summed in one piece') END AS _d0x
          FROM window_1
        )
      )
    )
  )
  UNION ALL
  SELECT k AS _k1, _t, _x, _n AS _rows, CASE WHEN x IS NOT NULL THEN _n ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) * _n AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) * _n AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) * _n AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) * _n AS _a5
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2
      FROM (
        SELECT *, _d0x - CAST(_d0x * 3.814697265625E-06D AS BIGINT) * 262144.0D AS _d0xr1
        FROM (
          SELECT *, CASE WHEN ABS(CAST(x AS DOUBLE)) < 4503599627370496.0D AND RINT(CAST(x AS DOUBLE) * 1.9342813113834067E+25D) = CAST(x AS DOUBLE) * 1.9342813113834067E+25D THEN CAST(x AS DOUBLE) WHEN CAST(x AS DOUBLE) IS NOT NULL THEN RAISE_ERROR('headgate: beyond the doubles that are summed in one piece') END AS _d0x
          FROM window_2
        )
      )
    )
  )
)
events_1 AS (
  SELECT _k1, _t, _rows, _a1, _a2, _a3, _a4, _a5
  FROM (
    SELECT _k1, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows, CASE WHEN _side = 1 THEN _a1 ELSE -_a1 END AS _a1, CASE WHEN _side = 1 THEN _a2 ELSE -_a2 END AS _a2, CASE WHEN _side = 1 THEN _a3 ELSE -_a3 END AS _a3, CASE WHEN _side = 1 THEN _a4 ELSE -_a4 END AS _a4, CASE WHEN _side = 1 THEN _a5 ELSE -_a5 END AS _a5
    FROM touched_1
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
)
moves_1 AS (
  SELECT _k1, CAST(:since AS BIGINT) AS _t, _rows, COALESCE(_a1, _rows) AS _a1, COALESCE(_a2, 0) AS _a2, _a3, _a4, _a5
  FROM sums_1
  UNION ALL
  SELECT _k1, _t, _rows, _a1, _a2, _a3, _a4, _a5
  FROM events_1
)
totals_1 AS (
  SELECT _k1, SUM(_rows) AS _rows, SUM(_a1) AS _a1, SUM(_a2) AS _a2, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5
  FROM moves_1
  GROUP BY _k1
  HAVING SUM(_rows) <> 0
)
shape_1 AS (
  SELECT _k1, SUM(_rows) AS _rows, SUM(_a1) AS _a1, SUM(_a2) AS _a2, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5
  FROM events_1
  GROUP BY _k1
)
-- window_3: window
living_1 AS (
  SELECT k AS _k1, _n AS _rows, CASE WHEN x IS NOT NULL THEN _n ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) * _n AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) * _n AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) * _n AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) * _n AS _a5
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2
      FROM (
        SELECT *, _d0x - CAST(_d0x * 3.814697265625E-06D AS BIGINT) * 262144.0D AS _d0xr1
        FROM (
          SELECT *, CASE WHEN ABS(CAST(x AS DOUBLE)) < 4503599627370496.0D AND RINT(CAST(x AS DOUBLE) * 1.9342813113834067E+25D) = CAST(x AS DOUBLE) * 1.9342813113834067E+25D THEN CAST(x AS DOUBLE) WHEN CAST(x AS DOUBLE) IS NOT NULL THEN RAISE_ERROR('headgate: beyond the doubles that are summed in one piece') END AS _d0x
          FROM window_3
        )
      )
    )
  )
)
living_totals_1 AS (
  SELECT _k1, SUM(_rows) AS _rows, SUM(_a1) AS _a1, SUM(_a2) AS _a2, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5
  FROM living_1
  GROUP BY _k1
  HAVING SUM(_rows) <> 0
)
dealt_1 AS (
  SELECT /*+ REPARTITION(_k1) */ *
  FROM (
    SELECT k AS _k1, k, x, y, _t, _x, _n
    FROM window_1
    UNION ALL
    SELECT k AS _k1, k, x, y, _t, _x, _n
    FROM window_2
  )
)
touched_2 AS (
  SELECT _k1, _t, _x, _n AS _rows, CASE WHEN x IS NOT NULL THEN _n ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) * _n AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) * _n AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) * _n AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) * _n AS _a5
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2
      FROM (
        SELECT *, _d0x - CAST(_d0x * 3.814697265625E-06D AS BIGINT) * 262144.0D AS _d0xr1
        FROM (
          SELECT *, CASE WHEN ABS(CAST(x AS DOUBLE)) < 4503599627370496.0D AND RINT(CAST(x AS DOUBLE) * 1.9342813113834067E+25D) = CAST(x AS DOUBLE) * 1.9342813113834067E+25D THEN CAST(x AS DOUBLE) WHEN CAST(x AS DOUBLE) IS NOT NULL THEN RAISE_ERROR('headgate: beyond the doubles that are summed in one piece') END AS _d0x
          FROM dealt_1
        )
      )
    )
  )
)
moves_2 AS (
  SELECT _k1, _t, _rows, _a1, _a2, _a3, _a4, _a5
  FROM (
    SELECT _k1, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows, CASE WHEN _side = 1 THEN _a1 ELSE -_a1 END AS _a1, CASE WHEN _side = 1 THEN _a2 ELSE -_a2 END AS _a2, CASE WHEN _side = 1 THEN _a3 ELSE -_a3 END AS _a3, CASE WHEN _side = 1 THEN _a4 ELSE -_a4 END AS _a4, CASE WHEN _side = 1 THEN _a5 ELSE -_a5 END AS _a5
    FROM touched_2
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
  UNION ALL
  SELECT /*+ REPARTITION(_k1) */ _k1, CAST(:since AS BIGINT) AS _t, _rows, COALESCE(_a1, _rows) AS _a1, COALESCE(_a2, 0) AS _a2, _a3, _a4, _a5
  FROM sums_1
)
swept_1 AS (
  SELECT _k1, _t, LEAD(_t) OVER (PARTITION BY _k1 ORDER BY _t) AS _next,
    SUM(_rows) OVER (PARTITION BY _k1 ORDER BY _t) AS _rows, SUM(_a1) OVER (PARTITION BY _k1 ORDER BY _t) AS _a1, SUM(_a2) OVER (PARTITION BY _k1 ORDER BY _t) AS _a2, SUM(_a3) OVER (PARTITION BY _k1 ORDER BY _t) AS _a3, SUM(_a4) OVER (PARTITION BY _k1 ORDER BY _t) AS _a4, SUM(_a5) OVER (PARTITION BY _k1 ORDER BY _t) AS _a5
  FROM moves_2
)
timeline_1 AS (
  SELECT _k1 AS k, CASE WHEN _a1 > 0 THEN ((_a2 * 262144.0D + _a3 * 1.52587890625E-05D) + (_a4 * 8.881784197001252E-16D + _a5 * 5.169878828456423E-26D)) END AS sum_x, _k1, _t, _live
  FROM (
    SELECT _k1, _rows, _a1, _a2, _a3, _a4, _a5, _t, _rows > 0 AS _live
    FROM swept_1
    WHERE _next IS NULL OR _next > _t
  )
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1
