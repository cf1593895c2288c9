"""One module for each sink."""
