"""Transports of httpx that send by haul.

>>> import httpx                                                       # doctest: +SKIP
>>> with httpx.Client(transport=HaulTransport(http2=True)) as client:  # doctest: +SKIP
...     client.get("https://example.com/")

This module needs httpx, and raises its exceptions. httpx still handles sessions, cookies, redirects,
authentication and decoding.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

try:
    import httpx
except ImportError as error:
    raise ImportError("haul.httpx needs httpx: pip install 'httphaul[httpx]'") from error
import anyio
import anyio.lowlevel
import anyio.to_thread

from . import _settings
from ._connect_options import ConnectOptions
from ._haul import Client, EngineError, SharedOptions, StopFlag
from ._httpx_bodies import AsyncResponseStream, ResponseStream, async_body_of, body_of, is_refused_by_proxy, translated
from ._httpx_mocks import async_sending_is_mocked, httpx_settings, sending_is_mocked

if TYPE_CHECKING:
    import ssl

    from ._haul import ReceivedResponse

__all__ = ["AsyncHaulTransport", "HaulTransport"]

_VERSIONS = {10: b"HTTP/1.0", 11: b"HTTP/1.1", 20: b"HTTP/2", 30: b"HTTP/3"}
_DEFAULT_LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=20)
_MAX_CACHED_OPTIONS = 64
_MAX_THREADS = 256
_FIRST_PAUSE = 0.5

#: The threads of an event loop in which asynchronous transports wait.
_threads: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("haul threads")


class _NetworkStream:
    """The extension ``network_stream``: facts about the connection of a response."""

    def __init__(self, reply: ReceivedResponse) -> None:
        self._reply = reply

    def get_extra_info(self, info: str) -> Any:
        """Returns ``server_addr`` or ``client_addr``; ``None`` for other names."""
        return {"server_addr": self._reply.peer, "client_addr": self._reply.local}.get(info)


class _Transport:
    """The settings and the connections of a transport."""

    def __init__(
        self,
        verify: bool | str | os.PathLike[str] | ssl.SSLContext = True,
        cert: str | tuple[str, str] | tuple[str, str, str] | None = None,
        trust_env: bool = True,
        http1: bool = True,
        http2: bool = False,
        limits: httpx.Limits = _DEFAULT_LIMITS,
        proxy: httpx.Proxy | httpx.URL | str | None = None,
        uds: str | None = None,
        local_address: str | None = None,
        retries: int = 0,
        socket_options: Any = None,
        http3: bool | str = False,
    ) -> None:
        if socket_options is not None:
            raise TypeError("haul's transport has no setting socket_options")
        if not http1:
            raise TypeError("haul's transport cannot leave HTTP/1.1 out")
        #: The settings of the transport of httpx that sends while a mock is in place, and that transport.
        self._httpx_settings: dict[str, Any] = {
            "verify": verify, "cert": cert, "trust_env": trust_env, "http2": http2, "limits": limits, "proxy": proxy, "uds": uds,
            "local_address": local_address, "retries": retries,
        }  # fmt: skip
        self._httpx_transport: Any = None
        self._httpx_lock = threading.Lock()
        password: bytes | None = None
        if isinstance(cert, tuple) and len(cert) == 3:
            password = cert[2].encode()
            cert = cert[:2]
        self._verify, self._cert = verify, cert
        self._client = Client()
        self._retries = retries
        # Over the other versions, many requests share a connection.
        self._places: Any = None if http2 or http3 or limits.max_connections is None else self._new_places(limits.max_connections)
        self._settings = {**_proxy_options(proxy), "http2": http2, "http3": http3}
        self._settings.update(ConnectOptions(unix_socket=uds, source_address=local_address).settings())
        if password is not None:
            self._settings["passphrase"] = password
        self._options_cache: dict[Any, SharedOptions] = {}
        # Made here, so that a mistake is found at once.
        self._options({})

    def _transport_of_httpx(self, kind: type[Any]) -> Any:
        """Returns the transport of httpx that sends while a mock is in place; all threads share one."""
        with self._httpx_lock:
            if self._httpx_transport is None:
                self._httpx_transport = kind(**httpx_settings(self._httpx_settings))
            return self._httpx_transport

    def _new_places(self, number: int) -> Any:
        """Returns a semaphore for this number of connections."""
        raise NotImplementedError

    def _options(self, limits: Mapping[str, float | None]) -> SharedOptions:
        """Returns the options for these time limits."""
        connect, read, write = (limits.get(name) for name in ("connect", "read", "write"))
        key = connect, read, write, _settings.verify_key(self._verify)
        options = self._options_cache.get(key)
        if options is None:
            try:
                options = SharedOptions(
                    (),
                    # Without a limit httpx waits for ever.
                    connect_timeout=_limit(connect) or float("inf"),
                    read_timeout=_limit(read),
                    write_timeout=_limit(write),
                    **_settings.tls_options(self._verify, self._cert, "https:"),
                    **self._settings,
                )
            except EngineError as failure:
                raise ValueError(failure.args[1]) from None
            if len(self._options_cache) >= _MAX_CACHED_OPTIONS:
                self._options_cache.clear()
            self._options_cache[key] = options
        return options

    def _arguments(self, request: httpx.Request, body: Any, stop: StopFlag) -> tuple[Any, ...]:
        """Returns the arguments of the engine's call."""
        url = request.url
        for name in ("target", "sni_hostname"):
            if name in request.extensions:
                raise httpx.LocalProtocolError(f"haul's transport does not support the extension {name}", request=request)
        if url.scheme not in ("http", "https"):
            raise httpx.UnsupportedProtocol(f"haul sends to http and https URLs, not to {url.scheme}://", request=request)
        # The credentials of the URL are in its Authorization field.
        text = f"{url.scheme}://{url.netloc.decode('ascii')}{url.raw_path.decode('ascii')}"
        options = self._options(request.extensions.get("timeout") or {})
        return options, request.method, text, request.headers.raw, body, stop, True

    def _may_connect_again(self, failure: EngineError, attempt: int) -> bool:
        if attempt >= self._retries or failure.args[3] != "connect" or is_refused_by_proxy(failure):
            return False
        return failure.args[0] in ("Connect", "Resolve", "Timeout")


