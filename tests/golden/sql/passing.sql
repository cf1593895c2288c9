-- == a declared order closes its groups
-- SELECT seq, COUNT(*) AS n FROM p GROUP BY seq EMIT FINAL
-- reads log_p_1: p in (since, until]
-- keeps waiting_1: later_1, with the columns of arriving_1
arriving_1 AS (
  SELECT seq, w, _t, _s, CAST(seq AS BIGINT) AS _v
  FROM log_p_1
)
open_1 AS (
  SELECT seq, w, _t, _s, _v
  FROM waiting_1
  UNION ALL
  SELECT seq, w, _t, _s, _v
  FROM arriving_1
)
values_1 AS (
  SELECT _v, MIN(_t) AS _first, MAX(_t) AS _last
  FROM open_1
  GROUP BY _v
)
following_1 AS (
  SELECT _v, _last, LEAD(_v) OVER (ORDER BY _v) AS _by, LEAD(_first) OVER (ORDER BY _v) AS _at
  FROM values_1
)
passed_1 AS (
  SELECT _v, CASE WHEN _v IS NULL OR _at < _last THEN CAST(RAISE_ERROR(CONCAT('column "seq" of stream "p" was declared so that CAST(seq AS BIGINT) does not fall, but ', COALESCE(CAST(_v AS STRING), 'null'), ' came after ', COALESCE(CAST(_by AS STRING), 'other values'))) AS BIGINT) ELSE _at END AS _at
  FROM following_1
)
closed_1 AS (
  SELECT e.seq, e.w, e._t, e._s, e._v, p._at
  FROM open_1 AS e
  JOIN passed_1 AS p ON e._v <=> p._v
)
later_1 AS (
  SELECT seq, w, _t, _s, _v
  FROM closed_1
  WHERE _at IS NULL
)
window_1 AS (
  SELECT seq, w, _at AS _t, _at + 1 AS _x, CAST(1 AS BIGINT) AS _n
  FROM closed_1
  WHERE _at IS NOT NULL
)
-- project_1: linear
-- keyed_1: moment
-- groups_1: moment
-- project_2: linear
-- rstream_1: stream
-- result_1: lower
-- result: result_1
