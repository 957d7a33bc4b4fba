"""A transport adapter that makes sessions of requests send by haul.

>>> import requests                                                     # doctest: +SKIP
>>> session = requests.Session()                                        # doctest: +SKIP
>>> session.mount("http://", HaulAdapter())                             # doctest: +SKIP
>>> session.mount("https://", HaulAdapter())                            # doctest: +SKIP

This module needs requests, and raises its exceptions. requests still handles sessions, cookies,
redirects and authentication.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import Message
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import Any

try:
    import requests
except ImportError as error:
    raise ImportError("haul.adapters needs requests: pip install 'httphaul[requests]'", name="requests") from error
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.cookies import RequestsCookieJar, extract_cookies_to_jar
from requests.structures import CaseInsensitiveDict
from requests.utils import get_encoding_from_headers, prepend_scheme_if_needed, select_proxy, urldefragauth
from urllib3 import HTTPHeaderDict, HTTPResponse, Retry
from urllib3.exceptions import ProtocolError
from urllib3.util import SKIP_HEADER

from . import _requests_adapter, _settings
from ._request_body import is_stream
from ._haul import Client, EngineError, SharedOptions, location_text, split_url
from ._line_splitter import LineSplitter
from ._raw_body import ReadMethod, RawBody
from ._retries import Attempts, as_requests, as_urllib3
from .exceptions import InvalidProxyURL
from .models import ITER_CHUNK_SIZE

__all__ = ["HaulAdapter"]

_MAX_CACHED_OPTIONS = 64
_NO_RETRIES = Retry(0, read=False)
#: The attributes of a new `requests.Response`, except the objects that must not be shared by responses.
_NEW_RESPONSE = {name: value for name, value in vars(requests.Response()).items() if name not in ("headers", "history", "cookies")}


class _AdapterBody(RawBody):
    """A body that add-ons of requests can change as they change a urllib3 response.

    They replace its file: requests-cache by one with the stored body, CacheControl by one that
    stores what it reads. google-resumable-media replaces the decoder, to see the coded bytes."""

    #: The urllib3 response around a file or decoder that an add-on has set.
    _replacement: HTTPResponse | None = None
    _source: RawBody | None = None

    def _dict_of(self, fields: list[tuple[str, str]]) -> HTTPHeaderDict:
        return HTTPHeaderDict(fields)

    @property
    def _fp(self) -> Any:
        if self._replacement is not None:
            return self._replacement._fp
        if self._source is None:
            self._source = RawBody(self.reply, self._stream, self._translate)
        return self._source

    @_fp.setter
    def _fp(self, file: Any) -> None:
        self._replacement = HTTPResponse(file, self.headers, preload_content=False, enforce_content_length=False)

    @property
    def _decoder(self) -> Any:
        return None if self._replacement is None else self._replacement._decoder

    @_decoder.setter
    def _decoder(self, decoder: Any) -> None:
        if self._replacement is None:
            self._fp = self._fp
        assert self._replacement is not None
        self._replacement._decoder = decoder

    @property
    def closed(self) -> bool:
        return super().closed if self._replacement is None else self._replacement.closed

    @property
    def length_remaining(self) -> int | None:
        return super().length_remaining if self._replacement is None else self._replacement.length_remaining

    @length_remaining.setter
    def length_remaining(self, length: int | None) -> None:
        if self._replacement is not None:
            self._replacement.length_remaining = length

    def _next(self, how: ReadMethod, amt: int | None, decode_content: bool | None) -> bytes:
        if self._replacement is None:
            return super()._next(how, amt, decode_content)
        decode = self.decode_content if decode_content is None else decode_content
        return self._replacement.read1(amt, decode) if how == "read_some" else self._replacement.read(amt, decode)


class _AdapterResponse(requests.Response):
    """A response whose lines do not depend on the pieces in which they arrive.

    requests tears CR and LF apart, and its cost grows with the square of a line's length."""

    def __init__(self) -> None:
        self.__dict__.update(_NEW_RESPONSE)
        self.headers = CaseInsensitiveDict()
        self.history = []

    @cached_property
    def cookies(self) -> RequestsCookieJar:  # type: ignore[override]
        """The cookies that the server has set. A jar costs more than the rest of the response, so it
        is made at the first use."""
        return RequestsCookieJar()

    def iter_lines(
        self, chunk_size: int | None = ITER_CHUNK_SIZE, decode_unicode: bool = False, delimiter: Any = None
    ) -> Iterator[Any]:
        """Yields the lines of the body, as ``splitlines`` or ``split(delimiter)`` would split the whole
        body."""
        lines = LineSplitter(delimiter)
        for piece in self.iter_content(chunk_size, decode_unicode):  # type: ignore[call-overload]
            yield from lines.push(piece)
        yield from lines.end()


