"""``HaulAdapter(max_retries=…)``: applies a ``urllib3.Retry`` to failures and statuses.

::

    attempts = Attempts(Retry(3, status_forcelist=[503]), request)
    while True:
        try: reply = …
        except EngineError as failure: attempts.after_failure(failure, proxied); continue
        if not attempts.wants_another(raw): break
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Iterator
from http.client import RemoteDisconnected
from typing import Any

import requests
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, Retry
from urllib3 import exceptions as urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util.request import rewind_body, set_file_position

from ._request_body import is_stream
from ._haul import EngineError, split_url
from ._raw_body import RawBody
from .exceptions import ChunkedEncodingError, ConnectionError, ContentDecodingError, SSLError, Timeout, from_engine_error

__all__ = ["Attempts", "as_requests", "as_urllib3"]

# The exceptions of requests that wrap an exception of urllib3.
_WRAPPING = (ConnectionError, Timeout, ChunkedEncodingError, ContentDecodingError)


# OpenSSL's names of the TLS alerts with which a server refuses a client.
_ALERTS = {
    "HandshakeFailure": "SSLV3_ALERT_HANDSHAKE_FAILURE",
    "BadCertificate": "SSLV3_ALERT_BAD_CERTIFICATE",
    "UnsupportedCertificate": "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE",
    "CertificateRevoked": "SSLV3_ALERT_CERTIFICATE_REVOKED",
    "CertificateExpired": "SSLV3_ALERT_CERTIFICATE_EXPIRED",
    "CertificateUnknown": "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
    "UnknownCA": "TLSV1_ALERT_UNKNOWN_CA",
    "AccessDenied": "TLSV1_ALERT_ACCESS_DENIED",
    "ProtocolVersion": "TLSV1_ALERT_PROTOCOL_VERSION",
    "InsufficientSecurity": "TLSV1_ALERT_INSUFFICIENT_SECURITY",
    "CertificateRequired": "TLSV13_ALERT_CERTIFICATE_REQUIRED",
}


class Attempts:
    """The attempts to send one request."""

    def __init__(self, retries: Retry, request: requests.PreparedRequest) -> None:
        #: The retries that are left.
        self.retries = retries
        self._request = request
        self._method = request.method or "GET"
        self._url = request.url or ""
        self._position: Any = set_file_position(request.body, None)
        self._watched: _SingleUseBody | None = None

    def after_failure(self, failure: EngineError, proxied: bool) -> None:
        """Counts a failure, and waits until it is time for the next attempt.

        :raises requests.RequestException: the request must not be retried."""
        if not _is_network_failure(failure):
            raise as_requests(failure, self._request, proxied) from None
        cause = as_urllib3(failure, self._url, proxied)
        try:
            self.retries = self.retries.increment(self._method, self._url, error=cause, _pool=_pool(self._url))
        except urllib3.MaxRetryError as exhausted:
            error = as_requests(failure, self._request, proxied)
            if isinstance(error, requests.exceptions.ReadTimeout):
                # After several attempts requests raises a ConnectionError, not the last
                # ReadTimeout.
                error = requests.exceptions.ConnectionError(exhausted, request=self._request)
            elif isinstance(error, requests.exceptions.ConnectionError) and isinstance(error.args[0], urllib3.ProtocolError):
                error = type(error)(exhausted, request=self._request)
            raise error from None
        except urllib3.HTTPError:
            raise as_requests(failure, self._request, proxied) from None
        try:
            self._rewind()
        except requests.exceptions.UnrewindableBodyError:
            raise as_requests(failure, self._request, proxied) from None
        self.retries.sleep()

    def wants_another(self, raw: RawBody) -> bool:
        """Returns whether the status calls for a retry; waits until it is time for that.

        :raises requests.exceptions.RetryError: no retries are left.
        :raises requests.exceptions.UnrewindableBodyError: the body cannot be sent again."""
        retries = self.retries
        if not retries.is_retry(self._method, raw.status, raw.reply.has("retry-after")):
            return False
        try:
            self.retries = retries.increment(
                self._method, self._url, response=raw, _pool=_pool(self._url)  # type: ignore[arg-type]
            )
        except urllib3.MaxRetryError as exhausted:
            if retries.raise_on_status:
                raw.close()
                raise requests.exceptions.RetryError(exhausted, request=self._request) from None
            return False
        raw.drain_conn()
        self._rewind()
        self.retries.sleep(raw)  # type: ignore[arg-type]
        return True

    def watched(self, body: Any) -> Any:
        """Wraps a body that can be read only once, to learn whether it was read."""
        if self._position is None and not isinstance(body, (str, bytes)):
            if hasattr(body, "read"):
                self._watched = _SingleUseFile(body)
            elif is_stream(body) and iter(body) is body:
                self._watched = _SingleUseIterator(body)
        return body if self._watched is None else self._watched

    def _rewind(self) -> None:
        """:raises requests.exceptions.UnrewindableBodyError: a part of the body was read, and it
        cannot be rewound."""
        if self._watched is not None:
            if self._watched.is_begun:
                message = "The request body was read already and cannot be sent again."
                raise requests.exceptions.UnrewindableBodyError(message, request=self._request)
        elif self._position is not None:
            try:
                rewind_body(self._request.body, self._position)  # type: ignore[arg-type]
            except (urllib3.UnrewindableBodyError, ValueError) as error:
                raise requests.exceptions.UnrewindableBodyError(str(error), request=self._request) from None


class _SingleUseBody:
    """A body that can be read only once. It records whether reading has begun."""

    is_begun = False

    def __init__(self, body: Any) -> None:
        self._body = body

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)


class _SingleUseFile(_SingleUseBody):
    def read(self, size: int = -1) -> Any:
        self.is_begun = True
        return self._body.read(size)


class _SingleUseIterator(_SingleUseBody):
    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self.is_begun = True
        return next(self._body)


def _is_network_failure(failure: EngineError) -> bool:
    """Returns whether a failure may be temporary: it is neither in the request nor in the response.
    """
    return failure.args[3] != "body" and isinstance(from_engine_error(failure), (ConnectionError, Timeout))


def as_requests(failure: EngineError, request: requests.PreparedRequest, proxied: bool = False) -> BaseException:
    """Converts a failure into the exception of requests, which wraps one of urllib3: programs look
    into it."""
    error = from_engine_error(failure, proxied=proxied)
    # Some classes of haul are finer than those of requests.
    names = [base.__name__ for base in type(error).__mro__]
    cls = next((getattr(requests.exceptions, name) for name in names if hasattr(requests.exceptions, name)), None)
    if cls is None or not issubclass(cls, requests.exceptions.RequestException):
        return error
    if not isinstance(error, _WRAPPING):
        return cls(*error.args, request=request)  # type: ignore[no-any-return]
    cause = as_urllib3(failure, request.url, proxied)
    if failure.args[3] == "connect" or (isinstance(error, SSLError) and failure.args[3] == "wait"):
        cause = urllib3.MaxRetryError(_pool(request.url), request.path_url, cause)
    return cls(cause, request=request)  # type: ignore[no-any-return]


def as_urllib3(failure: EngineError, url: str | None, proxied: bool = False) -> Exception:
    """Converts a failure into the exception of urllib3, as requests and ``Retry`` expect it."""
    kind, message, _, phase = failure.args[:4]
    if kind == "PeerCertificate":
        return urllib3.SSLError(_as_openssl(ssl.SSLCertVerificationError, "CERTIFICATE_VERIFY_FAILED", message))
    if isinstance(from_engine_error(failure), SSLError):
        alert = re.search(r"alert: (\w+)", message)
        name = _ALERTS.get(alert[1]) if alert else None
        return urllib3.SSLError(_as_openssl(ssl.SSLError, name, message) if name else ssl.SSLError(1, message))
    if phase == "connect":
        error = _no_connection(kind, message, _connection(url))
        return urllib3.ProxyError(message, error) if proxied else error
    if kind == "Timeout":
        return urllib3.ReadTimeoutError(_pool(url), url or "", f"Read timed out: {message}")
    if kind in ("ContentCoding", "TooLarge"):
        return urllib3.DecodeError(message)
    if kind == "EmptyReply":
        return urllib3.ProtocolError("Connection aborted.", RemoteDisconnected(message))
    number = re.search(r"\(os error (\d+)\)", message)
    if number is not None:
        # OSError picks the subclass, such as ConnectionResetError, after which programs retry.
        os_error = OSError(int(number[1]), os.strerror(int(number[1])))
        what = f"Connection broken: {os_error!r}" if phase == "body" else "Connection aborted."
        return urllib3.ProtocolError(what, os_error)
    counts = re.search(r"after (\d+) of (\d+) bytes", message)
    if counts is not None:
        came, length = map(int, counts.groups())
        return urllib3.ProtocolError(f"Connection broken: {message}", urllib3.IncompleteRead(came, length - came))
    return urllib3.ProtocolError(message)


def _as_openssl(cls: type[ssl.SSLError], name: str, message: str) -> ssl.SSLError:
    """Makes an SSLError with the name and message that OpenSSL would give."""
    error = cls(1, f"[SSL: {name}] {name.lower().replace('_', ' ')}: {message}")
    error.reason = name
    return error


def _no_connection(kind: str, message: str, connection: HTTPConnection) -> Exception:
    if kind == "Timeout":
        return urllib3.ConnectTimeoutError(connection, message)
    if kind == "Resolve":
        # Only urllib3 2 and later has the class.
        unresolved = getattr(urllib3, "NameResolutionError", None)
        if unresolved is not None:
            reason = socket.gaierror(socket.EAI_NONAME, message)
            return unresolved(connection.host, connection, reason)  # type: ignore[no-any-return]
    return urllib3.NewConnectionError(connection, f"Failed to establish a new connection: {message}")


def _pool(url: str | None) -> HTTPConnectionPool:
    """Returns a pool for the exceptions of urllib3, which programs ask for host, port and class."""
    scheme, host, port = _address(url)
    return (HTTPSConnectionPool if scheme == "https" else HTTPConnectionPool)(host, port)


def _connection(url: str | None) -> HTTPConnection:
    """Returns a connection for the exceptions of urllib3."""
    scheme, host, port = _address(url)
    return (HTTPSConnection if scheme == "https" else HTTPConnection)(host, port)


def _address(url: str | None) -> tuple[str, str, int]:
    try:
        return split_url(url or "")[:3]
    except EngineError:
        return "http", "", 0
