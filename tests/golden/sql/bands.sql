-- == every double: sums by band
-- SELECT k, SUM(x) AS total FROM m [RANGE 4] GROUP BY k
-- reads log_m_1: m in (since, until]
-- reads log_m_2: m in (since - 5, until - 5 or since]
-- reads log_m_3: m in (until - 5, until]
-- keeps sums_1: totals_1, with the columns of shape_1
-- keeps wild_sums_1: wild_totals_1, with the columns of wild_shape_1
-- keeps wild_kept_1: wild_keep_1, with the columns of wild_shape_2
window_1 AS (
  SELECT k, x, y, _t, _x, _n
  FROM (
    SELECT k, x, y, _t AS _t, _t + 5 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_m_1
  )
  WHERE _t > :since AND _t <= :until
)
window_2 AS (
  SELECT k, x, y, _t, _x, _n
  FROM (
    SELECT k, x, y, _t AS _t, _t + 5 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_m_2
  )
  WHERE _t <= :since AND _x > :since AND _x <= :until
)
touched_1 AS (
  SELECT k AS _k1, _t, _x, _n AS _rows, CASE WHEN x IS NOT NULL THEN _n ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) * _n AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) * _n AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) * _n AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) * _n AS _a5
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
  UNION ALL
  SELECT k AS _k1, _t, _x, _n AS _rows, CASE WHEN x IS NOT NULL THEN _n ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) * _n AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) * _n AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) * _n AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) * _n AS _a5
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
window_3 AS (
  SELECT k, x, y, _t, _x, _n
  FROM (
    SELECT k, x, y, _t AS _t, _t + 5 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_m_3
  )
  WHERE _t <= :until AND _x > :until
)
living_1 AS (
  SELECT k AS _k1, _n AS _rows, CASE WHEN x IS NOT NULL THEN _n ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) * _n AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) * _n AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) * _n AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) * _n AS _a5
  FROM (
    SELECT *, _d0xr2 - CAST(_d0xr2 * 1125899906842624.0D AS BIGINT) * 8.881784197001252E-16D AS _d0xr3
    FROM (
      SELECT *, _d0xr1 - CAST(_d0xr1 * 65536.0D AS BIGINT) * 1.52587890625E-05D AS _d0xr2
      FROM (
        SELECT *, _d0x - CAST(_d0x * 3.814697265625E-06D AS BIGINT) * 262144.0D AS _d0xr1
        FROM (
          SELECT *, CASE WHEN ABS(CAST(x AS DOUBLE)) < 4503599627370496.0D AND RINT(CAST(x AS DOUBLE) * 1.9342813113834067E+25D) = CAST(x AS DOUBLE) * 1.9342813113834067E+25D THEN CAST(x AS DOUBLE) END AS _d0x
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
          SELECT *, CASE WHEN ABS(CAST(x AS DOUBLE)) < 4503599627370496.0D AND RINT(CAST(x AS DOUBLE) * 1.9342813113834067E+25D) = CAST(x AS DOUBLE) * 1.9342813113834067E+25D THEN CAST(x AS DOUBLE) END AS _d0x
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
wild_filter_1 AS (
  SELECT k, x, y, _t, _x, _n
  FROM window_1
  WHERE x IS NOT NULL AND NOT (ABS(CAST(x AS DOUBLE)) < 4503599627370496.0D AND RINT(CAST(x AS DOUBLE) * 1.9342813113834067E+25D) = CAST(x AS DOUBLE) * 1.9342813113834067E+25D)
)
wild_project_1 AS (
  SELECT k AS k1, CAST(x AS DOUBLE) AS v1, _t, _x, _n
  FROM wild_filter_1
)
wild_project_2 AS (
  SELECT k1, v1, CASE WHEN ABS(v1) < 4503599627370496.0D AND RINT(v1 * 1.9342813113834067E+25D) = v1 * 1.9342813113834067E+25D THEN 0 WHEN ISNAN(v1) THEN 102 WHEN v1 = CAST('Infinity' AS DOUBLE) THEN 100 WHEN v1 = -CAST('Infinity' AS DOUBLE) THEN 101 ELSE CAST(FLOOR(LOG2(ABS(v1)) / 34) AS INT) END AS b1, _t, _x, _n
  FROM wild_project_1
)
wild_project_3 AS (
  SELECT k1, v1, b1, CASE WHEN b1 >= 100 THEN 0D ELSE v1 * POWER(2D, -17 * b1) * POWER(2D, -17 * b1) END AS z1, _t, _x, _n
  FROM wild_project_2
)
wild_filter_2 AS (
  SELECT k, x, y, _t, _x, _n
  FROM window_2
  WHERE x IS NOT NULL AND NOT (ABS(CAST(x AS DOUBLE)) < 4503599627370496.0D AND RINT(CAST(x AS DOUBLE) * 1.9342813113834067E+25D) = CAST(x AS DOUBLE) * 1.9342813113834067E+25D)
)
wild_project_4 AS (
  SELECT k AS k1, CAST(x AS DOUBLE) AS v1, _t, _x, _n
  FROM wild_filter_2
)
wild_project_5 AS (
  SELECT k1, v1, CASE WHEN ABS(v1) < 4503599627370496.0D AND RINT(v1 * 1.9342813113834067E+25D) = v1 * 1.9342813113834067E+25D THEN 0 WHEN ISNAN(v1) THEN 102 WHEN v1 = CAST('Infinity' AS DOUBLE) THEN 100 WHEN v1 = -CAST('Infinity' AS DOUBLE) THEN 101 ELSE CAST(FLOOR(LOG2(ABS(v1)) / 34) AS INT) END AS b1, _t, _x, _n
  FROM wild_project_4
)
wild_project_6 AS (
  SELECT k1, v1, b1, CASE WHEN b1 >= 100 THEN 0D ELSE v1 * POWER(2D, -17 * b1) * POWER(2D, -17 * b1) END AS z1, _t, _x, _n
  FROM wild_project_5
)
wild_touched_1 AS (
  SELECT k1 AS _k1, b1 AS _k2, _t, _x, _n AS _rows, CASE WHEN z1 IS NOT NULL THEN _n ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) * _n AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) * _n AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) * _n AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) * _n AS _a5
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
  UNION ALL
  SELECT k1 AS _k1, b1 AS _k2, _t, _x, _n AS _rows, CASE WHEN z1 IS NOT NULL THEN _n ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) * _n AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) * _n AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) * _n AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) * _n AS _a5
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
wild_events_1 AS (
  SELECT _k1, _k2, _t, _rows, _a1, _a2, _a3, _a4, _a5
  FROM (
    SELECT _k1, _k2, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows, CASE WHEN _side = 1 THEN _a1 ELSE -_a1 END AS _a1, CASE WHEN _side = 1 THEN _a2 ELSE -_a2 END AS _a2, CASE WHEN _side = 1 THEN _a3 ELSE -_a3 END AS _a3, CASE WHEN _side = 1 THEN _a4 ELSE -_a4 END AS _a4, CASE WHEN _side = 1 THEN _a5 ELSE -_a5 END AS _a5
    FROM wild_touched_1
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
)
wild_moves_1 AS (
  SELECT _k1, _k2, CAST(:since AS BIGINT) AS _t, _rows, COALESCE(_a1, _rows) AS _a1, COALESCE(_a2, 0) AS _a2, _a3, _a4, _a5
  FROM wild_sums_1
  UNION ALL
  SELECT _k1, _k2, _t, _rows, _a1, _a2, _a3, _a4, _a5
  FROM wild_events_1
)
wild_totals_1 AS (
  SELECT _k1, _k2, SUM(_rows) AS _rows, SUM(_a1) AS _a1, SUM(_a2) AS _a2, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5
  FROM wild_moves_1
  GROUP BY _k1, _k2
  HAVING SUM(_rows) <> 0
)
wild_shape_1 AS (
  SELECT _k1, _k2, SUM(_rows) AS _rows, SUM(_a1) AS _a1, SUM(_a2) AS _a2, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5
  FROM wild_events_1
  GROUP BY _k1, _k2
)
wild_filter_3 AS (
  SELECT k, x, y, _t, _x, _n
  FROM window_3
  WHERE x IS NOT NULL AND NOT (ABS(CAST(x AS DOUBLE)) < 4503599627370496.0D AND RINT(CAST(x AS DOUBLE) * 1.9342813113834067E+25D) = CAST(x AS DOUBLE) * 1.9342813113834067E+25D)
)
wild_project_7 AS (
  SELECT k AS k1, CAST(x AS DOUBLE) AS v1, _t, _x, _n
  FROM wild_filter_3
)
wild_project_8 AS (
  SELECT k1, v1, CASE WHEN ABS(v1) < 4503599627370496.0D AND RINT(v1 * 1.9342813113834067E+25D) = v1 * 1.9342813113834067E+25D THEN 0 WHEN ISNAN(v1) THEN 102 WHEN v1 = CAST('Infinity' AS DOUBLE) THEN 100 WHEN v1 = -CAST('Infinity' AS DOUBLE) THEN 101 ELSE CAST(FLOOR(LOG2(ABS(v1)) / 34) AS INT) END AS b1, _t, _x, _n
  FROM wild_project_7
)
wild_project_9 AS (
  SELECT k1, v1, b1, CASE WHEN b1 >= 100 THEN 0D ELSE v1 * POWER(2D, -17 * b1) * POWER(2D, -17 * b1) END AS z1, _t, _x, _n
  FROM wild_project_8
)
wild_living_1 AS (
  SELECT k1 AS _k1, b1 AS _k2, _n AS _rows, CASE WHEN z1 IS NOT NULL THEN _n ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) * _n AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) * _n AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) * _n AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) * _n AS _a5
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
            FROM wild_project_9
          )
        )
      )
    )
  )
)
wild_living_totals_1 AS (
  SELECT _k1, _k2, SUM(_rows) AS _rows, SUM(_a1) AS _a1, SUM(_a2) AS _a2, SUM(_a3) AS _a3, SUM(_a4) AS _a4, SUM(_a5) AS _a5
  FROM wild_living_1
  GROUP BY _k1, _k2
  HAVING SUM(_rows) <> 0
)
wild_dealt_1 AS (
  SELECT /*+ REPARTITION(_k1, _k2) */ *
  FROM (
    SELECT k1 AS _k1, b1 AS _k2, k1, v1, b1, z1, _t, _x, _n
    FROM wild_project_3
    UNION ALL
    SELECT k1 AS _k1, b1 AS _k2, k1, v1, b1, z1, _t, _x, _n
    FROM wild_project_6
  )
)
wild_touched_2 AS (
  SELECT _k1, _k2, _t, _x, _n AS _rows, CASE WHEN z1 IS NOT NULL THEN _n ELSE 0 END AS _a1, COALESCE(CAST(_d0x * 3.814697265625E-06D AS BIGINT), 0) * _n AS _a2, COALESCE(CAST(_d0xr1 * 65536.0D AS BIGINT), 0) * _n AS _a3, COALESCE(CAST(_d0xr2 * 1125899906842624.0D AS BIGINT), 0) * _n AS _a4, COALESCE(CAST(_d0xr3 * 1.9342813113834067E+25D AS BIGINT), 0) * _n AS _a5
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
            FROM wild_dealt_1
          )
        )
      )
    )
  )
)
wild_moves_2 AS (
  SELECT _k1, _k2, _t, _rows, _a1, _a2, _a3, _a4, _a5
  FROM (
    SELECT _k1, _k2, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows, CASE WHEN _side = 1 THEN _a1 ELSE -_a1 END AS _a1, CASE WHEN _side = 1 THEN _a2 ELSE -_a2 END AS _a2, CASE WHEN _side = 1 THEN _a3 ELSE -_a3 END AS _a3, CASE WHEN _side = 1 THEN _a4 ELSE -_a4 END AS _a4, CASE WHEN _side = 1 THEN _a5 ELSE -_a5 END AS _a5
    FROM wild_touched_2
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
  UNION ALL
  SELECT /*+ REPARTITION(_k1, _k2) */ _k1, _k2, CAST(:since AS BIGINT) AS _t, _rows, COALESCE(_a1, _rows) AS _a1, COALESCE(_a2, 0) AS _a2, _a3, _a4, _a5
  FROM wild_sums_1
)
wild_swept_1 AS (
  SELECT _k1, _k2, _t, LEAD(_t) OVER (PARTITION BY _k1, _k2 ORDER BY _t) AS _next,
    SUM(_rows) OVER (PARTITION BY _k1, _k2 ORDER BY _t) AS _rows, SUM(_a1) OVER (PARTITION BY _k1, _k2 ORDER BY _t) AS _a1, SUM(_a2) OVER (PARTITION BY _k1, _k2 ORDER BY _t) AS _a2, SUM(_a3) OVER (PARTITION BY _k1, _k2 ORDER BY _t) AS _a3, SUM(_a4) OVER (PARTITION BY _k1, _k2 ORDER BY _t) AS _a4, SUM(_a5) OVER (PARTITION BY _k1, _k2 ORDER BY _t) AS _a5
  FROM wild_moves_2
)
wild_timeline_1 AS (
  SELECT _k1 AS k1, _k2 AS b1, _a1 AS n, CASE WHEN _a1 > 0 THEN ((_a2 * 262144.0D + _a3 * 1.52587890625E-05D) + (_a4 * 8.881784197001252E-16D + _a5 * 5.169878828456423E-26D)) END AS s, _k1, _k2, _t, _live
  FROM (
    SELECT _k1, _k2, _rows, _a1, _a2, _a3, _a4, _a5, _t, _rows > 0 AS _live
    FROM wild_swept_1
    WHERE _next IS NULL OR _next > _t
  )
)
wild_spans_1 AS (
  SELECT k1, b1, n, s, _t, LEAD(_t) OVER (PARTITION BY _k1, _k2 ORDER BY _t) AS _x, _live
  FROM wild_timeline_1
)
wild_sweep_1 AS (
  SELECT k1, b1, n, s, _t, _x, CAST(1 AS BIGINT) AS _n
  FROM wild_spans_1
  WHERE _live AND _t > :since
  UNION ALL
  SELECT k1, b1, n, s, _x AS _t, CAST(NULL AS BIGINT) AS _x, CAST(-1 AS BIGINT) AS _n
  FROM wild_spans_1
  WHERE _live AND _t <= :since AND _x IS NOT NULL
)
wild_shape_2 AS (
  SELECT k1, b1, n, s, _x, _n
  FROM wild_sweep_1
)
wild_keep_1 AS (
  SELECT k1, b1, n, s, _x, SUM(_n) AS _n
  FROM (
    SELECT k1, b1, n, s, _x, _n
    FROM wild_kept_1
    WHERE (_x IS NULL OR _x > :until)
    UNION ALL
    SELECT k1, b1, n, s, _x, _n
    FROM wild_sweep_1
    WHERE (_x IS NULL OR _x > :until)
  )
  GROUP BY k1, b1, n, s, _x
  HAVING SUM(_n) <> 0
)
wild_live_1 AS (
  SELECT k1, b1, n, s, CAST(:since AS BIGINT) AS _t, _x, _n
  FROM wild_kept_1
)
wild_all_1 AS (
  SELECT k1, b1, n, s, _t, _x, _n
  FROM wild_live_1
  UNION ALL
  SELECT k1, b1, n, s, _t, _x, _n
  FROM wild_sweep_1
)
wild_elements_1 AS (
  SELECT k1 AS _k1, b1, k1, n, s, _t, _x, _n
  FROM wild_all_1
)
wild_instants_1 AS (
  SELECT DISTINCT _k1, _at
  FROM (
    SELECT _k1, _t AS _at
    FROM wild_elements_1
    WHERE _t > :since
    UNION ALL
    SELECT _k1, _x AS _at
    FROM wild_elements_1
    WHERE _x > :since AND _x <= :until
  )
)
wild_moments_1 AS (
  SELECT _k1, _at
  FROM wild_instants_1
  UNION ALL
  SELECT DISTINCT _k1, CAST(:since AS BIGINT) AS _at
  FROM wild_elements_1
  WHERE :since >= 0
)
wild_alive_1 AS (
  SELECT _k1, _at, b1, k1, n, s, CAST(1 AS BIGINT) AS _n
  FROM (
    SELECT m._k1, m._at, e.b1, e.k1, e.n, e.s, SUM(e._n) AS _n
    FROM wild_moments_1 AS m
    JOIN wild_elements_1 AS e ON m._k1 <=> e._k1 AND e._t <= m._at AND m._at < COALESCE(e._x, 9223372036854775807)
    GROUP BY m._k1, m._at, e.b1, e.k1, e.n, e.s
    HAVING SUM(e._n) > 0
  )
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy
)
wild_timeline_2 AS (
  SELECT m._k1 AS k1, COLLECT_LIST(STRUCT(b1 AS b1, n AS n, CASE b1 WHEN 100 THEN CAST('Infinity' AS DOUBLE) WHEN 101 THEN -CAST('Infinity' AS DOUBLE) WHEN 102 THEN CAST('NaN' AS DOUBLE) ELSE s * POWER(2D, 17 * b1) * POWER(2D, 17 * b1) END AS s)) FILTER (WHERE e._n IS NOT NULL) AS _w0, m._k1, m._at AS _t, COUNT(e._n) > 0 AS _live
  FROM wild_moments_1 AS m
  LEFT JOIN wild_alive_1 AS e ON m._k1 <=> e._k1 AND m._at = e._at
  GROUP BY m._k1, m._at
)
fitting_1 AS (
  SELECT _k1, _rows, _a1, _a2, _a3, _a4, _a5, _t, _rows > 0 AS _live
  FROM swept_1
  WHERE _next IS NULL OR _next > _t
)
gathered_1 AS (
  SELECT _k1, _t, STRUCT(_rows, _a1, _a2, _a3, _a4, _a5, _live) AS _p0, NULL AS _p1
  FROM fitting_1
  UNION ALL
  SELECT _k1, _t, NULL AS _p0, STRUCT(_w0, _live) AS _p1
  FROM wild_timeline_2
)
at_once_1 AS (
  SELECT _k1, _t, ANY_VALUE(_p0) IGNORE NULLS AS _p0, ANY_VALUE(_p1) IGNORE NULLS AS _p1
  FROM gathered_1
  GROUP BY _k1, _t
)
known_1 AS (
  SELECT _k1, _t, LAST_VALUE(_p0) IGNORE NULLS OVER (PARTITION BY _k1 ORDER BY _t) AS _p0, LAST_VALUE(_p1) IGNORE NULLS OVER (PARTITION BY _k1 ORDER BY _t) AS _p1
  FROM at_once_1
)
timeline_1 AS (
  SELECT _k1 AS k, CASE WHEN _a1 > 0 THEN CASE WHEN _w0 IS NULL THEN ((_a2 * 262144.0D + _a3 * 1.52587890625E-05D) + (_a4 * 8.881784197001252E-16D + _a5 * 5.169878828456423E-26D)) ELSE AGGREGATE(SORT_ARRAY(_w0), ((_a2 * 262144.0D + _a3 * 1.52587890625E-05D) + (_a4 * 8.881784197001252E-16D + _a5 * 5.169878828456423E-26D)), (a, e) -> a + e.s) END END AS sum_x, _k1, _t, _live
  FROM (
    SELECT _k1, _p0._rows AS _rows, _p0._a1 AS _a1, _p0._a2 AS _a2, _p0._a3 AS _a3, _p0._a4 AS _a4, _p0._a5 AS _a5, _p1._w0 AS _w0, _t, _p0._live AS _live
    FROM known_1
  )
)
timeline_2 AS (
  SELECT k AS k, sum_x AS total, _k1, _t, _live AS _live
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
