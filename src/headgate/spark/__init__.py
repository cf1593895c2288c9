"""Spark's ways: sessions, connectors, packages, staging folders, failures. Nothing here knows of streams or queries."""
