"""What a running engine says of itself: status, traces, failures."""
