"""GSQL, Gigascope's language: its text becomes the CQL that it amounts to, with a map of places from one to the other."""
