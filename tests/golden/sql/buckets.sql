-- == windows of different lengths
-- SELECT s.k, v, w FROM s [RANGE 4] JOIN t [RANGE 3] ON s.k = t.k
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
-- twins_1: twins
-- marked_1: twins
-- twins_2: twins
-- marked_2: twins
-- alone_1: join
-- twinned_1: join
-- alone_2: join
-- twinned_2: join
placed_1 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since + 7) DIV 8 AS _b
  FROM alone_1
)
spread_1 AS (
  SELECT t_k, w, _t, _x, _n, _b
  FROM alone_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, (_x - :since + 6) DIV 8))) e AS _b
)
-- join_1: join
placed_2 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since + 7) DIV 8 AS _b
  FROM twinned_1
)
spread_2 AS (
  SELECT t_k, w, _t, _x, _n, _b
  FROM marked_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, (_x - :since + 6) DIV 8))) e AS _b
)
placed_3 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since + 7) DIV 8 AS _b
  FROM alone_1
)
spread_3 AS (
  SELECT t_k, w, _t, _x, _n, _b
  FROM twinned_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, (_x - :since + 6) DIV 8))) e AS _b
)
-- join_2: join
-- project_5: linear
-- project_6: linear
placed_4 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since + 7) DIV 8 AS _b
  FROM all_2
)
spread_4 AS (
  SELECT t_k, w, _t, _x, _n, _b
  FROM all_1
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, (_x - :since + 6) DIV 8))) e AS _b
)
-- join_3: join
-- project_7: linear
-- lasting_1: join
-- lasting_2: join
placed_5 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since + 7) DIV 8 AS _b
  FROM lasting_1
)
spread_5 AS (
  SELECT t_k, w, _t, _x, _n, _b
  FROM lasting_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, (_x - :since + 6) DIV 8))) e AS _b
)
-- outliving_1: join
-- project_8: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- come_1: netting
-- repeated_2: netting
-- go_1: netting
-- result_1: netting
-- result: result_1

-- == a side that lives for one instant
-- SELECT s.k, v, w FROM s [NOW], t [RANGE 3 SLIDE 2] WHERE s.k = t.k
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since - 1, until]
-- reads log_t_2: t in (since - 5, since]
-- reads log_s_2: s in (since - 1, since]
-- keeps kept_1: keep_1, with the columns of shape_1
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
-- window_3: window
-- project_3: linear
-- all_1: lower
placed_1 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since + 4) DIV 5 AS _b
  FROM project_1
)
spread_1 AS (
  SELECT t_k, w, _t, _x, _n, _b
  FROM all_1
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 4) DIV 5 ELSE GREATEST((_t - :since + 4) DIV 5, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 4) DIV 5 ELSE GREATEST((_t - :since + 4) DIV 5, 1) END, (_x - :since + 3) DIV 5))) e AS _b
)
-- join_1: join
-- project_4: linear
-- lasting_1: join
-- lasting_2: join
placed_2 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since + 4) DIV 5 AS _b
  FROM lasting_1
)
spread_2 AS (
  SELECT t_k, w, _t, _x, _n, _b
  FROM lasting_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 4) DIV 5 ELSE GREATEST((_t - :since + 4) DIV 5, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 4) DIV 5 ELSE GREATEST((_t - :since + 4) DIV 5, 1) END, (_x - :since + 3) DIV 5))) e AS _b
)
-- outliving_1: join
-- project_5: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- before_1: netting
-- more_1: netting
-- repeated_1: netting
-- window_4: window
-- project_6: linear
-- all_2: lower
-- twins_1: twins
-- marked_1: twins
-- twins_2: twins
-- marked_2: twins
-- alone_1: join
-- twinned_1: join
-- alone_2: join
-- twinned_2: join
placed_3 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since + 4) DIV 5 AS _b
  FROM alone_1
)
spread_3 AS (
  SELECT t_k, w, _t, _x, _n, _b
  FROM alone_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 4) DIV 5 ELSE GREATEST((_t - :since + 4) DIV 5, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 4) DIV 5 ELSE GREATEST((_t - :since + 4) DIV 5, 1) END, (_x - :since + 3) DIV 5))) e AS _b
)
-- join_2: join
placed_4 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since + 4) DIV 5 AS _b
  FROM twinned_1
)
spread_4 AS (
  SELECT t_k, w, _t, _x, _n, _b
  FROM marked_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 4) DIV 5 ELSE GREATEST((_t - :since + 4) DIV 5, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 4) DIV 5 ELSE GREATEST((_t - :since + 4) DIV 5, 1) END, (_x - :since + 3) DIV 5))) e AS _b
)
placed_5 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since + 4) DIV 5 AS _b
  FROM alone_1
)
spread_5 AS (
  SELECT t_k, w, _t, _x, _n, _b
  FROM twinned_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 4) DIV 5 ELSE GREATEST((_t - :since + 4) DIV 5, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 4) DIV 5 ELSE GREATEST((_t - :since + 4) DIV 5, 1) END, (_x - :since + 3) DIV 5))) e AS _b
)
-- join_3: join
-- project_7: linear
-- project_8: linear
-- netted_1: netting
-- repeated_2: netting
-- go_1: netting
-- result_1: netting
-- result: result_1

