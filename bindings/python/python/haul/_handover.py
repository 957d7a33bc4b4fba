"""Hands requests of a :class:`~haul.adapters.HaulAdapter` to requests' own adapter, where the engine cannot do what its class asks for.

A subclass may override the methods by which requests sets up TLS: toolbelt's FingerprintAdapter compares a fingerprint there, and the
guide of requests shows how to choose a version of TLS. If they were not called, a connection would count as checked that is not.
"""

from __future__ import annotations

from typing import Any

from requests.adapters import HTTPAdapter
from urllib3 import PoolManager

__all__ = ["has_own_tls", "overrides_tls", "requests_own"]

#: The methods of ``HTTPAdapter`` that make connections and say how TLS is done.
_HOOKS = frozenset({
    "build_connection_pool_key_attributes", "cert_verify", "get_connection", "get_connection_with_tls_context", "init_poolmanager",
    "proxy_manager_for",
})  # fmt: skip
#: What ``HTTPAdapter`` itself tells its pools.
_PLAIN = frozenset({"maxsize", "block"})

_classes: dict[type, type[HTTPAdapter]] = {}


def overrides_tls(cls: type) -> bool:
    """Whether a class of adapters has one of these methods, and another one than ``HTTPAdapter``."""
    return any(getattr(cls, name, None) not in (None, getattr(HTTPAdapter, name, None)) for name in _HOOKS)


def has_own_tls(adapter: Any) -> bool:
    """Whether this adapter alone has one, or pools of connections with settings: toolbelt's HostHeaderSSLAdapter names a host there."""
    own = adapter.__dict__
    if not _HOOKS.isdisjoint(own):
        return True
    pools = own.get("poolmanager")
    return pools is not None and (type(pools) is not PoolManager or not _PLAIN.issuperset(pools.connection_pool_kw))


def requests_own(adapter: Any) -> HTTPAdapter:
    """The adapter as one of requests, with its attributes and its class's methods: ``HTTPAdapter.send`` of it sends by urllib3."""
    if isinstance(adapter, HTTPAdapter):
        return adapter
    cls = type(adapter)
    combined = _classes.get(cls)
    if combined is None:
        combined = _classes[cls] = type(cls.__name__, (cls, HTTPAdapter), {"__module__": cls.__module__})
    own = combined.__new__(combined)
    own.__dict__ = adapter.__dict__
    HTTPAdapter.__init__(own, max_retries=adapter.max_retries)
    return own
