-- == tuple by tuple
-- SELECT ISTREAM(k + 1 AS k) FROM s [NOW] WHERE v > 1
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 1, until - 1 or since]
window_1 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 1 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_1
  )
  WHERE _t > :since AND _t <= :until
)
filter_1 AS (
  SELECT k, v, name, _t, _x, _n
  FROM window_1
  WHERE v > 1
)
project_1 AS (
  SELECT k + 1 AS k, _t, _x, _n
  FROM filter_1
)
window_2 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 1 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_2
  )
  WHERE _t <= :since AND _x > :since AND _x <= :until
)
filter_2 AS (
  SELECT k, v, name, _t, _x, _n
  FROM window_2
  WHERE v > 1
)
project_2 AS (
  SELECT k + 1 AS k, _t, _x, _n
  FROM filter_2
)
before_1 AS (
  SELECT k, _t, _n, COALESCE(SUM(_n) OVER (PARTITION BY k ORDER BY _t RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING), 0) AS _before
  FROM (
    SELECT k, _t, _n
    FROM project_1
    UNION ALL
    SELECT k, CAST(:since AS BIGINT) AS _t, _n
    FROM project_2
  )
)
more_1 AS (
  SELECT *, SUM(_n) OVER (PARTITION BY k, _t ORDER BY _t ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS _there
  FROM before_1
)
repeated_1 AS (
  SELECT k, _t
  FROM (
    SELECT k, _t, LEAST(_n, _there - _before) AS _n
    FROM more_1
    WHERE _t > :since AND _there > _before
  )
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy
)
result_1 AS (
  SELECT k, _t, CAST(1 AS BIGINT) AS _n
  FROM repeated_1
)
-- result: result_1

-- == each row at each instant
-- SELECT RSTREAM(k) FROM s [RANGE 4]
-- reads log_s_1: s in (since - 5, since]
-- reads log_s_2: s in (since, until]
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
rstream_1 AS (
  SELECT k, _t
  FROM (
    SELECT k, _i AS _t, _n
    FROM (
      SELECT k, GREATEST(_t, :since + 1) AS _from, LEAST(COALESCE(_x, 9223372036854775807) - 1, :until) AS _to, _n
      FROM (
        SELECT *
        FROM project_1
        UNION ALL
        SELECT *
        FROM project_2
      )
      WHERE GREATEST(_t, :since + 1) <= LEAST(COALESCE(_x, 9223372036854775807) - 1, :until)
    )
    LATERAL VIEW EXPLODE(SEQUENCE(_from, _to)) e AS _i
  )
)
-- result_1: lower
-- result: result_1

-- == rows that may be taken back
-- SELECT RSTREAM(k, v) FROM s [ROWS 2]
-- reads log_s_1: s in (since, until]
-- keeps tail_1: last_1, with the columns of arriving_1
project_1 AS (
  SELECT k, v, _t, _s
  FROM log_s_1
)
rows_1 AS (
  SELECT k, v, _t, _s
  FROM tail_1
  UNION ALL
  SELECT k, v, _t, _s
  FROM project_1
)
displaced_1 AS (
  SELECT *, LEAD(_t, 2) OVER (ORDER BY _t, _s) AS _x
  FROM rows_1
)
last_1 AS (
  SELECT k, v, _t, _s
  FROM displaced_1
  WHERE (_x IS NULL OR _x > :until)
)
arriving_1 AS (
  SELECT k, v, _t, _s
  FROM project_1
)
window_1 AS (
  SELECT k, v,
    CASE WHEN _t <= :since THEN _x ELSE _t END AS _t,
    CASE WHEN _t <= :since THEN CAST(NULL AS BIGINT) ELSE CASE WHEN _x <= :until THEN _x END END AS _x,
    CAST(CASE WHEN _t <= :since THEN -1 ELSE 1 END AS BIGINT) AS _n
  FROM displaced_1
  WHERE _t <= :until AND CASE WHEN _t <= :since THEN _x <= :until ELSE _x IS NULL OR _x > _t END
)
held_1 AS (
  SELECT k, v, _t AS _t, CAST(NULL AS BIGINT) AS _x, CAST(1 AS BIGINT) AS _n
  FROM tail_1
  WHERE _t <= :since
)
window_2 AS (
  SELECT k, v,
    CASE WHEN _t <= :since THEN _x ELSE _t END AS _t,
    CASE WHEN _t <= :since THEN CAST(NULL AS BIGINT) ELSE CASE WHEN _x <= :until THEN _x END END AS _x,
    CAST(CASE WHEN _t <= :since THEN -1 ELSE 1 END AS BIGINT) AS _n
  FROM displaced_1
  WHERE _t <= :until AND CASE WHEN _t <= :since THEN _x <= :until ELSE _x IS NULL OR _x > _t END
)
repeated_1 AS (
  SELECT k, v, _t
  FROM (
    SELECT k, v, _t, SUM(_n) AS _n
    FROM (
      SELECT k, v, _i AS _t, _n
      FROM (
        SELECT k, v, GREATEST(_t, :since + 1) AS _from, LEAST(COALESCE(_x, 9223372036854775807) - 1, :until) AS _to, _n
        FROM (
          SELECT *
          FROM held_1
          UNION ALL
          SELECT *
          FROM window_2
        )
        WHERE GREATEST(_t, :since + 1) <= LEAST(COALESCE(_x, 9223372036854775807) - 1, :until)
      )
      LATERAL VIEW EXPLODE(SEQUENCE(_from, _to)) e AS _i
    )
    GROUP BY k, v, _t
    HAVING SUM(_n) > 0
  )
  LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(_n AS BIGINT))) e AS _copy
)
result_1 AS (
  SELECT k, v, _t, CAST(1 AS BIGINT) AS _n
  FROM repeated_1
)
-- result: result_1

