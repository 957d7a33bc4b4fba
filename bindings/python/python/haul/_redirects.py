"""Redirects of a session: the next request, and the credentials that it may carry."""

from __future__ import annotations

from collections.abc import Iterator

from ._request_objects import PreparedRequest
from ._request_body import is_stream
from ._haul import EngineError, is_secret_field, join, location_text, split_url
from .cookies import CookieJar, cookiejar_from_dict
from .exceptions import (
    ChunkedEncodingError,
    ContentDecodingError,
    InvalidSchema,
    InvalidURL,
    MissingSchema,
    TooManyRedirects,
    UnrewindableBodyError,
    from_engine_error,
)
from .models import Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


#: The errors of a redirect that the program may ignore if it does not follow redirects.
UNREACHABLE_TARGET = (UnrewindableBodyError, InvalidSchema, InvalidURL, MissingSchema)


class SessionRedirectMixin:
    """The methods of :class:`haul.Session` that deal with redirects."""

    cookies: Any
    max_redirects: int
    if TYPE_CHECKING:

        def _is_overridden(self) -> bool: ...
        def send(self, request: PreparedRequest, **kwargs: Any) -> Response: ...

        def _send_once(self, request: PreparedRequest, settings: dict[str, Any]) -> Response: ...
        def _environment_auth(self, url: str) -> tuple[str, str] | None: ...

    def resolve_redirects(
        self, response: Response, request: PreparedRequest, stream: bool | None = None, timeout: Any = None, verify: Any = None,
        cert: Any = None, proxies: Any = None, yield_requests: bool = False, **settings: Any,
    ) -> Iterator[Response | PreparedRequest]:
        """Follows redirects and yields the responses; or the requests, without sending them.

        Credentials and cookies for the first URL are sent only to its scheme, host and port.

        :raises TooManyRedirects: there are more than :attr:`max_redirects`."""
        first_cookies = settings.pop("_first_cookies", None)
        given = {"stream": stream, "timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies}
        settings.update({name: value for name, value in given.items() if value is not None})
        origin = origin_of(request.url or "")
        history: list[Response] = []
        while (url := self.get_redirect_target(response)) is not None:
            if not yield_requests:
                _discard_body(response)
            request = self._redirected_request(response, url, request, history, origin, first_cookies)
            if yield_requests:
                yield request
                return
            if request._observation is not None:
                request._observation.tell("redirect", request, response)
            if self._is_overridden():
                response = self.send(request, allow_redirects=False, **settings)
            else:
                response = self._send_once(request, settings)
            yield response

    def _redirected_request(
        self, response: Response, location: str, request: PreparedRequest, history: list[Response],
        origin: tuple[str, str, int], first_cookies: Any,
    ) -> PreparedRequest:  # fmt: skip
        """Returns the request that a redirect leads to."""
        history.append(response)
        response.history = history[:-1]
        if len(history) > self.max_redirects:
            raise TooManyRedirects(f"Exceeded {self.max_redirects} redirects.", response=response)
        request = request.copy()
        request._first_cookies = None
        request.url = self._redirect_url(response, location)
        method = request.method
        self.rebuild_method(request, response)
        self._rebuild_request(request, response, method, origin, first_cookies)
        return request

    def _redirect_url(self, response: Response, location: str) -> str:
        base = response.url or response.request.url
        try:
            return join(base, location) if _is_http(base) else _join_other_scheme(base, location)
        except EngineError as failure:
            error = from_engine_error(failure, response.request)
            if isinstance(error, (InvalidSchema, InvalidURL)):
                error.response = response
            raise error from None

    def get_redirect_target(self, response: Response) -> str | None:
        """Returns the target of a redirect, or ``None``."""
        # `is_redirect` of a ClientResponse is true without a Location, too.
        if not getattr(response, "has_redirect_location", response.is_redirect):
            return None
        location: str = response.headers["location"]
        if ", " in location:
            location = _one_of_equal_fields(response, location)
        if not location:
            # An empty Location is no redirect, as in requests.
            return None
        text = location_text(location)
        return location if text is None else text

    def rebuild_method(self, request: PreparedRequest, response: Response) -> None:
        """Sets the method after a redirect (RFC 9110 section 15.4).

        GET follows a 303, and a POST with a 301 or 302. Other requests keep method and body."""
        method, status = request.method, response.status_code
        if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
            request.method = "GET"

    def rebuild_auth(self, request: PreparedRequest, response: Response) -> None:
        """Removes credentials that must not go to a redirect's target, and adds those of netrc.

        Subclasses may override this method."""
        url = request.url or ""
        if not self.should_strip_auth(response.request.url or "", url):
            return
        _remove_secrets(request)
        found = None if _is_downgrade(url, response) else self._environment_auth(url)
        if found is not None:
            request.prepare_auth(found)

    def _strip_credentials(self, request: PreparedRequest, first: tuple[str, str, int]) -> None:
        """Removes the credentials that a request must not send to another origin than ``first``. Adds
        the credentials of netrc for the new origin, except after a change from https to http."""
        for name in ("Host", "Proxy-Authorization"):
            request.headers.pop(name, None)
        _remove_secrets(request)
        url = request.url or ""
        found = None if (first[0], origin_of(url)[0]) == ("https", "http") else self._environment_auth(url)
        if found is not None:
            request.prepare_auth(found)

    def should_strip_auth(self, old_url: str, new_url: str) -> bool:
        """Returns whether credentials for one URL must not go to the other: scheme, host or port
        differ."""
        return origin_of(old_url) != origin_of(new_url)

    def _rebuild_request(
        self, request: PreparedRequest, response: Response, method: str | None, origin: tuple[str, str, int], first_cookies: Any
    ) -> None:
        headers = request.headers
        if response.status_code == 303 or request.method != method:
            for name in ("Content-Length", "Content-Type", "Transfer-Encoding"):
                headers.pop(name, None)
            request.body = None
        url = request.url or ""
        is_first = origin_of(url) == origin
        headers.pop("Cookie", None)
        headers.pop("Proxy-Authorization", None)
        if not is_first:
            headers.pop("Host", None)
            # The server, not the program, names the user in such a URL.
            request.url = url = without_user(url)
        self.rebuild_auth(request, response)
        cookie = self._cookies_for_redirect(url, is_first, first_cookies)
        if cookie:
            headers["Cookie"] = cookie
        if request.body is not None:
            rewind(request)

    def _cookies_for_redirect(self, url: str, is_first: bool, first_cookies: Any) -> str | None:
        """Returns the Cookie field of a redirected request.

        Cookies with a domain go to that domain. Cookies without one go to the first origin only."""
        jar: CookieJar = self.cookies
        if first_cookies:
            own = first_cookies if hasattr(first_cookies, "set_cookie") else cookiejar_from_dict(first_cookies)
            jar = CookieJar(own)
            jar._domainless = {**self.cookies._domainless, **jar._domainless}
            # A cookie that a server has set on the way replaces one that the program has set.
            for cookie in self.cookies:
                if cookie.domain:
                    jar.set_cookie(cookie)
        parts = jar.domain_header(url), jar.domainless_header(url) if is_first else None
        return "; ".join(part for part in parts if part) or None


def _remove_secrets(request: PreparedRequest) -> None:
    for name in filter(is_secret_field, list(request.headers)):
        del request.headers[name]
    request.digest = None


def origin_of(url: str) -> tuple[str, str, int]:
    """Returns scheme, host and port. For another scheme (``http+unix:``) the port is 0."""
    if _is_http(url):
        return split_url(url)[:3]
    scheme, _, rest = url.partition("://")
    return scheme.lower(), rest.partition("/")[0].partition("?")[0], 0


def _is_http(url: str) -> bool:
    return url[:7].lower() == "http://" or url[:8].lower() == "https://"


def _join_other_scheme(base: str, location: str) -> str:
    """Resolves a Location against a URL of another scheme. ``urljoin`` knows only some schemes."""
    from urllib.parse import urljoin, urlsplit

    if urlsplit(location).scheme:
        return location
    scheme, _, rest = base.partition("://")
    return scheme + urljoin(f"http://{rest}", location)[len("http") :]


def _one_of_equal_fields(response: Any, joined: str) -> str:
    """Returns the value of the Location fields of a response, of which empty ones do not count.

    The engine has refused fields that differ. Values that are not from the engine stay joined."""
    reply = getattr(response, "_reply", None)
    # A hook may have replaced the value.
    if reply is None or joined != reply.joined("location"):
        return joined
    values = {value for name, value in reply.fields() if name.lower() == "location" and value}
    return values.pop() if len(values) == 1 else "" if not values else joined


def without_user(url: str) -> str:
    """Returns a URL without its user and password."""
    scheme, _, rest = url.partition("://")
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    return f"{scheme}://{rest[:end].rpartition('@')[2]}{rest[end:]}"


def _discard_body(response: Any) -> None:
    """Frees the connection of a redirect that is followed."""
    try:
        if isinstance(response, Response):
            response._discard_body()
        else:
            # The response is from an adapter of another library.
            response.content  # noqa: B018
    except (ChunkedEncodingError, ContentDecodingError, RuntimeError):
        # A redirect is followed even if its own body is broken.
        pass
    response.close()


def _is_downgrade(url: str, response: Response) -> bool:
    """Returns whether a redirect leads from https to http, and not back to the first origin."""
    first = (response.history or [response])[0].request.url or ""
    to, came = origin_of(url), (origin_of(first), origin_of(response.request.url or ""))
    return to[0] == "http" and to != came[0] and any(scheme == "https" for scheme, *_ in came)


def rewind(request: PreparedRequest) -> None:
    """Rewinds the body of a request, so that it can be sent again.

    :raises UnrewindableBodyError: the body can be read only once."""
    position = request._body_position
    if position is None and not _is_read_once(request.body):
        return
    seek = getattr(request.body, "seek", None)
    if seek is None or position is None or position is False:
        raise UnrewindableBodyError("The request body was read already and cannot be sent again.")
    try:
        seek(position)
    except (OSError, ValueError):
        raise UnrewindableBodyError("The request body cannot be rewound to be sent again.") from None


def _is_read_once(body: Any) -> bool:
    """Returns whether a body can be read only once.

    (requests sends an empty body the second time.)"""
    return is_stream(body) and iter(body) is body or hasattr(body, "read")
