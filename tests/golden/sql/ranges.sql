-- == by ranges: the last rows
-- SELECT k, v FROM s [ROWS 3]
-- reads log_s_1: s in (since, until]
-- keeps tail_1: last_1, with the columns of arriving_1
-- project_1: linear
-- rows_1: tail
pieces_1 AS (
  SELECT k, v, _t, _s, COALESCE(RINT(CAST(_t AS DOUBLE) / (SELECT NULLIF((MAX(CAST(_t AS DOUBLE)) - MIN(CAST(_t AS DOUBLE))) / 20, 0)
  FROM rows_1)), 0D) AS _piece
  FROM rows_1
)
placed_1 AS (
  SELECT *, CAST(_first DIV GREATEST(0, _all DIV 1000 + 1) AS BIGINT) AS _block
  FROM (
    SELECT _piece, COALESCE(SUM(_rows) OVER (ORDER BY _piece ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS _first, SUM(_rows) OVER () AS _all
    FROM (
      SELECT _piece, COUNT(*) AS _rows
      FROM pieces_1
      GROUP BY _piece
    )
  )
)
ends_1 AS (
  SELECT _block, LEAD(_start) OVER (ORDER BY _block) AS _end
  FROM (
    SELECT _block, MIN(_first) AS _start
    FROM placed_1
    GROUP BY _block
  )
)
goes_1 AS (
  SELECT _piece, _block, FALSE AS _copied
  FROM placed_1
  UNION ALL
  SELECT p._piece, b._block, TRUE AS _copied
  FROM placed_1 AS p
  JOIN ends_1 AS b ON p._block > b._block AND p._first < b._end + 3
)
followed_1 AS (
  SELECT k, v, _t, _s, _x
  FROM (
    SELECT k, v, _t, _s, _copied, LEAD(_t, 3) OVER (PARTITION BY _block ORDER BY _t, _s) AS _x
    FROM (
      SELECT /*+ BROADCAST(g) */ r.k, r.v, r._t, r._s, g._block, g._copied
      FROM pieces_1 AS r
      JOIN goes_1 AS g ON r._piece = g._piece
    )
  )
  WHERE NOT _copied
)
-- displaced_1: tail
-- last_1: tail
-- arriving_1: tail
-- window_1: tail
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == by ranges: the last rows of a selection
-- SELECT SUM(v) AS total FROM (ISTREAM(SELECT k, v FROM s WHERE v > 1)) [ROWS 2]
-- reads log_s_1: s in (since, until]
-- keeps tail_1: last_1, with the columns of arriving_1
-- keeps sums_1: totals_1, with the columns of shape_1
-- filter_1: linear
-- project_1: linear
-- rows_1: tail
pieces_1 AS (
  SELECT v, _t, _s, COALESCE(RINT(CAST(_t AS DOUBLE) / (SELECT NULLIF((MAX(CAST(_t AS DOUBLE)) - MIN(CAST(_t AS DOUBLE))) / 20, 0)
  FROM rows_1)), 0D) AS _piece
  FROM rows_1
)
placed_1 AS (
  SELECT *, CAST(_first DIV GREATEST(0, _all DIV 1000 + 1) AS BIGINT) AS _block
  FROM (
    SELECT _piece, COALESCE(SUM(_rows) OVER (ORDER BY _piece ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS _first, SUM(_rows) OVER () AS _all
    FROM (
      SELECT _piece, COUNT(*) AS _rows
      FROM pieces_1
      GROUP BY _piece
    )
  )
)
ends_1 AS (
  SELECT _block, LEAD(_start) OVER (ORDER BY _block) AS _end
  FROM (
    SELECT _block, MIN(_first) AS _start
    FROM placed_1
    GROUP BY _block
  )
)
goes_1 AS (
  SELECT _piece, _block, FALSE AS _copied
  FROM placed_1
  UNION ALL
  SELECT p._piece, b._block, TRUE AS _copied
  FROM placed_1 AS p
  JOIN ends_1 AS b ON p._block > b._block AND p._first < b._end + 2
)
followed_1 AS (
  SELECT v, _t, _s, _x
  FROM (
    SELECT v, _t, _s, _copied, LEAD(_t, 2) OVER (PARTITION BY _block ORDER BY _t, _s) AS _x
    FROM (
      SELECT /*+ BROADCAST(g) */ r.v, r._t, r._s, g._block, g._copied
      FROM pieces_1 AS r
      JOIN goes_1 AS g ON r._piece = g._piece
    )
  )
  WHERE NOT _copied
)
-- displaced_1: tail
-- last_1: tail
-- arriving_1: tail
-- window_1: tail
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
-- shape_1: running
extent_1 AS (
  SELECT CAST(MIN(_t) AS DOUBLE) AS _low, CAST(MAX(_t) AS DOUBLE) AS _high
  FROM (
    SELECT _t
    FROM log_s_1
  )
)
spread_1 AS (
  SELECT /*+ REPARTITION(_range) */ _range, _t, _rows, _a1, _a2
  FROM (
    SELECT /*+ BROADCAST(x) */ COALESCE(CASE WHEN x._high > x._low THEN CAST(GREATEST(0D, LEAST(19D, (CAST(m._t AS DOUBLE) - x._low) * 20 / (x._high - x._low))) AS BIGINT) END, 0) AS _range, m._t, m._rows, m._a1, m._a2
    FROM moves_1 AS m
    JOIN extent_1 AS x ON TRUE
    UNION ALL
    SELECT _range, CAST(:since - 1 AS BIGINT) AS _t, 0 AS _rows, 0 AS _a1, 0 AS _a2
    FROM (
      SELECT 1 AS _one
    ) AS o
    LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(19 AS BIGINT))) e AS _range
  )
)
before_1 AS (
  SELECT _range, MAX(_last) OVER (ORDER BY _range ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _last, SUM(_rows) OVER (ORDER BY _range ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _rows, SUM(_a1) OVER (ORDER BY _range ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _a1, SUM(_a2) OVER (ORDER BY _range ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _a2
  FROM (
    SELECT _range, MAX(CASE WHEN _t >= :since THEN _t END) AS _last, SUM(_rows) AS _rows, SUM(_a1) AS _a1, SUM(_a2) AS _a2
    FROM spread_1
    GROUP BY _range
  )
)
within_1 AS (
  SELECT _range, _t, LEAD(_t) OVER (PARTITION BY _range ORDER BY _t) AS _next, SUM(_rows) OVER (PARTITION BY _range ORDER BY _t) AS _rows, SUM(_a1) OVER (PARTITION BY _range ORDER BY _t) AS _a1, SUM(_a2) OVER (PARTITION BY _range ORDER BY _t) AS _a2
  FROM spread_1
)
swept_1 AS (
  SELECT /*+ BROADCAST(b) */ w._range, w._t, w._next, w._rows + COALESCE(b._rows, 0) AS _rows, w._a1 + COALESCE(b._a1, 0) AS _a1, w._a2 + COALESCE(b._a2, 0) AS _a2
  FROM within_1 AS w
  JOIN before_1 AS b ON w._range = b._range
  WHERE (w._t >= :since OR b._last IS NOT NULL)
)
-- timeline_1: running
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == by ranges: values near the largest
-- SELECT v, k FROM s [RANGE 2 ON v]
-- reads log_s_1: s in (since, until]
-- keeps tail_1: last_1, with the columns of arriving_1
-- project_1: linear
-- rows_1: tail
-- walked_1: tail
pieces_1 AS (
  SELECT k, v, _t, _s, _v, _mark, COALESCE(RINT(-GREATEST(LEAST(CAST(_v AS DOUBLE), 1E300D), -1E300D) / (SELECT NULLIF((MAX(-GREATEST(LEAST(CAST(_v AS DOUBLE), 1E300D), -1E300D)) - MIN(-GREATEST(LEAST(CAST(_v AS DOUBLE), 1E300D), -1E300D))) / 20, 0)
  FROM walked_1)), 0D) AS _piece
  FROM walked_1
)
placed_1 AS (
  SELECT *, CAST(_first DIV GREATEST(0, _all DIV 1000 + 1) AS BIGINT) AS _block
  FROM (
    SELECT _piece, COALESCE(SUM(_rows) OVER (ORDER BY _piece ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS _first, SUM(_rows) OVER () AS _all, MIN(_least) OVER (ORDER BY _piece ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _least
    FROM (
      SELECT _piece, COUNT(*) AS _rows, MIN(CASE WHEN _mark THEN _t END) AS _least
      FROM pieces_1
      GROUP BY _piece
    )
  )
)
goes_1 AS (
  SELECT _piece, _block, FIRST_VALUE(_least) OVER (PARTITION BY _block ORDER BY _piece) AS _before
  FROM placed_1
)
passed_1 AS (
  SELECT k, v, _t, _s, _v, _mark, LEAST(MIN(CASE WHEN _mark THEN _t END) OVER (
    PARTITION BY _block ORDER BY _v DESC, _mark ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), _before) AS _x
  FROM (
    SELECT /*+ BROADCAST(g) */ r.k, r.v, r._t, r._s, r._v, r._mark, g._block, g._before
    FROM pieces_1 AS r
    JOIN goes_1 AS g ON r._piece = g._piece
  )
)
-- displaced_1: tail
-- last_1: tail
-- arriving_1: tail
-- window_1: tail
-- project_2: linear
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == by ranges: sums over everything
-- SELECT COUNT(*) AS n, MAX(v) AS most FROM s
-- reads log_s_1: s in (since, until]
-- keeps sums_1: totals_1, with the columns of shape_1
-- window_1: window
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
-- shape_1: running
extent_1 AS (
  SELECT CAST(MIN(_t) AS DOUBLE) AS _low, CAST(MAX(_t) AS DOUBLE) AS _high
  FROM (
    SELECT _t
    FROM log_s_1
  )
)
spread_1 AS (
  SELECT /*+ REPARTITION(_range) */ _range, _t, _rows, _a1
  FROM (
    SELECT /*+ BROADCAST(x) */ COALESCE(CASE WHEN x._high > x._low THEN CAST(GREATEST(0D, LEAST(19D, (CAST(m._t AS DOUBLE) - x._low) * 20 / (x._high - x._low))) AS BIGINT) END, 0) AS _range, m._t, m._rows, m._a1
    FROM moves_1 AS m
    JOIN extent_1 AS x ON TRUE
    UNION ALL
    SELECT _range, CAST(:since - 1 AS BIGINT) AS _t, 0 AS _rows, NULL AS _a1
    FROM (
      SELECT 1 AS _one
    ) AS o
    LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(19 AS BIGINT))) e AS _range
  )
)
before_1 AS (
  SELECT _range, MAX(_last) OVER (ORDER BY _range ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _last, SUM(_rows) OVER (ORDER BY _range ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _rows, MAX(_a1) OVER (ORDER BY _range ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _a1
  FROM (
    SELECT _range, MAX(CASE WHEN _t >= :since THEN _t END) AS _last, SUM(_rows) AS _rows, MAX(_a1) AS _a1
    FROM spread_1
    GROUP BY _range
  )
)
within_1 AS (
  SELECT _range, _t, LEAD(_t) OVER (PARTITION BY _range ORDER BY _t) AS _next, SUM(_rows) OVER (PARTITION BY _range ORDER BY _t) AS _rows, MAX(_a1) OVER (PARTITION BY _range ORDER BY _t) AS _a1
  FROM spread_1
)
swept_1 AS (
  SELECT /*+ BROADCAST(b) */ w._range, w._t, w._next, w._rows + COALESCE(b._rows, 0) AS _rows, GREATEST(w._a1, b._a1) AS _a1
  FROM within_1 AS w
  JOIN before_1 AS b ON w._range = b._range
  WHERE (w._t >= :since OR b._last IS NOT NULL)
)
-- timeline_1: running
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1
