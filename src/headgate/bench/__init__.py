"""Measurements for `headgate bench`: ratios within one run before seconds."""
