"""An adapter for requests: its sessions, haul's connections.

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
from requests.adapters import BaseAdapter
from requests.cookies import extract_cookies_to_jar
from requests.structures import CaseInsensitiveDict
from requests.utils import get_encoding_from_headers, prepend_scheme_if_needed, select_proxy

from . import _settings
from ._haul import Client, Failure, Plan
from ._raw import RawBody
from .exceptions import InvalidProxyURL, ReadTimeout, from_failure

__all__ = ["HaulAdapter"]

_MOST_PLANS = 64


class HaulAdapter(BaseAdapter):
    """Sends requests of a ``requests.Session`` by haul.

    :param http2: whether HTTP/2 is offered to https servers.
    :param pool_connections, pool_maxsize, pool_block: taken and ignored: connections are kept as they come to be free.
    :param max_retries: how often a connection that could not be made is tried again.
    """

    __attrs__ = ["http2", "max_retries"]

    def __init__(
        self,
        pool_connections: int = 10,
        pool_maxsize: int = 10,
        max_retries: int = 0,
        pool_block: bool = False,
        http2: bool = False,
    ) -> None:
        super().__init__()
        self.http2 = http2
        self.max_retries = max_retries
        self._client = Client()
        self._plans: dict[Any, Plan] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__attrs__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        HaulAdapter.__init__(self, **state)

    def close(self) -> None:
        """Closes the idle connections."""
        self._client.close()

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
        """Sends a request that is prepared."""
        url, method = request.url or "", request.method or "GET"
        headers = request.headers
        body: Any = request.body
        if body is None and method not in ("GET", "HEAD") and headers.get("Content-Length") == "0":
            body = b""
        fields = list(headers.items())
        source = None
        plan = self._plan(url, timeout, verify, cert, proxies, request)
        for attempt in range(max(0, self.max_retries), -1, -1):
            try:
                if stream:
                    reply, source = self._client.open(plan, method, url, fields, body)
                else:
                    reply = self._client.send(plan, method, url, None, fields, body, None, None)
                break
            except Failure as failure:
                if not (attempt and failure.args[3] == "connect" and failure.args[0] in ("Connect", "Timeout")):
                    raise _translate(failure, request, plan.proxied) from None
        raw = RawBody(reply, source, lambda failure: _of_urllib3(failure, url=request.url))
        return self.build_response(request, raw)

    def build_response(self, req: requests.PreparedRequest, resp: RawBody) -> requests.Response:
        """requests' response of what came."""
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
        raw.headers = headers
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

    def _plan(
        self, url: str, timeout: Any, verify: Any, cert: Any, proxies: Any, request: requests.PreparedRequest
    ) -> Plan:
        proxy = select_proxy(url, proxies) if proxies else None
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
            settings = _settings.trust(verify, cert)
            try:
                plan = Plan(
                    (), proxy=proxy, proxy_fields=proxy_fields or None, connect_timeout=connect, read_timeout=read,
                    http2=self.http2, **settings,
                )  # fmt: skip
            except Failure as failure:
                raise _translate(failure, request) from None
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan


def _translate(failure: Exception, request: requests.PreparedRequest, proxied: bool = False) -> BaseException:
    """requests' exception of the same name."""
    error = from_failure(failure, proxied=proxied)
    if isinstance(error, ReadTimeout):
        # Programs look for the words of urllib3's, which requests' holds.
        cause = _of_urllib3(failure, request.url)
        return requests.exceptions.ReadTimeout(cause, request=request)
    cls = getattr(requests.exceptions, type(error).__name__, None)
    if cls is None or not issubclass(cls, requests.exceptions.RequestException):
        return error
    return cls(*error.args, request=request)  # type: ignore[no-any-return]


def _of_urllib3(failure: Exception, url: str | None) -> BaseException:
    """What requests waits for while it reads a body: urllib3's exceptions, which it translates itself."""
    from urllib3 import exceptions

    kind, message = failure.args[0], failure.args[1]
    if kind == "Timeout":
        return exceptions.ReadTimeoutError(None, url or "", f"Read timed out: {message}")  # type: ignore[arg-type]
    if kind in ("ContentCoding", "TooLarge"):
        return exceptions.DecodeError(message)
    return exceptions.ProtocolError(message)
