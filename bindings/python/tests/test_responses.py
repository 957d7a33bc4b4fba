"""Responses: content, codings, streams, lines."""

from __future__ import annotations

import asyncio
import functools
import gzip
import io
import json
import zlib
from typing import Any

import pytest
import requests

import haul
from haul._line_splitter import LineSplitter
from haul.adapters import HaulAdapter


def test_reason_has_no_surrounding_whitespace(adapter_session: requests.Session, raw: Any) -> None:
    url = raw(b"HTTP/1.1 200  All right \t\r\nContent-Length: 0\r\n\r\n").url
    for its in (requests.Session(), adapter_session, haul.Session()):
        assert its.get(url).reason == "All right"


@pytest.mark.parametrize("size", [0, 1, 300, 65_535, 65_536, 65_537, 335_114, 3_000_000])
def test_bodies_of_all_sizes_arrive_whole(pages: Any, size: int) -> None:
    expected = bytes(i % 251 for i in range(size))
    response = haul.get(f"{pages.url}/bytes/{size}")
    assert response.content == expected
    assert response.headers["content-length"] == str(size)
    streamed = haul.get(f"{pages.url}/bytes/{size}", stream=True)
    assert b"".join(streamed.iter_content(1000)) == expected


def test_content_codings_are_decoded(httpbin: Any) -> None:
    session = haul.Session()
    for path, key in (("/gzip", "gzipped"), ("/deflate", "deflated"), ("/brotli", "brotli")):
        response = session.get(httpbin.url + path)
        assert response.json()[key] is True
        streamed = session.get(httpbin.url + path, stream=True)
        assert b"".join(streamed.iter_content(7)) and streamed.raw is not None
        undecoded = session.get(httpbin.url + path, stream=True).raw.read()
        assert len(undecoded) == int(response.headers["Content-Length"])


def test_bytes_after_coded_content_are_ignored(raw: Any) -> None:
    text = b"hello " * 100
    for name, coded in (("gzip", gzip.compress(text)), ("deflate", zlib.compress(text))):
        for rest in (b"\0", b"\0" * 512, b"garbage"):
            head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {name}\r\nContent-Length: {len(coded) + len(rest)}\r\n\r\n"
            url = raw(head.encode() + coded + rest).url
            # requests does the same.
            for client in (haul, requests):
                assert client.get(url).content == text
                assert b"".join(client.get(url, stream=True).iter_content(7)) == text


