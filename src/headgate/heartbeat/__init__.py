"""Life of a tuple, third step: complete up to when. Numbers in, numbers out: no Spark, no clock read."""
