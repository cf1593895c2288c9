-- == tuples that break a declared constraint are counted
-- SELECT DISTINCT k FROM rising [RANGE UNBOUNDED]
-- reads log_rising_1: rising in (since, until]
-- keeps largest_1: last_1, with the columns of shape_1
-- keeps violations_of_by_order_1: violations_1, with the columns of shape_2
-- keeps sums_1: still_open_1, with the columns of shape_3
-- window_1: window
-- project_1: linear
-- touched_1: running
-- events_1: running
-- moves_1: running
-- totals_1: running
-- arriving_1: constraints
-- rising_1: constraints
-- walked_1: constraints
-- broken_1: constraints
-- last_1: constraints
-- shape_1: constraints
shape_2 AS (
  SELECT CAST(1 AS BIGINT) AS _broken
)
violations_1 AS (
  SELECT CAST(COALESCE(SUM(_broken), 0) AS BIGINT) AS _broken
  FROM (
    SELECT _broken
    FROM violations_of_by_order_1
    UNION ALL
    SELECT COUNT(*) AS _broken
    FROM broken_1
  )
)
-- still_open_1: constraints
-- shape_3: running
-- swept_1: running
-- timeline_1: running
-- steps_1: sweep
-- inserts_1: sweep
-- result_1: lower
-- result: result_1
