"""Which fragment runs next, and up to which instant."""
