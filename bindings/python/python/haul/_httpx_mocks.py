"""The cases in which the transports of :mod:`haul.httpx` use those of httpx.

pytest-httpx replaces a method of httpx' transports, respx and VCR.py replace one of httpcore's pools,
and pytest-socket, PySocks and gevent replace the socket.
"""

from __future__ import annotations

import os
import socket
import ssl
import sys
from typing import Any

import httpx

from ._mocks import MockDetector

__all__ = ["async_sending_is_mocked", "httpx_settings", "sending_is_mocked"]

_detector = MockDetector("httpx", "httpcore", "socket")
_async_detector = MockDetector("httpx", "httpcore", "socket")


def sending_is_mocked() -> bool:
    """Returns whether a part of httpx, httpcore or ``socket`` by which an ``httpx.Client`` sends is replaced."""
    # httpx imports httpcore at its first transport. A mock has imported it before. While another thread
    # imports it, its names are missing.
    httpcore = sys.modules.get("httpcore")
    pool = getattr(getattr(httpcore, "ConnectionPool", None), "handle_request", None)
    return _detector.finds_mock(httpx.HTTPTransport.handle_request, pool, socket.socket)


def async_sending_is_mocked() -> bool:
    """Returns whether a part by which an ``httpx.AsyncClient`` sends is replaced."""
    httpcore = sys.modules.get("httpcore")
    pool = getattr(getattr(httpcore, "AsyncConnectionPool", None), "handle_async_request", None)
    return _async_detector.finds_mock(httpx.AsyncHTTPTransport.handle_async_request, pool, socket.socket)


def httpx_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings of haul's transport for that of httpx, which has HTTP/2 only with the package h2,
    and takes the names of files only with a warning."""
    from importlib.util import find_spec

    verify, cert = settings["verify"], settings["cert"]
    if isinstance(verify, (str, os.PathLike)):
        is_directory = os.path.isdir(verify)
        verify = ssl.create_default_context(cafile=None if is_directory else verify, capath=verify if is_directory else None)
    if cert is not None:
        verify = verify if isinstance(verify, ssl.SSLContext) else httpx.create_ssl_context(verify, trust_env=settings["trust_env"])
        verify.load_cert_chain(*([cert] if isinstance(cert, str) else cert))
    return {**settings, "verify": verify, "cert": None, "http2": settings["http2"] and find_spec("h2") is not None}
