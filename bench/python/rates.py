#!/usr/bin/env python3
"""Pages at a limited rate, for the job rates:

    rates.py LIST LIMIT=NUMBER

LIST is a file of URLs. LIMIT is a limit of haul.fetch_many: rate, rate_host or limit_rate_total. Prints all pages.
"""

from __future__ import annotations

import sys

import haul

with open(sys.argv[1]) as file:
    urls = file.read().split()
limit, _, number = sys.argv[2].partition("=")
for result in haul.fetch_many(urls, ordered=False, **{limit: int(number)}):
    sys.stdout.buffer.write(result.content)
