"""TLS, proxies, and the adapter for requests."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.client
import io
import os
import pickle
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import requests
import trustme
import urllib3
from conftest import Pages

import haul
from haul.adapters import HaulAdapter


def test_certificates_are_checked_and_pools_not_mixed(secure_pages: Any, bundle: str) -> None:
    session = haul.Session()
    assert session.get(secure_pages.url, verify=False).ok
    assert session.get(secure_pages.url, verify=False).ok
    # What was opened without a check serves nobody who wants one.
    with pytest.raises(haul.exceptions.SSLError):
        session.get(secure_pages.url)
    assert session.get(secure_pages.url, verify=bundle).ok
    before = secure_pages.connections
    assert session.get(secure_pages.url, verify=bundle).ok
    assert secure_pages.connections == before
    with pytest.raises(OSError, match="invalid path"):
        session.get(secure_pages.url, verify="/none/such.pem")
    session.verify = False
    assert session.get(secure_pages.url).ok


def test_certificates_that_are_not_there_matter_to_https_alone(
    session: requests.Session, pages: Any, secure_pages: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for its in (haul.Session(), session):
        assert its.get(pages.url, verify="/none/such.pem").ok
        for url in (secure_pages.url, secure_pages.url.upper()):
            with pytest.raises(OSError, match="/none/such.pem"):
                its.get(url, verify="/none/such.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/none/such.pem")
    for its in (haul.Session(), session):
        with pytest.raises(OSError, match="/none/such.pem"):
            its.get(secure_pages.url)
        assert its.get(pages.url).ok


def test_a_request_that_asks_for_checks_gets_them(session: requests.Session, secure_pages: Any, bundle: str) -> None:
    for its, refusal in ((haul.Session(), haul.exceptions.SSLError), (session, requests.exceptions.SSLError)):
        for of_session in (False, bundle):
            its.verify = of_session
            assert its.get(secure_pages.url).ok
            with pytest.raises(refusal):
                its.get(secure_pages.url, verify=True)
            with pytest.raises(refusal):
                its.get(secure_pages.url, verify=True, stream=True)


def test_certificates_are_paths_of_any_kind_and_nothing_else(
    session: requests.Session, secure_pages: Any, bundle: str
) -> None:
    import ssl

    for its in (haul.Session(), session):
        for path in (bundle, os.fsencode(bundle), Path(bundle)):
            assert its.get(secure_pages.url, verify=path).ok
        for wrong in (ssl.create_default_context(), 1.5, object()):
            with pytest.raises(TypeError, match="verify"):
                its.get(secure_pages.url, verify=wrong)
            with pytest.raises(TypeError, match="cert"):
                its.get(secure_pages.url, cert=wrong)
        for cert in (b"/none/such.pem", (bundle, b"/none/such.pem"), [Path(bundle), Path("/none/such.pem")]):
            with pytest.raises(OSError, match="invalid path: /none/such.pem"):
                its.get(secure_pages.url, cert=cert)


def test_a_certificate_of_ours_that_is_refused_is_an_error_of_tls(
    session: requests.Session, authority: trustme.CA, bundle: str, tmp_path: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    authority.issue_cert("localhost").configure_cert(context)
    authority.configure_trust(context)
    theirs = tmp_path / "theirs.pem"
    trustme.CA().issue_cert("me@example.test").private_key_and_cert_chain_pem.write_to_path(str(theirs))
    with Pages() as server:
        server.is_tls = True  # type: ignore[attr-defined]
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        for its, refusal in ((haul.Session(), haul.exceptions.SSLError), (session, requests.exceptions.SSLError)):
            for cert, alert in ((None, "CertificateRequired"), (str(theirs), "UnknownCA")):
                with pytest.raises(refusal, match=alert) as raised:
                    its.get(server.url, verify=bundle, cert=cert)
        # Where programs look for what OpenSSL says.
        error = raised.value.args[0].reason.args[0]
        assert isinstance(error, ssl.SSLError) and error.reason == "TLSV1_ALERT_UNKNOWN_CA"
        assert "tlsv1 alert unknown ca" in str(error)
        server.shutdown()


def test_a_refused_handshake_is_told_in_the_words_of_openssl(session: requests.Session) -> None:
    # It has no certificate.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with Pages() as server:
        server.is_tls = True  # type: ignore[attr-defined]
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        with pytest.raises(requests.exceptions.SSLError, match="sslv3 alert handshake failure"):
            session.get(server.url, verify=False)
        server.shutdown()


def test_the_environment_names_certificates(
    secure_pages: Any, bundle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = haul.Session()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", bundle)
    assert session.get(secure_pages.url).ok
    assert session.get(secure_pages.url, verify=False).ok
    session.trust_env = False
    with pytest.raises(haul.exceptions.SSLError):
        session.get(secure_pages.url)


def test_proxies(proxy: Any, pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"http://me:secret@127.0.0.1:{proxy.server_port}"
    session = haul.Session()
    asked = "http://somewhere.invalid/x?y=1"
    assert session.get(asked, proxies={"http": address}).text == f"page {asked}"
    fields = dict(proxy.heads[-1][1])
    assert fields["Proxy-Authorization"] == "Basic bWU6c2VjcmV0" and fields["Host"] == "somewhere.invalid"
    monkeypatch.setenv("http_proxy", address)
    assert session.get(asked).text == f"page {asked}"
    monkeypatch.setenv("no_proxy", "example.test,localhost")
    assert session.get(pages.url + "/direct").text == "page /direct"
    monkeypatch.setenv("no_proxy", f"localhost:{pages.server_port}")
    assert session.get(pages.url + "/direct").text == "page /direct"
    monkeypatch.setenv("no_proxy", "localhost:1")
    assert session.get(pages.url + "/x").text == f"page {pages.url}/x"
    monkeypatch.setenv("no_proxy", "")
    session.trust_env = False
    with pytest.raises(haul.ConnectionError):
        session.get(asked)
    assert session.get(asked, proxies={"all": address}).ok
    assert session.get(asked, proxies={"http://somewhere.invalid": address, "http": "http://127.0.0.1:1"}).ok
    with pytest.raises(haul.exceptions.ProxyError):
        session.get(asked, proxies={"http": "http://127.0.0.1:1"})
    for malformed in ("http://:8080", "bogus://host:1", "http://host:99999"):
        with pytest.raises((haul.exceptions.InvalidProxyURL, requests.exceptions.InvalidProxyURL)):
            session.get(asked, proxies={"http": malformed})
    with pytest.raises(haul.exceptions.InvalidProxyURL, match=r'"bogus://\*\*\*@host:1": unsupported'):
        haul.get(asked, proxies={"http": "bogus://user:password@host:1"})
    assert all("Proxy-Authorization" not in dict(fields) for _, fields in pages.heads)


def test_a_proxy_of_none_keeps_the_environments_away(
    session: requests.Session, proxy: Any, pages: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
    for its in (haul.Session(), session):
        for none in (None, ""):
            before = len(pages.heads)
            assert its.get(f"{pages.url}/direct", proxies={"http": none}).text == "page /direct"
            assert its.get(f"{pages.url}/streamed", proxies={"http": none}, stream=True).text == "page /streamed"
            assert len(pages.heads) == before + 2 and not proxy.heads
    # Of another scheme, or the session's, it says nothing.
    its = haul.Session()
    assert its.get("http://somewhere.invalid/", proxies={"https": None}).ok
    its.proxies = {"http": None}
    assert its.get("http://somewhere.invalid/").ok and len(proxy.heads) == 2


def test_a_cgi_variable_is_no_proxy(proxy: Any, pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUEST_METHOD", "GET")
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.server_port}")
    assert haul.get(pages.url + "/x").ok and proxy.heads == []


def test_a_connection_that_is_not_taken_is_a_connect_timeout() -> None:
    # A listener whose queue is full drops what knocks.
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
            fillers.append(filler)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        for timeout in (0.1, (0.1, None)):
            with pytest.raises(haul.ConnectTimeout):
                haul.get(url, timeout=timeout)
            with pytest.raises(haul.ConnectTimeout):
                haul.get(url, timeout=timeout, stream=True)
        for filler in fillers:
            filler.close()


@pytest.fixture
def session() -> requests.Session:
    session = requests.Session()
    session.mount("http://", HaulAdapter())
    session.mount("https://", HaulAdapter())
    return session


def test_a_session_of_requests_over_haul(session: requests.Session, pages: Any) -> None:
    pages.routes["/set"] = lambda handler: handler.answer(b"", 302, Location="/next", Set_Cookie="a=b; Path=/")
    response = session.get(pages.url + "/set")
    assert response.text == "page /next" and len(response.history) == 1
    assert session.cookies.get_dict() == {"a": "b"} and response.history[0].cookies["a"] == "b"
    assert dict(pages.heads[-1][1])["Cookie"] == "a=b"
    assert session.post(pages.url, data={"a": 1}).ok and pages.bodies[-1] == b"a=1"
    assert session.post(pages.url, data=iter([b"x", b"y"])).ok and pages.bodies[-1] == b"xy"
    assert pages.connections == 1


def test_headers_of_the_adapter_that_urllib3_leaves_out(session: requests.Session, pages: Any) -> None:
    from urllib3.util import SKIP_HEADER

    assert session.get(pages.url, headers={"User-Agent": SKIP_HEADER, "Accept-Encoding": SKIP_HEADER, "X": b"1"}).ok
    sent = dict(pages.heads[-1][1])
    assert sent["X"] == "1" and not {"User-Agent", "Accept-Encoding"} & sent.keys()


@pytest.mark.parametrize("stream", [False, True])
def test_a_session_of_requests_without_accept_encoding_asks_for_no_coding(
    session: requests.Session, pages: Any, stream: bool
) -> None:
    # What urllib3 sends then, by http.client; the programs that take the header away want the bytes as they are.
    assert session.get(pages.url, headers={"Accept-Encoding": None}, stream=stream).ok
    assert dict(pages.heads[-1][1])["Accept-Encoding"] == "identity"
    prepared = requests.Request("GET", pages.url, headers={"accept-encoding": "gzip"}).prepare()
    assert session.send(prepared, stream=stream).ok
    assert [value for name, value in pages.heads[-1][1] if name.lower() == "accept-encoding"] == ["gzip"]


@pytest.mark.parametrize("header", [{"a[b]": "1"}, {"a b": "1"}, {"a": "1\0"}])
def test_a_header_that_cannot_be_sent_takes_no_connection(
    session: requests.Session, pages: Any, header: dict[str, str]
) -> None:
    # A server that takes one connection at a time would wait for what never comes.
    for its, error in ((session, requests.exceptions.InvalidHeader), (haul.Session(), haul.exceptions.InvalidHeader)):
        for stream in (False, True):
            with pytest.raises(error, match="in header"):
                its.get(pages.url, headers=header, stream=stream)
    assert pages.connections == 0


def test_a_header_that_a_prepared_request_has_twice_is_sent_twice(session: requests.Session, pages: Any) -> None:
    prepared = requests.Request("GET", pages.url).prepare()
    # httpie keeps a dict of several values there.
    prepared.headers = urllib3.HTTPHeaderDict([("A", "1"), ("B", "2"), ("a", "3")])  # type: ignore[assignment]
    for stream in (False, True):
        assert session.send(prepared, stream=stream).ok
        assert [field for field in pages.heads[-1][1] if field[0] in "aAB"] == [("A", "1"), ("A", "3"), ("B", "2")]


def test_blanks_around_a_reason_are_none_of_it(session: requests.Session, raw: Any) -> None:
    url = raw(b"HTTP/1.1 200  All right \t\r\nContent-Length: 0\r\n\r\n").url
    for its in (requests.Session(), session, haul.Session()):
        assert its.get(url).reason == "All right"


def test_an_empty_proxy_is_none(session: requests.Session, pages: Any) -> None:
    assert session.get(pages.url, proxies={"http": ""}).ok


def test_the_adapter_takes_a_timeout_of_urllib3(session: requests.Session, pages: Any) -> None:
    from urllib3 import Timeout

    assert session.get(pages.url, timeout=Timeout(total=3)).ok
    with pytest.raises(requests.exceptions.ReadTimeout):
        session.get(f"{pages.url}/never", timeout=Timeout(total=0.1))
    # Clients whose user names no limit hand it on.
    default = Timeout.DEFAULT_TIMEOUT
    assert session.get(pages.url, timeout=default).ok
    assert session.get(pages.url, timeout=(5, default)).ok


def test_streams_of_the_adapter(session: requests.Session, pages: Any, httpbin: Any) -> None:
    response = session.get(f"{pages.url}/bytes/300000", stream=True)
    assert len(response.raw.read(10)) == 10 and sum(map(len, response.iter_content(4096))) == 299_990
    response = session.get(httpbin.url + "/gzip", stream=True)
    response.raw.decode_content = True
    assert b"gzipped" in response.raw.read()
    assert list(session.get(f"{pages.url}/x", stream=True).iter_lines()) == [b"page /x"]


#: What reads a body under way, each thing that comes being all that the server has sent.
READERS: dict[str, Callable[[Any], Iterator[bytes]]] = {
    "iter_lines": lambda response: response.iter_lines(),
    "iter_content": lambda response: response.iter_content(512),
    "iter_content(None)": lambda response: response.iter_content(None),
    "iter": iter,
    "raw.stream": lambda response: response.raw.stream(512, decode_content=True),
    "raw.read1": lambda response: iter(lambda: response.raw.read1(512, decode_content=True), b""),
}


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["adapter", "haul"])
def test_chunks_are_not_held_back(session: requests.Session, events: Any, kind: str, reader: str, coding: str) -> None:
    events.fields = {"Transfer-Encoding": "chunked", "Content-Encoding": coding}
    with (session if kind == "adapter" else haul.Session()).get(events.url, stream=True, timeout=5) as response:
        for at, piece in enumerate(READERS[reader](response)):
            assert piece.strip() == b"event %d" % at
            events.taken.release()
        assert at == 2


@pytest.mark.parametrize("fields", [{"Content-Length": "24"}, {"Connection": "close"}])
def test_read1_waits_for_no_more_than_something(session: requests.Session, events: Any, fields: dict[str, str]) -> None:
    events.fields = fields
    with session.get(events.url, stream=True, timeout=5) as response:
        assert response.raw.read1(0) == b"" and response.raw.read1(3) == b"eve"
        assert response.raw.read1() == b"nt 0\n"
        for at in (1, 2):
            events.taken.release()
            assert response.raw.read1() == b"event %d\n" % at
        events.taken.release()
        assert response.raw.read1() == b""
    # Where there are no chunks a piece is as long as was asked for.
    for _ in range(3):
        events.taken.release()
    assert [len(piece) for piece in session.get(events.url, stream=True).iter_content(10)] == [10, 10, 4]


def test_add_ons_find_urllib3s_names(session: requests.Session, pages: Any) -> None:
    def page(handler: Any) -> None:
        handler.send_response(200)
        for name, value in (("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Content-Length", "5")):
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(b"12345")

    pages.routes["/two"] = page
    url = pages.url + "/two?x=1"
    response = session.get(url, stream=True)
    raw = response.raw
    assert raw.headers.getlist("set-cookie") == ["a=1", "b=2"] and raw.info() is raw.headers
    assert response.headers["Set-Cookie"] == "a=1, b=2" and response.cookies.get_dict() == {"a": "1", "b": "2"}
    assert raw.geturl() == raw.url == raw._request_url == url
    assert (raw.version_string, raw.msg, raw.connection, raw.enforce_content_length) == ("HTTP/1.1", None, None, True)
    assert raw.retries.total == 0 and not raw.supports_chunked_reads()
    assert raw.length_remaining == 5 and raw.read(2) == b"12" and raw.length_remaining == 3
    assert raw.data == raw.data == b"345" and raw.length_remaining == 0
    assert session.get(url).raw.length_remaining == 0
    # As requests-cache does, for a program that reads the file after it.
    assert raw._fp.isclosed()
    raw._fp = io.BytesIO(b"12345")
    raw.length_remaining = 5
    assert raw.read1(2) == b"12" and raw.length_remaining == 3 and list(raw.stream(2)) == [b"34", b"5"]


class _Counting(urllib3.response.GzipDecoder):
    """A decoder that counts what it is given: google-resumable-media's."""

    def __init__(self, seen: Any) -> None:
        super().__init__()
        self.seen = seen

    def decompress(self, data: bytes, *args: Any, **kwargs: Any) -> bytes:
        self.seen.update(data)
        return super().decompress(data, *args, **kwargs)