def _limit(seconds: float | None) -> float | None:
    # A limit of 0 has run out; the engine accepts only positive ones.
    return None if seconds is None else max(seconds, 1e-9)


def _proxy_options(proxy: httpx.Proxy | httpx.URL | str | None) -> dict[str, Any]:
    if proxy is None:
        return {}
    given = proxy if isinstance(proxy, httpx.Proxy) else httpx.Proxy(proxy)
    if given.ssl_context is not None:
        raise TypeError("haul's transport takes no ssl_context for a proxy")
    url = given.url
    if given.raw_auth is not None:
        user, password = (part.decode("utf-8") for part in given.raw_auth)
        url = url.copy_with(username=user, password=password)
    return {"proxy": str(url).rstrip("/"), "proxy_fields": given.headers.raw or None}


def _response(reply: ReceivedResponse, stream: httpx.SyncByteStream | httpx.AsyncByteStream) -> httpx.Response:
    return httpx.Response(
        reply.status,
        headers=[(name.encode("ascii"), value.encode("latin-1")) for name, value in reply.fields()],
        stream=stream,
        extensions={
            "http_version": _VERSIONS[reply.version],
            "reason_phrase": reply.reason.encode("latin-1", "replace"),
            "network_stream": _NetworkStream(reply),
        },
    )


def _nothing() -> None:
    pass


def _steps(request: httpx.Request, reply: ReceivedResponse) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields what the extension ``trace`` tells about a request, with httpcore's names and values.

    The engine does not call back, so the steps are told when the head has arrived."""
    if not reply.reused:
        stream = _NetworkStream(reply)
        yield "connection.connect_tcp.started", {"host": request.url.host, "port": request.url.port}
        yield "connection.connect_tcp.complete", {"return_value": stream}
    version = {20: "http2", 30: "http3"}.get(reply.version, "http11")
    fields = [(name.encode("ascii"), value.encode("latin-1")) for name, value in reply.fields()]
    reason = reply.reason.encode("latin-1", "replace")
    sent = _SentRequest(request)
    head = (reply.status, fields) if version != "http11" else (_VERSIONS[reply.version], reply.status, reason, fields)
    yield f"{version}.send_request_headers.started", {"request": sent}
    yield f"{version}.send_request_headers.complete", {"return_value": None}
    yield f"{version}.receive_response_headers.started", {"request": sent}
    yield f"{version}.receive_response_headers.complete", {"return_value": head}


class _SentRequest:
    """A request with the attributes of httpcore's requests."""

    def __init__(self, request: httpx.Request) -> None:
        self.method = request.method.encode("ascii")
        self.url = _SentUrl(request.url)
        self.headers = request.headers.raw
        self.extensions = request.extensions


class _SentUrl:
    def __init__(self, url: httpx.URL) -> None:
        self.scheme, self.host, self.port, self.target = url.raw_scheme, url.raw_host, url.port, url.raw_path


class HaulTransport(_Transport, httpx.BaseTransport):
    """Sends the requests of an ``httpx.Client`` by haul.

    >>> client = httpx.Client(transport=HaulTransport(http2=True))     # doctest: +SKIP

    :param verify: ``True`` to verify certificates; or a file or directory of trusted CA certificates, or
        an ``ssl.SSLContext``.
        Without one, those of ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` are trusted, or the system's.
    :param cert: a PEM file with the client certificate and its key, or a pair of files; a password may
        follow.
    :param trust_env: ignored: httpx itself reads the proxies of the environment.
    :param http2: whether to offer HTTP/2 to https servers.
    :param http3: the use of HTTP/3, as in :class:`haul.Session`.
    :param limits: ``max_connections`` limits the requests at once over HTTP/1.1. The engine itself decides
        which connections it keeps.
    :param proxy: the proxy of all requests.
    :param uds: the Unix socket to which all requests go.
    :param local_address: the address from which connections are made.
    :param retries: how often to try again to connect.
    :raises TypeError: a setting of httpx has no counterpart in haul, such as ``socket_options``.
    """

    def _new_places(self, number: int) -> threading.BoundedSemaphore:
        return threading.BoundedSemaphore(number)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request and waits for the head of its response."""
        if sending_is_mocked():
            return self._transport_of_httpx(httpx.HTTPTransport).handle_request(request)  # type: ignore[no-any-return]
        arguments = self._arguments(request, body_of(request), StopFlag())
        release = self._take_place(request)
        attempt = 0
        try:
            while True:
                try:
                    reply, body = self._client.open(*arguments)
                    if "trace" in request.extensions:
                        for step in _steps(request, reply):
                            request.extensions["trace"](*step)
                    return _response(reply, ResponseStream(body, request, release))
                except EngineError as failure:
                    if not self._may_connect_again(failure, attempt):
                        raise translated(failure, request) from None
                time.sleep(_FIRST_PAUSE * 2 ** (attempt - 1) if attempt else 0)
                attempt += 1
        except BaseException:
            release()
            raise

    def _take_place(self, request: httpx.Request) -> Callable[[], None]:
        """Waits until the request may have a connection. Returns the function that releases this
        connection."""
        if self._places is None:
            return _nothing
        seconds = (request.extensions.get("timeout") or {}).get("pool")
        if not self._places.acquire(timeout=seconds):
            raise httpx.PoolTimeout("no connection became free in time", request=request)
        release: Callable[[], None] = self._places.release
        return release

    def close(self) -> None:
        """Closes idle connections."""
        self._client.close()
        if self._httpx_transport is not None:
            self._httpx_transport.close()


class AsyncHaulTransport(_Transport, httpx.AsyncBaseTransport):
    """Sends the requests of an ``httpx.AsyncClient`` by haul, with asyncio or trio.

    >>> client = httpx.AsyncClient(transport=AsyncHaulTransport())     # doctest: +SKIP

    The parameters are those of :class:`HaulTransport`. A request occupies a thread while it waits for
    the server, at most 256 in an event loop.
    """

    def _new_places(self, number: int) -> anyio.Semaphore:
        return anyio.Semaphore(number)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request and waits for the head of its response."""
        if async_sending_is_mocked():
            transport = self._transport_of_httpx(httpx.AsyncHTTPTransport)
            return await transport.handle_async_request(request)  # type: ignore[no-any-return]
        release = await self._take_place(request)
        attempt = 0
        try:
            source, stop = async_body_of(request), StopFlag()
            arguments = self._arguments(request, source, stop)

            def stop_all() -> None:
                stop.set()
                if hasattr(source, "stop"):
                    source.stop()

            while True:
                try:
                    reply, body = await _in_thread(stop_all, self._client.open, *arguments)
                    if "trace" in request.extensions:
                        for step in _steps(request, reply):
                            await request.extensions["trace"](*step)
                    return _response(reply, AsyncResponseStream(_in_thread, body, request, release))
                except EngineError as failure:
                    if not self._may_connect_again(failure, attempt):
                        raise translated(failure, request) from None
                await anyio.sleep(_FIRST_PAUSE * 2 ** (attempt - 1) if attempt else 0)
                attempt += 1
        except BaseException:
            release()
            raise

    async def _take_place(self, request: httpx.Request) -> Callable[[], None]:
        if self._places is None:
            return _nothing
        try:
            with anyio.fail_after((request.extensions.get("timeout") or {}).get("pool")):
                await self._places.acquire()
        except TimeoutError:
            raise httpx.PoolTimeout("no connection became free in time", request=request) from None
        release: Callable[[], None] = self._places.release
        return release

    async def aclose(self) -> None:
        """Closes idle connections."""
        self._client.close()
        if self._httpx_transport is not None:
            await self._httpx_transport.aclose()


async def _in_thread(stop: Callable[[], None], function: Callable[..., Any], *args: Any) -> Any:
    """Runs a blocking call in a thread. Cancelling the wait stops the call."""
    try:
        threads = _threads.get()
    except LookupError:
        threads = anyio.CapacityLimiter(_MAX_THREADS)
        _threads.set(threads)
    try:
        return await anyio.to_thread.run_sync(function, *args, abandon_on_cancel=True, limiter=threads)
    except anyio.get_cancelled_exc_class():
        stop()
        raise
