"""Life of a tuple, second step: kept. Every queue of a plan is a log."""
