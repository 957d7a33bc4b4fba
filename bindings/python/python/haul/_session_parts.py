"""Parts of a session: default headers, merged settings, the methods named after HTTP methods, and
``Response.connection``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from ._haul import ACCEPT_ENCODING, __version__
from ._request_objects import PreparedRequest
from .models import Response
from .structures import CaseInsensitiveDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from typing import Any

    from ._types import (
        Auth, Body, Cert, Cookies, Files, Headers, HookFunctions, Params, PostArguments, Proxies, PutArguments, RequestArguments,
        TimeLimits, Unpack, Url, Verify,
    )  # fmt: skip
    from .sessions import Session


#: The adapters of all sessions, by URL prefix. They take precedence over those of a session.
everywhere: dict[str, Any] = {}

_logger: logging.Logger | None = None


def wanted_logger() -> logging.Logger | None:
    """Returns the logger ``haul`` if it wants the lines of requests.

    Importing ``logging`` would double the import time. A program that wants lines imports it."""
    global _logger
    if _logger is None:
        logging = sys.modules.get("logging")
        if logging is None or not hasattr(logging, "getLogger"):
            return None
        _logger = logging.getLogger("haul")
        _logger.addHandler(logging.NullHandler())
    return _logger if _logger.isEnabledFor(10) else None


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


class StreamSetting:
    """``Session.stream``: a bool, as in requests, and a method, as in httpx.

    >>> with session.stream("GET", "https://example.com/big") as response:     # doctest: +SKIP
    ...     for piece in response.iter_content(65536):
    ...         print(len(piece))
    """

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def __bool__(self) -> bool:
        return self._session._streams

    def __eq__(self, other: object) -> bool:
        return bool(self) == other

    def __hash__(self) -> int:
        return hash(bool(self))

    def __repr__(self) -> str:
        return repr(bool(self))

    def __call__(self, method: str, url: Url, **kwargs: Unpack[RequestArguments]) -> Response:
        """Sends a request and returns its response, whose body is read later."""
        kwargs["stream"] = True
        return self._session.request(method, url, **kwargs)


class RequestMethodsMixin:
    """One method for each HTTP method."""

    if TYPE_CHECKING:

        def request(
            self, method: str, url: Url, params: Params = None, data: Body = None, headers: Headers = None,
            cookies: Cookies = None, files: Files = None, auth: Auth = None, timeout: TimeLimits = None,
            allow_redirects: bool = True, proxies: Proxies = None, hooks: HookFunctions = None, stream: bool | None = None,
            verify: Verify = None, cert: Cert = None, json: object = None,
        ) -> Response: ...  # fmt: skip

    def get(self, url: Url, **kwargs: Unpack[RequestArguments]) -> Response:
        """Sends a GET request; see :meth:`request`.

        >>> session.get("https://example.com/", params={"page": 2})         # doctest: +SKIP
        <Response [200]>
        """
        # Most calls have no keyword arguments. Passing an empty dict on would cost more.
        return self.request("GET", url, **kwargs) if kwargs else self.request("GET", url)

    def options(self, url: Url, **kwargs: Unpack[RequestArguments]) -> Response:
        """Sends an OPTIONS request; see :meth:`request`.

        >>> session.options("https://example.com/").headers["allow"]        # doctest: +SKIP
        'GET, HEAD'
        """
        return self.request("OPTIONS", url, **kwargs)

    def head(self, url: Url, **kwargs: Unpack[RequestArguments]) -> Response:
        """Sends a HEAD request; see :meth:`request`. Redirects need ``allow_redirects=True``.

        >>> session.head("https://example.com/").headers["content-type"]    # doctest: +SKIP
        'text/html'
        """
        kwargs.setdefault("allow_redirects", False)
        return self.request("HEAD", url, **kwargs)

    def post(self, url: Url, data: Body = None, json: object = None, **kwargs: Unpack[PostArguments]) -> Response:
        """Sends a POST request; see :meth:`request`.

        >>> session.post("https://example.com/items", json={"name": "x"})   # doctest: +SKIP
        <Response [201]>
        """
        if kwargs:
            return self.request("POST", url, data=data, json=json, **kwargs)
        return self.request("POST", url, data=data, json=json)

    def put(self, url: Url, data: Body = None, **kwargs: Unpack[PutArguments]) -> Response:
        """Sends a PUT request; see :meth:`request`.

        >>> session.put("https://example.com/items/1", data=b"content")     # doctest: +SKIP
        <Response [204]>
        """
        return self.request("PUT", url, data=data, **kwargs)

    def patch(self, url: Url, data: Body = None, **kwargs: Unpack[PutArguments]) -> Response:
        """Sends a PATCH request; see :meth:`request`.

        >>> session.patch("https://example.com/items/1", json={"a": 1})     # doctest: +SKIP
        <Response [200]>
        """
        return self.request("PATCH", url, data=data, **kwargs)

    def delete(self, url: Url, **kwargs: Unpack[RequestArguments]) -> Response:
        """Sends a DELETE request; see :meth:`request`.

        >>> session.delete("https://example.com/items/1")                   # doctest: +SKIP
        <Response [204]>
        """
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
