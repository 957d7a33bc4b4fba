"""A transport adapter that lets sessions of requests use haul's connections.

>>> import requests                                                     # doctest: +SKIP
>>> session = requests.Session()                                        # doctest: +SKIP
>>> session.mount("http://", HaulAdapter())                             # doctest: +SKIP
>>> session.mount("https://", HaulAdapter())                            # doctest: +SKIP

Needs requests. What it raises are requests' exceptions; sessions, cookies, redirects, authentication stay requests' own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import Message
from types import SimpleNamespace
from typing import Any

import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.cookies import extract_cookies_to_jar
from requests.structures import CaseInsensitiveDict
from requests.utils import get_encoding_from_headers, prepend_scheme_if_needed, select_proxy, urldefragauth
from urllib3 import HTTPHeaderDict, HTTPResponse, Retry
from urllib3.util import SKIP_HEADER

from . import _handover, _settings, _standins
from ._bodies import is_stream
from ._haul import Client, Failure, Plan, location_text, split_url
from ._lines import Lines
from ._raw import How, RawBody
from ._retries import Attempts, as_requests, as_urllib3
from .exceptions import InvalidProxyURL
from .models import ITER_CHUNK_SIZE

__all__ = ["HaulAdapter"]

_MOST_PLANS = 64
_NEVER = Retry(0, read=False)


class _Raw(RawBody):
    """With what add-ons of requests do to urllib3's: they ask its headers for each field apart, and put a file in the place of the
    body: requests-cache one that holds what came, CacheControl one that reads it and keeps it. google-resumable-media puts a decoder of its
    own there, which sees what came before it is decoded."""

    _put: HTTPResponse | None = None
    _source: RawBody | None = None

    def _dict_of(self, fields: list[tuple[str, str]]) -> HTTPHeaderDict:
        return HTTPHeaderDict(fields)

    @property
    def _fp(self) -> Any:
        if self._put is not None:
            return self._put._fp
        if self._source is None:
            self._source = RawBody(self.reply, self._stream, self._translate)
        return self._source

    @_fp.setter
    def _fp(self, file: Any) -> None:
        self._put = HTTPResponse(file, self.headers, preload_content=False, enforce_content_length=False)

    @property
    def _decoder(self) -> Any:
        return None if self._put is None else self._put._decoder

    @_decoder.setter
    def _decoder(self, decoder: Any) -> None:
        if self._put is None:
            self._fp = self._fp
        assert self._put is not None
        self._put._decoder = decoder

    @property
    def closed(self) -> bool:
        return super().closed if self._put is None else self._put.closed

    @property
    def length_remaining(self) -> int | None:
        return super().length_remaining if self._put is None else self._put.length_remaining

    @length_remaining.setter
    def length_remaining(self, length: int | None) -> None:
        if self._put is not None:
            self._put.length_remaining = length

    def _next(self, how: How, amt: int | None, decode_content: bool | None) -> bytes:
        if self._put is None:
            return super()._next(how, amt, decode_content)
        decode = self.decode_content if decode_content is None else decode_content
        return self._put.read1(amt, decode) if how == "read_some" else self._put.read(amt, decode)


class _Response(requests.Response):
    """A response whose lines do not depend on the pieces in which they arrive. requests tears CR and LF apart, and its cost grows with the
    square of a line's length."""

    def iter_lines(
        self, chunk_size: int | None = ITER_CHUNK_SIZE, decode_unicode: bool = False, delimiter: Any = None
    ) -> Iterator[Any]:
        """The body line by line: as ``splitlines`` or ``split(delimiter)`` of the whole."""
        lines = Lines(delimiter)
        for piece in self.iter_content(chunk_size, decode_unicode):  # type: ignore[call-overload]
            yield from lines.push(piece)
        yield from lines.end()