def test_a_decoder_of_the_programs_own_sees_what_came(session: requests.Session, pages: Any) -> None:
    packed = gzip.compress(b"content " * 1000)
    pages.routes["/gzip"] = lambda handler: handler.answer(packed, Content_Encoding="gzip")
    with session.get(f"{pages.url}/gzip", stream=True) as response:
        seen = hashlib.md5()
        response.raw._decoder = _Counting(seen)
        assert b"".join(response.iter_content(1000)) == b"content " * 1000
    assert seen.digest() == hashlib.md5(packed).digest()


class _Tee:
    """A file that keeps what is read of another one, until that is closed: CacheControl's."""

    def __init__(self, file: Any, done: Callable[[bytes], None]) -> None:
        self.file, self.done, self.kept = file, done, b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def read(self, amt: int | None = None) -> bytes:
        piece: bytes = self.file.read(amt)
        self.kept += piece
        if self.file.closed and self.done is not None:
            self.done, done = None, self.done  # type: ignore[assignment]
            done(self.kept)
        return piece


def test_a_subclass_that_caches_reads_along(pages: Any, events: Any) -> None:
    kept: list[bytes] = []
    whole = gzip.compress(b"text " * 30000)
    pages.routes["/gzip"] = lambda handler: handler.answer(whole, Content_Encoding="gzip")
    pages.routes["/none"] = lambda handler: handler.answer(b"")

    class Caching(HaulAdapter):
        def build_response(self, req: Any, resp: Any) -> requests.Response:
            assert not resp.chunked
            resp._fp = _Tee(resp._fp, kept.append)
            return super().build_response(req, resp)

    session = requests.Session()
    session.mount("http://", Caching())
    events.taken.release(3)
    for path, sent, content in (
        ("/gzip", whole, b"text " * 30000), ("/none", b"", b""), ("/events", *[b"event 0\nevent 1\nevent 2\n"] * 2),
    ):  # fmt: skip
        for stream in (False, True):
            events.taken.release(3)
            response = session.get(pages.url + path, stream=stream)
            assert b"".join(response.iter_content(1000)) == content and kept == [sent], path
            kept.clear()
    # What it kept it gives back as a response of urllib3's, as does what stands in for a server in tests.
    fields = urllib3.HTTPHeaderDict([("Content-Encoding", "gzip"), ("X-A", "1"), ("X-A", "2")])
    cached = urllib3.HTTPResponse(io.BytesIO(whole), fields, 203, preload_content=False)
    adapter = HaulAdapter()
    response = adapter.build_response(requests.Request("GET", pages.url).prepare(), cached)
    assert (response.status_code, response.headers["x-a"], response.url) == (203, "1, 2", pages.url + "/")
    assert response.content == b"text " * 30000 and response.raw is cached and response.connection is adapter


