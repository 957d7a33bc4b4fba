"""``pytest -p over_haul_aiohttp``: aiohttp's ClientSession sends by haul.AsyncSession.

Arguments, responses and errors are translated by name. A test that uses a name which AsyncSession
does not have is skipped, with that name as the reason.
"""

import asyncio
import collections
import contextlib
import functools
import io
import json as json_module
import re
import weakref
from http.cookies import SimpleCookie
from types import SimpleNamespace

import aiohttp
import pytest
from aiohttp import client
from aiohttp._cookie_helpers import parse_set_cookie_headers
from aiohttp.helpers import sentinel
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

import haul

sent = 0
missing: "collections.Counter[str]" = collections.Counter()
sessions: "weakref.WeakKeyDictionary[aiohttp.ClientSession, haul.AsyncSession]" = weakref.WeakKeyDictionary()


def not_here(name):
    missing[name] += 1
    pytest.skip(f"AsyncSession has no {name}")


#: Arguments of a request that AsyncSession does not have, with the value that means nothing.
OTHERS = {
    "skip_auto_headers": None, "compress": None, "chunked": None, "expect100": False, "verify_ssl": None,
    "fingerprint": None, "ssl_context": None, "server_hostname": None, "proxy_headers": None, "trace_request_ctx": None,
    "read_bufsize": None, "auto_decompress": None, "max_line_size": None, "max_field_size": None, "max_headers": None,
    "middlewares": None,
}  # fmt: skip


class Content:
    """The body as a stream: the part of aiohttp.StreamReader that AsyncResponse has, too."""

    def __init__(self, response):
        self._response = response
        self._pieces = response.aiter_content()
        self._is_closed = False
        self._rest = b""
        self._at_end = False

    async def _more(self):
        if self._is_closed:
            raise aiohttp.ClientConnectionError("Connection closed")
        try:
            with errors():
                piece = await anext(self._pieces)
        except StopAsyncIteration:
            self._at_end = True
            return False
        except aiohttp.ClientPayloadError:
            if self._is_closed:
                raise aiohttp.ClientConnectionError("Connection closed") from None
            raise
        self._rest += piece
        return True

    async def read(self, n=-1):
        while (n < 0 or not self._rest) and n and not self._at_end:
            await self._more()
        n = len(self._rest) if n < 0 else n
        taken, self._rest = self._rest[:n], self._rest[n:]
        return taken

    async def readany(self):
        return await self.read(1 << 30)

    async def readexactly(self, n):
        while len(self._rest) < n:
            if not await self._more():
                raise asyncio.IncompleteReadError(self._rest, n)
        taken, self._rest = self._rest[:n], self._rest[n:]
        return taken

    async def readline(self):
        while b"\n" not in self._rest and await self._more():
            pass
        end = self._rest.find(b"\n") + 1 or len(self._rest)
        taken, self._rest = self._rest[:end], self._rest[end:]
        return taken

    async def iter_chunked(self, n):
        while piece := await self.read(n):
            yield piece

    async def iter_any(self):
        while piece := await self.readany():
            yield piece

    def at_eof(self):
        return self._at_end and not self._rest

    def __getattr__(self, name):
        not_here(f"content.{name}")