class HaulAdapter(BaseAdapter):
    """Sends requests of a ``requests.Session`` by haul.

    :param http2: whether to offer HTTP/2 to https servers.
    :param pool_connections, pool_maxsize, pool_block: accepted and ignored: the engine pools connections itself.
    :param max_retries: how often to retry a failed request if that is safe; or a ``urllib3.Retry``, which also says after
        which statuses, and how long to wait.
    """

    __attrs__ = ["http2", "max_retries"]
    #: Whether a subclass sets up TLS by itself, as those of ``HTTPAdapter`` do.
    _overrides_tls = False

    def __init__(
        self,
        pool_connections: int = 10,
        pool_maxsize: int = 10,
        max_retries: int | Retry | None = 0,
        pool_block: bool = False,
        http2: bool = False,
    ) -> None:
        super().__init__()
        self.http2 = http2
        #: What is tried again, and when.
        self.max_retries: Retry | int = Retry.from_int(max_retries) if max_retries else _NEVER
        self._client = Client()
        self._plans: dict[Any, Plan] = {}
        self._own: HTTPAdapter | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__attrs__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        HaulAdapter.__init__(self, **state)

    def close(self) -> None:
        """Closes the idle connections."""
        self._client.close()
        own = self if isinstance(self, HTTPAdapter) else self._own
        if own is not None:
            HTTPAdapter.close(own)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._overrides_tls = _handover.overrides_tls(cls)

    def add_headers(self, request: requests.PreparedRequest, **kwargs: Any) -> None:
        """Called with each request before it is sent, for subclasses to add headers."""

    def request_url(self, request: requests.PreparedRequest, proxies: Any) -> str:
        """The target of the request: a path with its query, for subclasses to change. Through a proxy for http, the whole URL."""
        return HTTPAdapter.request_url(self, request, proxies)  # type: ignore[arg-type]

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        """Headers for a proxy, besides its credentials."""
        return {}

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        """Sends a prepared request."""
        if _standins.are_there() or self._overrides_tls or _handover.has_own_tls(self):
            return self._send_by_requests(request, stream, timeout, verify, cert, proxies)
        url, method = request.url or "", request.method or "GET"
        if "@" in url:
            # requests has said by a header whether its user is logged in with: one that a redirect names is not.
            url = urldefragauth(url)
        if type(self).request_url is not HaulAdapter.request_url:
            target = _at(url, self.request_url(request, proxies))
            if target is None:
                return self._send_by_requests(request, stream, timeout, verify, cert, proxies)
            url = target
        self.add_headers(request, stream=stream, timeout=timeout, verify=verify, cert=cert, proxies=proxies)
        headers = request.headers
        body: Any = request.body
        if body is None and method not in ("GET", "HEAD") and headers.get("Content-Length") == "0":
            body = b""
        # What has this value is left out, as by urllib3.
        fields = [(name, value) for name, value in headers.items() if isinstance(value, bytes) or value != SKIP_HEADER]
        if "Content-Length" in headers and is_stream(body):
            # requests adds chunks to the length that the program has given to a generator.
            fields = [(name, value) for name, value in fields if name.lower() != "transfer-encoding"]
        if not any(name.lower() == "accept-encoding" for name in headers):
            # http.client's word for a program that took the header away: without one, any coding would do (RFC 9110 section 12.5.3).
            fields.append(("Accept-Encoding", "identity"))
        plan = self._plan(url, timeout, verify, cert, proxies, request)
        attempts = None if self.max_retries is _NEVER else Attempts(Retry.from_int(self.max_retries), request)
        if attempts is not None:
            body = attempts.watched(body)
        # What a subclass does to a response it does to one that is not read yet.
        stream = stream or type(self).build_response is not HaulAdapter.build_response
        while True:
            source = None
            try:
                if stream:
                    reply, source = self._client.open(plan, method, url, fields, body, None, True)
                else:
                    reply = self._client.send(plan, method, url, None, fields, body, None, None, None, True)
            except Failure as failure:
                if attempts is None:
                    raise as_requests(failure, request, plan.proxied) from None
                attempts.after_failure(failure, plan.proxied)
                continue
            raw = _Raw(reply, source, lambda failure: as_urllib3(failure, url))
            if attempts is None or not attempts.wants_another(raw):
                raw.retries = self.max_retries if attempts is None else attempts.retries
                return self.build_response(request, raw)

    def build_response(self, req: requests.PreparedRequest, resp: RawBody | HTTPResponse) -> requests.Response:
        """Builds a response of requests, either from haul's reply or from a urllib3 response that came from a cache or a test."""
        if not isinstance(resp, RawBody):
            return HTTPAdapter.build_response(self, req, resp)  # type: ignore[arg-type]
        request, raw, reply = req, resp, resp.reply
        response = _Response()
        response.status_code = reply.status
        fields = reply.fields()
        headers: Any = CaseInsensitiveDict()
        for name, value in fields:
            if not value.isascii() and name.lower() == "location":
                # requests wants UTF-8 there, and fails at other bytes.
                value = _as_utf8(value)
            known = headers.get(name)
            headers[name] = value if known is None else f"{known}, {value}"
        response.headers = headers
        response.encoding = get_encoding_from_headers(headers)
        response.reason = reply.reason
        response.raw = raw
        response.url = request.url or ""
        if reply.has("set-cookie"):
            message = Message()
            for name, value in fields:
                message[name] = value
            raw._original_response = SimpleNamespace(msg=message)
            extract_cookies_to_jar(response.cookies, request, raw)
        response.request = request
        response.connection = self  # type: ignore[assignment]
        if reply.body is not None:
            response._content = reply.body
            response._content_consumed = True
        return response

    def _send_by_requests(self, *args: Any) -> requests.Response:
        if self._own is None:
            self._own = _handover.requests_own(self)
        response = HTTPAdapter.send(self._own, *args)
        if getattr(response, "connection", None) is self._own:
            response.connection = self  # type: ignore[assignment]
        return response

    def _plan(
        self, url: str, timeout: Any, verify: Any, cert: Any, proxies: Any, request: requests.PreparedRequest
    ) -> Plan:
        # An empty one stands for none.
        proxy = (select_proxy(url, proxies) if proxies else None) or None
        proxy_fields: tuple[tuple[str, str], ...] = ()
        if proxy:
            try:
                proxy = _settings._complete(prepend_scheme_if_needed(proxy, "http"))
            except InvalidProxyURL as error:
                raise requests.exceptions.InvalidProxyURL(*error.args, request=request) from None
            proxy_fields = tuple(self.proxy_headers(proxy).items())
        if isinstance(timeout, list):
            timeout = tuple(timeout)
        key = (timeout, verify, tuple(cert) if isinstance(cert, list) else cert, proxy, proxy_fields)
        plan = self._plans.get(key)
        if plan is None:
            connect, read = _settings.limits(timeout)
            settings = _settings.trust(verify, cert, url)
            try:
                plan = Plan(
                    (), proxy=proxy, proxy_fields=proxy_fields or None, connect_timeout=connect, read_timeout=read,
                    http2=self.http2, **settings,
                )  # fmt: skip
            except Failure as failure:
                raise as_requests(failure, request) from None
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan


def _at(url: str, target: str) -> str | None:
    """The URL with another target: a path, or a URL of the same origin. ``None`` for others, which only requests' own adapter sends."""
    if target.startswith("/"):
        scheme, _, rest = url.partition("://")
        return f"{scheme}://{re.split('[/?#]', rest, maxsplit=1)[0]}{target}"
    try:
        return target if split_url(url)[:3] == split_url(target)[:3] else None
    except Failure:
        return None


def _as_utf8(value: str) -> str:
    """A Location whose bytes beyond ASCII are UTF-8, or percent-encoded."""
    text = location_text(value)
    return value if text is None else text.encode("utf-8").decode("latin-1")
