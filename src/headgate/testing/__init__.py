"""Test continuous queries: cases with expected output, and CQL's meaning in plain Python without Spark."""
