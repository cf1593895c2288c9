"""Prints what is new in a folder that a query writes to: `python examples/files/follow.py out/sold [AFTER]`."""

from __future__ import annotations

import sys

import pyarrow.parquet as pq

from headgate import read_commits

folder, after = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
for commit in read_commits(folder, after):
    for file in commit.files:
        for row in pq.read_table(file).to_pylist():
            print(", ".join(f"{name}={value}" for name, value in row.items()))
    print(f"-- delivery {commit.number}: complete up to {commit.complete}")
