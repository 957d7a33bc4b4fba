"""The transports of httpx (haul.httpx)."""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
import sys
import textwrap
import threading
import types
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpcore
import httpx
import pytest

from conftest import EventRoute, pattern
from haul._httpx_mocks import httpx_settings
from haul.httpx import AsyncHaulTransport, HaulTransport

#: Sends one request by the transport, and reads its response.
Send = Callable[..., httpx.Response]


def send_sync(method: str, url: str, transport: dict[str, Any] | None = None, **arguments: Any) -> httpx.Response:
    with httpx.Client(transport=HaulTransport(**(transport or {}))) as client:
        return client.request(method, url, **arguments)


def send_async(method: str, url: str, transport: dict[str, Any] | None = None, **arguments: Any) -> httpx.Response:
    async def main() -> httpx.Response:
        async with httpx.AsyncClient(transport=AsyncHaulTransport(**(transport or {}))) as client:
            return await client.request(method, url, **arguments)

    return asyncio.run(main())


@pytest.fixture(params=[send_sync, send_async])
def send(request: Any) -> Any:
    return request.param


def test_request_and_response_are_those_of_httpx(send: Send, pages: Any) -> None:
    pages.routes["/form"] = lambda handler: handler.answer(b"\xe4", 201, Content_Type="text/plain; charset=latin-1", Set_Cookie="a=1")
    response = send("POST", f"{pages.url}/form?q=%20%41", data={"b": "2"}, headers={"X-Own": "caf\xe9".encode("latin-1")})
    assert (response.status_code, response.text, response.reason_phrase, response.http_version) == (201, "ä", "Created", "HTTP/1.1")
    assert response.cookies["a"] == "1" and response.extensions["network_stream"].get_extra_info("server_addr")[1] == pages.server_port
    path, fields = pages.heads[-1]
    assert path == "/form?q=%20%41" and pages.bodies == [b"b=2"]
    assert ("X-Own", "caf\xe9") in fields and [name for name, _ in fields].count("Host") == 1
    assert ("User-Agent", f"python-httpx/{httpx.__version__}") in fields


@pytest.mark.parametrize(
    "sync_part, async_part, names",
    [
        (httpx.HTTPTransport, httpx.AsyncHTTPTransport, ("handle_request", "handle_async_request")),
        (httpcore.ConnectionPool, httpcore.AsyncConnectionPool, ("handle_request", "handle_async_request")),
        (socket, socket, ("socket", "socket")),
    ],
)
def test_mocks_of_httpx_are_not_bypassed(
    send: Send, pages: Any, monkeypatch: pytest.MonkeyPatch, sync_part: Any, async_part: Any, names: tuple[str, str]
) -> None:
    class Refused(ConnectionRefusedError):
        pass

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise Refused

    is_sync = send is send_sync
    part, name = (sync_part, names[0]) if is_sync else (async_part, names[1])
    transport: Any = HaulTransport(http2=True) if is_sync else AsyncHaulTransport(http2=True)
    request = httpx.Request("GET", pages.url)

    def fetch() -> int:
        if is_sync:
            return transport.handle_request(request).status_code  # type: ignore[no-any-return]
        return asyncio.run(_status_of(transport, request))

    assert fetch() == 200
    own = getattr(part, name)
    # The event loop needs sockets that work.
    mock: Any = refuse if part is not socket else type("Mock", (socket.socket,), {"__module__": "tests", "connect": refuse})
    with monkeypatch.context() as patched:
        patched.setattr(part, name, mock)
        with pytest.raises(Refused if part is not socket else httpx.ConnectError):
            fetch()
    with monkeypatch.context() as patched:
        # A wrapper that traces requests is no mock.
        patched.setattr(part, name, own if part is socket else functools.wraps(own)(refuse))
        assert fetch() == 200
    assert fetch() == 200 and len(pages.heads) == 3