-- == both sides live for one instant
-- SELECT s.k, v, w FROM s [NOW] JOIN t [NOW] ON s.k = t.k
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_s_2: s in (since - 1, since]
-- reads log_t_2: t in (since - 1, since]
-- keeps kept_1: keep_1, with the columns of shape_1
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
placed_1 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since) AS _b
  FROM project_1
)
placed_2 AS (
  SELECT t_k, w, _t, _x, _n, (_t - :since) AS _b
  FROM project_2
)
-- join_1: join
-- project_3: linear
-- lasting_1: join
-- lasting_2: join
placed_3 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since) AS _b
  FROM lasting_1
)
placed_4 AS (
  SELECT t_k, w, _t, _x, _n, (_t - :since) AS _b
  FROM lasting_2
)
-- outliving_1: join
-- project_4: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- before_1: netting
-- more_1: netting
-- repeated_1: netting
-- window_3: window
-- project_5: linear
-- all_1: lower
-- twins_1: twins
-- marked_1: twins
-- window_4: window
-- project_6: linear
-- all_2: lower
-- twins_2: twins
-- marked_2: twins
-- alone_1: join
-- twinned_1: join
-- alone_2: join
-- twinned_2: join
placed_5 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since) AS _b
  FROM alone_1
)
placed_6 AS (
  SELECT t_k, w, _t, _x, _n, (_t - :since) AS _b
  FROM alone_2
)
-- join_2: join
placed_7 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since) AS _b
  FROM twinned_1
)
placed_8 AS (
  SELECT t_k, w, _t, _x, _n, (_t - :since) AS _b
  FROM marked_2
)
placed_9 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since) AS _b
  FROM alone_1
)
placed_10 AS (
  SELECT t_k, w, _t, _x, _n, (_t - :since) AS _b
  FROM twinned_2
)
-- join_3: join
-- project_7: linear
-- project_8: linear
-- netted_1: netting
-- repeated_2: netting
-- go_1: netting
-- result_1: netting
-- result: result_1

-- == no equality but that of time
-- SELECT v, w FROM s [RANGE 2], t [RANGE 1] WHERE v < w
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_t_2: t in (since - 2, since]
-- reads log_s_2: s in (since - 3, since]
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
-- twins_1: twins
-- marked_1: twins
-- twins_2: twins
-- marked_2: twins
-- alone_1: join
-- twinned_1: join
-- alone_2: join
-- twinned_2: join
placed_1 AS (
  SELECT v, _t, _x, _n, (_t - :since + 3) DIV 4 AS _b
  FROM alone_1
)
spread_1 AS (
  SELECT w, _t, _x, _n, _b
  FROM alone_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 1) DIV 4 ELSE GREATEST((_t - :since + 1) DIV 4, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 1) DIV 4 ELSE GREATEST((_t - :since + 1) DIV 4, 1) END, (_x - :since + 2) DIV 4))) e AS _b
)
-- join_1: join
placed_2 AS (
  SELECT v, _t, _x, _n, (_t - :since + 3) DIV 4 AS _b
  FROM twinned_1
)
spread_2 AS (
  SELECT w, _t, _x, _n, _b
  FROM marked_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 1) DIV 4 ELSE GREATEST((_t - :since + 1) DIV 4, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 1) DIV 4 ELSE GREATEST((_t - :since + 1) DIV 4, 1) END, (_x - :since + 2) DIV 4))) e AS _b
)
placed_3 AS (
  SELECT v, _t, _x, _n, (_t - :since + 3) DIV 4 AS _b
  FROM alone_1
)
spread_3 AS (
  SELECT w, _t, _x, _n, _b
  FROM twinned_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 1) DIV 4 ELSE GREATEST((_t - :since + 1) DIV 4, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 1) DIV 4 ELSE GREATEST((_t - :since + 1) DIV 4, 1) END, (_x - :since + 2) DIV 4))) e AS _b
)
-- join_2: join
placed_4 AS (
  SELECT v, _t, _x, _n, (_t - :since + 3) DIV 4 AS _b
  FROM all_2
)
spread_4 AS (
  SELECT w, _t, _x, _n, _b
  FROM all_1
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 1) DIV 4 ELSE GREATEST((_t - :since + 1) DIV 4, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 1) DIV 4 ELSE GREATEST((_t - :since + 1) DIV 4, 1) END, (_x - :since + 2) DIV 4))) e AS _b
)
-- join_3: join
-- lasting_1: join
-- lasting_2: join
placed_5 AS (
  SELECT v, _t, _x, _n, (_t - :since + 3) DIV 4 AS _b
  FROM lasting_1
)
spread_5 AS (
  SELECT w, _t, _x, _n, _b
  FROM lasting_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 1) DIV 4 ELSE GREATEST((_t - :since + 1) DIV 4, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 1) DIV 4 ELSE GREATEST((_t - :since + 1) DIV 4, 1) END, (_x - :since + 2) DIV 4))) e AS _b
)
-- outliving_1: join
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- come_1: netting
-- repeated_2: netting
-- go_1: netting
-- result_1: netting
-- result: result_1

