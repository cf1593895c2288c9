-- == rows that may be equal
-- SELECT ISTREAM(s.k, v, w) FROM s [RANGE 4] JOIN t [RANGE 3] ON s.k = t.k
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_t_2: t in (since - 4, since]
-- reads log_s_2: s in (since - 5, since]
-- keeps kept_1: keep_1, with the columns of shape_1
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
-- window_3: window
-- project_3: linear
-- all_1: lower
-- window_4: window
-- project_4: linear
-- all_2: lower
twins_1 AS (
  SELECT DISTINCT _begun
  FROM (
    SELECT _begun, COUNT(*) OVER (PARTITION BY _h) AS _together
    FROM (
      SELECT XXHASH64(s_k, v, _b) AS _h, XXHASH64(s_k, v, (_t - :since + 5) DIV 40) AS _begun
      FROM all_2
      LATERAL VIEW EXPLODE(SEQUENCE((_t - :since + 5) DIV 40, (_x - :since + 5) DIV 40)) e AS _b
    )
  )
  WHERE _together > 1
)
marked_1 AS (
  SELECT e.s_k, e.v, e._t, e._x, e._n, m._begun IS NOT NULL AS _twin
  FROM all_2 AS e
  LEFT JOIN twins_1 AS m ON XXHASH64(s_k, v, (_t - :since + 5) DIV 40) = m._begun
)
twins_2 AS (
  SELECT DISTINCT _begun
  FROM (
    SELECT _begun, COUNT(*) OVER (PARTITION BY _h) AS _together
    FROM (
      SELECT XXHASH64(t_k, w, _b) AS _h, XXHASH64(t_k, w, (_t - :since + 4) DIV 32) AS _begun
      FROM all_1
      LATERAL VIEW EXPLODE(SEQUENCE((_t - :since + 4) DIV 32, (_x - :since + 4) DIV 32)) e AS _b
    )
  )
  WHERE _together > 1
)
marked_2 AS (
  SELECT e.t_k, e.w, e._t, e._x, e._n, m._begun IS NOT NULL AS _twin
  FROM all_1 AS e
  LEFT JOIN twins_2 AS m ON XXHASH64(t_k, w, (_t - :since + 4) DIV 32) = m._begun
)
-- alone_1: join
-- twinned_1: join
-- alone_2: join
-- twinned_2: join
-- placed_1: buckets
-- spread_1: buckets
-- join_1: join
-- placed_2: buckets
-- spread_2: buckets
-- placed_3: buckets
-- spread_3: buckets
-- join_2: join
-- project_5: linear
-- project_6: linear
-- placed_4: buckets
-- spread_4: buckets
-- join_3: join
-- project_7: linear
-- lasting_1: join
-- lasting_2: join
-- placed_5: buckets
-- spread_5: buckets
-- outliving_1: join
-- project_8: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- come_1: netting
-- result_1: lower
-- result: result_1

-- == what comes and what goes
-- SELECT v + 1 AS u, name, w FROM s [RANGE 2], t [NOW] WHERE s.k = t.k AND v < w
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_s_2: s in (since - 3, since]
-- reads log_t_2: t in (since - 1, since]
-- keeps kept_1: keep_1, with the columns of shape_1
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
-- window_3: window
-- project_3: linear
-- all_1: lower
-- placed_1: buckets
-- spread_1: buckets
-- join_1: join
-- project_4: linear
-- lasting_1: join
-- lasting_2: join
-- placed_2: buckets
-- spread_2: buckets
-- outliving_1: join
-- project_5: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- before_1: netting
-- more_1: netting
-- repeated_1: netting
twins_1 AS (
  SELECT DISTINCT _begun
  FROM (
    SELECT _begun, COUNT(*) OVER (PARTITION BY _h) AS _together
    FROM (
      SELECT XXHASH64(name, _b) AS _h, XXHASH64(name, (_t - :since + 3) DIV 24) AS _begun
      FROM all_1
      LATERAL VIEW EXPLODE(SEQUENCE((_t - :since + 3) DIV 24, (_x - :since + 3) DIV 24)) e AS _b
    )
  )
  WHERE _together > 1
)
marked_1 AS (
  SELECT e.s_k, e.v, e.name, e._t, e._x, e._n, m._begun IS NOT NULL AS _twin
  FROM all_1 AS e
  LEFT JOIN twins_1 AS m ON XXHASH64(name, (_t - :since + 3) DIV 24) = m._begun
)
-- window_4: window
-- project_6: linear
-- all_2: lower
twins_2 AS (
  SELECT DISTINCT _begun
  FROM (
    SELECT _begun, COUNT(*) OVER (PARTITION BY _h) AS _together
    FROM (
      SELECT XXHASH64(w, _b) AS _h, XXHASH64(w, (_t - :since + 1) DIV 8) AS _begun
      FROM all_2
      LATERAL VIEW EXPLODE(SEQUENCE((_t - :since + 1) DIV 8, (_x - :since + 1) DIV 8)) e AS _b
    )
  )
  WHERE _together > 1
)
marked_2 AS (
  SELECT e.t_k, e.w, e._t, e._x, e._n, m._begun IS NOT NULL AS _twin
  FROM project_2 AS e
  LEFT JOIN twins_2 AS m ON XXHASH64(w, (_t - :since + 1) DIV 8) = m._begun
)
-- alone_1: join
-- twinned_1: join
-- alone_2: join
-- twinned_2: join
-- placed_3: buckets
-- spread_3: buckets
-- join_2: join
-- placed_4: buckets
-- spread_4: buckets
-- placed_5: buckets
-- spread_5: buckets
-- join_3: join
-- project_7: linear
-- project_8: linear
-- netted_1: netting
-- repeated_2: netting
-- go_1: netting
-- result_1: netting
-- result: result_1

