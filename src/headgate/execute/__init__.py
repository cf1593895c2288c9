"""One epoch of one fragment on Spark."""
