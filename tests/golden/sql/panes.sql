-- == tumbling: one pane at a time
-- SELECT k, COUNT(*) AS n, SUM(v) AS total, MIN(v) AS low FROM s [RANGE 4 SLIDE 4] GROUP BY k
-- reads log_s_1: s in (since - 3, until]
-- reads log_s_2: s in (until - 8, until]
-- expires s in (since - 8, until - 5 or since]
-- keeps panes_1: shown_1, with the columns of new_panes_1
-- window_1: window
touched_1 AS (
  SELECT k AS _k1, _t, _x, 1 AS _rows, v AS _a2, v AS _a3
  FROM window_1
)
new_panes_1 AS (
  SELECT _k1, _t, _x, SUM(_rows) AS _rows, SUM(_a2) AS _a2, MIN(_a3) AS _a3
  FROM touched_1
  GROUP BY _k1, _t, _x
)
every_pane_1 AS (
  SELECT _k1, _t, _x, _rows, _a2, _a3
  FROM panes_1
  UNION ALL
  SELECT _k1, _t, _x, _rows, _a2, _a3
  FROM new_panes_1
)
shown_1 AS (
  SELECT _k1, _t, _x, _rows, _a2, _a3
  FROM every_pane_1
  WHERE _x > :until
)
-- window_2: window
touched_2 AS (
  SELECT k AS _k1, _t, _x, 1 AS _rows, v AS _a2, v AS _a3
  FROM window_2
)
living_panes_1 AS (
  SELECT _k1, _t, _x, SUM(_rows) AS _rows, SUM(_a2) AS _a2, MIN(_a3) AS _a3
  FROM touched_2
  GROUP BY _k1, _t, _x
)
dealt_1 AS (
  SELECT /*+ REPARTITION(_k1) */ *
  FROM every_pane_1
)
looked_1 AS (
  SELECT _k1, _t + _slide * 4 AS _t, _rows, _a2, _a3
  FROM dealt_1
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(GREATEST(0, (:since - _t) DIV 4) AS BIGINT), CAST((LEAST(_x - 1, :until) - _t) DIV 4 AS BIGINT))) e AS _slide
)
at_slides_1 AS (
  SELECT _k1, _t, SUM(_rows) AS _rows, SUM(_a2) AS _a2, MIN(_a3) AS _a3
  FROM looked_1
  GROUP BY _k1, _t
)
-- timeline_1: running
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == sliding: doubles and an extreme by another column
-- SELECT k, AVG(x) AS mean, MAX_BY(x, y) AS top FROM m [RANGE 6 SLIDE 2] GROUP BY k HAVING COUNT(*) > 1
-- reads log_m_1: m in (since - 1, until]
-- reads log_m_2: m in (until - 8, until]
-- expires m in (since - 8, until - 7 or since]
-- keeps panes_1: shown_1, with the columns of new_panes_1
-- window_1: window
touched_1 AS (
  SELECT k AS _k1, _t, _x, 1 AS _rows, CAST(_d0xr1 * 65536.0D AS BIGINT) AS _a3, CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) AS _a4, CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT) AS _a5, CASE WHEN (CASE WHEN NOT y IS NULL THEN STRUCT(y, NOT x IS NULL, x) END) IS NOT NULL THEN STRUCT(CASE WHEN NOT y IS NULL THEN STRUCT(y, NOT x IS NULL, x) END AS k, x AS v) END AS _a6
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
)
new_panes_1 AS (
  SELECT _k1, _t, _x, SUM(_rows) AS _rows, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5, MAX(_a6) AS _a6
  FROM touched_1
  GROUP BY _k1, _t, _x
)
every_pane_1 AS (
  SELECT _k1, _t, _x, _rows, _a3, _a4, _a5, _a6
  FROM panes_1
  UNION ALL
  SELECT _k1, _t, _x, _rows, _a3, _a4, _a5, _a6
  FROM new_panes_1
)
shown_1 AS (
  SELECT _k1, _t, _x, _rows, _a3, _a4, _a5, _a6
  FROM every_pane_1
  WHERE _x > :until
)
-- window_2: window
touched_2 AS (
  SELECT k AS _k1, _t, _x, 1 AS _rows, CAST(_d0xr1 * 65536.0D AS BIGINT) AS _a3, CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) AS _a4, CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT) AS _a5, CASE WHEN (CASE WHEN NOT y IS NULL THEN STRUCT(y, NOT x IS NULL, x) END) IS NOT NULL THEN STRUCT(CASE WHEN NOT y IS NULL THEN STRUCT(y, NOT x IS NULL, x) END AS k, x AS v) END AS _a6
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
living_panes_1 AS (
  SELECT _k1, _t, _x, SUM(_rows) AS _rows, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5, MAX(_a6) AS _a6
  FROM touched_2
  GROUP BY _k1, _t, _x
)
dealt_1 AS (
  SELECT /*+ REPARTITION(_k1) */ *
  FROM every_pane_1
)
looked_1 AS (
  SELECT _k1, _t + _slide * 2 AS _t, _rows, _a3, _a4, _a5, _a6
  FROM dealt_1
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(GREATEST(0, (:since - _t) DIV 2) AS BIGINT), CAST((LEAST(_x - 1, :until) - _t) DIV 2 AS BIGINT))) e AS _slide
)
at_slides_1 AS (
  SELECT _k1, _t, SUM(_rows) AS _rows, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5, MAX(_a6) AS _a6
  FROM looked_1
  GROUP BY _k1, _t
)
-- timeline_1: running
-- timeline_2: sweep
-- timeline_3: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == the slide does not divide the length
-- SELECT k, SUM(v) FILTER (WHERE name = 'x') AS total FROM s [RANGE 5 SLIDE 2] WHERE v > 0 GROUP BY k
-- reads log_s_1: s in (since - 1, until]
-- reads log_s_2: s in (until - 7, until]
-- expires s in (since - 7, until - 6 or since]
-- keeps panes_1: shown_1, with the columns of new_panes_1
-- window_1: window
-- filter_1: linear
touched_1 AS (
  SELECT k AS _k1, _t, _x, 1 AS _rows, CASE WHEN v IS NOT NULL AND (name = 'x') THEN 1 ELSE 0 END AS _a1, CASE WHEN v IS NOT NULL AND (name = 'x') THEN v ELSE 0 END AS _a2
  FROM filter_1
)
new_panes_1 AS (
  SELECT _k1, _t, _x, SUM(_rows) AS _rows, SUM(_a1) AS _a1, SUM(_a2) AS _a2
  FROM touched_1
  GROUP BY _k1, _t, _x
)
every_pane_1 AS (
  SELECT _k1, _t, _x, _rows, _a1, _a2
  FROM panes_1
  UNION ALL
  SELECT _k1, _t, _x, _rows, _a1, _a2
  FROM new_panes_1
)
shown_1 AS (
  SELECT _k1, _t, _x, _rows, _a1, _a2
  FROM every_pane_1
  WHERE _x > :until
)
-- window_2: window
-- filter_2: linear
touched_2 AS (
  SELECT k AS _k1, _t, _x, 1 AS _rows, CASE WHEN v IS NOT NULL AND (name = 'x') THEN 1 ELSE 0 END AS _a1, CASE WHEN v IS NOT NULL AND (name = 'x') THEN v ELSE 0 END AS _a2
  FROM filter_2
)
living_panes_1 AS (
  SELECT _k1, _t, _x, SUM(_rows) AS _rows, SUM(_a1) AS _a1, SUM(_a2) AS _a2
  FROM touched_2
  GROUP BY _k1, _t, _x
)
dealt_1 AS (
  SELECT /*+ REPARTITION(_k1) */ *
  FROM every_pane_1
)
looked_1 AS (
  SELECT _k1, _t + _slide * 2 AS _t, _rows, _a1, _a2
  FROM dealt_1
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(GREATEST(0, (:since - _t) DIV 2) AS BIGINT), CAST((LEAST(_x - 1, :until) - _t) DIV 2 AS BIGINT))) e AS _slide
)
at_slides_1 AS (
  SELECT _k1, _t, SUM(_rows) AS _rows, SUM(_a1) AS _a1, SUM(_a2) AS _a2
  FROM looked_1
  GROUP BY _k1, _t
)
-- timeline_1: running
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == without keys there is always a row
-- SELECT COUNT(*) AS n, MAX(v) AS high FROM s [RANGE 4 SLIDE 2]
-- reads log_s_1: s in (since - 1, until]
-- reads log_s_2: s in (until - 6, until]
-- expires s in (since - 6, until - 5 or since]
-- keeps panes_1: shown_1, with the columns of new_panes_1
-- window_1: window
touched_1 AS (
  SELECT _t, _x, 1 AS _rows, v AS _a1
  FROM window_1
)
new_panes_1 AS (
  SELECT _t, _x, SUM(_rows) AS _rows, MAX(_a1) AS _a1
  FROM touched_1
  GROUP BY _t, _x
)
every_pane_1 AS (
  SELECT _t, _x, _rows, _a1
  FROM panes_1
  UNION ALL
  SELECT _t, _x, _rows, _a1
  FROM new_panes_1
)
shown_1 AS (
  SELECT _t, _x, _rows, _a1
  FROM every_pane_1
  WHERE _x > :until
)
-- window_2: window
touched_2 AS (
  SELECT _t, _x, 1 AS _rows, v AS _a1
  FROM window_2
)
living_panes_1 AS (
  SELECT _t, _x, SUM(_rows) AS _rows, MAX(_a1) AS _a1
  FROM touched_2
  GROUP BY _t, _x
)
looked_1 AS (
  SELECT CASE WHEN _t + _slide * 2 > :since THEN _t + _slide * 2 ELSE :since END AS _at, _x, _rows, _a1
  FROM every_pane_1
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(GREATEST(0, (:since - _t) DIV 2) AS BIGINT), CAST((LEAST(_x, :until) - _t) DIV 2 AS BIGINT))) e AS _slide
  UNION ALL
  SELECT CAST(GREATEST(0, :since) AS BIGINT) AS _at, CAST(GREATEST(0, :since) AS BIGINT) AS _x, 0 AS _rows, NULL AS _a1
  WHERE 0 <= :until
)
at_slides_1 AS (
  SELECT _at AS _t, SUM(CASE WHEN _at < _x THEN _rows ELSE 0 END) AS _rows, MAX(CASE WHEN _at < _x THEN _a1 ELSE NULL END) AS _a1
  FROM looked_1
  GROUP BY _at
)
-- timeline_1: running
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == two streams with one slide
-- SELECT k, SUM(v) AS total FROM (SELECT k, v FROM s [RANGE 4 SLIDE 2] UNION ALL SELECT k, w FROM t [RANGE 2 SLIDE 2]) x GROUP BY k
-- reads log_s_1: s in (since - 1, until]
-- reads log_t_1: t in (since - 1, until]
-- reads log_s_2: s in (until - 6, until]
-- reads log_t_2: t in (until - 4, until]
-- expires s in (since - 6, until - 5 or since]
-- expires t in (since - 4, until - 3 or since]
-- keeps panes_1: shown_1, with the columns of new_panes_1
-- window_1: window
-- project_1: linear
-- window_2: window
-- union_1: linear
touched_1 AS (
  SELECT k AS _k1, _t, _x, 1 AS _rows, v AS _a2
  FROM union_1
)
new_panes_1 AS (
  SELECT _k1, _t, _x, SUM(_rows) AS _rows, SUM(_a2) AS _a2
  FROM touched_1
  GROUP BY _k1, _t, _x
)
every_pane_1 AS (
  SELECT _k1, _t, _x, _rows, _a2
  FROM panes_1
  UNION ALL
  SELECT _k1, _t, _x, _rows, _a2
  FROM new_panes_1
)
shown_1 AS (
  SELECT _k1, _t, _x, _rows, _a2
  FROM every_pane_1
  WHERE _x > :until
)
-- window_3: window
-- project_2: linear
-- window_4: window
-- union_2: linear
touched_2 AS (
  SELECT k AS _k1, _t, _x, 1 AS _rows, v AS _a2
  FROM union_2
)
living_panes_1 AS (
  SELECT _k1, _t, _x, SUM(_rows) AS _rows, SUM(_a2) AS _a2
  FROM touched_2
  GROUP BY _k1, _t, _x
)
dealt_1 AS (
  SELECT /*+ REPARTITION(_k1) */ *
  FROM every_pane_1
)
looked_1 AS (
  SELECT _k1, _t + _slide * 2 AS _t, _rows, _a2
  FROM dealt_1
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(GREATEST(0, (:since - _t) DIV 2) AS BIGINT), CAST((LEAST(_x - 1, :until) - _t) DIV 2 AS BIGINT))) e AS _slide
)
at_slides_1 AS (
  SELECT _k1, _t, SUM(_rows) AS _rows, SUM(_a2) AS _a2
  FROM looked_1
  GROUP BY _k1, _t
)
-- timeline_1: running
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == every double: bands of panes beside the panes
-- SELECT k, SUM(x) AS total FROM m [RANGE 4 SLIDE 2] GROUP BY k
-- reads log_m_1: m in (since - 1, until]
-- reads log_m_2: m in (until - 6, until]
-- expires m in (since - 6, until - 5 or since]
-- keeps panes_1: shown_1, with the columns of new_panes_1
-- keeps wild_panes_1: wild_shown_1, with the columns of wild_new_panes_1
-- keeps wild_kept_1: wild_keep_1, with the columns of wild_shape_1
-- window_1: window
touched_1 AS (
  SELECT k AS _k1, _t, _x, 1 AS _rows, CASE WHEN x IS NOT NULL THEN 1 ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) AS _a5
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2
      FROM (
        SELECT *, _d0x - CAST(_d0x * 3.814697265625E-06D AS BIGINT) * 262144.0D AS _d0xr1
        FROM (
          SELECT *, CASE WHEN ABS(CAST(x AS DOUBLE)) < 4503599627370496.0D AND RINT(CAST(x AS DOUBLE) * 1.9342813113834067E+25D) = CAST(x AS DOUBLE) * 1.9342813113834067E+25D THEN CAST(x AS DOUBLE) END AS _d0x
          FROM window_1
        )
      )
    )
  )
)
new_panes_1 AS (
  SELECT _k1, _t, _x, SUM(_rows) AS _rows, SUM(_a1) AS _a1, SUM(_a2) AS _a2, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5
  FROM touched_1
  GROUP BY _k1, _t, _x
)
every_pane_1 AS (
  SELECT _k1, _t, _x, _rows, COALESCE(_a1, _rows) AS _a1, COALESCE(_a2, 0) AS _a2, _a3, _a4, _a5
  FROM panes_1
  UNION ALL
  SELECT _k1, _t, _x, _rows, _a1, _a2, _a3, _a4, _a5
  FROM new_panes_1
)
shown_1 AS (
  SELECT _k1, _t, _x, _rows, _a1, _a2, _a3, _a4, _a5
  FROM every_pane_1
  WHERE _x > :until
)
-- window_2: window
touched_2 AS (
  SELECT k AS _k1, _t, _x, 1 AS _rows, CASE WHEN x IS NOT NULL THEN 1 ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) AS _a5
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2
      FROM (
        SELECT *, _d0x - CAST(_d0x * 3.814697265625E-06D AS BIGINT) * 262144.0D AS _d0xr1
        FROM (
          SELECT *, CASE WHEN ABS(CAST(x AS DOUBLE)) < 4503599627370496.0D AND RINT(CAST(x AS DOUBLE) * 1.9342813113834067E+25D) = CAST(x AS DOUBLE) * 1.9342813113834067E+25D THEN CAST(x AS DOUBLE) END AS _d0x
          FROM window_2
        )
      )
    )
  )
)
living_panes_1 AS (
  SELECT _k1, _t, _x, SUM(_rows) AS _rows, SUM(_a1) AS _a1, SUM(_a2) AS _a2, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5
  FROM touched_2
  GROUP BY _k1, _t, _x
)
looked_1 AS (
  SELECT _k1, CASE WHEN _t + _slide * 2 > :since THEN _t + _slide * 2 ELSE :since END AS _at, _x, _rows, _a1, _a2, _a3, _a4, _a5
  FROM every_pane_1
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(GREATEST(0, (:since - _t) DIV 2) AS BIGINT), CAST((LEAST(_x, :until) - _t) DIV 2 AS BIGINT))) e AS _slide
)
at_slides_1 AS (
  SELECT _k1, _at AS _t, SUM(CASE WHEN _at < _x THEN _rows ELSE 0 END) AS _rows, SUM(CASE WHEN _at < _x THEN _a1 ELSE 0 END) AS _a1, SUM(CASE WHEN _at < _x THEN _a2 ELSE 0 END) AS _a2, SUM(CASE WHEN _at < _x THEN _a3 ELSE 0 END) AS _a3, SUM(CASE WHEN _at < _x THEN _a4 ELSE 0 END) AS _a4, SUM(CASE WHEN _at < _x THEN _a5 ELSE 0 END) AS _a5
  FROM looked_1
  GROUP BY _k1, _at
)
-- wild_filter_1: linear
-- wild_project_1: linear
-- wild_project_2: linear
-- wild_project_3: linear
wild_touched_1 AS (
  SELECT k1 AS _k1, b1 AS _k2, _t, _x, 1 AS _rows, CASE WHEN z1 IS NOT NULL THEN 1 ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) AS _a5
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2
      FROM (
        SELECT *, _d0x - CAST(_d0x * 3.814697265625E-06D AS BIGINT) * 262144.0D AS _d0xr1
        FROM (
          SELECT *, CASE WHEN _v0x IS NOT NULL THEN _v0x END AS _d0x
          FROM (
            SELECT *, CASE WHEN z1 IS NOT NULL THEN CAST(z1 AS DOUBLE) END AS _v0x
            FROM wild_project_3
          )
        )
      )
    )
  )
)
wild_new_panes_1 AS (
  SELECT _k1, _k2, _t, _x, SUM(_rows) AS _rows, SUM(_a1) AS _a1, SUM(_a2) AS _a2, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5
  FROM wild_touched_1
  GROUP BY _k1, _k2, _t, _x
)
wild_every_pane_1 AS (
  SELECT _k1, _k2, _t, _x, _rows, COALESCE(_a1, _rows) AS _a1, COALESCE(_a2, 0) AS _a2, _a3, _a4, _a5
  FROM wild_panes_1
  UNION ALL
  SELECT _k1, _k2, _t, _x, _rows, _a1, _a2, _a3, _a4, _a5
  FROM wild_new_panes_1
)
wild_shown_1 AS (
  SELECT _k1, _k2, _t, _x, _rows, _a1, _a2, _a3, _a4, _a5
  FROM wild_every_pane_1
  WHERE _x > :until
)
-- wild_filter_2: linear
-- wild_project_4: linear
-- wild_project_5: linear
-- wild_project_6: linear
wild_touched_2 AS (
  SELECT k1 AS _k1, b1 AS _k2, _t, _x, 1 AS _rows, CASE WHEN z1 IS NOT NULL THEN 1 ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) AS _a5
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2
      FROM (
        SELECT *, _d0x - CAST(_d0x * 3.814697265625E-06D AS BIGINT) * 262144.0D AS _d0xr1
        FROM (
          SELECT *, CASE WHEN _v0x IS NOT NULL THEN _v0x END AS _d0x
          FROM (
            SELECT *, CASE WHEN z1 IS NOT NULL THEN CAST(z1 AS DOUBLE) END AS _v0x
            FROM wild_project_6
          )
        )
      )
    )
  )
)
wild_living_panes_1 AS (
  SELECT _k1, _k2, _t, _x, SUM(_rows) AS _rows, SUM(_a1) AS _a1, SUM(_a2) AS _a2, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5
  FROM wild_touched_2
  GROUP BY _k1, _k2, _t, _x
)
wild_looked_1 AS (
  SELECT _k1, _k2, CASE WHEN _t + _slide * 2 > :since THEN _t + _slide * 2 ELSE :since END AS _at, _x, _rows, _a1, _a2, _a3, _a4, _a5
  FROM wild_every_pane_1
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(GREATEST(0, (:since - _t) DIV 2) AS BIGINT), CAST((LEAST(_x, :until) - _t) DIV 2 AS BIGINT))) e AS _slide
)
wild_at_slides_1 AS (
  SELECT _k1, _k2, _at AS _t, SUM(CASE WHEN _at < _x THEN _rows ELSE 0 END) AS _rows, SUM(CASE WHEN _at < _x THEN _a1 ELSE 0 END) AS _a1, SUM(CASE WHEN _at < _x THEN _a2 ELSE 0 END) AS _a2, SUM(CASE WHEN _at < _x THEN _a3 ELSE 0 END) AS _a3, SUM(CASE WHEN _at < _x THEN _a4 ELSE 0 END) AS _a4, SUM(CASE WHEN _at < _x THEN _a5 ELSE 0 END) AS _a5
  FROM wild_looked_1
  GROUP BY _k1, _k2, _at
)
-- wild_timeline_1: running
-- wild_spans_1: sweep
-- wild_sweep_1: sweep
-- wild_shape_1: netting
-- wild_keep_1: netting
-- wild_live_1: netting
-- wild_all_1: lower
-- wild_elements_1: recomputed
-- wild_instants_1: recomputed
-- wild_moments_1: recomputed
-- wild_alive_1: recomputed
-- wild_timeline_2: recomputed
-- fitting_1: running
-- gathered_1: sweep
-- at_once_1: sweep
-- known_1: sweep
-- timeline_1: running
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == distinct rows
-- SELECT DISTINCT k FROM s [RANGE 4 SLIDE 2]
-- reads log_s_1: s in (since - 1, until]
-- reads log_s_2: s in (until - 6, until]
-- expires s in (since - 6, until - 5 or since]
-- keeps panes_1: shown_1, with the columns of new_panes_1
-- window_1: window
-- project_1: linear
touched_1 AS (
  SELECT `k` AS _k1, _t, _x, 1 AS _rows
  FROM project_1
)
new_panes_1 AS (
  SELECT _k1, _t, _x, SUM(_rows) AS _rows
  FROM touched_1
  GROUP BY _k1, _t, _x
)
every_pane_1 AS (
  SELECT _k1, _t, _x, _rows
  FROM panes_1
  UNION ALL
  SELECT _k1, _t, _x, _rows
  FROM new_panes_1
)
shown_1 AS (
  SELECT _k1, _t, _x, _rows
  FROM every_pane_1
  WHERE _x > :until
)
-- window_2: window
-- project_2: linear
touched_2 AS (
  SELECT `k` AS _k1, _t, _x, 1 AS _rows
  FROM project_2
)
living_panes_1 AS (
  SELECT _k1, _t, _x, SUM(_rows) AS _rows
  FROM touched_2
  GROUP BY _k1, _t, _x
)
looked_1 AS (
  SELECT _k1, CASE WHEN _t + _slide * 2 > :since THEN _t + _slide * 2 ELSE :since END AS _at, _x, _rows
  FROM every_pane_1
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(GREATEST(0, (:since - _t) DIV 2) AS BIGINT), CAST((LEAST(_x, :until) - _t) DIV 2 AS BIGINT))) e AS _slide
)
at_slides_1 AS (
  SELECT _k1, _at AS _t, SUM(CASE WHEN _at < _x THEN _rows ELSE 0 END) AS _rows
  FROM looked_1
  GROUP BY _k1, _at
)
-- timeline_1: running
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == over a stream that is derived, tuples wait for the next slide
-- SELECT k, COUNT(*) AS n FROM (ISTREAM(SELECT k, v FROM s [RANGE 2] WHERE v > 0)) [RANGE 4 SLIDE 2] GROUP BY k
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 3, until - 3 or since]
-- keeps waiting_1: later_1, with the columns of window_3
-- keeps panes_1: shown_1, with the columns of new_panes_1
-- window_1: window
-- filter_1: linear
-- project_1: linear
-- window_2: window
-- filter_2: linear
-- project_2: linear
-- netted_1: netting
-- repeated_1: netting
-- window_3: window
-- stamped_1: window
-- later_1: window
-- window_4: window
-- project_3: linear
touched_1 AS (
  SELECT k AS _k1, _t, _x, 1 AS _rows
  FROM project_3
)
new_panes_1 AS (
  SELECT _k1, _t, _x, SUM(_rows) AS _rows
  FROM touched_1
  GROUP BY _k1, _t, _x
)
every_pane_1 AS (
  SELECT _k1, _t, _x, _rows
  FROM panes_1
  UNION ALL
  SELECT _k1, _t, _x, _rows
  FROM new_panes_1
)
shown_1 AS (
  SELECT _k1, _t, _x, _rows
  FROM every_pane_1
  WHERE _x > :until
)
dealt_1 AS (
  SELECT /*+ REPARTITION(_k1) */ *
  FROM every_pane_1
)
looked_1 AS (
  SELECT _k1, _t + _slide * 2 AS _t, _rows
  FROM dealt_1
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(GREATEST(0, (:since - _t) DIV 2) AS BIGINT), CAST((LEAST(_x - 1, :until) - _t) DIV 2 AS BIGINT))) e AS _slide
)
at_slides_1 AS (
  SELECT _k1, _t, SUM(_rows) AS _rows
  FROM looked_1
  GROUP BY _k1, _t
)
-- timeline_1: running
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == too many slides for panes
-- SELECT k, SUM(v) AS total FROM s [RANGE 13 SLIDE 1] GROUP BY k
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 14, until - 14 or since]
-- reads log_s_3: s in (until - 14, until]
-- keeps sums_1: totals_1, with the columns of shape_1
window_1 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, (_t + PMOD(-_t, 1)) AS _t, ((_t + 13) - PMOD((_t + 13), 1)) + 1 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_1
  )
  WHERE _t > :since AND _t <= :until AND _t < _x
)
window_2 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, (_t + PMOD(-_t, 1)) AS _t, ((_t + 13) - PMOD((_t + 13), 1)) + 1 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_2
  )
  WHERE _t <= :since AND _x > :since AND _x <= :until AND _t < _x
)
touched_1 AS (
  SELECT k AS _k1, _t, _x, _n AS _rows, v * _n AS _a2
  FROM window_1
  UNION ALL
  SELECT k AS _k1, _t, _x, _n AS _rows, v * _n AS _a2
  FROM window_2
)
panes_1 AS (
  SELECT _k1, _t, _x, SUM(_rows) AS _rows, SUM(_a2) AS _a2
  FROM touched_1
  GROUP BY _k1, _t, _x
)
events_1 AS (
  SELECT _k1, _t, _rows, _a2
  FROM (
    SELECT _k1, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows, CASE WHEN _side = 1 THEN _a2 ELSE -_a2 END AS _a2
    FROM panes_1
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
window_3 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, (_t + PMOD(-_t, 1)) AS _t, ((_t + 13) - PMOD((_t + 13), 1)) + 1 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_3
  )
  WHERE _t <= :until AND _x > :until AND _t < _x
)
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
swept_1 AS (
  SELECT _k1, _t, LEAD(_t) OVER (PARTITION BY _k1 ORDER BY _t) AS _next,
    SUM(_rows) OVER (PARTITION BY _k1 ORDER BY _t) AS _rows, SUM(_a2) OVER (PARTITION BY _k1 ORDER BY _t) AS _a2
  FROM moves_1
)
timeline_1 AS (
  SELECT _k1 AS k, CASE WHEN _rows > 0 THEN _a2 END AS sum_v, _k1, _t, _live
  FROM (
    SELECT _k1, _rows, _a2, _t, _rows > 0 AS _live
    FROM swept_1
    WHERE _next IS NULL OR _next > _t
  )
)
timeline_2 AS (
  SELECT k AS k, sum_v AS total, _k1, _t, _live AS _live
  FROM timeline_1
)
steps_1 AS (
  SELECT k, total, _t, _live,
    COALESCE(LAG(_live) OVER (PARTITION BY _k1 ORDER BY _t), FALSE) AS _was, LAG(total) OVER (PARTITION BY _k1 ORDER BY _t) AS _old2
  FROM timeline_2
)
changes_1 AS (
  SELECT CASE WHEN _kind = -1 THEN k ELSE k END AS k, CASE WHEN _kind = -1 THEN _old2 ELSE total END AS total, _t, CAST(CASE WHEN _kind = 1 THEN 1 ELSE -1 END AS BIGINT) AS _n
  FROM steps_1
  LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _kind
  WHERE CASE _kind WHEN 1 THEN _t > :since AND _live AND NOT (_was AND total <=> _old2) WHEN -1 THEN _t > :since AND _was AND NOT (_live AND _was AND total <=> _old2) END
)
result_1 AS (
  SELECT *
  FROM changes_1
)
-- result: result_1
