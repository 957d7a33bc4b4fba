"""Reads CSV files over http with Dask, several blocks side by side.

    python dask_fsspec.py https://example.com/part-0.csv https://example.com/part-1.csv

Needs dask[dataframe] and httphaul[fsspec]."""

from __future__ import annotations

import sys

import dask.dataframe as dd

import haul.fsspec

if __name__ == "__main__":
    # From here on, fsspec reads all http and https URLs through haul.
    haul.fsspec.register()
    # Each block is a range of a file that a task reads; 64 MB is usual.
    frame = dd.read_csv(sys.argv[1:], blocksize=4096, storage_options={"timeout": (10, 60)})
    print(f"{frame.npartitions} partitions, {len(frame)} rows")
    print(frame.groupby("city")["amount"].sum().compute().sort_index())
