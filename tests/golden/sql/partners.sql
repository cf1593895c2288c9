-- == rows are needed until time has gone beyond them
-- SELECT x.k, y.w FROM s x, t y WHERE x.ELEMENT_TIME / 2 = y.ELEMENT_TIME + 1
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps kept_2: keep_2, with the columns of shape_2
window_1 AS (
  SELECT k, v, name, element_time, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS element_time, _t AS _t, CAST(NULL AS BIGINT) AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_1
  )
  WHERE _t > :since AND _t <= :until
)
project_1 AS (
  SELECT k AS x_k, element_time AS x_element_time, _t, _x, _n
  FROM window_1
)
window_2 AS (
  SELECT k, w, element_time, _t, _x, _n
  FROM (
    SELECT k, w, _t AS element_time, _t AS _t, CAST(NULL AS BIGINT) AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_t_1
  )
  WHERE _t > :since AND _t <= :until
)
project_2 AS (
  SELECT w, element_time AS y_element_time, _t, _x, _n
  FROM window_2
)
shape_1 AS (
  SELECT w, y_element_time, _x, _n
  FROM project_2
)
keep_1 AS (
  SELECT w, y_element_time, _x, _n
  FROM kept_1
  WHERE (_x IS NULL OR _x > :until) AND ((CASE WHEN CAST((y_element_time + 1) AS BIGINT) < 0 THEN CAST((y_element_time + 1) AS BIGINT) * 2 ELSE (CAST((y_element_time + 1) AS BIGINT) + 1) * 2 - 1 END) + 1) > :until
  UNION ALL
  SELECT w, y_element_time, _x, _n
  FROM project_2
  WHERE (_x IS NULL OR _x > :until) AND ((CASE WHEN CAST((y_element_time + 1) AS BIGINT) < 0 THEN CAST((y_element_time + 1) AS BIGINT) * 2 ELSE (CAST((y_element_time + 1) AS BIGINT) + 1) * 2 - 1 END) + 1) > :until
)
live_1 AS (
  SELECT w, y_element_time, CAST(:since AS BIGINT) AS _t, _x, _n
  FROM kept_1
)
all_1 AS (
  SELECT w, y_element_time, _t, _x, _n
  FROM live_1
  UNION ALL
  SELECT w, y_element_time, _t, _x, _n
  FROM project_2
)
shape_2 AS (
  SELECT x_k, x_element_time, _x, _n
  FROM project_1
)
keep_2 AS (
  SELECT x_k, x_element_time, _x, _n
  FROM kept_2
  WHERE (_x IS NULL OR _x > :until) AND ((CAST((x_element_time DIV 2) AS BIGINT) - 1) + 1) > :until
  UNION ALL
  SELECT x_k, x_element_time, _x, _n
  FROM project_1
  WHERE (_x IS NULL OR _x > :until) AND ((CAST((x_element_time DIV 2) AS BIGINT) - 1) + 1) > :until
)
live_2 AS (
  SELECT x_k, x_element_time, CAST(:since AS BIGINT) AS _t, _x, _n
  FROM kept_2
)
join_1 AS (
  SELECT x_k, x_element_time, w, y_element_time,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM project_1 AS l
  JOIN all_1 AS r ON x_element_time DIV 2 = y_element_time + 1 AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
  UNION ALL
  SELECT x_k, x_element_time, w, y_element_time,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM live_2 AS l
  JOIN project_2 AS r ON x_element_time DIV 2 = y_element_time + 1 AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807)
)
project_3 AS (
  SELECT x_k AS k, w, _t, _x, _n
  FROM join_1
)
result_1 AS (
  SELECT k, w, _t, CAST(1 AS BIGINT) AS _n
  FROM project_3
)
-- result: result_1

