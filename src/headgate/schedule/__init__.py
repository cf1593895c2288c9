"""One way through an epoch: choose, run, commit, deliver.

loop.py        the loop; its `step` and `take` are those four words
choice.py      which fragment runs next, and up to which instant
selection.py   the order in which fragments are looked at: depth first
horizon.py     what the scheduler asks of the time manager
beside.py      a thread that runs large epochs beside small ones
asking.py      asks how far streams are that say nothing
commit.py      makes the results of an epoch count
query.py       a running query, as its user sees it
member.py      one member of a family, as its user sees it
"""