def test_a_bundle_without_certificates_is_an_error_of_tls(session: Any, secure_pages: Any, tmp_path: Path) -> None:
    bundle = tmp_path / "empty.pem"
    bundle.write_text("none here")
    for verify in (str(bundle), str(tmp_path)):
        with pytest.raises(requests.exceptions.SSLError, match="no usable CA certificate"):
            session.get(secure_pages.url, verify=verify)
        with pytest.raises(haul.exceptions.SSLError, match="no usable CA certificate") as caught:
            haul.get(secure_pages.url, verify=verify)
        assert caught.value.request is not None


@pytest.mark.parametrize(
    "part, name",
    [
        (requests.adapters.HTTPAdapter, "send"),
        (urllib3.HTTPConnectionPool, "urlopen"),
        (urllib3.HTTPConnectionPool, "ConnectionCls"),
        (socket, "socket"),
    ],
)
def test_what_stands_in_the_place_of_requests_own_sending_is_not_gone_past(
    session: requests.Session, pages: Any, monkeypatch: pytest.MonkeyPatch, part: Any, name: str
) -> None:
    class Refused(Exception):
        pass

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise Refused

    own = getattr(part, name)
    assert session.get(pages.url).ok
    monkeypatch.setattr(part, name, refuse)
    with pytest.raises(Refused):
        session.get(pages.url)
    # What traces requests goes with them.
    monkeypatch.setattr(part, name, functools.wraps(own)(refuse))
    assert session.get(pages.url).ok
    monkeypatch.setattr(part, name, own)
    assert session.get(pages.url).ok and pages.connections == 1