class Response:
    """A haul.AsyncResponse under aiohttp's names."""

    def __init__(self, response, session, history=()):
        self._haul = response
        self._session = session
        self.history = tuple(history)
        self.status, self.reason, self.ok = response.status_code, response.reason, response.status_code < 400
        self.method = response.request.method
        self.real_url = URL(response.url)
        self.url = self.real_url.with_fragment(None)
        fields = CIMultiDict()
        for name, value in response.raw.headers._fields:
            fields.add(name, value)
        self.headers = CIMultiDictProxy(fields)
        self.raw_headers = tuple((n.encode(), v.encode("utf-8", "surrogateescape")) for n, v in fields.items())
        self.cookies = SimpleCookie()
        for name, morsel in parse_set_cookie_headers(fields.getall("Set-Cookie", ())):
            dict.__setitem__(self.cookies, name, morsel)
        self.version = {10: aiohttp.HttpVersion10, 11: aiohttp.HttpVersion11}.get(response.raw.version)
        sent = CIMultiDict(response.request.headers.items())
        self.request_info = aiohttp.RequestInfo(self.url, self.method, CIMultiDictProxy(sent), self.real_url)
        self.content = Content(response)
        self._is_entered = False
        self.closed = response.request.method == "HEAD" or self.status == 204
        self._body = b"" if self.closed else None

    @property
    def content_type(self):
        return (self.headers.get("Content-Type") or "application/octet-stream").partition(";")[0].strip().lower()

    @property
    def charset(self):
        return self._haul.encoding if "charset" in self.headers.get("Content-Type", "") else None

    @property
    def content_length(self):
        length = self.headers.get("Content-Length")
        return None if length is None else int(length)

    @property
    def links(self):
        not_here("links with yarl's URLs")

    async def read(self):
        if self._body is None and self.closed:
            raise aiohttp.ClientConnectionError("Connection closed")
        if self._body is None:
            self._body = await self.content.read()
            self.closed = True
        return self._body

    async def text(self, encoding=None, errors="strict"):
        return (await self.read()).decode(encoding or self.get_encoding(), errors)

    def get_encoding(self):
        return self.charset or "utf-8"

    async def json(self, *, encoding=None, loads=json_module.loads, content_type="application/json"):
        body = await self.read()
        if content_type and self.content_type != content_type and not self.content_type.endswith("+json"):
            raise aiohttp.ContentTypeError(self.request_info, self.history, status=self.status, headers=self.headers,
                message=f"Attempt to decode JSON with unexpected mimetype: {self.headers.get('Content-Type', '')}")  # fmt: skip
        text = body.decode(encoding or self.get_encoding()).strip()
        return loads(text) if text else None

    def raise_for_status(self):
        if not self.ok:
            if not self._is_entered:
                self.release()
            raise aiohttp.ClientResponseError(
                self.request_info, self.history, status=self.status, message=self.reason, headers=self.headers
            )

    def release(self):
        self.closed = self.content._is_closed = True
        self._haul.close()
        return _Nothing()

    close = release

    async def wait_for_close(self):
        self.release()

    async def __aenter__(self):
        self._is_entered = True
        return self

    async def __aexit__(self, *args):
        self.release()
        await self._haul.aclose()

    def __getattr__(self, name):
        not_here(f"response.{name}")


class _Nothing:
    def __await__(self):
        return iter(())


def _url_error(kinds, error, first):
    """The error for a URL that cannot be used: of the request, or of a redirect."""
    url = re.search(r'(?:"|Failed to parse: )([^"]*?)(?:"|: |$)', str(error))
    url = url[1] if url else first
    return kinds[url != first](url)


@contextlib.contextmanager
def errors(url=""):
    """Translates haul's exceptions into aiohttp's."""
    try:
        yield
    except haul.exceptions.ConnectTimeout as error:
        raise aiohttp.ConnectionTimeoutError(str(error)) from error
    except haul.exceptions.Timeout as error:
        raise aiohttp.SocketTimeoutError(str(error)) from error
    except haul.exceptions.SSLError as error:
        raise _connector_error(aiohttp.ClientConnectorCertificateError, error) from error
    except haul.exceptions.ProxyError as error:
        refused = re.search("response ([0-9]{3})", str(error))
        if refused:
            info = aiohttp.RequestInfo(URL(url), "CONNECT", CIMultiDictProxy(CIMultiDict()), URL(url))
            raise aiohttp.ClientHttpProxyError(info, (), status=int(refused[1]), message=str(error)) from error
        raise _connector_error(aiohttp.ClientProxyConnectionError, error) from error
    except haul.exceptions.ChunkedEncodingError as error:
        raise aiohttp.ClientPayloadError(str(error)) from error
    except haul.exceptions.ContentDecodingError as error:
        raise aiohttp.ClientPayloadError(str(error)) from error
    except haul.exceptions.ConnectionError as error:
        if "silent" in str(error) or "timed out" in str(error):
            raise aiohttp.SocketTimeoutError(str(error)) from error
        if "resolve" in str(error):
            raise _connector_error(aiohttp.ClientConnectorDNSError, error) from error
        if "refused" in str(error):
            raise _connector_error(aiohttp.ClientConnectorError, error) from error
        raise aiohttp.ServerDisconnectedError(str(error)) from error
    except haul.exceptions.InvalidSchema as error:
        raise _url_error((aiohttp.NonHttpUrlClientError, aiohttp.NonHttpUrlRedirectClientError), error, url) from error
    except (haul.exceptions.InvalidURL, haul.exceptions.MissingSchema) as error:
        raise _url_error((aiohttp.InvalidUrlClientError, aiohttp.InvalidUrlRedirectClientError), error, url) from error
    except haul.exceptions.InvalidHeader as error:
        raise ValueError(str(error)) from error
    except haul.exceptions.RequestException as error:
        raise aiohttp.ClientError(str(error)) from error


