-- == a tree over the instants
-- SELECT s.k, MAX(w) AS most FROM s [RANGE 4], t [RANGE 3] WHERE s.k = t.k GROUP BY s.k
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
-- all_3: lower
elements_1 AS (
  SELECT s_k AS _k1, w AS _v0, _t, _x, _n
  FROM all_3
)
-- instants_1: recomputed
-- moments_1: recomputed
numbered_1 AS (
  SELECT _k1, _at, ROW_NUMBER() OVER (PARTITION BY _k1 ORDER BY _at) - 1 AS _i, COUNT(*) OVER (PARTITION BY _k1) AS _of
  FROM moments_1
)
stretches_1 AS (
  SELECT p._k1, p._v0, b._i AS _l, COALESCE(e._i, b._of) AS _r
  FROM elements_1 AS p
  JOIN numbered_1 AS b ON p._k1 <=> b._k1 AND b._at = GREATEST(p._t, :since)
  LEFT JOIN numbered_1 AS e ON p._k1 <=> e._k1 AND e._at = p._x
)
nodes_1 AS (
  SELECT _k1, _level, _node, MAX(_v0) AS _v0
  FROM (
    SELECT *
    FROM (
      SELECT _k1, _v0, _level, SHIFTRIGHT(_l + SHIFTLEFT(CAST(1 AS BIGINT), _level) - 1, _level) AS _a, SHIFTRIGHT(_r, _level) AS _b
      FROM (
        SELECT *
        FROM stretches_1
        LATERAL VIEW EXPLODE(SEQUENCE(0, CAST(LOG2(_r - _l) AS INT))) e AS _level
      )
    )
    LATERAL VIEW EXPLODE(ARRAY(CASE WHEN _a % 2 = 1 THEN _a END, CASE WHEN _b % 2 = 1 THEN _b - 1 END)) e AS _node
    WHERE _a < _b AND _node IS NOT NULL
  )
  GROUP BY _k1, _level, _node
)
above_1 AS (
  SELECT _k1, _i, _level, SHIFTRIGHT(_i, _level) AS _node
  FROM numbered_1
  LATERAL VIEW EXPLODE(SEQUENCE(0, CAST(LOG2(_of) AS INT))) e AS _level
)
extreme_1 AS (
  SELECT a._k1, a._i, MAX(n._v0) AS _v0
  FROM above_1 AS a
  JOIN nodes_1 AS n ON a._k1 <=> n._k1 AND a._level = n._level AND a._node = n._node
  GROUP BY a._k1, a._i
)
timeline_1 AS (
  SELECT m._k1 AS s_k, f._v0 AS max_w, m._k1, m._at AS _t, f._i IS NOT NULL AS _live
  FROM numbered_1 AS m
  LEFT JOIN extreme_1 AS f ON m._k1 <=> f._k1 AND m._i = f._i
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1

-- == rows that may be taken back
-- SELECT k, MAX(v) AS most FROM s [ROWS 3] GROUP BY k
-- reads log_s_1: s in (since, until]
-- keeps tail_1: last_1, with the columns of arriving_1
-- project_1: linear
-- rows_1: tail
-- displaced_1: tail
-- last_1: tail
-- arriving_1: tail
-- window_1: tail
-- held_1: tail
-- window_2: tail
-- all_1: lower
elements_1 AS (
  SELECT k AS _k1, v AS _v0, _t, _x, _n
  FROM all_1
)
-- instants_1: recomputed
-- moments_1: recomputed
numbered_1 AS (
  SELECT _k1, _at, ROW_NUMBER() OVER (PARTITION BY _k1 ORDER BY _at) - 1 AS _i, COUNT(*) OVER (PARTITION BY _k1) AS _of
  FROM moments_1
)
present_1 AS (
  SELECT _k1, _v0, _t, _x
  FROM (
    SELECT _k1, _v0, _t, LEAD(_t) OVER (PARTITION BY _k1, _v0 ORDER BY _t) AS _x, SUM(_n) OVER (PARTITION BY _k1, _v0 ORDER BY _t) AS _n
    FROM (
      SELECT _k1, _v0, _t, SUM(_n) AS _n
      FROM (
        SELECT _k1, _v0, GREATEST(_t, :since) AS _t, _n
        FROM elements_1
        UNION ALL
        SELECT _k1, _v0, _x AS _t, -_n AS _n
        FROM elements_1
        WHERE _x <= :until
      )
      GROUP BY _k1, _v0, _t
      HAVING SUM(_n) <> 0
    )
  )
  WHERE _n > 0
)
stretches_1 AS (
  SELECT p._k1, p._v0, b._i AS _l, COALESCE(e._i, b._of) AS _r
  FROM present_1 AS p
  JOIN numbered_1 AS b ON p._k1 <=> b._k1 AND b._at = GREATEST(p._t, :since)
  LEFT JOIN numbered_1 AS e ON p._k1 <=> e._k1 AND e._at = p._x
)
nodes_1 AS (
  SELECT _k1, _level, _node, MAX(_v0) AS _v0
  FROM (
    SELECT *
    FROM (
      SELECT _k1, _v0, _level, SHIFTRIGHT(_l + SHIFTLEFT(CAST(1 AS BIGINT), _level) - 1, _level) AS _a, SHIFTRIGHT(_r, _level) AS _b
      FROM (
        SELECT *
        FROM stretches_1
        LATERAL VIEW EXPLODE(SEQUENCE(0, CAST(LOG2(_r - _l) AS INT))) e AS _level
      )
    )
    LATERAL VIEW EXPLODE(ARRAY(CASE WHEN _a % 2 = 1 THEN _a END, CASE WHEN _b % 2 = 1 THEN _b - 1 END)) e AS _node
    WHERE _a < _b AND _node IS NOT NULL
  )
  GROUP BY _k1, _level, _node
)
above_1 AS (
  SELECT _k1, _i, _level, SHIFTRIGHT(_i, _level) AS _node
  FROM numbered_1
  LATERAL VIEW EXPLODE(SEQUENCE(0, CAST(LOG2(_of) AS INT))) e AS _level
)
extreme_1 AS (
  SELECT a._k1, a._i, MAX(n._v0) AS _v0
  FROM above_1 AS a
  JOIN nodes_1 AS n ON a._k1 <=> n._k1 AND a._level = n._level AND a._node = n._node
  GROUP BY a._k1, a._i
)
timeline_1 AS (
  SELECT m._k1 AS k, f._v0 AS max_v, m._k1, m._at AS _t, f._i IS NOT NULL AS _live
  FROM numbered_1 AS m
  LEFT JOIN extreme_1 AS f ON m._k1 <=> f._k1 AND m._i = f._i
)
-- timeline_2: sweep
-- steps_1: sweep
-- changes_1: sweep
-- result_1: netting
-- result: result_1
