"""How a session follows redirects: which request the next one is, and what it may carry along."""

from __future__ import annotations

from collections.abc import Iterator

from ._asked import PreparedRequest
from ._haul import Failure, join, split_url
from .cookies import cookiejar_from_dict
from .exceptions import (
    ChunkedEncodingError,
    ContentDecodingError,
    InvalidSchema,
    InvalidURL,
    TooManyRedirects,
    UnrewindableBodyError,
    from_failure,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .cookies import CookieJar
    from .models import Response


class SessionRedirectMixin:
    """What :class:`haul.Session` has of it."""

    cookies: Any
    max_redirects: int
    #: Whether a subclass has a ``send`` or ``prepare_request`` of its own, which then each request goes by.
    _is_overridden = False
    if TYPE_CHECKING:

        def send(self, request: PreparedRequest, **kwargs: Any) -> Response: ...

        def _send_once(self, request: PreparedRequest, settings: dict[str, Any]) -> Response: ...
        def _environment_auth(self, url: str) -> tuple[str, str] | None: ...

    def resolve_redirects(
        self, response: Response, request: PreparedRequest, yield_requests: bool = False, **settings: Any
    ) -> Iterator[Response | PreparedRequest]:
        """The responses that a redirect leads to, one after the other; or the requests, unsent.

        Credentials and cookies given for the first URL stay with its scheme, host and port.

        :raises TooManyRedirects: more than :attr:`max_redirects`."""
        first_cookies = settings.pop("_first_cookies", None)
        origin = split_url(request.url or "")[:3]
        history: list[Response] = []
        while (url := self.get_redirect_target(response)) is not None:
            request = self._hop(response, url, request, history, origin, first_cookies)
            if yield_requests:
                yield request
                return
            if self._is_overridden:
                response = self.send(request, allow_redirects=False, **settings)
            else:
                response = self._send_once(request, settings)
            yield response

    def _hop(
        self, response: Response, location: str, request: PreparedRequest, history: list[Response],
        origin: tuple[str, str, int], first_cookies: Any,
    ) -> PreparedRequest:  # fmt: skip
        """The request that a redirect leads to."""
        history.append(response)
        response.history = history[:-1]
        try:
            response.content  # noqa: B018 - so that the connection is free
        except (ChunkedEncodingError, ContentDecodingError, RuntimeError):
            # A body that nobody wants is no reason not to go where it leads.
            response.close()
        if len(history) > self.max_redirects:
            raise TooManyRedirects(f"Exceeded {self.max_redirects} redirects.", response=response)
        response.close()
        request = request.copy()
        request._first_cookies = None
        request.url = self._redirected(response, location)
        self.rebuild_method(request, response)
        self._rebuild(request, response, origin, first_cookies)
        return request

    def _redirected(self, response: Response, location: str) -> str:
        try:
            return join(response.url or response.request.url, location)
        except Failure as failure:
            error = from_failure(failure, response.request)
            if isinstance(error, (InvalidSchema, InvalidURL)):
                error.response = response
            raise error from None

    def get_redirect_target(self, response: Response) -> str | None:
        """Where a response leads, if anywhere."""
        if not response.is_redirect:
            return None
        location: str = response.headers["location"]
        if not location:
            # As by requests: it leads nowhere.
            return None
        try:
            return location.encode("latin-1").decode("utf-8")
        except UnicodeError:
            return location

    def rebuild_method(self, request: PreparedRequest, response: Response) -> None:
        """The method behind a redirect (RFC 9110 section 15.4): GET behind a 303, and as browsers have it behind a 302 (and,
        for a POST, a 301)."""
        method, status = request.method, response.status_code
        if (status in (302, 303) and method != "HEAD") or (status == 301 and method == "POST"):
            request.method = "GET"

    def rebuild_auth(self, request: PreparedRequest, response: Response) -> None:
        """Takes credentials away that are not for where a redirect leads, and gives netrc's for it. A subclass may do otherwise."""
        url = request.url or ""
        if not self.should_strip_auth(response.request.url or "", url):
            return
        request.headers.pop("Authorization", None)
        request.digest = None
        found = self._environment_auth(url)
        if found is not None:
            request.prepare_auth(found)

    def should_strip_auth(self, old_url: str, new_url: str) -> bool:
        """Whether credentials for one URL are not for the other: scheme, host or port differ."""
        return split_url(old_url)[:3] != split_url(new_url)[:3]

    def _rebuild(
        self, request: PreparedRequest, response: Response, origin: tuple[str, str, int], first_cookies: Any
    ) -> None:
        headers = request.headers
        if response.status_code not in (307, 308):
            for name in ("Content-Length", "Content-Type", "Transfer-Encoding"):
                headers.pop(name, None)
            request.body = None
        url = request.url or ""
        is_first = split_url(url)[:3] == origin
        headers.pop("Cookie", None)
        headers.pop("Proxy-Authorization", None)
        if not is_first:
            headers.pop("Host", None)
        self.rebuild_auth(request, response)
        parts = [self.cookies._jar.header(url)]
        if is_first:
            parts += [self.cookies.loose_header(), cookiejar_from_dict(first_cookies).loose_header() if first_cookies else None]
        cookie = "; ".join(part for part in parts if part)
        if cookie:
            headers["Cookie"] = cookie
        if request._body_position is not None and ("Content-Length" in headers or "Transfer-Encoding" in headers):
            _rewind(request)


def _rewind(request: PreparedRequest) -> None:
    seek = getattr(request.body, "seek", None)
    if seek is None or request._body_position is False:
        raise UnrewindableBodyError("Unable to rewind request body for redirect.")
    try:
        seek(request._body_position)
    except OSError:
        raise UnrewindableBodyError("An error occurred when rewinding request body for redirect.") from None
