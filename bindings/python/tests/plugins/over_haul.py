"""``pytest -p over_haul``: every session of requests sends by haul."""

import requests.sessions

from haul.adapters import HaulAdapter

requests.sessions.HTTPAdapter = HaulAdapter