-- == rows are needed until the other side has gone beyond them (text only)
-- SELECT p.w, q.w AS other FROM p, q WHERE p.seq = q.seq
-- reads log_p_1: p in (since, until]
-- reads log_q_1: q in (since, until]
-- keeps furthest_1: far_1, with the columns of shape_1
-- keeps furthest_2: far_2, with the columns of shape_2
-- keeps kept_1: keep_1, with the columns of shape_3
-- keeps kept_2: keep_2, with the columns of shape_4
-- window_1: window
-- project_1: linear
marks_1 AS (
  SELECT _t, MAX(MAX(CAST(seq AS BIGINT))) OVER (ORDER BY _t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _before
  FROM log_p_1
  GROUP BY _t
)
far_1 AS (
  SELECT MAX(_far) AS _far
  FROM (
    SELECT _far
    FROM furthest_1
    UNION ALL
    SELECT CAST(seq AS BIGINT) AS _far
    FROM log_p_1
  )
)
shape_1 AS (
  SELECT MAX(CAST(seq AS BIGINT)) AS _far
  FROM log_p_1
)
before_1 AS (
  SELECT e.p_seq, e.p_w, e._t, e._x, e._n, CAST(p_seq AS BIGINT) AS _v, GREATEST(m._before, (SELECT MAX(_far)
  FROM furthest_1)) AS _far
  FROM project_1 AS e
  LEFT JOIN marks_1 AS m ON e._t = m._t
)
checked_1 AS (
  SELECT p_seq, p_w, CASE WHEN _v < _far THEN CAST(RAISE_ERROR(CONCAT('column "seq" of stream "p" was declared so that CAST(seq AS BIGINT) does not fall, but ', CAST(_v AS STRING), ' came after ', CAST(_far AS STRING))) AS BIGINT) ELSE _t END AS _t, _x, _n
  FROM before_1
)
-- window_2: window
-- project_2: linear
marks_2 AS (
  SELECT _t, MAX(MAX(CAST(seq AS BIGINT))) OVER (ORDER BY _t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _before
  FROM log_q_1
  GROUP BY _t
)
far_2 AS (
  SELECT MAX(_far) AS _far
  FROM (
    SELECT _far
    FROM furthest_2
    UNION ALL
    SELECT CAST(seq AS BIGINT) AS _far
    FROM log_q_1
  )
)
shape_2 AS (
  SELECT MAX(CAST(seq AS BIGINT)) AS _far
  FROM log_q_1
)
before_2 AS (
  SELECT e.q_seq, e.q_w, e._t, e._x, e._n, CAST(q_seq AS BIGINT) AS _v, GREATEST(m._before, (SELECT MAX(_far)
  FROM furthest_2)) AS _far
  FROM project_2 AS e
  LEFT JOIN marks_2 AS m ON e._t = m._t
)
checked_2 AS (
  SELECT q_seq, q_w, CASE WHEN _v < _far THEN CAST(RAISE_ERROR(CONCAT('column "seq" of stream "q" was declared so that CAST(seq AS BIGINT) does not fall, but ', CAST(_v AS STRING), ' came after ', CAST(_far AS STRING))) AS BIGINT) ELSE _t END AS _t, _x, _n
  FROM before_2
)
-- shape_3: netting
-- keep_1: netting
-- live_1: netting
-- all_1: lower
-- shape_4: netting
-- keep_2: netting
-- live_2: netting
-- join_1: join
-- project_3: linear
-- result_1: lower
-- result: result_1

-- == rows that may begin so far apart
-- SELECT v, w FROM s, t WHERE s.k = t.k AND t.ELEMENT_TIME BETWEEN s.ELEMENT_TIME AND s.ELEMENT_TIME + 2
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps kept_2: keep_2, with the columns of shape_2
window_1 AS (
  SELECT k, v, name, element_time, _t, _x, _n
  FROM (
    SELECT k, v, name, _t AS element_time, _t AS _t, CAST(NULL AS BIGINT) AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_s_1
  )
  WHERE _t > :since AND _t <= :until
)
project_1 AS (
  SELECT k AS s_k, v, element_time AS s_element_time, _t, _x, _n
  FROM window_1
)
window_2 AS (
  SELECT k, w, element_time, _t, _x, _n
  FROM (
    SELECT k, w, _t AS element_time, _t AS _t, CAST(NULL AS BIGINT) AS _x, CAST(1 AS BIGINT) AS _n
    FROM log_t_1
  )
  WHERE _t > :since AND _t <= :until
)
project_2 AS (
  SELECT k AS t_k, w, element_time AS t_element_time, _t, _x, _n
  FROM window_2
)
shape_1 AS (
  SELECT t_k, w, t_element_time, _x, _n
  FROM project_2
)
keep_1 AS (
  SELECT t_k, w, t_element_time, _x, _n
  FROM kept_1
  WHERE (_x IS NULL OR _x > :until) AND (CAST(t_element_time AS BIGINT) + 1) > :until
  UNION ALL
  SELECT t_k, w, t_element_time, _x, _n
  FROM project_2
  WHERE (_x IS NULL OR _x > :until) AND (CAST(t_element_time AS BIGINT) + 1) > :until
)
live_1 AS (
  SELECT t_k, w, t_element_time, CAST(:since AS BIGINT) AS _t, _x, _n
  FROM kept_1
)
all_1 AS (
  SELECT t_k, w, t_element_time, _t, _x, _n
  FROM live_1
  UNION ALL
  SELECT t_k, w, t_element_time, _t, _x, _n
  FROM project_2
)
shape_2 AS (
  SELECT s_k, v, s_element_time, _x, _n
  FROM project_1
)
keep_2 AS (
  SELECT s_k, v, s_element_time, _x, _n
  FROM kept_2
  WHERE (_x IS NULL OR _x > :until) AND ((CAST(s_element_time AS BIGINT) + 2) + 1) > :until
  UNION ALL
  SELECT s_k, v, s_element_time, _x, _n
  FROM project_1
  WHERE (_x IS NULL OR _x > :until) AND ((CAST(s_element_time AS BIGINT) + 2) + 1) > :until
)
live_2 AS (
  SELECT s_k, v, s_element_time, CAST(:since AS BIGINT) AS _t, _x, _n
  FROM kept_2
)
all_2 AS (
  SELECT s_k, v, s_element_time, _t, _x, _n
  FROM live_2
  UNION ALL
  SELECT s_k, v, s_element_time, _t, _x, _n
  FROM project_1
)
placed_1 AS (
  SELECT s_k, v, s_element_time, _t, _x, _n, ((CAST(s_element_time AS BIGINT) - :since + 2) - PMOD((CAST(s_element_time AS BIGINT) - :since + 2), 3)) DIV 3 AS _b
  FROM all_2
)
spread_1 AS (
  SELECT t_k, w, t_element_time, _t, _x, _n, _b
  FROM all_1
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN ((CAST(t_element_time AS BIGINT) - :since) - PMOD((CAST(t_element_time AS BIGINT) - :since), 3)) DIV 3 ELSE GREATEST(((CAST(t_element_time AS BIGINT) - :since) - PMOD((CAST(t_element_time AS BIGINT) - :since), 3)) DIV 3, 1) END, GREATEST(CASE WHEN _t > :since THEN ((CAST(t_element_time AS BIGINT) - :since) - PMOD((CAST(t_element_time AS BIGINT) - :since), 3)) DIV 3 ELSE GREATEST(((CAST(t_element_time AS BIGINT) - :since) - PMOD((CAST(t_element_time AS BIGINT) - :since), 3)) DIV 3, 1) END, ((CAST(t_element_time AS BIGINT) - :since + 2) - PMOD((CAST(t_element_time AS BIGINT) - :since + 2), 3)) DIV 3))) e AS _b
)
join_1 AS (
  SELECT s_k, v, s_element_time, t_k, w, t_element_time,
    GREATEST(l._t, r._t) AS _t, LEAST(l._x, r._x) AS _x, l._n * r._n AS _n
  FROM placed_1 AS l
  JOIN spread_1 AS r ON s_k = t_k AND l._b = r._b AND l._t < COALESCE(r._x, 9223372036854775807) AND r._t < COALESCE(l._x, 9223372036854775807) AND (t_element_time BETWEEN s_element_time AND s_element_time + 2)
)
project_3 AS (
  SELECT v, w, _t, _x, _n
  FROM join_1
)
result_1 AS (
  SELECT v, w, _t, CAST(1 AS BIGINT) AS _n
  FROM project_3
)
-- result: result_1
