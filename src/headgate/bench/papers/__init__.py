"""The papers' own experiments, for `headgate bench papers`: each in a module of its own, on shared arrivals, drive and
charts.
"""
