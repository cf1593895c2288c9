"""Texts from outside are planned in a process of its own first, which may be killed: nothing here needs Spark."""