-- == from the first tuple on (text only)
-- SELECT RSTREAM(k) FROM clocked [RANGE 4 SECONDS] EVERY 1 SECOND
-- reads log_clocked_1: clocked in (since - 4000001, since]
-- reads log_clocked_2: clocked in (since, until]
-- keeps beginning_1: begin_1, with the columns of shape_1
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
begin_1 AS (
  SELECT MIN(_t) AS _begin
  FROM (
    SELECT _begin AS _t
    FROM beginning_1
    UNION ALL
    SELECT _t
    FROM log_clocked_2
  )
)
shape_1 AS (
  SELECT MIN(_t) AS _begin
  FROM (
    SELECT _t
    FROM log_clocked_2
  )
)
rstream_1 AS (
  SELECT k, _t
  FROM (
    SELECT k, _i AS _t, _n
    FROM (
      SELECT k, (GREATEST(_t, _begin, :since + 1) + PMOD(-GREATEST(_t, _begin, :since + 1), 1000000)) AS _from, LEAST(COALESCE(_x, 9223372036854775807) - 1, :until) AS _to, _n
      FROM (
        SELECT s.*, b._begin
        FROM (
          SELECT *
          FROM project_1
          UNION ALL
          SELECT *
          FROM project_2
        ) AS s
        JOIN begin_1 AS b ON b._begin IS NOT NULL
      )
      WHERE (GREATEST(_t, _begin, :since + 1) + PMOD(-GREATEST(_t, _begin, :since + 1), 1000000)) <= LEAST(COALESCE(_x, 9223372036854775807) - 1, :until)
    )
    LATERAL VIEW EXPLODE(SEQUENCE(_from, _to, 1000000)) e AS _i
  )
)
-- result_1: lower
-- result: result_1

-- == Dstream of what never goes
-- SELECT DSTREAM(k) FROM s [RANGE UNBOUNDED]
-- reads log_s_1: s in (since, until]
-- window_1: window
-- project_1: linear
nothing_1 AS (
  SELECT k, _t
  FROM project_1
  WHERE FALSE
)
-- result_1: lower
-- result: result_1

-- == a sample picks tuples by a hash
-- SELECT k, v FROM s SAMPLE 50 PERCENT [RANGE 4]
-- reads log_s_1: s in (since, until]
-- keeps kept_1: keep_1, with the columns of shape_1
sample_1 AS (
  SELECT k, v, name, _t, _s
  FROM log_s_1
  WHERE MD5(CONCAT_WS('|', '0', CAST(_t AS STRING), CAST(k AS STRING), CAST(v AS STRING), CAST(name AS STRING))) < '80000000'
)
-- window_1: window
-- project_1: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1
