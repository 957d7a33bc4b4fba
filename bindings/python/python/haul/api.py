"""``haul.get`` and the other functions that send one request.

The calls share connections, but no cookies and no headers.
"""

from __future__ import annotations

from .sessions import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .models import Response

__all__ = ["delete", "get", "head", "options", "patch", "post", "put", "request"]

_shared: list[Session] = []


def request(method: str, url: Any, **kwargs: Any) -> Response:
    """Sends a request and waits for its response.

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


def get(url: Any, params: Any = None, **kwargs: Any) -> Response:
    """Sends a GET request; see :func:`request`."""
    return request("GET", url, params=params, **kwargs)


def options(url: Any, **kwargs: Any) -> Response:
    """Sends an OPTIONS request; see :func:`request`."""
    return request("OPTIONS", url, **kwargs)


def head(url: Any, **kwargs: Any) -> Response:
    """Sends a HEAD request; see :func:`request`.

    Redirects are followed only with ``allow_redirects=True``."""
    kwargs.setdefault("allow_redirects", False)
    return request("HEAD", url, **kwargs)


def post(url: Any, data: Any = None, json: Any = None, **kwargs: Any) -> Response:
    """Sends a POST request; see :func:`request`."""
    return request("POST", url, data=data, json=json, **kwargs)


def put(url: Any, data: Any = None, **kwargs: Any) -> Response:
    """Sends a PUT request; see :func:`request`."""
    return request("PUT", url, data=data, **kwargs)


def patch(url: Any, data: Any = None, **kwargs: Any) -> Response:
    """Sends a PATCH request; see :func:`request`."""
    return request("PATCH", url, data=data, **kwargs)


def delete(url: Any, **kwargs: Any) -> Response:
    """Sends a DELETE request; see :func:`request`."""
    return request("DELETE", url, **kwargs)
