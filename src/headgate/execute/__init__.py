"""Runs one epoch of one fragment on Spark.

fragment.py     a fragment: what it computes, how far it has come, and one epoch of it
inputs.py       the logs it reads, and which rows an epoch takes
programs.py     its program, written for tiny, small and large epochs
workspace.py    the Spark sessions in which inputs lie under names
statement.py    one statement over those inputs
together.py     small epochs of several fragments in one statement
analysis.py     what Spark says of a program before anything runs
synopses.py     the state it keeps on disk between epochs
progress.py     the instants and positions it has reached
position.py     how far a log has been read, in order of arrival
next_event.py   the next instant at which it may have something to say
epoch_end.py    where an epoch ends that would otherwise hold too many rows
errors.py       what Spark refuses or fails with, as an error of ours
"""