def _connector_error(kind, error):
    key = SimpleNamespace(host="", port=0, ssl=True, is_ssl=True)
    return kind(key, error if kind is aiohttp.ClientConnectorCertificateError else OSError(0, str(error)))


def session_of(session):
    """The AsyncSession of a ClientSession, with its settings."""
    ours = sessions.get(session)
    if ours is None:
        if session.trace_configs:
            not_here("trace_configs")
        if session._middlewares:
            not_here("middlewares")
        if session._skip_auto_headers:
            not_here("skip_auto_headers")
        if session._version != aiohttp.HttpVersion11:
            not_here("version")
        if session._request_class is not aiohttp.ClientRequest or session._response_class is not aiohttp.ClientResponse:
            not_here("request_class")
        if session._ws_response_class is not aiohttp.ClientWebSocketResponse:
            not_here("ws_response_class")
        if not session._auto_decompress:
            not_here("auto_decompress")
        if type(session._cookie_jar) is not aiohttp.CookieJar and type(session._cookie_jar) is not aiohttp.DummyCookieJar:
            not_here("cookie_jar")
        connector = session._connector
        if type(connector._resolver) is not aiohttp.DefaultResolver:
            not_here("resolver")
        if type(connector) is not aiohttp.TCPConnector:
            not_here(type(connector).__name__)
        ours = sessions[session] = haul.AsyncSession()
        ours.trust_env = session._trust_env
        ours.headers = session._default_headers.copy()
        ours.headers.setdefault("Accept", "*/*")
        ours.headers.setdefault("Accept-Encoding", "gzip, deflate")
        if session._default_auth is not None:
            ours.auth = (session._default_auth.login, session._default_auth.password)
    return ours


def fields_of(form):
    """The form of a FormData, as ``data`` and ``files``."""
    if form._is_multipart or any(isinstance(value, io.IOBase) for *_, value in form._fields):
        files = []
        for options, headers, value in form._fields:
            if isinstance(value, aiohttp.payload.Payload):
                not_here("payloads")
            extra = {k: v for k, v in headers.items() if k != "Content-Type"}
            name = options.get("filename")
            charset = re.search("charset=([^;]+)", headers.get("Content-Type", ""))
            value = value.encode(charset[1]) if charset and isinstance(value, str) else value
            files.append((options["name"], (name, value, headers.get("Content-Type"), extra)))
        return None, files
    return [(options["name"], value) for options, _, value in form._fields], None


def body_of(data, stack):
    """``data`` and ``files`` of AsyncSession, from aiohttp's ``data``."""
    if isinstance(data, (aiohttp.payload.Payload, aiohttp.MultipartWriter)):
        not_here("payloads")
    if "streamer" in type(data).__name__ or "_stream_wrapper" in type(data).__name__:
        not_here("aiohttp.streamer")
    if isinstance(data, (aiohttp.StreamReader, Content)):
        return data.iter_chunked(1 << 16), None
    if isinstance(data, dict) or isinstance(data, (list, tuple)):
        data = aiohttp.FormData(data)
    if isinstance(data, aiohttp.FormData):
        return fields_of(data)
    if isinstance(data, io.StringIO):
        return data.read().encode(), None
    if isinstance(data, (bytearray, memoryview)):
        return bytes(data), None
    if isinstance(data, str):
        return data.encode(), None
    return data, None


def timeout_of(session, timeout):
    if timeout is sentinel or timeout is None:
        timeout = session._timeout
    if isinstance(timeout, (int, float)):
        timeout = aiohttp.ClientTimeout(total=timeout)
    return haul.ClientTimeout(
        total=timeout.total or None, connect=timeout.sock_connect or timeout.connect or None, read=timeout.sock_read or None
    )