def test_a_mock_of_requests_adapter_is_asked_and_may_let_a_request_through(pages: Any) -> None:
    class Counting(HaulAdapter):
        built = 0

        def build_response(self, req: Any, resp: Any) -> requests.Response:
            self.built += 1
            return super().build_response(req, resp)

    adapter = Counting(max_retries=2)
    assert adapter.max_retries.total == 2, "a Retry, as mocks expect it"  # type: ignore[union-attr]
    with requests.Session() as session:
        session.mount("http://", adapter)
        with mock.patch("requests.adapters.HTTPAdapter.send", return_value=requests.Response()) as send:
            assert session.get(pages.url) is send.return_value
        own = requests.adapters.HTTPAdapter.send
        with mock.patch.object(requests.adapters.HTTPAdapter, "send", autospec=True, side_effect=own) as spy:
            response = session.get(pages.url)
        assert response.text == "page /" and adapter.built == 1
        assert vars(response)["connection"] is adapter
        assert spy.call_count == 1


def test_raw_gives_lines_as_urllib3_does(session: requests.Session, pages: Any) -> None:
    text = b"one\r\n\ntwo" + b"-" * 200_000 + b"\nlast"
    pages.routes["/lines"] = lambda handler: handler.answer(gzip.compress(text), Content_Encoding="gzip")
    for its in (requests.Session(), session, haul.Session()):
        for lines in (list, lambda raw: raw.readlines()):
            assert lines(its.get(pages.url + "/lines", stream=True).raw) == text.splitlines(keepends=True)


