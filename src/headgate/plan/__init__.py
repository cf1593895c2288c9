"""Life of a query, second step: what a query means, as a tree of frozen nodes."""
