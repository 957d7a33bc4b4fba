"""Exceptions, with the names, base classes and meaning of ``requests.exceptions``.

All of them derive from :class:`RequestException`, and so from ``OSError``. They have the attributes
``request`` and ``response``, and can be pickled.
"""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._json_error import JSONDecodeError
    from .models import PreparedRequest, Request, Response

__all__ = [
    "RequestException", "InvalidJSONError", "JSONDecodeError", "HTTPError", "ConnectionError", "ProxyError", "SSLError",
    "Timeout", "ConnectTimeout", "ReadTimeout", "WriteTimeout", "PoolTimeout", "ResponseTooLarge", "URLRequired", "TooManyRedirects", "MissingSchema", "InvalidSchema",
    "InvalidURL", "InvalidHeader", "InvalidProxyURL", "ChunkedEncodingError", "ContentDecodingError",
    "StreamConsumedError", "RetryError", "UnrewindableBodyError", "PaginationError", "PaginationWarning", "RequestsWarning", "FileModeWarning",
    "RequestsDependencyWarning",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name != "JSONDecodeError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._json_error import JSONDecodeError

    globals()[name] = JSONDecodeError
    return JSONDecodeError


def _rebuild(cls: type[RequestException], args: tuple[Any, ...], state: dict[str, Any]) -> RequestException:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class RequestException(IOError):
    """The base class of all exceptions: a request failed."""

    request: Request | PreparedRequest | None
    """The request, if it is known."""
    response: Response | None
    """The response, if there was one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        response = kwargs.pop("response", None)
        self.response = response
        request = kwargs.pop("request", None)
        if request is None and response is not None:
            request = getattr(response, "request", None)
        self.request = request
        super().__init__(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


class InvalidJSONError(RequestException):
    """The data to be sent, or the response, is not valid JSON."""


class HTTPError(RequestException):
    """The status is 400 or above."""


class ConnectionError(RequestException):
    """No connection was made, or it broke before the response."""


class ProxyError(ConnectionError):
    """The proxy cannot be reached, or refuses."""


class SSLError(ConnectionError):
    """The TLS handshake failed, or the certificate cannot be verified."""


class Timeout(RequestException):
    """A time limit was reached.

    The base class of :class:`ConnectTimeout`, :class:`ReadTimeout`, :class:`WriteTimeout` and
    :class:`PoolTimeout`."""


class ConnectTimeout(ConnectionError, Timeout):
    """No connection was made in time. Nothing was sent, so retrying is safe."""


class ReadTimeout(Timeout):
    """The server sent nothing within the time limit."""


class WriteTimeout(Timeout):
    """The server took nothing of the request within the time limit."""


class PoolTimeout(Timeout):
    """No connection became free within the time limit. Nothing was sent, so retrying is safe."""


class URLRequired(RequestException):
    """There is no URL."""


class TooManyRedirects(RequestException):
    """There were more redirects than ``Session.max_redirects``."""


class PaginationError(RequestException):
    """A listing cannot continue: its next page must not or cannot be requested."""


class MissingSchema(RequestException, ValueError):
    """The URL has no scheme (``http://`` or ``https://``)."""


class InvalidSchema(RequestException, ValueError):
    """The URL's scheme is not supported."""


class InvalidURL(RequestException, ValueError):
    """The URL is malformed."""


class InvalidHeader(RequestException, ValueError):
    """The name or value of a header is not valid."""


class InvalidProxyURL(InvalidURL):
    """The proxy's URL is malformed."""


class ChunkedEncodingError(RequestException):
    """The body was truncated, or its framing is invalid."""


class ContentDecodingError(RequestException):
    """The body could not be decoded (gzip, br, ...)."""


class ResponseTooLarge(ContentDecodingError):
    """The body is larger than ``max_size``, or grew out of proportion when it was decoded."""


class StreamConsumedError(RequestException, TypeError):
    """The body has already been read."""


class RetryError(RequestException):
    """All retries failed."""


class UnrewindableBodyError(RequestException):
    """The request body has to be sent again, but cannot be rewound."""


class RequestsWarning(Warning):
    """The base class of warnings."""


class PaginationWarning(RequestsWarning):
    """A listing ended because it began to repeat itself."""


class FileModeWarning(RequestsWarning, DeprecationWarning):
    """A file was opened in text mode, so its length in bytes is unknown."""


class RequestsDependencyWarning(RequestsWarning):
    """A library has an incompatible version. haul never raises it; requests has it."""


_BY_KIND: Mapping[str, type[RequestException]] = {
    "UnsupportedScheme": InvalidSchema,
    "Url": InvalidURL,
    "ProxyResolve": ProxyError,
    "Proxy": ProxyError,
    "TlsHandshake": SSLError,
    "TlsRefused": SSLError,
    "CaFile": SSLError,
    "PeerCertificate": SSLError,
    "PinnedKey": SSLError,
    "ClientCertificate": SSLError,
    "ContentCoding": ContentDecodingError,
    "TooLarge": ResponseTooLarge,
    "Rewind": UnrewindableBodyError,
    "TooManyRedirects": TooManyRedirects,
    "Auth": RequestException,
    "Header": InvalidHeader,
}


def from_engine_error(
    failure: Exception, request: Request | PreparedRequest | None = None, proxied: bool = False
) -> Exception:
    """Converts an error of the engine.

    ``proxied``: a failed connection is the fault of the proxy."""
    kind, message, url, phase = failure.args[:4]
    if kind == "Setup" and message.startswith("Invalid URL"):
        return MissingSchema(message, request=request)
    if kind == "Setup" and message.startswith("Invalid proxy URL"):
        return InvalidProxyURL(message, request=request)
    if kind in ("CaFile", "Read") and phase == "connect" and "no usable CA certificate" not in message:
        # requests raises an OSError for a missing file that the caller named.
        return OSError(message)
    cls = _BY_KIND.get(kind)
    if kind == "UnsupportedScheme" and phase != "connect":
        # A redirect to another scheme, or a response that is not HTTP.
        cls = InvalidSchema if "redirect" in message else ConnectionError
    elif "two Content-Length" in message or "Location fields that differ" in message or (
        kind == "Setup" and ("the name of header" in message or "header line" in message)
    ):
        cls = InvalidHeader
    elif kind == "Timeout":
        # After the head a timeout is a ConnectionError, as in requests.
        cls = {"connect": ConnectTimeout, "body": ConnectionError}.get(phase, ReadTimeout)
        if "took no data" in message:
            cls = WriteTimeout
        elif "no connection became free" in message:
            cls = PoolTimeout
    elif "within the head" in message:
        # The head broke off. http.client takes the part for a head with a truncated body. A part of
        # a status line is no response for http.client, so it is a ConnectionError.
        cls = ChunkedEncodingError
    elif cls is None and phase == "connect" and proxied:
        cls = ProxyError
    elif cls is None and phase == "body":
        cls = ChunkedEncodingError
    elif cls is None:
        cls = ConnectionError if kind != "Setup" else RequestException
    text = f"{url}: {message}" if url and not issubclass(cls, ValueError) else message
    return cls(text, request=request)