def test_what_the_adapter_raises_is_requests_own(session: requests.Session, pages: Any, raw: Any) -> None:
    with pytest.raises(requests.exceptions.ConnectionError) as refused:
        session.get("http://127.0.0.1:1/")
    assert refused.value.request is not None
    with pytest.raises(requests.exceptions.ReadTimeout):
        session.get(pages.url + "/never", timeout=0.1)
    with pytest.raises(requests.exceptions.InvalidHeader):
        session.get(pages.url, headers={"X": "a\r\nb"})
    short = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort").url
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        session.get(short)
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        list(session.get(short, stream=True).iter_content(1))
    with pytest.raises(requests.exceptions.ProxyError):
        session.get("http://x.invalid/", proxies={"http": "http://127.0.0.1:1"})


def _reset(head: bytes, handler: Any) -> None:
    """Sends so much, and resets the connection."""
    handler.connection.sendall(head)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # The socket is closed when the last of these is.
    for file in (handler.rfile, handler.wfile, handler.connection):
        file.close()


def test_what_the_adapter_raises_holds_urllib3s(
    session: requests.Session, pages: Any, secure_pages: Any, raw: Any
) -> None:
    import urllib3.exceptions as inner

    def raised(url: str, **kwargs: Any) -> Any:
        with pytest.raises(requests.exceptions.RequestException) as error:
            session.get(url, **kwargs).content  # noqa: B018
        pickle.loads(pickle.dumps(error.value.args[0]))
        return error.value

    for url, reason, host in (
        ("http://127.0.0.1:1/p?q=1", inner.NewConnectionError, "127.0.0.1"),
        ("http://no.such.invalid:1/p?q=1", inner.NameResolutionError, "no.such.invalid"),
    ):
        error = raised(url)
        assert type(error) is requests.exceptions.ConnectionError
        held = error.args[0]
        assert isinstance(held, inner.MaxRetryError) and type(held.reason) is reason
        assert isinstance(held.pool, urllib3.HTTPConnectionPool)
        assert isinstance(held.reason.conn, urllib3.connection.HTTPConnection)
        assert (held.pool.host, held.pool.port, held.url) == (host, 1, "/p?q=1")
        assert str(error).startswith(f"HTTPConnectionPool(host='{host}', port=1): Max retries exceeded with url: /p?q=1")
    error = raised("http://x.invalid/", proxies={"http": "http://127.0.0.1:1"})
    assert type(error) is requests.exceptions.ProxyError
    assert isinstance(error.args[0].reason.original_error, inner.NewConnectionError)
    error = raised(secure_pages.url)
    assert type(error) is requests.exceptions.SSLError and isinstance(error.args[0].reason, inner.SSLError)
    assert isinstance(error.args[0].reason.args[0], ssl.SSLCertVerificationError)
    assert "CERTIFICATE_VERIFY_FAILED" in str(error)
    error = raised(raw(b"").url)
    assert error.args[0].args[0] == "Connection aborted." and isinstance(error.args[0].args[1], http.client.RemoteDisconnected)
    for head in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"):
        pages.routes["/reset"] = functools.partial(_reset, head)
        error = raised(f"{pages.url}/reset")
        assert isinstance(error.args[0].args[1], ConnectionResetError)
    still = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", closes=False).url
    short = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").url
    for stream in (False, True):
        error = raised(still, timeout=0.1, stream=stream)
        assert type(error) is requests.exceptions.ConnectionError and isinstance(error.args[0], inner.ReadTimeoutError)
        error = raised(short, stream=stream)
        assert type(error) is requests.exceptions.ChunkedEncodingError
        cut = error.args[0].args[1]
        assert isinstance(cut, http.client.IncompleteRead) and (cut.partial, cut.expected) == (4, 5)


