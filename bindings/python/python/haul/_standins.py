"""Whether something stands in the place of what requests sends with.

responses replaces ``HTTPAdapter.send``, VCR.py and pook replace parts of urllib3, pytest-socket and PySocks the socket. Whoever does that wants
that no request goes past it: so :class:`~haul.adapters.HaulAdapter` then leaves the request to requests' own adapter.
"""

from __future__ import annotations

import socket
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool


def are_there() -> bool:
    """Asked for each request. What only wraps the original, to trace or count requests, has its module's name and does not count."""
    return not (
        _is_of(HTTPAdapter.send, "requests")
        and _is_of(HTTPConnectionPool.urlopen, "urllib3")
        and _is_of(HTTPConnectionPool.ConnectionCls, "urllib3")
        and _is_of(HTTPSConnectionPool.ConnectionCls, "urllib3")
        and _is_of(socket.socket, "socket")
    )


def _is_of(part: Any, package: str) -> bool:
    # A mock with the original's specification has its module's name, too, and refers to a mock.
    return str(part.__module__).partition(".")[0] == package and not hasattr(part, "mock")
