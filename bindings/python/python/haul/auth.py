"""Authentication: ``auth=`` of a request or a session.

A pair of user and password means Basic. A callable gets the :class:`~haul.models.PreparedRequest`,
and returns it, as in requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .models import PreparedRequest

__all__ = ["AuthBase", "HTTPBasicAuth", "HTTPDigestAuth", "HTTPProxyAuth"]


def _octets(value: Any, encoding: str) -> bytes:
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else str(value)).encode(encoding)


def basic_value(user: Any, password: Any) -> str:
    """Returns the value of Authorization for a user and password (RFC 7617).

    Both are in Latin-1, as in requests, or in UTF-8 if one of them has other characters."""
    from binascii import b2a_base64

    try:
        pair = _octets(user, "latin-1") + b":" + _octets(password, "latin-1")
    except UnicodeEncodeError:
        pair = _octets(user, "utf-8") + b":" + _octets(password, "utf-8")
    return "Basic " + b2a_base64(pair, newline=False).decode("ascii")


class AuthBase:
    """The base class for authentication, called with each request before it is sent."""

    def __call__(self, r: PreparedRequest) -> PreparedRequest:
        raise NotImplementedError("Auth hooks must be callable.")


class HTTPBasicAuth(AuthBase):
    """Basic authentication: user and password, unencrypted (RFC 7617)."""

    def __init__(self, username: Any, password: Any) -> None:
        self.username = username
        self.password = password

    def __eq__(self, other: object) -> bool:
        mine = (self.username, self.password)
        return mine == (getattr(other, "username", None), getattr(other, "password", None))

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, r: PreparedRequest) -> PreparedRequest:
        r.headers["Authorization"] = basic_value(self.username, self.password)
        return r


class HTTPProxyAuth(HTTPBasicAuth):
    """Basic authentication for a proxy that forwards plain http requests."""

    def __call__(self, r: PreparedRequest) -> PreparedRequest:
        r.headers["Proxy-Authorization"] = basic_value(self.username, self.password)
        return r


class HTTPDigestAuth(AuthBase):
    """Digest authentication (RFC 7616; RFC 2069 for old servers).

    The engine answers the challenge inside one call, so ``Response.history`` does not contain the
    401. Further requests of the session reuse the nonce.
    """

    def __init__(self, username: Any, password: Any) -> None:
        self.username = username
        self.password = password

    def __eq__(self, other: object) -> bool:
        mine = (self.username, self.password)
        return mine == (getattr(other, "username", None), getattr(other, "password", None))

    __hash__ = None  # type: ignore[assignment]

    def credentials(self) -> tuple[bytes, bytes]:
        """Returns user and password in UTF-8 (RFC 7616 section 4)."""

        def encoded(value: Any) -> bytes:
            return value if isinstance(value, bytes) else str(value).encode("utf-8")

        return encoded(self.username), encoded(self.password)

    def __call__(self, r: PreparedRequest) -> PreparedRequest:
        r.digest = self
        return r