def test_tls_settings_of_the_adapter_are_not_mixed(session: requests.Session, secure_pages: Any, bundle: str) -> None:
    with pytest.raises(requests.exceptions.SSLError):
        session.get(secure_pages.url)
    assert session.get(secure_pages.url, verify=False).ok
    with pytest.raises(requests.exceptions.SSLError):
        session.get(secure_pages.url)
    assert session.get(secure_pages.url, verify=bundle).ok


def test_digest_of_requests_own(session: requests.Session, httpbin: Any) -> None:
    url = httpbin.url + "/digest-auth/auth/user/secret"
    response = session.get(url, auth=requests.auth.HTTPDigestAuth("user", "secret"))
    assert response.status_code == 200 and [one.status_code for one in response.history] == [401]


def test_a_retry_of_urllib3_is_obeyed(pages: Any, raw: Any) -> None:
    from urllib3 import Retry

    def session_of(retries: Any) -> requests.Session:
        session = requests.Session()
        session.mount("http://", HaulAdapter(max_retries=retries))
        return session

    def now_and_then(handler: Any) -> None:
        tries = len(pages.bodies)
        handler.answer(b"at last" if tries % 3 == 0 else b"not yet", 200 if tries % 3 == 0 else 503, Retry_After="0")

    pages.routes["/busy"] = now_and_then
    patient = Retry(2, status_forcelist=[503], allowed_methods=None)
    session = session_of(patient)
    assert session.get(pages.url + "/busy").text == "at last" and len(pages.bodies) == 3
    with session.get(pages.url + "/busy", stream=True) as response:
        assert response.raw.read() == b"at last" and len(pages.bodies) == 6
    # A body is sent again from where it began.
    data = io.BytesIO(b"--body")
    data.seek(2)
    assert session.post(pages.url + "/busy", data=data).text == "at last" and pages.bodies[6:] == [b"body"] * 3
    # One try less than it takes.
    with pytest.raises(requests.exceptions.RetryError):
        session_of(patient.new(total=1)).get(pages.url + "/busy")
    pages.bodies.clear()
    kept = session_of(patient.new(total=1, raise_on_status=False)).get(pages.url + "/busy")
    assert (kept.status_code, kept.text, len(pages.bodies)) == (503, "not yet", 2)
    # What was sent may have been done: a POST is not sent twice, nor anything without a Retry.
    server = raw(b"")
    for retries, method, tries in ((0, "GET", 1), (2, "POST", 1), (2, "GET", 3)):
        before = server.taken
        with pytest.raises(requests.exceptions.ConnectionError):
            session_of(retries).request(method, server.url)
        assert server.taken - before == tries
    with pytest.raises(requests.exceptions.ReadTimeout):
        session_of(0).get(pages.url + "/never", timeout=0.05)
    with pytest.raises(requests.exceptions.ConnectionError):
        session_of(1).get(pages.url + "/never", timeout=0.05)