-- == not where a side puts out nothing of its own
-- SELECT ISTREAM(s.k, w) FROM s [RANGE 4] JOIN t [RANGE 3] ON s.k = t.k
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_t_2: t in (since - 4, since]
-- reads log_s_2: s in (since - 5, since]
-- keeps kept_1: keep_1, with the columns of shape_1
window_1 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 5 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_1
  )
  WHERE _t > :since AND _t <= :until
)
project_1 AS (
  SELECT k AS s_k, _t, _x, _n
  FROM window_1
)
window_2 AS (
  SELECT k, w, _t, _x, _n
  FROM (
    SELECT k, w, _t AS _t, _t + 4 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_t_1
  )
  WHERE _t > :since AND _t <= :until
)
project_2 AS (
  SELECT k AS t_k, w, _t, _x, _n
  FROM window_2
)
window_3 AS (
  SELECT k, w, _t, _x, _n
  FROM (
    SELECT k, w, _t AS _t, _t + 4 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_t_2
  )
  WHERE _t <= :since AND _x > :since
)
project_3 AS (
  SELECT k AS t_k, w, _t, _x, _n
  FROM window_3
)
all_1 AS (
  SELECT t_k, w, _t, _x, _n
  FROM project_3
  UNION ALL
  SELECT t_k, w, _t, _x, _n
  FROM project_2
)
window_4 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 5 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_2
  )
  WHERE _t <= :since AND _x > :since
)
project_4 AS (
  SELECT k AS s_k, _t, _x, _n
  FROM window_4
)
all_2 AS (
  SELECT s_k, _t, _x, _n
  FROM project_4
  UNION ALL
  SELECT s_k, _t, _x, _n
  FROM project_1
)
placed_1 AS (
  SELECT s_k, _t, _x, _n, (_t - :since + 7) DIV 8 AS _b
  FROM all_2
)
spread_1 AS (
  SELECT t_k, w, _t, _x, _n, _b
  FROM all_1
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, (_x - :since + 6) DIV 8))) e AS _b
)
join_1 AS (
  SELECT s_k, t_k, w,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_1 AS l
  JOIN spread_1 AS r ON s_k = t_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
project_5 AS (
  SELECT s_k AS k, w, _t, _x, _n
  FROM join_1
)
lasting_1 AS (
  SELECT *
  FROM all_2
  WHERE (_x IS NULL OR _x > :until)
)
lasting_2 AS (
  SELECT *
  FROM all_1
  WHERE (_x IS NULL OR _x > :until)
)
placed_2 AS (
  SELECT s_k, _t, _x, _n, (_t - :since + 7) DIV 8 AS _b
  FROM lasting_1
)
spread_2 AS (
  SELECT t_k, w, _t, _x, _n, _b
  FROM lasting_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, (_x - :since + 6) DIV 8))) e AS _b
)
outliving_1 AS (
  SELECT s_k, t_k, w,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_2 AS l
  JOIN spread_2 AS r ON s_k = t_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
project_6 AS (
  SELECT s_k AS k, w, _t, _x, _n
  FROM outliving_1
)
shape_1 AS (
  SELECT k, w, _x, _n
  FROM project_5
)
keep_1 AS (
  SELECT k, w, _x, _n
  FROM kept_1
  WHERE (_x IS NULL OR _x > :until)
  UNION ALL
  SELECT k, w, _x, _n
  FROM project_6
  WHERE (_x IS NULL OR _x > :until)
)
live_1 AS (
  SELECT k, w, CAST(:since AS BIGINT) AS _t, _x, _n
  FROM kept_1
)
ends_1 AS (
  SELECT *
  FROM live_1
  WHERE _x > :since AND _x <= :until
)
netted_1 AS (
  SELECT k, w, _t, SUM(_n) AS _n
  FROM (
    SELECT k, w, _t, _n
    FROM project_5
    UNION ALL
    SELECT k, w, _x AS _t, -_n AS _n
    FROM project_5
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
result_1 AS (
  SELECT k, w, _t, CAST(1 AS BIGINT) AS _n
  FROM repeated_1
)
-- result: result_1

-- == single task: netted together
-- SELECT ISTREAM(s.k, v, w) FROM s [RANGE 4] JOIN t [RANGE 3] ON s.k = t.k
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_t_2: t in (since - 4, since]
-- reads log_s_2: s in (since - 5, since]
-- keeps kept_1: keep_1, with the columns of shape_1
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
-- window_3: window
-- project_3: linear
-- all_1: lower
-- window_4: window
-- project_4: linear
-- all_2: lower
-- placed_1: buckets
-- spread_1: buckets
-- join_1: join
-- project_5: linear
-- lasting_1: join
-- lasting_2: join
-- placed_2: buckets
-- spread_2: buckets
-- outliving_1: join
-- project_6: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- result_1: lower
-- result: result_1