def test_recorder_that_wraps_httpx_is_not_bypassed(pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # VCR.py wraps the method so, in its module `vcr.stubs.httpx_stubs`.
    recorder: dict[str, Any] = {"__name__": "vcr.stubs.httpx_stubs", "functools": functools, "httpx": httpx}
    code = """
        @functools.wraps(httpx.HTTPTransport.handle_request)
        def handle_request(self, request):
            return httpx.Response(200, text="recorded")
    """
    exec(textwrap.dedent(code), recorder)
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", recorder["handle_request"])
    assert send_sync("GET", pages.url).text == "recorded" and pages.heads == []


@pytest.mark.filterwarnings("error")
def test_transport_of_httpx_gets_the_settings(send: Send, secure_pages: Any, bundle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", type("Mock", (socket.socket,), {"__module__": "tests"}))
    for verify in (bundle, Path(bundle), ssl.create_default_context(cafile=bundle), False):
        assert send("GET", secure_pages.url, {"verify": verify, "http2": True}).is_success
    with pytest.raises(httpx.ConnectError):
        send("GET", secure_pages.url)


def test_half_imported_httpcore_is_no_mock(send: Send, pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpcore", types.ModuleType("httpcore"))
    assert send("GET", pages.url).is_success


def test_threads_share_one_transport_of_httpx() -> None:
    made: list[bool] = []
    transport = HaulTransport()

    class Inner:
        def __init__(self, **settings: Any) -> None:
            made.append(transport._httpx_lock.locked())

    assert transport._transport_of_httpx(Inner) is transport._transport_of_httpx(Inner)
    assert made == [True], "made once, while other threads wait"


def test_transport_of_httpx_trusts_the_certificates_of_haul(
    send: Send, secure_pages: Any, bundle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", type("Mock", (socket.socket,), {"__module__": "tests"}))
    monkeypatch.setenv("SSL_CERT_FILE", bundle)
    # httpx would trust the certificates of certifi.
    assert send("GET", secure_pages.url, {"trust_env": False}).is_success


def test_client_certificate_leaves_the_context_as_it_is(authority: Any, bundle: str, tmp_path: Path) -> None:
    pair = authority.issue_cert("client.example")
    file = tmp_path / "client.pem"
    pair.private_key_and_cert_chain_pem.write_to_path(str(file))
    context = ssl.create_default_context(cafile=bundle)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    settings = httpx_settings({"verify": context, "cert": str(file), "http2": False})
    made = settings["verify"]
    assert made is not context and settings["cert"] is None
    assert made.get_ca_certs() == context.get_ca_certs() and made.minimum_version is ssl.TLSVersion.TLSv1_3
    assert (made.verify_mode, made.check_hostname, made.verify_flags) == (context.verify_mode, True, context.verify_flags)
    assert httpx_settings({"verify": context, "cert": None, "http2": False})["verify"] is context


async def _status_of(transport: AsyncHaulTransport, request: httpx.Request) -> int:
    return (await transport.handle_async_request(request)).status_code


def test_redirects_cookies_and_credentials_are_left_to_httpx(send: Send, pages: Any) -> None:
    pages.routes["/from"] = lambda handler: handler.answer(b"", 302, Location="/to")
    assert send("GET", f"{pages.url}/from").status_code == 302
    url = f"{pages.url}/from".replace("//", "//user:word@")
    assert send("GET", url, follow_redirects=True).text == "page /to"
    assert ("Authorization", "Basic dXNlcjp3b3Jk") in pages.heads[-2][1]


def test_content_is_decoded_by_httpx(send: Send, pages: Any) -> None:
    import gzip

    packed = gzip.compress(b"unpacked")
    pages.routes["/gzip"] = lambda handler: handler.answer(packed, Content_Encoding="gzip")
    response = send("GET", f"{pages.url}/gzip")
    assert response.content == b"unpacked" and response.headers["content-length"] == str(len(packed))


def test_content_of_requests_is_streamed(pages: Any) -> None:
    def pieces() -> Iterator[bytes]:
        yield from (b"ab", b"cd")

    async def async_pieces() -> AsyncIterator[bytes]:
        for piece in (b"ab", b"cd"):
            await asyncio.sleep(0)
            yield piece

    for send, content in ((send_sync, pieces()), (send_async, async_pieces())):
        assert send("PUT", pages.url, content=content).is_success
    assert pages.bodies == [b"abcd", b"abcd"]
    assert all(("Transfer-Encoding", "chunked") in fields for _, fields in pages.heads)


def test_failure_of_a_content_reaches_the_program(pages: Any) -> None:
    def broken() -> Iterator[bytes]:
        yield b"x"
        raise KeyError("mine")

    async def async_broken() -> AsyncIterator[bytes]:
        yield b"x"
        raise KeyError("mine")

    for send, content in ((send_sync, broken()), (send_async, async_broken())):
        with pytest.raises(KeyError, match="mine"):
            send("PUT", pages.url, content=content)


def test_response_is_streamed(events: EventRoute) -> None:
    with httpx.Client(transport=HaulTransport()) as client, client.stream("GET", events.url) as response:
        for i, piece in enumerate(response.iter_raw()):
            assert piece == b"event %d\n" % i
            events.taken.release()

    async def main() -> None:
        async with httpx.AsyncClient(transport=AsyncHaulTransport()) as client, client.stream("GET", events.url) as response:
            i = 0
            async for piece in response.aiter_raw():
                assert piece == b"event %d\n" % i
                events.taken.release()
                i += 1

    asyncio.run(main())


def test_connection_is_reused(pages: Any) -> None:
    with httpx.Client(transport=HaulTransport()) as client:
        for _ in range(3):
            assert client.get(f"{pages.url}/bytes/300000").content == pattern(300000)
    assert pages.connections == 1


def test_failures_are_exceptions_of_httpx(send: Send, pages: Any, raw: Any, secure_pages: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(httpx.ConnectError):
            send("GET", f"http://127.0.0.1:{unused.getsockname()[1]}/")
    for url, cls in (
        (f"{secure_pages.url}/", httpx.ConnectError),
        ("ftp://127.0.0.1/", httpx.UnsupportedProtocol),
        (raw(b"").url, httpx.RemoteProtocolError),
        (raw(b"nonsense\r\n\r\n").url, httpx.RemoteProtocolError),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc").url, httpx.RemoteProtocolError),
        (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").url, httpx.RemoteProtocolError),
    ):
        with pytest.raises(cls) as caught:
            send("GET", url)
        assert caught.type is cls and caught.value.request.url == url
    with pytest.raises(httpx.LocalProtocolError):
        send("GET", pages.url, headers={"X": "a\r\nb"})


def test_limits_are_timeouts_of_httpx(send: Send, pages: Any) -> None:
    with pytest.raises(httpx.ReadTimeout):
        send("GET", f"{pages.url}/never", timeout=httpx.Timeout(None, read=0.05))
    # A server that accepts connections, and reads nothing.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(httpx.WriteTimeout):
            send("PUT", f"http://127.0.0.1:{silent.getsockname()[1]}/", content=bytes(64 << 20), timeout=httpx.Timeout(None, write=0.1))
    assert send("GET", pages.url, timeout=0.0 or None).is_success


def test_connections_are_limited(pages: Any) -> None:
    limits = httpx.Limits(max_connections=1)
    timeout = httpx.Timeout(None, pool=0.01)
    with httpx.Client(transport=HaulTransport(limits=limits), timeout=timeout) as client:
        with client.stream("GET", pages.url):
            with pytest.raises(httpx.PoolTimeout):
                client.get(pages.url)
        assert client.get(pages.url).is_success

    async def main() -> None:
        async with httpx.AsyncClient(transport=AsyncHaulTransport(limits=limits), timeout=timeout) as client:
            async with client.stream("GET", pages.url):
                with pytest.raises(httpx.PoolTimeout):
                    await client.get(pages.url)
            assert (await client.get(pages.url)).is_success

    asyncio.run(main())


def test_certificates_are_verified(send: Send, secure_pages: Any, bundle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert send("GET", secure_pages.url, {"verify": bundle}).is_success
    assert send("GET", secure_pages.url, {"verify": False}).is_success
    monkeypatch.setenv("SSL_CERT_FILE", bundle)
    assert send("GET", secure_pages.url).is_success
    assert send("GET", secure_pages.url, {"verify": ssl.create_default_context(cafile=bundle)}).is_success


def test_requests_go_through_the_proxy(send: Send, proxy: Any) -> None:
    url = proxy.url.replace("//", "//user:w%40rd@")
    assert send("GET", "http://elsewhere.example/x", {"proxy": url}).status_code == 200
    path, fields = proxy.heads[-1]
    assert path == "http://elsewhere.example/x" and ("Proxy-Authorization", "Basic dXNlcjp3QHJk") in fields


@pytest.mark.parametrize("status", [407, 502])
def test_refused_tunnel_is_a_proxy_error(send: Send, raw: Any, status: int) -> None:
    proxy = raw(b"HTTP/1.1 %d Refused\r\nContent-Length: 0\r\n\r\n" % status)
    with pytest.raises(httpx.ProxyError, match=str(status)):
        send("GET", "https://elsewhere.example/", {"proxy": proxy.url, "retries": 3})
    assert proxy.taken == 1, "a refusal is not tried again"


def test_connecting_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(httpx.ConnectError):
            send_sync("GET", f"http://127.0.0.1:{unused.getsockname()[1]}/", {"retries": 3})
    assert pauses == [0, 0.5, 1.0]


def test_steps_of_a_request_are_traced(pages: Any) -> None:
    told: list[str] = []

    def trace(name: str, info: dict[str, Any]) -> None:
        told.append(name)
        if name.endswith("receive_response_headers.complete"):
            assert info["return_value"][:3] == (b"HTTP/1.1", 200, b"OK")

    with httpx.Client(transport=HaulTransport()) as client:
        client.get(pages.url, extensions={"trace": trace})
        assert told[:2] == ["connection.connect_tcp.started", "connection.connect_tcp.complete"]
        assert told[2:] == [f"http11.{part}.{when}" for part in ("send_request_headers", "receive_response_headers") for when in ("started", "complete")]
        client.get(pages.url, extensions={"trace": trace})
        assert told[6:] == told[2:6]


def test_connections_come_from_the_local_address(send: Send, pages: Any) -> None:
    pages.routes["/from"] = lambda handler: handler.answer(handler.client_address[0].encode())
    url = pages.url.replace("localhost", "127.0.0.1") + "/from"
    assert send("GET", url, transport={"local_address": "127.0.0.9"}).text == "127.0.0.9"


def test_requests_go_to_the_unix_socket(send: Send, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()

        def serve() -> None:
            peer, _ = listener.accept()
            peer.recv(10_000)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        threading.Thread(target=serve, daemon=True).start()
        assert send("GET", "http://docker/info", transport={"uds": str(tmp_path / "socket")}).text == "ok"


def test_settings_without_a_counterpart_are_refused() -> None:
    for settings in ({"http1": False}, {"socket_options": []}):
        with pytest.raises(TypeError):
            HaulTransport(**settings)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="scheme"):
        HaulTransport(proxy="ftp://127.0.0.1")


@pytest.mark.parametrize("name", ["target", "sni_hostname"])
def test_unsupported_extension_is_refused(send: Send, name: str, pages: Any) -> None:
    with pytest.raises(httpx.LocalProtocolError, match=f"does not support the extension {name}"):
        send("GET", pages.url, extensions={name: "name.example"})
    assert pages.heads == []


def test_cancelled_request_ends_its_connection(pages: Any) -> None:
    async def main() -> None:
        async with httpx.AsyncClient(transport=AsyncHaulTransport()) as client:
            task = asyncio.ensure_future(client.get(f"{pages.url}/never"))
            while not pages.heads:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await client.get(pages.url)).is_success

    asyncio.run(main())


def test_trio_sends_and_receives(pages: Any) -> None:
    trio = pytest.importorskip("trio")

    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"ab", b"cd"):
            await trio.lowlevel.checkpoint()
            yield piece

    async def main() -> str:
        async with httpx.AsyncClient(transport=AsyncHaulTransport()) as client:
            await client.put(pages.url, content=pieces())
            return (await client.get(f"{pages.url}/x")).text

    assert trio.run(main) == "page /x" and pages.bodies[0] == b"abcd"


def test_transport_is_used_from_many_threads(pages: Any) -> None:
    failures: list[BaseException] = []

    def fetch(client: httpx.Client, number: int) -> None:
        try:
            for i in range(20):
                assert client.get(f"{pages.url}/{number}/{i}").text == f"page /{number}/{i}"
        except BaseException as failure:
            failures.append(failure)

    with httpx.Client(transport=HaulTransport()) as client:
        threads = [threading.Thread(target=fetch, args=(client, number)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures
