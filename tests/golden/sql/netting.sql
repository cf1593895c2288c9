-- == equal rows that come and go at one instant cancel out
-- SELECT k FROM s [RANGE 4]
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
netted_1 AS (
  SELECT k, _t, SUM(_n) AS _n
  FROM (
    SELECT k, _t, _n
    FROM project_1
    UNION ALL
    SELECT k, _x AS _t, -_n AS _n
    FROM project_1
    WHERE _x <= :until
    UNION ALL
    SELECT k, _x AS _t, -_n AS _n
    FROM project_2
  )
  GROUP BY k, _t
  HAVING SUM(_n) <> 0
)
repeated_1 AS (
  SELECT k, _t
  FROM (
    SELECT k, _t, _n
    FROM netted_1
    WHERE _n > 0
  )
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy
)
repeated_2 AS (
  SELECT k, _t
  FROM (
    SELECT k, _t, -_n AS _n
    FROM netted_1
    WHERE _n < 0
  )
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy
)
result_1 AS (
  SELECT k, _t, CAST(1 AS BIGINT) AS _n
  FROM repeated_1
  UNION ALL
  SELECT k, _t, CAST(-1 AS BIGINT) AS _n
  FROM repeated_2
)
-- result: result_1

-- == what no log holds is kept
-- SELECT x.k, y.w FROM (SELECT s.k, v FROM s [RANGE 4], r WHERE s.k = r.k) x, t [RANGE 3] y WHERE x.k = y.k
-- reads log_s_1: s in (since, until]
-- reads log_r_1: r in (since, until]
-- reads log_s_2: s in (since - 5, since]
-- reads log_t_1: t in (since, until]
-- reads log_t_2: t in (since - 4, since]
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps kept_2: keep_2, with the columns of shape_2
-- keeps kept_3: keep_3, with the columns of shape_3
-- window_1: window
-- project_1: linear
-- stored_1: stored
-- project_2: linear
shape_1 AS (
  SELECT r_k, _x, _n
  FROM project_2
)
keep_1 AS (
  SELECT r_k, _x, SUM(_n) AS _n
  FROM (
    SELECT r_k, _x, _n
    FROM kept_1
    WHERE (_x IS NULL OR _x > :until)
    UNION ALL
    SELECT r_k, _x, _n
    FROM project_2
    WHERE (_x IS NULL OR _x > :until)
  )
  GROUP BY r_k, _x
  HAVING SUM(_n) <> 0
)
live_1 AS (
  SELECT r_k, CAST(:since AS BIGINT) AS _t, _x, _n
  FROM kept_1
)
-- all_1: lower
-- window_2: window
-- project_3: linear
-- join_1: join
-- project_4: linear
-- window_3: window
-- project_5: linear
-- window_4: window
-- project_6: linear
-- all_2: lower
shape_2 AS (
  SELECT x_k, _x, _n
  FROM project_4
)
keep_2 AS (
  SELECT x_k, _x, SUM(_n) AS _n
  FROM (
    SELECT x_k, _x, _n
    FROM kept_2
    WHERE (_x IS NULL OR _x > :until)
    UNION ALL
    SELECT x_k, _x, _n
    FROM project_4
    WHERE (_x IS NULL OR _x > :until)
  )
  GROUP BY x_k, _x
  HAVING SUM(_n) <> 0
)
live_2 AS (
  SELECT x_k, CAST(:since AS BIGINT) AS _t, _x, _n
  FROM kept_2
)
-- all_3: lower
-- placed_1: buckets
-- spread_1: buckets
-- join_2: join
-- project_7: linear
-- lasting_1: join
-- lasting_2: join
-- placed_2: buckets
-- spread_2: buckets
-- outliving_1: join
-- project_8: linear
shape_3 AS (
  SELECT k, w, _x, _n
  FROM project_7
)
keep_3 AS (
  SELECT k, w, _x, SUM(_n) AS _n
  FROM (
    SELECT k, w, _x, _n
    FROM kept_3
    WHERE (_x IS NULL OR _x > :until)
    UNION ALL
    SELECT k, w, _x, _n
    FROM project_8
    WHERE (_x IS NULL OR _x > :until)
  )
  GROUP BY k, w, _x
  HAVING SUM(_n) <> 0
)
live_3 AS (
  SELECT k, w, CAST(:since AS BIGINT) AS _t, _x, _n
  FROM kept_3
)
-- ends_1: lower
netted_1 AS (
  SELECT k, w, _t, SUM(_n) AS _n
  FROM (
    SELECT k, w, _t, _n
    FROM project_7
    UNION ALL
    SELECT k, w, _x AS _t, -_n AS _n
    FROM project_7
    WHERE _x <= :until
    UNION ALL
    SELECT k, w, _x AS _t, -_n AS _n
    FROM ends_1
  )
  GROUP BY k, w, _t
  HAVING SUM(_n) <> 0
)
repeated_1 AS (
  SELECT k, w, _t
  FROM (
    SELECT k, w, _t, _n
    FROM netted_1
    WHERE _n > 0
  )
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy
)
repeated_2 AS (
  SELECT k, w, _t
  FROM (
    SELECT k, w, _t, -_n AS _n
    FROM netted_1
    WHERE _n < 0
  )
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy
)
result_1 AS (
  SELECT k, w, _t, CAST(1 AS BIGINT) AS _n
  FROM repeated_1
  UNION ALL
  SELECT k, w, _t, CAST(-1 AS BIGINT) AS _n
  FROM repeated_2
)
-- result: result_1

-- == single task: netting in one partition
-- SELECT k FROM s [RANGE 4]
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
netted_1 AS (
  SELECT k, _t, SUM(_n) AS _n
  FROM (
    SELECT /*+ COALESCE(1) */ *
    FROM (
      SELECT k, _t, _n
      FROM project_1
      UNION ALL
      SELECT k, _x AS _t, -_n AS _n
      FROM project_1
      WHERE _x <= :until
      UNION ALL
      SELECT k, _x AS _t, -_n AS _n
      FROM project_2
    )
  )
  GROUP BY k, _t
  HAVING SUM(_n) <> 0
)
repeated_1 AS (
  SELECT k, _t
  FROM (
    SELECT k, _t, _n
    FROM netted_1
    WHERE _n > 0
  )
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy
)
repeated_2 AS (
  SELECT k, _t
  FROM (
    SELECT k, _t, -_n AS _n
    FROM netted_1
    WHERE _n < 0
  )
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy
)
result_1 AS (
  SELECT /*+ COALESCE(1) */ *
  FROM (
    SELECT k, _t, CAST(1 AS BIGINT) AS _n
    FROM repeated_1
    UNION ALL
    SELECT k, _t, CAST(-1 AS BIGINT) AS _n
    FROM repeated_2
  )
)
-- result: result_1