class HaulAdapter(BaseAdapter):
    """Sends the requests of a ``requests.Session`` by haul.

    :param http2: whether to offer HTTP/2 to https servers.
    :param http3: the use of HTTP/3, as in :class:`haul.Session`.
    :param pool_connections, pool_maxsize, pool_block: ignored: the engine pools connections itself.
    :param max_retries: how often to retry a failed request if that is safe; or a ``urllib3.Retry``,
        which also defines the statuses to retry after, and the time to wait.
    """

    __attrs__ = ["http2", "http3", "max_retries"]
    #: True if a subclass overrides methods of ``HTTPAdapter`` that set up TLS.
    _overrides_tls = False

    def __init__(
        self,
        pool_connections: int = 10,
        pool_maxsize: int = 10,
        max_retries: int | Retry | None = 0,
        pool_block: bool = False,
        http2: bool = False,
        http3: bool | str = False,
    ) -> None:
        super().__init__()
        self.http2 = http2
        self.http3 = http3
        #: The failures and statuses after which a request is retried.
        self.max_retries: Retry | int = Retry.from_int(max_retries) if max_retries else _NO_RETRIES
        self._client = Client()
        self._options_cache: dict[Any, SharedOptions] = {}
        self._http_adapter: HTTPAdapter | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__attrs__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        HaulAdapter.__init__(self, **state)

    def close(self) -> None:
        """Closes the idle connections."""
        self._client.close()
        own = self if isinstance(self, HTTPAdapter) else self._http_adapter
        if own is not None:
            HTTPAdapter.close(own)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._overrides_tls = _requests_adapter.overrides_tls(cls)

    def add_headers(self, request: requests.PreparedRequest, **kwargs: Any) -> None:
        """Does nothing. Subclasses override this method to add headers to each request."""

    def request_url(self, request: requests.PreparedRequest, proxies: Any) -> str:
        """Returns the request target: path and query, or the URL for an http proxy.

        Subclasses may change it."""
        return HTTPAdapter.request_url(self, request, proxies)  # type: ignore[arg-type]

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        """Returns headers for a proxy, besides its credentials."""
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
        if _requests_adapter.sending_is_mocked() or self._overrides_tls or _requests_adapter.has_own_tls(self):
            return self._send_by_requests(request, stream, timeout, verify, cert, proxies)
        url, method = request.url or "", request.method or "GET"
        if "@" in url:
            # requests has turned the user of the URL into a header, unless a redirect names the
            # user.
            url = urldefragauth(url)
        if type(self).request_url is not HaulAdapter.request_url:
            target = _with_target(url, self.request_url(request, proxies))
            if target is None:
                return self._send_by_requests(request, stream, timeout, verify, cert, proxies)
            url = target
        self.add_headers(request, stream=stream, timeout=timeout, verify=verify, cert=cert, proxies=proxies)
        headers = request.headers
        body: Any = request.body
        if body is None and method not in ("GET", "HEAD") and headers.get("Content-Length") == "0":
            body = b""
        # Headers with this value are left out, as in urllib3.
        given = _pairs(headers)
        fields = [(name, value) for name, value in given if isinstance(value, bytes) or value != SKIP_HEADER]
        if "Content-Length" in headers and is_stream(body):
            # requests adds Transfer-Encoding although the program has set the length of a
            # generator.
            fields = [(name, value) for name, value in fields if name.lower() != "transfer-encoding"]
        if not any(name.lower() == "accept-encoding" for name, _ in given):
            # As http.client does: without the header, the server may use any coding (RFC 9110
            # section 12.5.3).
            fields.append(("Accept-Encoding", "identity"))
        options = self._shared_options(url, timeout, verify, cert, proxies, request)
        attempts = None if self.max_retries is _NO_RETRIES else Attempts(Retry.from_int(self.max_retries), request)
        if attempts is not None:
            body = attempts.watched(body)
        # A subclass that builds responses gets them before the body is read.
        stream = stream or type(self).build_response is not HaulAdapter.build_response
        while True:
            source = None
            try:
                if stream:
                    reply, source = self._client.open(options, method, url, fields, body, None, True)
                else:
                    reply = self._client.send(options, method, url, None, fields, body, None, None, None, True)
            except EngineError as failure:
                if attempts is None:
                    raise as_requests(failure, request, options.proxied) from None
                attempts.after_failure(failure, options.proxied)
                continue
            except OSError as error:
                # The program's own body has failed. urllib3 takes this for a failure of the connection.
                if not (is_stream(body) or hasattr(body, "read")):
                    raise
                raise requests.exceptions.ConnectionError(ProtocolError("Connection aborted.", error), request=request) from error
            raw = _AdapterBody(reply, source, lambda failure: as_urllib3(failure, url))
            if attempts is None or not attempts.wants_another(raw):
                raw.retries = self.max_retries if attempts is None else attempts.retries
                return self.build_response(request, raw)

    def build_response(self, req: requests.PreparedRequest, resp: RawBody | HTTPResponse) -> requests.Response:
        """Builds a response of requests from haul's body, or from a urllib3 response of a cache or
        a test."""
        if not isinstance(resp, RawBody):
            return HTTPAdapter.build_response(self, req, resp)  # type: ignore[arg-type]
        request, raw, reply = req, resp, resp.reply
        response = _AdapterResponse()
        response.status_code = reply.status
        fields = reply.fields()
        headers: Any = {}
        for name, value in fields:
            key = name.lower()
            if not value.isascii() and key == "location":
                # requests decodes a Location as UTF-8, and fails for other bytes.
                value = _as_utf8(value)
            known = headers.get(key)
            headers[key] = (name, value if known is None else f"{known[1]}, {value}")
        # The dict has the same entries as the store of requests' own class. Filling that by its
        # methods would run five functions for each header.
        response.headers._store.update(headers)
        known = headers.get("content-type")
        response.encoding = None if known is None else _encoding_of(known[1])
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
        if self._http_adapter is None:
            self._http_adapter = _requests_adapter.as_http_adapter(self)
        response = HTTPAdapter.send(self._http_adapter, *args)
        if getattr(response, "connection", None) is self._http_adapter:
            response.connection = self  # type: ignore[assignment]
        return response

    def _shared_options(
        self, url: str, timeout: Any, verify: Any, cert: Any, proxies: Any, request: requests.PreparedRequest
    ) -> SharedOptions:
        # An empty proxy means no proxy.
        proxy = (select_proxy(url, proxies) if proxies else None) or None
        proxy_fields: tuple[tuple[str, str], ...] = ()
        if proxy:
            try:
                proxy = _settings._complete_proxy_url(prepend_scheme_if_needed(proxy, "http"))
            except InvalidProxyURL as error:
                raise requests.exceptions.InvalidProxyURL(*error.args, request=request) from None
            proxy_fields = tuple(self.proxy_headers(proxy).items())
        if isinstance(timeout, list):
            timeout = tuple(timeout)
        key = (timeout, verify if verify is True else _settings.verify_key(verify), tuple(cert) if isinstance(cert, list) else cert, proxy, proxy_fields)
        options = self._options_cache.get(key)
        if options is None:
            settings = _settings.tls_options(verify, cert, url)
            try:
                options = SharedOptions(
                    (), proxy=proxy, proxy_fields=proxy_fields or None, http2=self.http2, http3=self.http3,
                    **_settings.time_limits(timeout), **settings,
                )  # fmt: skip
            except EngineError as failure:
                raise as_requests(failure, request) from None
            if len(self._options_cache) >= _MAX_CACHED_OPTIONS:
                self._options_cache.clear()
            self._options_cache[key] = options
        return options


@lru_cache(maxsize=64)
def _encoding_of(content_type: str) -> str | None:
    return get_encoding_from_headers(CaseInsensitiveDict({"Content-Type": content_type}))


def _pairs(headers: Any) -> Any:
    """Returns the names and values of the headers of a prepared request."""
    # The view of `items()` looks each name up again.
    return headers._store.values() if type(headers) is CaseInsensitiveDict else headers.items()


def _with_target(url: str, target: str) -> str | None:
    """Returns the URL with another target: a path, or a URL of the same origin.

    ``None`` for others."""
    if target.startswith("/"):
        scheme, _, rest = url.partition("://")
        return f"{scheme}://{re.split('[/?#]', rest, maxsplit=1)[0]}{target}"
    try:
        return target if split_url(url)[:3] == split_url(target)[:3] else None
    except EngineError:
        return None


def _as_utf8(value: str) -> str:
    """Returns a Location whose bytes beyond ASCII are UTF-8 or percent-encoded."""
    text = location_text(value)
    return value if text is None else text.encode("utf-8").decode("latin-1")
