-- == the last rows
-- SELECT k, v FROM s [ROWS 3]
-- reads log_s_1: s in (since, until]
-- keeps tail_1: last_1, with the columns of arriving_1
-- project_1: linear
rows_1 AS (
  SELECT k, v, _t, _s
  FROM tail_1
  UNION ALL
  SELECT k, v, _t, _s
  FROM project_1
)
displaced_1 AS (
  SELECT *, LEAD(_t, 3) OVER (ORDER BY _t, _s) AS _x
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
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == the last rows of each group within a span
-- SELECT k, v FROM s [PARTITION BY k ROWS 2 RANGE 4]
-- reads log_s_1: s in (since, until]
-- keeps tail_1: last_1, with the columns of arriving_1
-- project_1: linear
rows_1 AS (
  SELECT k, v, _t, _s
  FROM tail_1
  UNION ALL
  SELECT k, v, _t, _s
  FROM project_1
)
displaced_1 AS (
  SELECT *, LEAD(_t, 2) OVER (PARTITION BY k ORDER BY _t, _s) AS _x
  FROM rows_1
)
last_1 AS (
  SELECT k, v, _t, _s
  FROM displaced_1
  WHERE (_x IS NULL OR _x > :until) AND (_t + 5) > :until
)
arriving_1 AS (
  SELECT k, v, _t, _s
  FROM project_1
)
window_1 AS (
  SELECT k, v,
    CASE WHEN _t <= :since THEN _x ELSE _t END AS _t,
    CASE WHEN _t <= :since THEN (_t + 5) ELSE LEAST(CASE WHEN _x <= :until THEN _x END, (_t + 5)) END AS _x,
    CAST(CASE WHEN _t <= :since THEN -1 ELSE 1 END AS BIGINT) AS _n
  FROM displaced_1
  WHERE _t <= :until AND CASE WHEN _t <= :since THEN _x < (_t + 5) AND _x <= :until ELSE (_x IS NULL OR _x > _t) AND (_t + 5) > _t END
)
window_2 AS (
  SELECT k, v,
    CASE WHEN _t <= :since THEN _x ELSE _t END AS _t,
    CASE WHEN _t <= :since THEN (_t + 5) ELSE LEAST(CASE WHEN _x <= :until THEN _x END, (_t + 5)) END AS _x,
    CAST(CASE WHEN _t <= :since THEN -1 ELSE 1 END AS BIGINT) AS _n
  FROM displaced_1
  WHERE _t <= :until AND CASE WHEN _t <= :since THEN _x < (_t + 5) AND _x <= :until ELSE (_x IS NULL OR _x > _t) AND (_t + 5) > _t END
)
held_1 AS (
  SELECT k, v, _t AS _t, (_t + 5) AS _x, CAST(1 AS BIGINT) AS _n
  FROM tail_1
  WHERE _t <= :since AND (_t + 5) > :since
)
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == rows with a slide
-- SELECT k, v FROM s [ROWS 4 SLIDE 2]
-- reads log_s_1: s in (since, until]
-- keeps tail_1: last_1, with the columns of arriving_1
-- project_1: linear
rows_1 AS (
  SELECT k, v, _t, _s, _i, _from
  FROM tail_1
  UNION ALL
  SELECT k, v, _t, _s, CAST(NULL AS BIGINT) AS _i, CAST(NULL AS BIGINT) AS _from
  FROM project_1
)
numbered_1 AS (
  SELECT k, v, _t, _s, COALESCE(_i, COALESCE(MAX(_i) OVER (), 0) + ROW_NUMBER() OVER (PARTITION BY _i IS NULL ORDER BY _t, _s)) AS _i, _from
  FROM rows_1
)
seen_1 AS (
  SELECT k, v, _t, _s, _i, _from AS _was, COALESCE(_from, MAX(CASE WHEN PMOD(_i, 2) = 0 THEN _t END) OVER (ORDER BY _i ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)) AS _from, MAX(CASE WHEN PMOD(_i, 2) = 0 THEN _t END) OVER (ORDER BY _i ROWS BETWEEN 4 FOLLOWING AND 5 FOLLOWING) AS _x
  FROM numbered_1
)
last_1 AS (
  SELECT k, v, _t, _s, CAST(_i AS BIGINT) AS _i, _from
  FROM seen_1
  WHERE _x IS NULL
)
arriving_1 AS (
  SELECT k, v, _t, _s, CAST(NULL AS BIGINT) AS _i, CAST(NULL AS BIGINT) AS _from
  FROM project_1
)
window_1 AS (
  SELECT k, v,
    CASE WHEN _was IS NULL THEN _from ELSE _x END AS _t, CASE WHEN _was IS NULL THEN _x END AS _x,
    CAST(CASE WHEN _was IS NULL THEN 1 ELSE -1 END AS BIGINT) AS _n
  FROM seen_1
  WHERE CASE WHEN _was IS NULL THEN _from IS NOT NULL AND (_x IS NULL OR _x > _from) ELSE _x IS NOT NULL END
)
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == values near the largest (text only)
-- SELECT seq, w FROM p [RANGE 4 ON seq]
-- reads log_p_1: p in (since, until]
-- keeps tail_1: last_1, with the columns of arriving_1
rows_1 AS (
  SELECT seq, w, _t, _s
  FROM tail_1
  UNION ALL
  SELECT seq, w, _t, _s
  FROM log_p_1
)
displaced_1 AS (
  SELECT *
  FROM (
    SELECT seq, w, _t, _s, _mark, MIN(CASE WHEN _mark THEN _t END) OVER (
      ORDER BY _v DESC, _mark ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS _x
    FROM (
      SELECT seq, w, _t, _s, seq + 4 AS _v, FALSE AS _mark
      FROM rows_1
      WHERE seq IS NOT NULL
      UNION ALL
      SELECT seq, w, _t, _s, seq AS _v, TRUE AS _mark
      FROM rows_1
      WHERE seq IS NOT NULL
    )
  )
  WHERE NOT _mark
)
last_1 AS (
  SELECT seq, w, _t, _s
  FROM displaced_1
  WHERE (_x IS NULL OR _x > :until)
)
arriving_1 AS (
  SELECT seq, w, _t, _s
  FROM log_p_1
)
window_1 AS (
  SELECT seq, w,
    CASE WHEN _t <= :since THEN _x ELSE _t END AS _t,
    CASE WHEN _t <= :since THEN CAST(NULL AS BIGINT) ELSE CASE WHEN _x <= :until THEN _x END END AS _x,
    CAST(CASE WHEN _t <= :since THEN -1 ELSE 1 END AS BIGINT) AS _n
  FROM displaced_1
  WHERE _t <= :until AND CASE WHEN _t <= :since THEN _x <= :until ELSE _x IS NULL OR _x > _t END
)
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1
