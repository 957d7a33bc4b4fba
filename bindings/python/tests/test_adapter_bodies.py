"""Streamed bodies, mostly through HaulAdapter: reads, chunks, and the changes that add-ons make."""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import urllib3

import haul
from haul.adapters import HaulAdapter


def test_adapter_streams_and_decodes_bodies(adapter_session: requests.Session, pages: Any, httpbin: Any) -> None:
    response = adapter_session.get(f"{pages.url}/bytes/300000", stream=True)
    assert len(response.raw.read(10)) == 10 and sum(map(len, response.iter_content(4096))) == 299_990
    response = adapter_session.get(httpbin.url + "/gzip", stream=True)
    response.raw.decode_content = True
    assert b"gzipped" in response.raw.read()
    assert list(adapter_session.get(f"{pages.url}/x", stream=True).iter_lines()) == [b"page /x"]


#: Ways to read a body. Each yields all bytes that the server has sent so far.
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
def test_chunks_are_delivered_as_they_arrive(adapter_session: requests.Session, events: Any, kind: str, reader: str, coding: str) -> None:
    events.fields = {"Transfer-Encoding": "chunked", "Content-Encoding": coding}
    with (adapter_session if kind == "adapter" else haul.Session()).get(events.url, stream=True, timeout=5) as response:
        for at, piece in enumerate(READERS[reader](response)):
            assert piece.strip() == b"event %d" % at
            events.taken.release()
        assert at == 2


@pytest.mark.parametrize("fields", [{"Content-Length": "24"}, {"Connection": "close"}])
def test_read1_returns_the_bytes_that_have_arrived(adapter_session: requests.Session, events: Any, fields: dict[str, str]) -> None:
    events.fields = fields
    with adapter_session.get(events.url, stream=True, timeout=5) as response:
        assert response.raw.read1(0) == b"" and response.raw.read1(3) == b"eve"
        assert response.raw.read1() == b"nt 0\n"
        for at in (1, 2):
            events.taken.release()
            assert response.raw.read1() == b"event %d\n" % at
        events.taken.release()
        assert response.raw.read1() == b""
    # Without chunks, a piece has the requested size.
    for _ in range(3):
        events.taken.release()
    assert [len(piece) for piece in adapter_session.get(events.url, stream=True).iter_content(10)] == [10, 10, 4]


def test_raw_has_the_attributes_of_urllib3_responses(adapter_session: requests.Session, pages: Any) -> None:
    def page(handler: Any) -> None:
        handler.send_response(200)
        for name, value in (("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Content-Length", "5")):
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(b"12345")

    pages.routes["/two"] = page
    url = pages.url + "/two?x=1"
    response = adapter_session.get(url, stream=True)
    raw = response.raw
    assert raw.headers.getlist("set-cookie") == ["a=1", "b=2"] and raw.info() is raw.headers
    assert response.headers["Set-Cookie"] == "a=1, b=2" and response.cookies.get_dict() == {"a": "1", "b": "2"}
    assert raw.geturl() == raw.url == raw._request_url == url
    assert (raw.version_string, raw.msg, raw.connection, raw.enforce_content_length) == ("HTTP/1.1", None, None, True)
    assert raw.retries.total == 0 and not raw.supports_chunked_reads()
    assert raw.length_remaining == 5 and raw.read(2) == b"12" and raw.length_remaining == 3
    assert raw.data == raw.data == b"345" and raw.length_remaining == 0
    assert adapter_session.get(url).raw.length_remaining == 0
    # requests-cache replaces the file, for a program that reads it later.
    assert raw._fp.isclosed()
    raw._fp = io.BytesIO(b"12345")
    raw.length_remaining = 5
    assert raw.read1(2) == b"12" and raw.length_remaining == 3 and list(raw.stream(2)) == [b"34", b"5"]


class _Counting(urllib3.response.GzipDecoder):
    """A decoder that hashes its input, like that of google-resumable-media."""

    def __init__(self, seen: Any) -> None:
        super().__init__()
        self.seen = seen

    def decompress(self, data: bytes, *args: Any, **kwargs: Any) -> bytes:
        self.seen.update(data)
        return super().decompress(data, *args, **kwargs)


def test_replaced_decoder_sees_the_coded_bytes(adapter_session: requests.Session, pages: Any) -> None:
    packed = gzip.compress(b"content " * 1000)
    pages.routes["/gzip"] = lambda handler: handler.answer(packed, Content_Encoding="gzip")
    with adapter_session.get(f"{pages.url}/gzip", stream=True) as response:
        seen = hashlib.md5()
        response.raw._decoder = _Counting(seen)
        assert b"".join(response.iter_content(1000)) == b"content " * 1000
    assert seen.digest() == hashlib.md5(packed).digest()


class _Tee:
    """A file that records what is read from another file, like that of CacheControl."""

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


def test_caching_subclass_sees_the_bytes_as_sent(pages: Any, events: Any) -> None:
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
    # A cache, or a mock, passes a response of urllib3.
    fields = urllib3.HTTPHeaderDict([("Content-Encoding", "gzip"), ("X-A", "1"), ("X-A", "2")])
    cached = urllib3.HTTPResponse(io.BytesIO(whole), fields, 203, preload_content=False)
    adapter = HaulAdapter()
    response = adapter.build_response(requests.Request("GET", pages.url).prepare(), cached)
    assert (response.status_code, response.headers["x-a"], response.url) == (203, "1, 2", pages.url + "/")
    assert response.content == b"text " * 30000 and response.raw is cached and response.connection is adapter


def test_raw_yields_the_lines_of_urllib3(adapter_session: requests.Session, pages: Any) -> None:
    text = b"one\r\n\ntwo" + b"-" * 200_000 + b"\nlast"
    pages.routes["/lines"] = lambda handler: handler.answer(gzip.compress(text), Content_Encoding="gzip")
    for its in (requests.Session(), adapter_session, haul.Session()):
        for lines in (list, lambda raw: raw.readlines()):
            assert lines(its.get(pages.url + "/lines", stream=True).raw) == text.splitlines(keepends=True)
