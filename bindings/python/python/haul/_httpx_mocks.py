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
    """Returns the settings of haul's transport for that of httpx.

    httpx has HTTP/2 only with the package h2, and takes the names of files only with a warning."""
    from importlib.util import find_spec

    verify, cert = settings["verify"], settings["cert"]
    if not isinstance(verify, ssl.SSLContext):
        verify = _context_for(verify)
    elif cert is not None:
        verify = _copy_of(verify)
    if cert is not None:
        verify.load_cert_chain(*([cert] if isinstance(cert, (str, os.PathLike)) else cert))
    return {**settings, "verify": verify, "cert": None, "http2": settings["http2"] and find_spec("h2") is not None}


def _context_for(verify: bool | str | os.PathLike[str]) -> ssl.SSLContext:
    """Returns a context that trusts the certificates that haul trusts.

    With ``verify=True`` httpx would trust those of certifi."""
    if isinstance(verify, (str, os.PathLike)):
        is_directory = os.path.isdir(verify)
        return ssl.create_default_context(cafile=None if is_directory else verify, capath=verify if is_directory else None)
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _copy_of(context: ssl.SSLContext) -> ssl.SSLContext:
    """Returns a context with the settings that haul reads from one, so that a client certificate can be
    added without a change of the program's context."""
    copy = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    copy.check_hostname = context.check_hostname
    copy.verify_mode = context.verify_mode
    copy.verify_flags = context.verify_flags
    copy.options = context.options
    copy.minimum_version, copy.maximum_version = context.minimum_version, context.maximum_version
    trusted = context.get_ca_certs(binary_form=True)
    if trusted:
        copy.load_verify_locations(cadata=b"".join(trusted))
    return copy