def test_invalid_bodies_raise_the_exceptions_of_requests(raw: Any) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n"
    with pytest.raises(haul.exceptions.ChunkedEncodingError):
        haul.get(raw(head + b"\r\nshort").url)
    with pytest.raises(haul.exceptions.ChunkedEncodingError):
        haul.get(raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab").url)
    with pytest.raises(haul.exceptions.ContentDecodingError):
        haul.get(raw(head + b"Content-Encoding: gzip\r\n\r\nno gzip at").url)
    # The program gets a body with an unknown coding unchanged, as in requests.
    assert haul.get(raw(head + b"Content-Encoding: rot13\r\n\r\n0123456789").url).content == b"0123456789"
    with pytest.raises(haul.exceptions.ChunkedEncodingError):
        for _ in haul.get(raw(head + b"\r\nshort").url, stream=True).iter_content(1):
            pass
    with pytest.raises(haul.exceptions.InvalidHeader):
        haul.get(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab").url)
    with pytest.raises(haul.ConnectionError):
        haul.get(raw(b"").url)
    with pytest.raises(haul.ConnectionError):
        haul.get(raw(b"no HTTP at all\r\n\r\n").url)


def test_negative_chunk_size_yields_pieces_as_they_arrive(pages: Any) -> None:
    for stream in (False, True):
        response = haul.get(f"{pages.url}/x", stream=stream)
        assert b"".join(response.iter_content(-1)) == b"page /x"


def test_raw_is_closed_after_the_body(pages: Any) -> None:
    for path in ("/x", "/bytes/100000"):
        raw = haul.get(pages.url + path, stream=True).raw
        assert not raw.closed
        size = 0
        while not raw.closed:
            size += len(raw.read(4096))
        assert size == (100_000 if path != "/x" else len("page /x")) and raw.read(1) == b""
    raw = haul.get(f"{pages.url}/x", stream=True).raw
    raw.auto_close = False
    assert io.TextIOWrapper(raw).read() == "page /x" and not raw.closed


def test_getlist_separates_fields_with_the_same_name(raw: Any) -> None:
    fields = b"Set-Cookie: a=1; Expires=Wed, 25 Nov 2099 10:00:00 GMT\r\nset-cookie: b=2\r\n"
    server = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + fields + b"\r\n")
    response = haul.get(server.url)
    each = ["a=1; Expires=Wed, 25 Nov 2099 10:00:00 GMT", "b=2"]
    assert response.raw.headers.getlist("Set-Cookie") == each and response.raw.headers.getlist("Other") == []
    assert response.raw.headers["set-cookie"] == response.headers["Set-Cookie"] == ", ".join(each)


def test_text_uses_the_charset_of_the_content_type(raw: Any) -> None:
    def served(kind: str, body: bytes) -> haul.Response:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        return haul.get(raw(head.encode() + body).url)

    assert served("text/plain; charset=utf-8", "ü".encode()).text == "ü"
    assert served("text/plain", b"\xfc").text == "ü"
    assert served("application/json", b'{"a": "\xc3\xbc"}').json() == {"a": "ü"}
    assert served("text/plain; charset=none-such", b"abc").text == "abc"
    response = served("application/octet-stream", "żółć gęślą jaźń".encode())
    assert response.encoding is None and response.text == "żółć gęślą jaźń"
    with pytest.raises(haul.JSONDecodeError) as caught:
        served("text/plain", b"no json").json()
    assert isinstance(caught.value, json.JSONDecodeError) and caught.value.response is not None
    # As in requests, the last charset wins, and an empty one is unknown.
    for kind, encoding, text in (
        ("text/plain; charset=utf-8; charset=latin-1", "latin-1", "ü"),
        ("text/plain; charset=utf-8\r\nContent-Type: text/plain; 'CHARSET' = \"latin-1\"", "latin-1", "ü"),
        ('text/plain; charset=""', "", "\ufffd"),
        ("text/plain; charset", "ISO-8859-1", "ü"),
    ):
        response = served(kind, b"\xfc")
        assert (response.encoding, response.text) == (encoding, text), kind
    assert list(served("text/plain", b"a\nb\r\nc").iter_lines()) == [b"a", b"b", b"c"]
    assert list(served("text/plain", "üü".encode("latin-1")).iter_content(1, decode_unicode=True)) == ["ü", "ü"]


def test_streamed_body_returns_its_connection_at_the_end(pages: Any) -> None:
    session = haul.Session()
    for _ in range(3):
        with session.get(f"{pages.url}/bytes/100000", stream=True) as response:
            assert len(response.content) == 100_000
    assert pages.connections == 1
    session.get(f"{pages.url}/bytes/3000000", stream=True).close()
    session.get(f"{pages.url}/x")
    assert pages.connections == 2


def read_on(raw: Any) -> bytes:
    """Reads to the end, piece by piece."""
    got = b""
    while piece := raw.read(1000):
        got += piece
    return got


def test_truncated_body_fails_every_further_read(pages: Any, raw: Any) -> None:
    short = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort").url
    pages.routes["/bad"] = lambda handler: handler.answer(b"not gzip at all", Content_Encoding="gzip")
    for url, error in (
        (short, haul.exceptions.ChunkedEncodingError), (f"{pages.url}/bad", haul.exceptions.ContentDecodingError),
    ):  # fmt: skip
        with haul.get(url, stream=True) as response:
            response.raw.decode_content = True
            for _ in range(2):
                with pytest.raises(error):
                    response.raw.read()
                with pytest.raises(error):
                    read_on(response.raw)
            assert not response.raw.closed and not response.raw.isclosed()


def test_coded_and_decoded_reads_are_not_mixed(pages: Any) -> None:
    pages.routes["/gzip"] = lambda handler: handler.answer(gzip.compress(b"text " * 50_000), Content_Encoding="gzip")
    with haul.get(f"{pages.url}/gzip", stream=True) as response:
        assert response.raw.read(2) == b"\x1f\x8b"
        with pytest.raises(haul.exceptions.ContentDecodingError):
            assert not response.content, "what was received with these two bytes is no gzip"
    with haul.get(f"{pages.url}/gzip", stream=True) as response:
        assert response.raw.read(0) == b"" and response.content == b"text " * 50_000
    with haul.get(f"{pages.url}/gzip", stream=True) as response:
        assert response.raw.read(5, decode_content=True) == b"text "
        with pytest.raises(RuntimeError, match="was decoded"):
            response.raw.read(5)
        assert response.raw.read(5, decode_content=True) == b"text "
        response.raw.drain_conn()
        assert response.raw.closed


LINES = [b"a", b"", b"b\x0bc\xc3\xa9", b"", b"", b"end"]


@pytest.mark.parametrize("size", [1, 2, 3, 512])
@pytest.mark.parametrize("end", [b"\r\n", b"\r", b"\n"])
def test_lines_do_not_depend_on_reads(end: bytes, size: int, pages: Any) -> None:
    body = end.join(LINES)

    def in_pieces(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(0, len(body), size):
            piece = body[at : at + size]
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        handler.wfile.write(b"0\r\n\r\n")

    pages.routes["/lines"] = in_pieces
    url = f"{pages.url}/lines"
    for stream in (False, True):
        get = functools.partial(haul.get, url, stream=stream)
        with requests.Session() as session:
            session.mount("http://", HaulAdapter())
            assert list(session.get(url, stream=stream).iter_lines(size)) == body.splitlines()
            assert list(session.get(url, stream=stream).iter_lines(size, delimiter=end)) == body.split(end)
        assert list(get().iter_lines(size)) == body.splitlines()
        assert list(get().iter_lines(size, decode_unicode=True)) == body.decode().splitlines()
        assert list(get().iter_lines(size, delimiter=end)) == body.split(end)
        assert list(get().iter_lines(size, delimiter=b"\xc3\xa9" + end)) == body.split(b"\xc3\xa9" + end)

    async def of_loop() -> None:
        async with haul.AsyncSession() as session:
            for delimiter in (None, end):
                async with await session.get(url, stream=True) as response:
                    found = [line async for line in response.aiter_lines(size, delimiter)]
                    assert found == (body.split(delimiter) if delimiter else body.splitlines())

    asyncio.run(of_loop())


@pytest.mark.parametrize("delimiter", [None, b"\r\n\r\n"])
def test_line_pieces_are_joined_once(delimiter: bytes | None) -> None:
    class Counted(bytes):
        """Bytes that count how many of them are joined or searched."""

        looked_at = 0

        def __add__(self, other: bytes) -> Counted:
            Counted.looked_at += len(self) + len(other)
            return Counted(bytes.__add__(self, other))

        def __radd__(self, other: bytes) -> Counted:
            Counted.looked_at += len(self) + len(other)
            return Counted(other + bytes(self))

        def splitlines(self, keepends: bool = False) -> Any:
            Counted.looked_at += len(self)
            return bytes.splitlines(self, keepends)

        def split(self, *args: Any) -> Any:
            Counted.looked_at += len(self)
            return bytes.split(self, *args)

    lines, pieces = LineSplitter(delimiter), 1000
    for _ in range(pieces):
        assert lines.push(Counted(b"x" * 100)) == []
    assert lines.end() == [b"x" * 100 * pieces]
    assert 0 < Counted.looked_at < 4 * 100 * pieces


def test_trailers_follow_the_body(raw: Any) -> None:
    server = raw(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\nx-sum: \xe9\r\nDigest: d\r\n\r\n"
    )
    session = haul.Session()
    assert session.get(server.url).trailers == {"X-Sum": "1, \xe9", "Digest": "d"}
    with session.get(server.url, stream=True) as response:
        assert not response.trailers
        assert response.content == b"ok" and response.trailers["digest"] == "d"
    assert not haul.Response().trailers

    async def main() -> None:
        async with haul.AsyncSession() as of_asyncio:
            assert (await of_asyncio.get(server.url)).trailers["digest"] == "d"
            async with of_asyncio.stream("GET", server.url) as response:
                assert await response.aread() == b"ok" and response.trailers["digest"] == "d"

    asyncio.run(main())
    (result,) = haul.fetch_many([server.url])
    assert result.trailers["digest"] == "d"


@pytest.mark.parametrize("comma", [",", ", ", ",  ", " , ", ",\t"])
def test_links_are_split_at_commas_with_any_space(comma: str, pages: Any) -> None:
    field = f'<http://h/?page=1>; rel="prev"{comma}<http://h/?page=3>; rel="next"{comma}<http://h/?page=9>; rel="last"'
    pages.routes["/links"] = lambda handler: handler.answer(b"", Link=field)
    links = haul.get(f"{pages.url}/links").links
    assert {name: link["url"] for name, link in links.items()} == {
        "prev": "http://h/?page=1", "next": "http://h/?page=3", "last": "http://h/?page=9",
    }  # fmt: skip
