"""GSQL, Gigascope's language: a text becomes the CQL that it amounts to, with a map of places between the two."""