-- == a join of a join
-- SELECT ISTREAM(s.k, v, w, x) FROM s [RANGE 4] JOIN t [RANGE 3] ON s.k = t.k JOIN m [RANGE 2] ON m.k = t.k
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- reads log_t_2: t in (since - 4, since]
-- reads log_s_2: s in (since - 5, since]
-- reads log_m_1: m in (since, until]
-- reads log_m_2: m in (since - 3, since]
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps kept_2: keep_2, with the columns of shape_2
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
placed_1 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since + 7) DIV 8 AS _b
  FROM all_2
)
spread_1 AS (
  SELECT t_k, w, _t, _x, _n, _b
  FROM all_1
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, (_x - :since + 6) DIV 8))) e AS _b
)
-- join_1: join
-- window_5: window
-- project_5: linear
-- window_6: window
-- project_6: linear
-- all_3: lower
-- lasting_1: join
-- lasting_2: join
placed_2 AS (
  SELECT s_k, v, _t, _x, _n, (_t - :since + 7) DIV 8 AS _b
  FROM lasting_1
)
spread_2 AS (
  SELECT t_k, w, _t, _x, _n, _b
  FROM lasting_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 3) DIV 8 ELSE GREATEST((_t - :since + 3) DIV 8, 1) END, (_x - :since + 6) DIV 8))) e AS _b
)
-- outliving_1: join
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- all_4: lower
-- twins_1: twins
-- marked_1: twins
-- twins_2: twins
-- marked_2: twins
-- alone_1: join
-- twinned_1: join
-- alone_2: join
-- twinned_2: join
placed_3 AS (
  SELECT s_k, v, t_k, w, _t, _x, _n, (_t - :since + 5) DIV 6 AS _b
  FROM alone_1
)
spread_3 AS (
  SELECT m_k, x, _t, _x, _n, _b
  FROM alone_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 2) DIV 6 ELSE GREATEST((_t - :since + 2) DIV 6, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 2) DIV 6 ELSE GREATEST((_t - :since + 2) DIV 6, 1) END, (_x - :since + 4) DIV 6))) e AS _b
)
-- join_2: join
placed_4 AS (
  SELECT s_k, v, t_k, w, _t, _x, _n, (_t - :since + 5) DIV 6 AS _b
  FROM twinned_1
)
spread_4 AS (
  SELECT m_k, x, _t, _x, _n, _b
  FROM marked_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 2) DIV 6 ELSE GREATEST((_t - :since + 2) DIV 6, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 2) DIV 6 ELSE GREATEST((_t - :since + 2) DIV 6, 1) END, (_x - :since + 4) DIV 6))) e AS _b
)
placed_5 AS (
  SELECT s_k, v, t_k, w, _t, _x, _n, (_t - :since + 5) DIV 6 AS _b
  FROM alone_1
)
spread_5 AS (
  SELECT m_k, x, _t, _x, _n, _b
  FROM twinned_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 2) DIV 6 ELSE GREATEST((_t - :since + 2) DIV 6, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 2) DIV 6 ELSE GREATEST((_t - :since + 2) DIV 6, 1) END, (_x - :since + 4) DIV 6))) e AS _b
)
-- join_3: join
-- project_7: linear
-- project_8: linear
placed_6 AS (
  SELECT s_k, v, t_k, w, _t, _x, _n, (_t - :since + 5) DIV 6 AS _b
  FROM all_4
)
spread_6 AS (
  SELECT m_k, x, _t, _x, _n, _b
  FROM all_3
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 2) DIV 6 ELSE GREATEST((_t - :since + 2) DIV 6, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 2) DIV 6 ELSE GREATEST((_t - :since + 2) DIV 6, 1) END, (_x - :since + 4) DIV 6))) e AS _b
)
-- join_4: join
-- project_9: linear
-- lasting_3: join
-- lasting_4: join
placed_7 AS (
  SELECT s_k, v, t_k, w, _t, _x, _n, (_t - :since + 5) DIV 6 AS _b
  FROM lasting_3
)
spread_7 AS (
  SELECT m_k, x, _t, _x, _n, _b
  FROM lasting_4
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN (_t - :since + 2) DIV 6 ELSE GREATEST((_t - :since + 2) DIV 6, 1) END, GREATEST(CASE WHEN _t > :since THEN (_t - :since + 2) DIV 6 ELSE GREATEST((_t - :since + 2) DIV 6, 1) END, (_x - :since + 4) DIV 6))) e AS _b
)
-- outliving_2: join
-- project_10: linear
-- shape_2: netting
-- keep_2: netting
-- live_2: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- come_1: netting
-- result_1: lower
-- result: result_1

