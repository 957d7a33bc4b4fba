"""A transport adapter that lets sessions of requests use haul's connections.

>>> import requests                                                     # doctest: +SKIP
>>> session = requests.Session()                                        # doctest: +SKIP
>>> session.mount("http://", HaulAdapter())                             # doctest: +SKIP
>>> session.mount("https://", HaulAdapter())                            # doctest: +SKIP

Needs requests. What it raises are requests' exceptions; sessions, cookies, redirects, authentication stay requests' own.
"""

from __future__ import annotations

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

from . import _settings, _standins
from ._bodies import is_stream
from ._haul import Client, Failure, Plan
from ._raw import How, RawBody
from ._retries import Attempts, as_requests, as_urllib3
from .exceptions import InvalidProxyURL

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


class HaulAdapter(BaseAdapter):
    """Sends requests of a ``requests.Session`` by haul.

    :param http2: whether to offer HTTP/2 to https servers.
    :param pool_connections, pool_maxsize, pool_block: accepted and ignored: the engine pools connections itself.
    :param max_retries: how often to retry a failed request if that is safe; or a ``urllib3.Retry``, which also says after
        which statuses, and how long to wait.
    """

    __attrs__ = ["http2", "max_retries"]

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
        self._own: _standins.Own | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__attrs__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        HaulAdapter.__init__(self, **state)

    def close(self) -> None:
        """Closes the idle connections."""
        self._client.close()
        if self._own is not None:
            self._own.close()

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
        if _standins.are_there():
            return self._requests_own().send(request, stream, timeout, verify, cert, proxies)
        url, method = request.url or "", request.method or "GET"
        if "@" in url:
            # requests has said by a header whether its user is logged in with: one that a redirect names is not.
            url = urldefragauth(url)
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
        response = requests.Response()
        response.status_code = reply.status
        fields = reply.fields()
        headers: Any = CaseInsensitiveDict()
        for name, value in fields:
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

    def _requests_own(self) -> _standins.Own:
        if self._own is None:
            self._own = _standins.Own(self)
        return self._own

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
