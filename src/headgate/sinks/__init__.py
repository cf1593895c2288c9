"""Life of a tuple, last step: out."""
