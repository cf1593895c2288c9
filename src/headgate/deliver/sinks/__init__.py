"""The sinks: one module for each. `sink_for` makes the one of a query; its row in `catalog.sinks` names the class."""
