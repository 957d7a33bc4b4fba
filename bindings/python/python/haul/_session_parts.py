"""Parts of a session: default headers, merged settings, the methods named after HTTP methods, and
``Response.connection``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ._haul import ACCEPT_ENCODING, __version__
from ._request_objects import PreparedRequest
from .models import Response
from .structures import CaseInsensitiveDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .sessions import Session


def default_headers() -> CaseInsensitiveDict:
    """Returns the headers that a session sends by default."""
    return CaseInsensitiveDict(
        {
            "User-Agent": f"haul/{__version__}",
            "Accept-Encoding": ACCEPT_ENCODING,
            "Accept": "*/*",
            "Connection": "keep-alive",
        }
    )


def merge_setting(own: Any, of_session: Any, dict_class: Callable[..., Any] = dict) -> Any:
    """Combines a setting of a request with that of the session.

    Dicts are merged, and ``None`` in the dict of the request removes a key."""
    if of_session is None:
        return own
    if own is None:
        return of_session
    if not (isinstance(of_session, Mapping) and isinstance(own, Mapping)):
        return own
    merged = dict_class(of_session)
    merged.update(own)
    for key in [key for key, value in merged.items() if value is None]:
        del merged[key]
    return merged


class RequestMethodsMixin:
    """One method for each HTTP method."""

    if TYPE_CHECKING:
        request: Callable[..., Response]

    def get(self, url: Any, **kwargs: Any) -> Response:
        """Sends a GET request; see :meth:`request`."""
        # Most calls have no keyword arguments. Passing an empty dict on would cost more.
        return self.request("GET", url, **kwargs) if kwargs else self.request("GET", url)

    def options(self, url: Any, **kwargs: Any) -> Response:
        """Sends an OPTIONS request; see :meth:`request`."""
        return self.request("OPTIONS", url, **kwargs)

    def head(self, url: Any, **kwargs: Any) -> Response:
        """Sends a HEAD request; see :meth:`request`. Redirects need ``allow_redirects=True``."""
        kwargs.setdefault("allow_redirects", False)
        return self.request("HEAD", url, **kwargs)

    def post(self, url: Any, data: Any = None, json: Any = None, **kwargs: Any) -> Response:
        """Sends a POST request; see :meth:`request`."""
        if kwargs:
            return self.request("POST", url, data=data, json=json, **kwargs)
        return self.request("POST", url, data=data, json=json)

    def put(self, url: Any, data: Any = None, **kwargs: Any) -> Response:
        """Sends a PUT request; see :meth:`request`."""
        return self.request("PUT", url, data=data, **kwargs)

    def patch(self, url: Any, data: Any = None, **kwargs: Any) -> Response:
        """Sends a PATCH request; see :meth:`request`."""
        return self.request("PATCH", url, data=data, **kwargs)

    def delete(self, url: Any, **kwargs: Any) -> Response:
        """Sends a DELETE request; see :meth:`request`."""
        return self.request("DELETE", url, **kwargs)


class ResponseConnection:
    """``Response.connection``, by which an ``auth`` that reads responses sends the request again.

    In requests it is the adapter."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def send(self, request: PreparedRequest, stream: bool = False, **settings: Any) -> Response:
        """Sends one request, without following redirects and without calling hooks."""
        if "Cookie" not in request.headers:
            # The previous response may have set cookies.
            header = self._session.cookies.get_cookie_header(request.url)
            if header:
                request.headers["Cookie"] = header
        return self._session._transmit(request, stream, settings)
