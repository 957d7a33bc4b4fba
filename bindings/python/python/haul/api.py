"""``haul.get`` and its like: a session for one request.

The connection is kept for the next call to the same server; nothing else is: no cookie, no header.
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
    """Sends a request and waits for its response; arguments as those of :meth:`haul.Session.request`."""
    session = Session()
    auth = kwargs.get("auth")
    if auth is not None and type(auth) is not tuple and not _goes_by_requests(auth):
        return session.request(method, url, **kwargs)
    if _shared:
        first = _shared[0]
        session._client, session._plans = first._client, first._plans
    else:
        _shared.append(session)
        first, session = session, Session()
        session._client, session._plans = first._client, first._plans
    return session.request(method, url, **kwargs)


def _goes_by_requests(auth: Any) -> bool:
    """Whether it authenticates requests. One that is not known may authenticate a connection (NTLM, Negotiate), on which the next call
    would be that user's."""
    from .auth import HTTPBasicAuth, HTTPDigestAuth

    return type(auth) in (HTTPBasicAuth, HTTPDigestAuth) or not callable(auth)


def get(url: Any, params: Any = None, **kwargs: Any) -> Response:
    """GET; see :func:`request`."""
    return request("GET", url, params=params, **kwargs)


def options(url: Any, **kwargs: Any) -> Response:
    """OPTIONS; see :func:`request`."""
    return request("OPTIONS", url, **kwargs)


def head(url: Any, **kwargs: Any) -> Response:
    """HEAD; see :func:`request`, but redirects are not followed unless asked for."""
    kwargs.setdefault("allow_redirects", False)
    return request("HEAD", url, **kwargs)


def post(url: Any, data: Any = None, json: Any = None, **kwargs: Any) -> Response:
    """POST; see :func:`request`."""
    return request("POST", url, data=data, json=json, **kwargs)


def put(url: Any, data: Any = None, **kwargs: Any) -> Response:
    """PUT; see :func:`request`."""
    return request("PUT", url, data=data, **kwargs)


def patch(url: Any, data: Any = None, **kwargs: Any) -> Response:
    """PATCH; see :func:`request`."""
    return request("PATCH", url, data=data, **kwargs)


def delete(url: Any, **kwargs: Any) -> Response:
    """DELETE; see :func:`request`."""
    return request("DELETE", url, **kwargs)