-- == rows that may begin so far apart
-- SELECT ISTREAM(s.k, v, w) FROM s, t WHERE s.k = t.k AND ABS(s.ELEMENT_TIME - t.ELEMENT_TIME) <= 3
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps kept_2: keep_2, with the columns of shape_2
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- all_1: lower
-- shape_2: netting
-- keep_2: netting
-- live_2: netting
-- all_2: lower
placed_1 AS (
  SELECT s_k, v, s_element_time, _t, _x, _n, ((CAST(s_element_time AS BIGINT) - :since + 6) - PMOD((CAST(s_element_time AS BIGINT) - :since + 6), 7)) DIV 7 AS _b
  FROM all_2
)
spread_1 AS (
  SELECT t_k, w, t_element_time, _t, _x, _n, _b
  FROM all_1
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN ((CAST(t_element_time AS BIGINT) - :since + 3) - PMOD((CAST(t_element_time AS BIGINT) - :since + 3), 7)) DIV 7 ELSE GREATEST(((CAST(t_element_time AS BIGINT) - :since + 3) - PMOD((CAST(t_element_time AS BIGINT) - :since + 3), 7)) DIV 7, 1) END, GREATEST(CASE WHEN _t > :since THEN ((CAST(t_element_time AS BIGINT) - :since + 3) - PMOD((CAST(t_element_time AS BIGINT) - :since + 3), 7)) DIV 7 ELSE GREATEST(((CAST(t_element_time AS BIGINT) - :since + 3) - PMOD((CAST(t_element_time AS BIGINT) - :since + 3), 7)) DIV 7, 1) END, ((CAST(t_element_time AS BIGINT) - :since + 9) - PMOD((CAST(t_element_time AS BIGINT) - :since + 9), 7)) DIV 7))) e AS _b
)
-- join_1: join
-- project_3: linear
-- result_1: lower
-- result: result_1

