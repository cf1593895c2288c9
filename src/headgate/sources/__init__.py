"""The first step of a tuple's life: sources read rows, `inputs` knows all of them, and each inlet sorts rows into log
and dead letters.
"""
