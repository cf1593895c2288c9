-- == a group for each row
-- SELECT DISTINCT k FROM s [RANGE 4]
-- reads log_s_1: s in (since, until]
-- reads log_s_2: s in (since - 5, until - 5 or since]
-- reads log_s_3: s in (until - 5, until]
-- keeps sums_1: totals_1, with the columns of shape_1
window_1 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 5 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_1
  )
  WHERE _t > :since AND _t <= :until
)
project_1 AS (
  SELECT k, _t, _x, _n
  FROM window_1
)
window_2 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 5 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_2
  )
  WHERE _t <= :since AND _x > :since AND _x <= :until
)
project_2 AS (
  SELECT k, _t, _x, _n
  FROM window_2
)
touched_1 AS (
  SELECT `k` AS _k1, _t, _x, _n AS _rows
  FROM project_1
  UNION ALL
  SELECT `k` AS _k1, _t, _x, _n AS _rows
  FROM project_2
)
events_1 AS (
  SELECT _k1, _t, _rows
  FROM (
    SELECT _k1, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows
    FROM touched_1
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
)
moves_1 AS (
  SELECT _k1, CAST(:since AS BIGINT) AS _t, _rows
  FROM sums_1
  UNION ALL
  SELECT _k1, _t, _rows
  FROM events_1
)
totals_1 AS (
  SELECT _k1, SUM(_rows) AS _rows
  FROM moves_1
  GROUP BY _k1
  HAVING SUM(_rows) <> 0
)
shape_1 AS (
  SELECT _k1, SUM(_rows) AS _rows
  FROM events_1
  GROUP BY _k1
)
window_3 AS (
  SELECT k, v, name, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS _t, _t + 5 AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_3
  )
  WHERE _t <= :until AND _x > :until
)
project_3 AS (
  SELECT k, _t, _x, _n
  FROM window_3
)
living_1 AS (
  SELECT `k` AS _k1, _n AS _rows
  FROM project_3
)
living_totals_1 AS (
  SELECT _k1, SUM(_rows) AS _rows
  FROM living_1
  GROUP BY _k1
  HAVING SUM(_rows) <> 0
)
dealt_1 AS (
  SELECT /*+ REPARTITION(_k1) */ *
  FROM (
    SELECT `k` AS _k1, k, _t, _x, _n
    FROM project_1
    UNION ALL
    SELECT `k` AS _k1, k, _t, _x, _n
    FROM project_2
  )
)
touched_2 AS (
  SELECT _k1, _t, _x, _n AS _rows
  FROM dealt_1
)
moves_2 AS (
  SELECT _k1, _t, _rows
  FROM (
    SELECT _k1, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows
    FROM touched_2
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
  UNION ALL
  SELECT /*+ REPARTITION(_k1) */ _k1, CAST(:since AS BIGINT) AS _t, _rows
  FROM sums_1
)
swept_1 AS (
  SELECT _k1, _t, LEAD(_t) OVER (PARTITION BY _k1 ORDER BY _t) AS _next,
    SUM(_rows) OVER (PARTITION BY _k1 ORDER BY _t) AS _rows
  FROM moves_2
)
timeline_1 AS (
  SELECT _k1 AS k, _k1, _t, _live
  FROM (
    SELECT _k1, _rows, _t, _rows > 0 AS _live
    FROM swept_1
    WHERE _next IS NULL OR _next > _t
  )
)
steps_1 AS (
  SELECT k, _t, _live,
    COALESCE(LAG(_live) OVER (PARTITION BY _k1 ORDER BY _t), FALSE) AS _was
  FROM timeline_1
)
changes_1 AS (
  SELECT CASE WHEN _kind = -1 THEN k ELSE k END AS k, _t, CAST(CASE WHEN _kind = 1 THEN 1 ELSE -1 END AS BIGINT) AS _n
  FROM steps_1
  LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _kind
  WHERE CASE _kind WHEN 1 THEN _t > :since AND _live AND NOT (_was) WHEN -1 THEN _t > :since AND _was AND NOT (_live AND _was) END
)
result_1 AS (
  SELECT *
  FROM changes_1
)
-- result: result_1

-- == of a relation, only what changes
-- SELECT DISTINCT k, e FROM r
-- reads log_r_1: r in (since, until]
-- keeps sums_1: totals_1, with the columns of shape_1
stored_1 AS (
  SELECT k, e, _t, CAST(NULL AS BIGINT) AS _x, _n
  FROM log_r_1
)
touched_1 AS (
  SELECT `k` AS _k1, `e` AS _k2, _t, _x, _n AS _rows
  FROM stored_1
)
events_1 AS (
  SELECT _k1, _k2, _t, _rows
  FROM (
    SELECT _k1, _k2, CASE WHEN _side = 1 THEN _t ELSE _x END AS _t, CASE WHEN _side = 1 THEN _rows ELSE -_rows END AS _rows
    FROM touched_1
    LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _side
  )
  WHERE _t > :since AND _t <= :until
)
moves_1 AS (
  SELECT _k1, _k2, CAST(:since AS BIGINT) AS _t, _rows
  FROM sums_1
  UNION ALL
  SELECT _k1, _k2, _t, _rows
  FROM events_1
)
totals_1 AS (
  SELECT _k1, _k2, SUM(_rows) AS _rows
  FROM moves_1
  GROUP BY _k1, _k2
  HAVING SUM(_rows) <> 0
)
shape_1 AS (
  SELECT _k1, _k2, SUM(_rows) AS _rows
  FROM events_1
  GROUP BY _k1, _k2
)
changing_1 AS (
  SELECT _k1, _k2
  FROM events_1
  GROUP BY _k1, _k2
)
moves_2 AS (
  SELECT _k1, _k2, CAST(:since AS BIGINT) AS _t, _rows
  FROM (
    SELECT h._k1, h._k2, h._rows
    FROM (
      SELECT _k1, _k2, _rows
      FROM sums_1
    ) AS h
    JOIN changing_1 AS c ON h._k1 <=> c._k1 AND h._k2 <=> c._k2
  )
  UNION ALL
  SELECT _k1, _k2, _t, _rows
  FROM events_1
)
swept_1 AS (
  SELECT _k1, _k2, _t, LEAD(_t) OVER (PARTITION BY _k1, _k2 ORDER BY _t) AS _next,
    SUM(_rows) OVER (PARTITION BY _k1, _k2 ORDER BY _t) AS _rows
  FROM moves_2
)
timeline_1 AS (
  SELECT _k1 AS k, _k2 AS e, _k1, _k2, _t, _live
  FROM (
    SELECT _k1, _k2, _rows, _t, _rows > 0 AS _live
    FROM swept_1
    WHERE _next IS NULL OR _next > _t
  )
)
steps_1 AS (
  SELECT k, e, _t, _live,
    COALESCE(LAG(_live) OVER (PARTITION BY _k1, _k2 ORDER BY _t), FALSE) AS _was
  FROM timeline_1
)
changes_1 AS (
  SELECT CASE WHEN _kind = -1 THEN k ELSE k END AS k, CASE WHEN _kind = -1 THEN e ELSE e END AS e, _t, CAST(CASE WHEN _kind = 1 THEN 1 ELSE -1 END AS BIGINT) AS _n
  FROM steps_1
  LATERAL VIEW EXPLODE(ARRAY(1, -1)) e AS _kind
  WHERE CASE _kind WHEN 1 THEN _t > :since AND _live AND NOT (_was) WHEN -1 THEN _t > :since AND _was AND NOT (_live AND _was) END
)
result_1 AS (
  SELECT *
  FROM changes_1
)
-- result: result_1
