"""The cases in which a :class:`~haul.adapters.HaulAdapter` uses requests' own adapter.

A mock may have replaced the code by which requests sends: the library responses replaces
``HTTPAdapter.send``; VCR.py and pook replace parts of urllib3; pytest-socket and PySocks replace the
socket.

A subclass may override the methods by which requests sets up TLS: the FingerprintAdapter of
requests-toolbelt compares a fingerprint there, and the guide of requests shows how to choose a TLS
version. The engine does not call them, so a connection would not be checked as the class demands.
"""

from __future__ import annotations

import socket
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3 import PoolManager
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from ._mocks import MockDetector

__all__ = ["as_http_adapter", "has_own_tls", "overrides_tls", "sending_is_mocked"]

#: The methods of ``HTTPAdapter`` that set up connections and TLS.
_TLS_METHODS = frozenset({
    "build_connection_pool_key_attributes", "cert_verify", "get_connection", "get_connection_with_tls_context", "init_poolmanager",
    "proxy_manager_for",
})  # fmt: skip
#: The settings that ``HTTPAdapter`` itself gives its pools.
_DEFAULT_POOL_SETTINGS = frozenset({"maxsize", "block"})

_detector = MockDetector("requests", "urllib3", "urllib3", "urllib3", "socket")
_combined_classes: dict[type, type[HTTPAdapter]] = {}


def sending_is_mocked() -> bool:
    """Returns whether a part of requests, urllib3 or ``socket`` is replaced."""
    return _detector.finds_mock(
        HTTPAdapter.send, HTTPConnectionPool.urlopen, HTTPConnectionPool.ConnectionCls, HTTPSConnectionPool.ConnectionCls, socket.socket
    )


def overrides_tls(cls: type) -> bool:
    """Returns whether a class of adapters overrides a method that sets up connections or TLS."""
    return any(getattr(cls, name, None) not in (None, getattr(HTTPAdapter, name, None)) for name in _TLS_METHODS)


def has_own_tls(adapter: Any) -> bool:
    """Returns whether an instance overrides such a method, or has its own pool manager settings.

    The HostHeaderSSLAdapter of requests-toolbelt names a host there."""
    own = adapter.__dict__
    if not _TLS_METHODS.isdisjoint(own):
        return True
    pools = own.get("poolmanager")
    return pools is not None and (type(pools) is not PoolManager or not _DEFAULT_POOL_SETTINGS.issuperset(pools.connection_pool_kw))


def as_http_adapter(adapter: Any) -> HTTPAdapter:
    """Returns an ``HTTPAdapter`` with the attributes and the methods of the adapter, which sends by
    urllib3."""
    if isinstance(adapter, HTTPAdapter):
        return adapter
    cls = type(adapter)
    combined = _combined_classes.get(cls)
    if combined is None:
        combined = _combined_classes[cls] = type(cls.__name__, (cls, HTTPAdapter), {"__module__": cls.__module__})
    own = combined.__new__(combined)
    own.__dict__ = adapter.__dict__
    HTTPAdapter.__init__(own, max_retries=adapter.max_retries)
    return own
