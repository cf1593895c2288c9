"""Rows from other programs: an HTTP endpoint that feeds streams. Needs the extra `headgate[http]`."""
