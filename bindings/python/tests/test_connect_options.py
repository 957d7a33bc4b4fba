"""ConnectOptions: where and how a session connects."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import http.server
import pickle
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

import haul
from conftest import PageHandler, PageServer


def session_with(**options: Any) -> haul.Session:
    session = haul.Session()
    session.connect_options = haul.ConnectOptions(**options)
    return session


class UnixPages(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class UnixHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"{self.headers['Host']} {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "local"

    def log_message(self, *args: Any) -> None:
        pass


@pytest.mark.parametrize("is_abstract", [False, True])
def test_unix_socket_takes_all_requests(tmp_path: Path, is_abstract: bool) -> None:
    path = f"\0haul-{tmp_path.name}" if is_abstract else str(tmp_path / "socket")
    with UnixPages(path, UnixHandler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        session = session_with(unix_socket=path)
        assert session.get("http://docker/info").text == "docker /info"

        async def main() -> str:
            async with haul.AsyncSession() as of_asyncio:
                of_asyncio.connect_options = session.connect_options
                return (await of_asyncio.get("http://docker/x")).text

        assert asyncio.run(main()) == "docker /x"
        (result,) = haul.fetch_many(["http://docker/many"], session=session)
        assert result.text == "docker /many"
        server.shutdown()


def test_resolve_replaces_the_address_only(pages: Any) -> None:
    port = pages.server_port
    session = session_with(resolve={"api.example": "127.0.0.1", "other.example:80": f"127.0.0.1:{port}"})
    assert session.get(f"http://api.example:{port}/a").text == "page /a"
    assert session.get("http://other.example/b").text == "page /b"
    assert [dict(fields)["Host"] for _, fields in pages.heads] == [f"api.example:{port}", "other.example"]
    session.connect_options = None
    with pytest.raises(haul.ConnectionError):
        session.get("http://other.invalid/b")


def test_source_address_is_that_of_the_connection(pages: Any) -> None:
    seen: list[Any] = []

    def note(handler: PageHandler) -> None:
        seen.append(handler.client_address)
        handler.answer(b"")

    pages.routes["/from"] = note
    url = pages.url.replace("localhost", "127.0.0.1") + "/from"
    assert session_with(source_address="127.0.0.9").get(url).ok
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.9", 0))
        port = free.getsockname()[1]
    assert session_with(source_address=("127.0.0.9", port)).get(url).ok
    assert seen[0][0] == "127.0.0.9" and seen[1] == ("127.0.0.9", port)
    response = session_with(interface="lo").get(url)
    assert response.ok and response.connection_info.local[0].startswith("127.")
    with pytest.raises(haul.ConnectionError):
        session_with(interface="no-such0").get(url)


@pytest.fixture
def name_server() -> Iterator[str]:
    """A name server that answers each question for an IPv4 address with 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def serve() -> None:
            while True:
                try:
                    query, peer = server.recvfrom(4096)
                except OSError:
                    return
                end = query.index(b"\0", 12) + 5
                question = query[12:end]
                is_a = question[-4:-2] == b"\0\1"
                answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if is_a else b""
                head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_a else b"\0\0") + b"\0\0\0\0"
                server.sendto(head + question + answer, peer)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_name_servers_are_asked(pages: Any, name_server: str) -> None:
    session = session_with(dns_servers=[name_server])
    assert session.get(f"http://some.example:{pages.server_port}/x").text == "page /x"
    with pytest.raises(ValueError, match="not a name server"):
        session_with(dns_servers=["not one"])


def test_pins_name_the_keys_of_the_server(secure_pages: Any, authority: trustme.CA, bundle: str) -> None:
    certificate = ssl.get_server_certificate(("localhost", secure_pages.server_port))
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = x509.load_pem_x509_certificate(certificate.encode()).public_key()
    digest = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
    good = "sha256//" + base64.b64encode(digest).decode()
    other = "sha256//" + base64.b64encode(bytes(32)).decode()
    session = session_with(pins=[other, good], ca_pem=authority.cert_pem.bytes())
    assert session.get(secure_pages.url).ok
    with pytest.raises(haul.exceptions.SSLError):
        session_with(pins=[other], ca_pem=authority.cert_pem.bytes()).get(secure_pages.url)


def test_versions_of_tls_are_limited(secure_pages: Any, authority: trustme.CA) -> None:
    for version in ("TLSv1.2", "TLSv1.3"):
        session = session_with(min_tls=version, max_tls=version, ca_pem=authority.cert_pem.bytes().decode())
        assert session.get(secure_pages.url).connection_info.tls_version == version
    with pytest.raises(ValueError, match="max_tls"):
        haul.ConnectOptions(max_tls="SSLv3")


def test_client_certificate_may_be_in_memory(authority: trustme.CA) -> None:
    own = authority.issue_cert("client@example.com")
    pem = own.private_key_pem.bytes() + b"".join(part.bytes() for part in own.cert_chain_pems)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    with PageServer() as server:
        server.is_tls = True  # type: ignore[attr-defined]
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        assert session_with(cert_pem=pem, ca_pem=authority.cert_pem.bytes()).get(server.url).ok
        with pytest.raises(haul.ConnectionError):
            session_with(ca_pem=authority.cert_pem.bytes()).get(server.url)
        server.shutdown()


def test_malformed_options_are_refused() -> None:
    for wrong in (
        {"pins": ["sha256//short"]}, {"pins": ["md5//" + "A" * 43 + "="]}, {"resolve": {"h:0": "127.0.0.1"}},
        {"resolve": {"": "127.0.0.1"}}, {"resolve": {"h": "127.0.0.1:x"}}, {"min_tls": "1.2"}, {"dns_servers": "1.1.1.1"},
    ):  # fmt: skip
        with pytest.raises(ValueError):
            haul.ConnectOptions(**wrong)  # type: ignore[arg-type]


def test_options_are_values() -> None:
    options = haul.ConnectOptions(resolve={"h:443": "[::1]:8443"}, cert_pem="secret", source_address="127.0.0.1")
    assert options == pickle.loads(pickle.dumps(options)) and hash(options) == hash(pickle.loads(pickle.dumps(options)))
    assert options != haul.ConnectOptions() and repr(haul.ConnectOptions()) == "ConnectOptions()"
    assert "secret" not in repr(options) and "8443" in repr(options)
    assert options.settings()["connect_to"] == [("h", 443, "::1", 8443)]
    session = haul.Session()
    session.connect_options = options
    assert pickle.loads(pickle.dumps(session)).connect_options == options


def test_pins_of_an_iterator_are_kept() -> None:
    pin = "sha256//" + "A" * 43 + "="
    assert haul.ConnectOptions(pins=iter([pin])).pins == (pin,)
