"""Life of a tuple, fourth step: one epoch after another."""
