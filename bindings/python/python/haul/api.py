"""``haul.get`` and the other functions that send one request.

The calls share connections, but no cookies and no headers.
"""

from __future__ import annotations

from .sessions import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._types import Body, GetArguments, Params, PostArguments, PutArguments, RequestArguments, Unpack, Url
    from .models import Response

__all__ = ["delete", "get", "head", "options", "patch", "post", "put", "request"]

_shared: list[Session] = []


def request(method: str, url: Url, **kwargs: Unpack[RequestArguments]) -> Response:
    """Sends a request and waits for its response.

    >>> request("GET", "https://example.com/")                          # doctest: +SKIP
    <Response [200]>

    Arguments are those of :meth:`haul.Session.request`."""
    session = Session()
    auth = kwargs.get("auth")
    if auth is not None and type(auth) is not tuple and not _authenticates_requests(auth):
        return session.request(method, url, **kwargs)
    if _shared:
        first = _shared[0]
        session._client, session._options_cache = first._client, first._options_cache
    else:
        _shared.append(session)
        first, session = session, Session()
        session._client, session._options_cache = first._client, first._options_cache
    return session.request(method, url, **kwargs)


def _authenticates_requests(auth: Any) -> bool:
    """Returns whether ``auth`` authenticates requests, not connections.

    An unknown one may authenticate a connection (NTLM, Negotiate). A later call must not use that
    connection: its requests would be sent as the user."""
    from .auth import HTTPBasicAuth, HTTPDigestAuth

    return type(auth) in (HTTPBasicAuth, HTTPDigestAuth) or not callable(auth)


def get(url: Url, params: Params = None, **kwargs: Unpack[GetArguments]) -> Response:
    """Sends a GET request; see :func:`request`.

    >>> get("https://example.com/", params={"page": 2}).text            # doctest: +SKIP
    """
    return request("GET", url, params=params, **kwargs)


def options(url: Url, **kwargs: Unpack[RequestArguments]) -> Response:
    """Sends an OPTIONS request; see :func:`request`.

    >>> options("https://example.com/").headers["allow"]                # doctest: +SKIP
    """
    return request("OPTIONS", url, **kwargs)


def head(url: Url, **kwargs: Unpack[RequestArguments]) -> Response:
    """Sends a HEAD request; see :func:`request`.

    >>> head("https://example.com/").headers["content-length"]          # doctest: +SKIP

    Redirects are followed only with ``allow_redirects=True``."""
    kwargs.setdefault("allow_redirects", False)
    return request("HEAD", url, **kwargs)


def post(url: Url, data: Body = None, json: object = None, **kwargs: Unpack[PostArguments]) -> Response:
    """Sends a POST request; see :func:`request`.

    >>> post("https://example.com/items", json={"name": "x"})           # doctest: +SKIP
    """
    return request("POST", url, data=data, json=json, **kwargs)


def put(url: Url, data: Body = None, **kwargs: Unpack[PutArguments]) -> Response:
    """Sends a PUT request; see :func:`request`.

    >>> put("https://example.com/items/1", data=b"content")             # doctest: +SKIP
    """
    return request("PUT", url, data=data, **kwargs)


def patch(url: Url, data: Body = None, **kwargs: Unpack[PutArguments]) -> Response:
    """Sends a PATCH request; see :func:`request`.

    >>> patch("https://example.com/items/1", json={"name": "y"})        # doctest: +SKIP
    """
    return request("PATCH", url, data=data, **kwargs)


def delete(url: Url, **kwargs: Unpack[RequestArguments]) -> Response:
    """Sends a DELETE request; see :func:`request`.

    >>> delete("https://example.com/items/1")                           # doctest: +SKIP
    """
    return request("DELETE", url, **kwargs)
