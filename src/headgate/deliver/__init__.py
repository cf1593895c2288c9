"""From the results of an epoch to the sinks."""
