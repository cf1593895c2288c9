"""Life of a tuple, last step: out. `made.made` gives the sink of a query, `sink` says what one is."""
