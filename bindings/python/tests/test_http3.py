"""HTTP/3: requests to aioquic's server, by the session, the adapter, and many at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import trustme
from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration

import haul
from haul.adapters import HaulAdapter


class EchoProtocol(QuicConnectionProtocol):
    """Answers each request with its method, a space, and its content."""

    connections = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        EchoProtocol.connections += 1
        self.http = H3Connection(self._quic)
        self.requests: dict[int, bytes] = {}

    def quic_event_received(self, event: Any) -> None:
        for received in self.http.handle_event(event):
            if isinstance(received, HeadersReceived):
                method = dict(received.headers)[b":method"]
                self.requests[received.stream_id] = method + b" "
            elif isinstance(received, DataReceived):
                self.requests[received.stream_id] += received.data
            if received.stream_ended:  # type: ignore[attr-defined]
                self._answer(received.stream_id)  # type: ignore[attr-defined]

    def _answer(self, stream: int) -> None:
        body = self.requests.pop(stream)
        head = [(b":status", b"200"), (b"server", b"aioquic"), (b"content-length", str(len(body)).encode())]
        self.http.send_headers(stream, head)
        self.http.send_data(stream, body, end_stream=True)
        self.transmit()


@pytest.fixture(scope="module")
def http3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Starts a server for HTTP/3 only; yields its URL and the file of its CA."""
    directory: Path = tmp_path_factory.mktemp("http3")
    ca = trustme.CA()
    identity = ca.issue_cert("localhost")
    identity.private_key_pem.write_to_path(directory / "key.pem")
    for pem in identity.cert_chain_pems:
        pem.write_to_path(directory / "cert.pem", append=True)
    ca.cert_pem.write_to_path(directory / "ca.pem")
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
    configuration.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> Any:
        return await serve("127.0.0.1", 0, configuration=configuration, create_protocol=EchoProtocol)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    port = server._transport.get_extra_info("sockname")[1]
    yield f"https://localhost:{port}/", str(directory / "ca.pem")
    loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


def test_session_gets_and_posts_over_http3(http3_server: tuple[str, str]) -> None:
    url, ca = http3_server
    before = EchoProtocol.connections
    with haul.Session() as session:
        session.verify, session.http3 = ca, "only"
        response = session.get(url)
        assert (response.text, response.headers["server"], response.raw.version) == ("GET ", "aioquic", 30)
        body = bytes(range(256)) * 4000
        assert session.post(url, data=body).content == b"POST " + body
    assert EchoProtocol.connections == before + 1, "both requests share one connection"


def test_http3_is_raced_with_tcp(http3_server: tuple[str, str]) -> None:
    url, ca = http3_server
    with haul.Session() as session:
        session.verify, session.http3 = ca, True
        assert session.get(url).text == "GET ", "nothing listens on the TCP port"
        session.http3 = False
        with pytest.raises(haul.exceptions.ConnectionError):
            session.get(url)


def test_adapter_sends_requests_over_http3(http3_server: tuple[str, str]) -> None:
    url, ca = http3_server
    with requests.Session() as session:
        session.mount("https://", HaulAdapter(http3="only"))
        assert session.put(url, data=b"content", verify=ca).text == "PUT content"


def test_async_session_shares_a_connection(http3_server: tuple[str, str]) -> None:
    url, ca = http3_server
    before = EchoProtocol.connections

    async def fetch() -> list[Any]:
        async with haul.AsyncSession() as session:
            session.verify, session.http3 = ca, "only"
            return await asyncio.gather(*(session.post(url, data=str(number)) for number in range(50)))

    assert [response.text for response in asyncio.run(fetch())] == [f"POST {number}" for number in range(50)]
    assert EchoProtocol.connections - before <= 2


def test_wrong_value_of_http3_is_refused() -> None:
    with haul.Session() as session:
        session.http3 = "sometimes"
        with pytest.raises(ValueError, match="http3 must be"):
            session.get("https://127.0.0.1:9/")
