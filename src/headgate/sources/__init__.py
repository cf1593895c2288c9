"""Life of a tuple, first step: in."""
