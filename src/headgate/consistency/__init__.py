"""Which input an early answer reflects when its plan runs in stages: labels, and the methods that tell by them.

    events    what lies in the queues between stages: events with labels, and tokens
    flow      the queues of one query: what has come, what each stage takes, what it puts out
    heeding   by labels: whether something is still under way of what the answer shows
    tokens    how far apart synchronization tokens are

Nothing in here knows of rows, files or Spark.
"""
