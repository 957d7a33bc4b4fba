"""Detects mocks in the place of the code by which requests sends.

The library responses replaces ``HTTPAdapter.send``; VCR.py and pook replace parts of urllib3;
pytest-socket and PySocks replace the socket. No request may bypass such a mock, so
:class:`~haul.adapters.HaulAdapter` leaves the request to requests' own adapter then.
"""

from __future__ import annotations

import socket
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool


#: The parts that were last found to be originals.
_originals: tuple[Any, ...] = ()


def sending_is_mocked() -> bool:
    """Returns whether a part of requests, urllib3 or ``socket`` is replaced; runs for each request.

    A wrapper that traces or counts requests has the module name of the original and does not
    count."""
    global _originals
    parts = (
        HTTPAdapter.send,
        HTTPConnectionPool.urlopen,
        HTTPConnectionPool.ConnectionCls,
        HTTPSConnectionPool.ConnectionCls,
        socket.socket,
    )
    if parts == _originals:
        return False
    if not all(map(_is_original, parts, ("requests", "urllib3", "urllib3", "urllib3", "socket"))):
        return True
    _originals = parts
    return False


def _is_original(part: Any, package: str) -> bool:
    # A mock made from the original has its module name, too, and an attribute `mock`.
    return str(part.__module__).partition(".")[0] == package and not hasattr(part, "mock")