async def _request(self, method, str_or_url, **given):
    global sent
    if self.closed:
        raise RuntimeError("Session is closed")
    for name, nothing in OTHERS.items():
        if given.pop(name, nothing) != nothing:
            not_here(name)
    ours = session_of(self)
    try:
        url = self._build_url(str_or_url)
    except ValueError:
        with errors(str(str_or_url)):
            await ours.request(method, str(str_or_url))
        raise
    if url.scheme in ("ws", "wss"):
        not_here("WebSockets")
    query = given.pop("params", None)
    url = url.extend_query(query) if query else url
    headers = self._prepare_headers(given.pop("headers", None))
    text = {}
    for name in dict.fromkeys(name for name in headers):
        values = headers.getall(name)
        if len(values) > 1:
            not_here("several fields of a name")
        text[name] = values[0]
    auth, data, json = given.pop("auth", None), given.pop("data", None), given.pop("json", None)
    if data is not None and json is not None:
        raise ValueError("data and json parameters can not be used at the same time")
    if json is not None:
        data, text = self._json_serialize(json).encode(), {"Content-Type": "application/json", **text}
    proxy, proxy_auth = given.pop("proxy", None), given.pop("proxy_auth", None)
    proxies = None
    if proxy is not None:
        proxy = URL(proxy)
        if proxy_auth is not None and not isinstance(proxy_auth, aiohttp.BasicAuth):
            raise ValueError("proxy_auth must be None or BasicAuth() tuple")
        if proxy_auth is not None:
            proxy = proxy.with_user(proxy_auth.login).with_password(proxy_auth.password)
        proxies = {"http": str(proxy), "https": str(proxy)}
    tls = given.pop("ssl", True)
    if tls is True:
        tls = self._connector._ssl
    verify = True if tls is True else tls
    if "json_serialize_bytes" in vars(self) or getattr(self, "_json_serialize_bytes", None):
        not_here("json_serialize_bytes")
    if isinstance(tls, aiohttp.Fingerprint):
        not_here("Fingerprint")
    extra = aiohttp.CookieJar(unsafe=True)
    extra.update_cookies(given.pop("cookies", None) or {}, url)
    stored = (*self._cookie_jar.filter_cookies(url).values(), *extra.filter_cookies(url).values())
    cookies = {morsel.key: morsel.value for morsel in stored}
    redirects, most = given.pop("allow_redirects", True), given.pop("max_redirects", 10)
    raising = given.pop("raise_for_status", None)
    given.pop("read_until_eof", None)
    limits = timeout_of(self, given.pop("timeout", sentinel))
    assert not given, given
    body, files = body_of(data, None)
    if isinstance(body, bytes) and "Content-Type" not in {n.title() for n in text} and not isinstance(data, dict):
        text["Content-Type"] = "text/plain; charset=utf-8" if isinstance(data, (str, io.StringIO)) else "application/octet-stream"
    ours.max_redirects = most
    sent += 1
    try:
        with errors(str(url)):
            response = await ours.request(
                method, str(url), data=body, files=files, headers=text, cookies=cookies,
                auth=None if auth is None else (auth.login, auth.password), timeout=limits, allow_redirects=redirects,
                proxies=proxies, stream=True, verify=verify,
            )  # fmt: skip
    except aiohttp.ClientError as error:
        if isinstance(error.__cause__, haul.exceptions.TooManyRedirects):
            past = error.__cause__.response
            history = [Response(r, self) for r in past.history]
            raise aiohttp.TooManyRedirects(history[0].request_info, tuple(history)) from error
        raise
    history = [Response(past, self) for past in response.history]
    answer = Response(response, self, history)
    for one in [*history, answer]:
        self._cookie_jar.update_cookies(one.cookies, one.url)
    raising = self._raise_for_status if raising is None else raising
    if callable(raising):
        await raising(answer)
    elif raising:
        answer.raise_for_status()
    return answer


close_session = client.ClientSession.close


async def close(self):
    ours = sessions.pop(self, None)
    if ours is not None:
        await ours.aclose()
    await close_session(self)


@functools.wraps(client.ClientSession._request)
async def request(self, method, str_or_url, **given):
    return await _request(self, method, str_or_url, **given)


client.ClientSession._request = request
client.ClientSession.close = close


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line("names that AsyncSession does not have: " + ", ".join(f"{n} {c}" for n, c in missing.most_common()))
    terminalreporter.write_line(f"{sent} requests by haul")


def pytest_sessionfinish(session):
    if not sent:
        session.exitstatus = 1
