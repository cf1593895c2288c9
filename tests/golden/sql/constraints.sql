-- == groups of a clustered column are closed
-- SELECT k, SUM(v) AS total FROM together [RANGE UNBOUNDED] GROUP BY k
-- reads log_together_1: together in (since, until]
-- keeps places_1: placed_1, with the columns of shape_1
-- keeps sums_1: still_open_1, with the columns of shape_2
-- window_1: window
-- touched_1: running
-- events_1: running
arriving_1 AS (
  SELECT k AS _v, _t, CAST(ROW_NUMBER() OVER (ORDER BY _t, _s) AS BIGINT) + COALESCE((SELECT MAX(_p)
  FROM places_1), CAST(0 AS BIGINT)) AS _p
  FROM log_together_1
)
walked_1 AS (
  SELECT _t, _v, _new, _p - LAG(_p) OVER (PARTITION BY _v ORDER BY _p) - 1 AS _between
  FROM (
    SELECT _v, CAST(:since AS BIGINT) AS _t, _p, FALSE AS _new
    FROM places_1
    UNION ALL
    SELECT _v, _t, _p, TRUE AS _new
    FROM arriving_1
  )
)
broken_1 AS (
  SELECT _t, CONCAT(CAST(_between AS STRING), ' tuples came between two with ', COALESCE(CAST(_v AS STRING), 'null')) AS _why
  FROM walked_1
  WHERE _new AND _between BETWEEN 1 AND 9
)
latest_1 AS (
  SELECT _v, MAX(_p) AS _p
  FROM (
    SELECT _v, _p
    FROM places_1
    UNION ALL
    SELECT _v, _p
    FROM arriving_1
  )
  GROUP BY _v
)
placed_1 AS (
  SELECT _v, _p
  FROM latest_1
  WHERE _p > (SELECT MAX(_p) - 10
  FROM latest_1)
)
shape_1 AS (
  SELECT k AS _v, CAST(1 AS BIGINT) AS _p
  FROM log_together_1
)
open_1 AS (
  SELECT _v, _p
  FROM latest_1
  WHERE _p > (SELECT MAX(_p) - 1
  FROM latest_1)
)
-- moves_1: running
-- totals_1: running
still_open_1 AS (
  SELECT g._k1, g._rows, g._a1, g._a2
  FROM totals_1 AS g
  JOIN open_1 AS o ON g._k1 <=> o._v
)
-- shape_2: running
-- swept_1: running
-- timeline_1: running
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == groups of an ordered column are closed, and violations are counted
-- SELECT k, COUNT(*) AS n FROM rising [RANGE UNBOUNDED] GROUP BY k
-- reads log_rising_1: rising in (since, until]
-- keeps largest_1: last_1, with the columns of shape_1
-- keeps violations_of_by_order_1: violations_1, with the columns of shape_2
-- keeps sums_1: still_open_1, with the columns of shape_3
-- window_1: window
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
arriving_1 AS (
  SELECT k AS _v, _t, CAST(ROW_NUMBER() OVER (ORDER BY _t, _s) AS BIGINT) + COALESCE((SELECT MAX(_p)
  FROM largest_1), CAST(0 AS BIGINT)) AS _p
  FROM log_rising_1
)
rising_1 AS (
  SELECT _t, _v, _p, _new, MAX(_v) OVER (ORDER BY _p ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS _m
  FROM (
    SELECT _m AS _v, CAST(:since AS BIGINT) AS _t, _p, FALSE AS _new
    FROM largest_1
    UNION ALL
    SELECT _v, _t, _p, TRUE AS _new
    FROM arriving_1
  )
)
walked_1 AS (
  SELECT _t, _v, _new, LAG(_m, 2) OVER (ORDER BY _p) AS _bound
  FROM rising_1
)
broken_1 AS (
  SELECT _t, CONCAT(CAST(_v AS STRING), ' came after ', CAST(_bound AS STRING)) AS _why
  FROM walked_1
  WHERE _new AND _v < _bound
)
last_1 AS (
  SELECT _m, _p
  FROM rising_1
  WHERE _p > (SELECT MAX(_p) - 2
  FROM rising_1)
)
shape_1 AS (
  SELECT k AS _m, CAST(1 AS BIGINT) AS _p
  FROM log_rising_1
)
-- shape_2: violations
-- violations_1: violations
still_open_1 AS (
  SELECT g._k1, g._rows
  FROM totals_1 AS g
  WHERE COALESCE(g._k1 >= (SELECT CASE WHEN COUNT(_m) > 1 THEN MIN(_m) END
  FROM last_1), TRUE)
)
-- shape_3: running
-- swept_1: running
-- timeline_1: running
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == a join whose rows refer to one row each
-- SELECT ISTREAM(o.id, o.total, p.paid) FROM orders o, payments p WHERE p.id = o.id
-- reads log_payments_1: payments in (since, until]
-- reads log_orders_1: orders in (since, until]
-- keeps stamps_1: last_1, with the columns of shape_1
-- keeps waiting_1: keep_waiting_1, with the columns of shape_2
-- keeps places_1: placed_1, with the columns of shape_3
-- keeps held_1: needed_1, with the columns of shape_4
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
live_1 AS (
  SELECT o_id, total, _t, CAST(NULL AS BIGINT) AS _x, _n
  FROM held_1
)
waited_1 AS (
  SELECT p_id, paid, _t, CAST(NULL AS BIGINT) AS _x, _n
  FROM waiting_1
)
all_1 AS (
  SELECT o_id, total, _t, _x, _n
  FROM live_1
  UNION ALL
  SELECT o_id, total, _t, _x, _n
  FROM project_2
)
asking_1 AS (
  SELECT p_id, paid, _t, _n
  FROM waiting_1
  UNION ALL
  SELECT p_id, paid, _t, _n
  FROM project_1
)
there_1 AS (
  SELECT o_id AS _y
  FROM all_1
  WHERE o_id IS NOT NULL
  GROUP BY o_id
)
unmet_1 AS (
  SELECT m.p_id, m.paid, m._t, m._n
  FROM asking_1 AS m
  LEFT JOIN there_1 AS o ON m.p_id = o._y
  WHERE o._y IS NULL AND m.p_id IS NOT NULL
)
last_1 AS (
  SELECT _t
  FROM (
    SELECT _t, ROW_NUMBER() OVER (ORDER BY _t DESC) AS _r
    FROM (
      SELECT _t
      FROM stamps_1
      UNION ALL
      SELECT _t
      FROM log_orders_1
    )
  )
  WHERE _r <= 2
)
shape_1 AS (
  SELECT _t
  FROM log_orders_1
)
keep_waiting_1 AS (
  SELECT p_id, paid, _t, _n
  FROM unmet_1
  WHERE COALESCE(_t >= (SELECT CASE WHEN COUNT(*) >= 2 THEN MIN(_t) END
  FROM last_1), TRUE)
)
shape_2 AS (
  SELECT p_id, paid, _t, _n
  FROM project_1
)
broken_1 AS (
  SELECT _t, CONCAT('no tuple of orders came for ', CAST(p_id AS STRING)) AS _why
  FROM unmet_1
  WHERE COALESCE(_t < (SELECT CASE WHEN COUNT(*) >= 2 THEN MIN(_t) END
  FROM last_1), FALSE)
  UNION ALL
  SELECT _t, CONCAT('several tuples of orders have ', CAST(o_id AS STRING)) AS _why
  FROM (
    SELECT o_id, _t, LAG(_t) OVER (PARTITION BY o_id ORDER BY _t) AS _earlier
    FROM all_1
    WHERE o_id IS NOT NULL
  )
  WHERE _t > :since AND _earlier IS NOT NULL
)
seen_1 AS (
  SELECT _v
  FROM (
    SELECT id AS _v
    FROM log_payments_1
    UNION ALL
    SELECT p_id AS _v
    FROM waiting_1
  )
  WHERE _v IS NOT NULL
  GROUP BY _v
)
holding_1 AS (
  SELECT o_id, total, _t, _n, _seen
  FROM held_1
  UNION ALL
  SELECT o_id, total, _t, _n, FALSE AS _seen
  FROM project_2
)
marked_1 AS (
  SELECT h.o_id, h.total, h._t, h._n, h._seen OR s._v IS NOT NULL AS _seen
  FROM holding_1 AS h
  LEFT JOIN seen_1 AS s ON h.o_id = s._v
)
arriving_1 AS (
  SELECT id AS _v, _t, CAST(ROW_NUMBER() OVER (ORDER BY _t, _s) AS BIGINT) + COALESCE((SELECT MAX(_p)
  FROM places_1), CAST(0 AS BIGINT)) AS _p
  FROM log_payments_1
)
walked_1 AS (
  SELECT _t, _v, _new, _p - LAG(_p) OVER (PARTITION BY _v ORDER BY _p) - 1 AS _between
  FROM (
    SELECT _v, CAST(:since AS BIGINT) AS _t, _p, FALSE AS _new
    FROM places_1
    UNION ALL
    SELECT _v, _t, _p, TRUE AS _new
    FROM arriving_1
  )
)
broken_2 AS (
  SELECT _t, CONCAT(CAST(_between AS STRING), ' tuples came between two with ', COALESCE(CAST(_v AS STRING), 'null')) AS _why
  FROM walked_1
  WHERE _new AND _between BETWEEN 1 AND 9
)
latest_1 AS (
  SELECT _v, MAX(_p) AS _p
  FROM (
    SELECT _v, _p
    FROM places_1
    UNION ALL
    SELECT _v, _p
    FROM arriving_1
  )
  GROUP BY _v
)
placed_1 AS (
  SELECT _v, _p
  FROM latest_1
  WHERE _p > (SELECT MAX(_p) - 10
  FROM latest_1)
)
shape_3 AS (
  SELECT id AS _v, CAST(1 AS BIGINT) AS _p
  FROM log_payments_1
)
open_1 AS (
  SELECT _v, _p
  FROM latest_1
  WHERE _p > (SELECT MAX(_p) - 1
  FROM latest_1)
)
needed_1 AS (
  SELECT h.o_id, h.total, h._t, h._n, h._seen
  FROM marked_1 AS h
  LEFT JOIN open_1 AS o ON h.o_id = o._v
  WHERE (NOT h._seen OR o._v IS NOT NULL)
)
shape_4 AS (
  SELECT o_id, total, _t, _n, FALSE AS _seen
  FROM project_2
)
-- join_1: join
-- project_3: linear
-- result_1: lower
-- result: result_1
