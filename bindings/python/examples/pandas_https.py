"""Reads a CSV file over https with pandas, and a part of a Parquet file with pyarrow.

    python pandas_https.py https://example.com/table.csv [CA.pem]

Needs pandas and httphaul[fsspec]."""

from __future__ import annotations

import sys

import pandas as pd

# pandas opens plain https URLs by urllib. "haul+" names haul's file system, whose options are
# those of haul.Session.request.
url, options = "haul+" + sys.argv[1], {"verify": sys.argv[2]} if len(sys.argv) > 2 else {}
frame = pd.read_csv(url, storage_options={"timeout": (10, 60), **options})
print(f"{len(frame)} rows")
print(frame.groupby("city")["amount"].sum())
