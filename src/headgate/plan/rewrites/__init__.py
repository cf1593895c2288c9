"""Rewrites: a plan in, a plan that means the same and costs less out. One module for each rule, one driver."""
