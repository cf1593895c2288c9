"""Compiler front end: turns CQL text into statements, and queries into bound plans."""