def test_the_adapter_logs_in_as_requests_says_and_as_no_user_of_a_redirect(session: requests.Session, pages: Any) -> None:
    there = pages.url.replace("//", "//user:secret@")
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location=f"{there}/x")
    session.get(f"{pages.url}/away")
    session.get(f"{there}/@y")
    assert [("Authorization" in dict(fields), path) for path, fields in pages.heads] == [
        (False, "/away"), (False, "/x"), (True, "/@y"),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [requests, haul])
def test_a_path_that_a_program_puts_into_a_prepared_request_is_sent_so(
    kind: Any, session: requests.Session, pages: Any
) -> None:
    own: Any = session if kind is requests else haul.Session()
    paths = ["/a/../b", "/../c", "/%2e%2e/d%2fe", "/f g"]
    for stream in (False, True):
        pages.heads.clear()
        for path in paths:
            prepared = own.prepare_request(kind.Request("GET", pages.url))
            prepared.url = pages.url + path
            own.send(prepared, stream=stream).close()
        assert [path for path, _ in pages.heads] == ["/a/../b", "/../c", "/%2e%2e/d%2fe", "/f%20g"]


def test_requests_of_different_timeouts_share_a_connection(session: requests.Session, pages: Any) -> None:
    for own in (session, haul.Session()):
        before = pages.connections
        for seconds in (5, 6.5, (7, 8), None):
            own.get(pages.url, timeout=seconds)
        assert pages.connections - before == 1
