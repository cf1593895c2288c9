-- == a threshold
-- SELECT ISTREAM(s.k, s.v, r.e) FROM s [NOW], r WHERE s.v > r.e
-- reads log_s_1: s in (since, until]
-- reads log_r_1: r in (since, until]
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps kept_2: keep_2, with the columns of shape_2
-- window_1: window
-- project_1: linear
-- stored_1: stored
-- project_2: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- all_1: lower
chosen_1 AS (
  SELECT MIN_BY(_v, _h) AS _v
  FROM (
    SELECT CAST(e AS DOUBLE) AS _v, XXHASH64(CAST(e AS DOUBLE)) AS _h
    FROM all_1
    WHERE e IS NOT NULL
  )
  GROUP BY PMOD(_h, 63)
)
borders_1 AS (
  SELECT SORT_ARRAY(COLLECT_SET(_v)) AS _borders
  FROM chosen_1
)
placed_1 AS (
  SELECT e, _t, _x, _n, SIZE(FILTER(_borders, _border -> _border <= CAST(e AS DOUBLE))) AS _b
  FROM all_1
  JOIN borders_1 ON TRUE
)
spread_1 AS (
  SELECT s_k, v, _t, _x, _n, _b
  FROM (
    SELECT *
    FROM project_1
    JOIN borders_1 ON TRUE
  )
  LATERAL VIEW EXPLODE(SEQUENCE(0, GREATEST(0, SIZE(FILTER(_borders, _border -> _border <= CAST(v AS DOUBLE)))))) e AS _b
)
-- join_1: join
-- project_3: linear
-- shape_2: netting
-- keep_2: netting
-- live_2: netting
-- ends_1: lower
-- project_4: linear
-- netted_1: netting
-- repeated_1: netting
-- result_1: lower
-- result: result_1

-- == between two columns of a relation
-- SELECT s.k, s.v, r.e FROM s [RANGE 3], r WHERE s.v BETWEEN r.k AND r.e
-- reads log_s_1: s in (since, until]
-- reads log_r_1: r in (since, until]
-- reads log_s_2: s in (since - 4, since]
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps kept_2: keep_2, with the columns of shape_2
-- window_1: window
-- project_1: linear
-- stored_1: stored
-- project_2: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- project_3: linear
-- all_1: lower
chosen_1 AS (
  SELECT MIN_BY(_v, _h) AS _v
  FROM (
    SELECT CAST(r_k AS DOUBLE) AS _v, XXHASH64(CAST(r_k AS DOUBLE)) AS _h
    FROM all_1
    WHERE r_k IS NOT NULL
  )
  GROUP BY PMOD(_h, 63)
)
borders_1 AS (
  SELECT SORT_ARRAY(COLLECT_SET(_v)) AS _borders
  FROM chosen_1
)
placed_1 AS (
  SELECT s_k, v, _t, _x, _n, SIZE(FILTER(_borders, _border -> _border <= CAST(v AS DOUBLE))) AS _b
  FROM project_1
  JOIN borders_1 ON TRUE
)
spread_1 AS (
  SELECT r_k, e, _t, _x, _n, _b
  FROM (
    SELECT *
    FROM all_1
    JOIN borders_1 ON TRUE
  )
  LATERAL VIEW EXPLODE(SEQUENCE(SIZE(FILTER(_borders, _border -> _border <= CAST(r_k AS DOUBLE))), GREATEST(SIZE(FILTER(_borders, _border -> _border <= CAST(r_k AS DOUBLE))), SIZE(FILTER(_borders, _border -> _border <= CAST(e AS DOUBLE)))))) e AS _b
)
-- window_2: window
-- project_4: linear
placed_2 AS (
  SELECT s_k, v, _t, _x, _n, SIZE(FILTER(_borders, _border -> _border <= CAST(v AS DOUBLE))) AS _b
  FROM project_4
  JOIN borders_1 ON TRUE
)
spread_2 AS (
  SELECT r_k, e, _t, _x, _n, _b
  FROM (
    SELECT *
    FROM project_2
    JOIN borders_1 ON TRUE
  )
  LATERAL VIEW EXPLODE(SEQUENCE(SIZE(FILTER(_borders, _border -> _border <= CAST(r_k AS DOUBLE))), GREATEST(SIZE(FILTER(_borders, _border -> _border <= CAST(r_k AS DOUBLE))), SIZE(FILTER(_borders, _border -> _border <= CAST(e AS DOUBLE)))))) e AS _b
)
-- join_1: join
-- project_5: linear
-- shape_2: netting
-- keep_2: netting
-- live_2: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == a column of a relation between two of a stream
-- SELECT s.v, keyed.e FROM s [ROWS 2], keyed WHERE keyed.e >= s.k AND keyed.e < s.v
-- reads log_s_1: s in (since, until]
-- reads log_keyed_1: keyed in (since, until]
-- keeps tail_1: last_1, with the columns of arriving_1
-- keeps rows_2: last_2, with the columns of arriving_2
-- project_1: linear
-- rows_1: tail
-- displaced_1: tail
-- last_1: tail
-- arriving_1: tail
-- window_1: tail
-- project_2: linear
-- every_1: stored
-- in_order_1: stored
-- last_2: stored
-- arriving_2: stored
-- coming_1: stored
-- changes_1: stored
-- replaced_1: stored
-- stored_1: stored
-- project_3: linear
-- held_1: stored
-- project_4: linear
-- all_1: lower
chosen_1 AS (
  SELECT MIN_BY(_v, _h) AS _v
  FROM (
    SELECT CAST(e AS DOUBLE) AS _v, XXHASH64(CAST(e AS DOUBLE)) AS _h
    FROM all_1
    WHERE e IS NOT NULL
  )
  GROUP BY PMOD(_h, 63)
)
borders_1 AS (
  SELECT SORT_ARRAY(COLLECT_SET(_v)) AS _borders
  FROM chosen_1
)
placed_1 AS (
  SELECT e, _t, _x, _n, SIZE(FILTER(_borders, _border -> _border <= CAST(e AS DOUBLE))) AS _b
  FROM all_1
  JOIN borders_1 ON TRUE
)
spread_1 AS (
  SELECT s_k, v, _t, _x, _n, _b
  FROM (
    SELECT *
    FROM project_2
    JOIN borders_1 ON TRUE
  )
  LATERAL VIEW EXPLODE(SEQUENCE(SIZE(FILTER(_borders, _border -> _border <= CAST(s_k AS DOUBLE))), GREATEST(SIZE(FILTER(_borders, _border -> _border <= CAST(s_k AS DOUBLE))), SIZE(FILTER(_borders, _border -> _border <= CAST(v AS DOUBLE)))))) e AS _b
)
-- window_2: tail
-- held_2: tail
-- project_5: linear
placed_2 AS (
  SELECT e, _t, _x, _n, SIZE(FILTER(_borders, _border -> _border <= CAST(e AS DOUBLE))) AS _b
  FROM project_3
  JOIN borders_1 ON TRUE
)
spread_2 AS (
  SELECT s_k, v, _t, _x, _n, _b
  FROM (
    SELECT *
    FROM project_5
    JOIN borders_1 ON TRUE
  )
  LATERAL VIEW EXPLODE(SEQUENCE(SIZE(FILTER(_borders, _border -> _border <= CAST(s_k AS DOUBLE))), GREATEST(SIZE(FILTER(_borders, _border -> _border <= CAST(s_k AS DOUBLE))), SIZE(FILTER(_borders, _border -> _border <= CAST(v AS DOUBLE)))))) e AS _b
)
-- join_1: join
-- project_6: linear
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1