-- == windows longer than rows may be apart
-- SELECT v, w FROM s [RANGE 9], t [RANGE 3] WHERE s.ELEMENT_TIME - t.ELEMENT_TIME BETWEEN -1 AND 0
-- reads log_s_1: s in (since, until]
-- reads log_t_1: t in (since, until]
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps kept_2: keep_2, with the columns of shape_2
-- keeps kept_3: keep_3, with the columns of shape_3
-- window_1: window
-- project_1: linear
-- window_2: window
-- project_2: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- all_1: lower
-- shape_2: netting
-- keep_2: netting
-- live_2: netting
-- all_2: lower
placed_1 AS (
  SELECT v, s_element_time, _t, _x, _n, ((CAST(s_element_time AS BIGINT) - :since + 1) - PMOD((CAST(s_element_time AS BIGINT) - :since + 1), 2)) DIV 2 AS _b
  FROM all_2
)
spread_1 AS (
  SELECT w, t_element_time, _t, _x, _n, _b
  FROM all_1
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN ((CAST(t_element_time AS BIGINT) - :since) - PMOD((CAST(t_element_time AS BIGINT) - :since), 2)) DIV 2 ELSE GREATEST(((CAST(t_element_time AS BIGINT) - :since) - PMOD((CAST(t_element_time AS BIGINT) - :since), 2)) DIV 2, 1) END, GREATEST(CASE WHEN _t > :since THEN ((CAST(t_element_time AS BIGINT) - :since) - PMOD((CAST(t_element_time AS BIGINT) - :since), 2)) DIV 2 ELSE GREATEST(((CAST(t_element_time AS BIGINT) - :since) - PMOD((CAST(t_element_time AS BIGINT) - :since), 2)) DIV 2, 1) END, ((CAST(t_element_time AS BIGINT) - :since + 1) - PMOD((CAST(t_element_time AS BIGINT) - :since + 1), 2)) DIV 2))) e AS _b
)
-- join_1: join
-- project_3: linear
-- lasting_1: join
-- lasting_2: join
placed_2 AS (
  SELECT v, s_element_time, _t, _x, _n, ((CAST(s_element_time AS BIGINT) - :since + 1) - PMOD((CAST(s_element_time AS BIGINT) - :since + 1), 2)) DIV 2 AS _b
  FROM lasting_1
)
spread_2 AS (
  SELECT w, t_element_time, _t, _x, _n, _b
  FROM lasting_2
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN ((CAST(t_element_time AS BIGINT) - :since) - PMOD((CAST(t_element_time AS BIGINT) - :since), 2)) DIV 2 ELSE GREATEST(((CAST(t_element_time AS BIGINT) - :since) - PMOD((CAST(t_element_time AS BIGINT) - :since), 2)) DIV 2, 1) END, GREATEST(CASE WHEN _t > :since THEN ((CAST(t_element_time AS BIGINT) - :since) - PMOD((CAST(t_element_time AS BIGINT) - :since), 2)) DIV 2 ELSE GREATEST(((CAST(t_element_time AS BIGINT) - :since) - PMOD((CAST(t_element_time AS BIGINT) - :since), 2)) DIV 2, 1) END, ((CAST(t_element_time AS BIGINT) - :since + 1) - PMOD((CAST(t_element_time AS BIGINT) - :since + 1), 2)) DIV 2))) e AS _b
)
-- outliving_1: join
-- project_4: linear
-- shape_3: netting
-- keep_3: netting
-- live_3: netting
-- ends_1: lower
-- netted_1: netting
-- repeated_1: netting
-- repeated_2: netting
-- result_1: netting
-- result: result_1

-- == timestamps so far apart (text only)
-- SELECT ISTREAM(one.k, two.at) FROM clocked one, clocked two WHERE two.at BETWEEN one.at AND one.at + INTERVAL 10 MINUTES
-- reads log_clocked_1: clocked in (since, until]
-- keeps kept_1: keep_1, with the columns of shape_1
-- keeps kept_2: keep_2, with the columns of shape_2
-- window_1: window
-- project_1: linear
-- project_2: linear
-- shape_1: netting
-- keep_1: netting
-- live_1: netting
-- all_1: lower
-- shape_2: netting
-- keep_2: netting
-- live_2: netting
-- all_2: lower
placed_1 AS (
  SELECT one_k, one_at, _t, _x, _n, ((UNIX_MICROS(one_at) - :since + 600000000) - PMOD((UNIX_MICROS(one_at) - :since + 600000000), 600000001)) DIV 600000001 AS _b
  FROM all_2
)
spread_1 AS (
  SELECT two_at, _t, _x, _n, _b
  FROM all_1
  LATERAL VIEW EXPLODE(SEQUENCE(CASE WHEN _t > :since THEN ((UNIX_MICROS(two_at) - :since) - PMOD((UNIX_MICROS(two_at) - :since), 600000001)) DIV 600000001 ELSE GREATEST(((UNIX_MICROS(two_at) - :since) - PMOD((UNIX_MICROS(two_at) - :since), 600000001)) DIV 600000001, 1) END, GREATEST(CASE WHEN _t > :since THEN ((UNIX_MICROS(two_at) - :since) - PMOD((UNIX_MICROS(two_at) - :since), 600000001)) DIV 600000001 ELSE GREATEST(((UNIX_MICROS(two_at) - :since) - PMOD((UNIX_MICROS(two_at) - :since), 600000001)) DIV 600000001, 1) END, ((UNIX_MICROS(two_at) - :since + 600000000) - PMOD((UNIX_MICROS(two_at) - :since + 600000000), 600000001)) DIV 600000001))) e AS _b
)
-- join_1: join
-- project_3: linear
-- result_1: lower
-- result: result_1
