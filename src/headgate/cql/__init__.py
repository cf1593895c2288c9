"""Life of a query, first step: text -> what it means."""
