"""Fixtures: local servers that record requests, and helpers for child processes."""

from __future__ import annotations

import functools
import http.server
import socket
import socketserver
import subprocess
import sys
import textwrap
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import trustme

from haul.adapters import HaulAdapter


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Removes the proxies, certificates and netrc file of the user."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@functools.lru_cache(maxsize=8)
def pattern(length: int) -> bytes:
    """Returns a body that differs from itself shifted by 64 KiB."""
    return bytes(i % 251 for i in range(length))


class PageServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """An HTTP/1.1 server with keep-alive. `routes` maps paths to functions that answer."""

    daemon_threads = True
    request_queue_size = 2048

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), PageHandler)
        self.connections = 0
        self.open = 0
        self.most_open = 0
        self.bodies: list[bytes] = []
        self.heads: list[tuple[str, list[tuple[str, str]]]] = []
        self.routes: dict[str, Callable[[PageHandler], None]] = {}
        self.lock = threading.Lock()
        self.released = threading.Event()

    @property
    def url(self) -> str:
        scheme = "https" if getattr(self, "is_tls", False) else "http"
        return f"{scheme}://localhost:{self.server_port}"

    def count(self, by: int) -> None:
        with self.lock:
            self.connections += by > 0
            self.open += by
            self.most_open = max(self.open, self.most_open)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that disconnect."""


class PageHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: PageServer

    def setup(self) -> None:
        self.server.count(1)
        super().setup()

    def finish(self) -> None:
        self.server.count(-1)
        super().finish()

    def answer(self, body: bytes, status: int = 200, **fields: str) -> None:
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def any(self) -> None:
        body = self.body()
        with self.server.lock:
            self.server.heads.append((self.path, list(self.headers.items())))
            self.server.bodies.append(body)
        path = self.path.partition("?")[0]
        route = self.server.routes.get(path)
        if route is not None:
            route(self)
        elif path.startswith("/bytes/"):
            self.answer(pattern(int(path[7:])))
        elif path == "/never":
            self.server.released.wait(20)
        elif path == "/wait":
            time.sleep(0.05)
            self.answer(b"waited")
        else:
            self.answer(f"page {self.path}".encode())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_PROPFIND = any

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def pages() -> Iterator[PageServer]:
    """A :class:`PageServer` for one test."""
    with PageServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.released.set()
        server.shutdown()


class EventRoute:
    """A route that sends ``event 0`` to ``event 2``, each after the one before was :attr:`taken`."""

    def __init__(self, pages: PageServer) -> None:
        self.url = f"{pages.url}/events"
        self.fields: dict[str, str] = {"Transfer-Encoding": "chunked"}
        self.taken = threading.Semaphore(0)
        pages.routes["/events"] = self.send

    def send(self, handler: PageHandler) -> None:
        handler.send_response(200)
        for name, value in self.fields.items():
            handler.send_header(name, value)
        handler.end_headers()
        coder = zlib.compressobj(wbits=31) if self.fields.get("Content-Encoding") == "gzip" else None
        is_chunked = "Transfer-Encoding" in self.fields
        for i in range(3):
            event = b"event %d\n" % i
            if coder is not None:
                event = coder.compress(event) + coder.flush(zlib.Z_SYNC_FLUSH if i < 2 else zlib.Z_FINISH)
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(event), event) if is_chunked else event)
            handler.wfile.flush()
            if not self.taken.acquire(timeout=20):
                return
        handler.wfile.write(b"0\r\n\r\n" if is_chunked else b"")


@pytest.fixture
def events(pages: PageServer) -> EventRoute:
    return EventRoute(pages)


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def secure_pages(authority: trustme.CA) -> Iterator[PageServer]:
    """A :class:`PageServer` over TLS, with a certificate of :func:`authority` for localhost."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with PageServer() as server:
        server.is_tls = True  # type: ignore[attr-defined]
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.released.set()
        server.shutdown()


@pytest.fixture
def bundle(authority: trustme.CA, tmp_path: Path) -> str:
    """The path of the authority's certificate."""
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


class RawServer:
    """A server that answers each request with the same bytes."""

    def __init__(self, reply: bytes, closes: bool = True) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        self.reply = reply
        self.closes = closes
        self.kept: list[socket.socket] = []
        self.taken = 0
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.taken += 1
            data = b""
            while b"\r\n\r\n" not in data:
                piece = peer.recv(65536)
                if not piece:
                    break
                data += piece
            peer.sendall(self.reply)
            if self.closes:
                peer.close()
            else:
                self.kept.append(peer)


@pytest.fixture
def raw() -> Iterator[Callable[..., RawServer]]:
    servers: list[RawServer] = []

    def make(reply: bytes, closes: bool = True) -> RawServer:
        servers.append(RawServer(reply, closes))
        return servers[-1]

    yield make
    for server in servers:
        server.listener.close()
        for peer in server.kept:
            peer.close()


@pytest.fixture
def proxy() -> Iterator[PageServer]:
    """A proxy that answers all requests itself, and records them."""
    with PageServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def make_adapter_session() -> requests.Session:
    """Returns a session of requests that sends by haul."""
    session = requests.Session()
    session.mount("http://", HaulAdapter())
    session.mount("https://", HaulAdapter())
    return session


@pytest.fixture
def adapter_session() -> requests.Session:
    return make_adapter_session()


# Background jobs of a shell ignore SIGINT, and so do their children.
_RESTORE_SIGINT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def start_python(code: str, *args: str, **kwargs: Any) -> subprocess.Popen[str]:
    """Starts a program in a child process."""
    return subprocess.Popen(
        [sys.executable, "-c", _RESTORE_SIGINT + textwrap.dedent(code), *args],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs,
    )  # fmt: skip


def run_python(code: str, *args: str) -> str:
    """Runs a program in a child process, which has to end by itself, and returns its output."""
    child = start_python(code, *args)
    try:
        out, err = child.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        child.kill()
        raise
    assert child.returncode == 0, (child.returncode, out, err)
    return out
