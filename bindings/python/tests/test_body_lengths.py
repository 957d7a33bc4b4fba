"""Request bodies that are longer or shorter than their Content-Length, or refused before their end."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

import haul
from haul.adapters import HaulAdapter


def by_session(url: str, data: Any, **kwargs: Any) -> None:
    haul.post(url, data=data, **kwargs).raise_for_status()


def by_stream(url: str, data: Any, **kwargs: Any) -> None:
    with haul.Session() as session:
        session.post(url, data=data, stream=True, **kwargs).close()


def by_many(url: str, data: Any, **kwargs: Any) -> None:
    (result,) = haul.fetch_many([{"method": "POST", "url": url, "data": data, **kwargs}])
    result.raise_for_status()


def by_loop(url: str, data: Any, **kwargs: Any) -> None:
    async def post() -> None:
        async with haul.AsyncSession() as session:
            await session.post(url, data=data, **kwargs)

    asyncio.run(post())


def by_adapter(url: str, data: Any, **kwargs: Any) -> None:
    with requests.Session() as session:
        session.mount("http://", HaulAdapter())
        session.post(url, data=data, **kwargs)


class Sized:
    """A file-like object with a length that may be wrong."""

    def __init__(self, content: bytes, length: int) -> None:
        self.content = io.BytesIO(content)
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Any:
        return iter(self.content)

    def read(self, size: int = -1) -> bytes:
        return self.content.read(size)


ways = pytest.mark.parametrize("post", [by_session, by_stream, by_many, by_loop, by_adapter])


@ways
def test_body_with_a_wrong_length_is_an_error(post: Callable[..., None], pages: Any) -> None:
    url = f"{pages.url}/post"
    for pieces in ([b"abcd"], [b"abc", b"d"], [b"a", b"bcd"], [b"abc", b"", b"d"]):
        with pytest.raises(OSError, match="longer than its announced length of 3 bytes"):
            post(url, iter(pieces), headers={"Content-Length": "3"})
    with pytest.raises(OSError, match="longer than its announced length of 0 bytes"):
        post(url, iter([b"a"]), headers={"Content-Length": "0"})
    with pytest.raises(OSError, match="ends 1 bytes before its announced length"):
        post(url, iter([b"ab"]), headers={"Content-Length": "3"})
    with pytest.raises(OSError, match="longer than its announced length of 3 bytes"):
        post(url, Sized(b"abcd", 3))
    with pytest.raises(OSError, match="ends 1 bytes before its announced length"):
        post(url, Sized(b"ab", 3))
    assert b"abc" not in pages.bodies, "the server has not seen the end"
    post(url, iter([b"ab", b"", b"c", b""]), headers={"Content-Length": "3"})
    # The server may still handle the aborted requests.
    assert "Transfer-Encoding" not in dict(pages.heads[pages.bodies.index(b"abc")][1])
    post(url, Sized(b"abc", 3))
    assert pages.bodies.count(b"abc") == 2


@ways
def test_file_is_read_only_to_its_length(post: Callable[..., None], pages: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"lines\n")

    class Growing(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            with log.open("ab") as more:
                more.write(b"another\n")
            return super().read(size) or b""

    with Growing(log) as growing:
        post(f"{pages.url}/post", growing)
    # A pipe whose other end stays open: another read would wait for ever.
    ours, theirs = os.pipe()
    with open(ours, "rb", buffering=0) as reader, open(theirs, "wb", buffering=0) as writer:
        writer.write(b"abc")
        post(f"{pages.url}/post", reader, headers={"Content-Length": "3"})
    assert pages.bodies == [b"lines\n", b"abc"]


def test_async_generator_with_wrong_length_is_an_error(pages: Any) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"abc"
        yield b"d"

    with pytest.raises(haul.ConnectionError, match="longer than its announced length of 3 bytes"):
        by_loop(f"{pages.url}/post", pieces(), headers={"Content-Length": "3"})
    by_loop(f"{pages.url}/post", pieces(), headers={"Content-Length": "4"})
    assert b"abcd" in pages.bodies


@pytest.mark.parametrize("face", ["Session", "stream", "adapter", "AsyncSession", "fetch_many"])
@pytest.mark.parametrize("kind", ["generator", "file"])
def test_early_response_ends_a_slow_body(face: str, kind: str, pages: Any) -> None:
    def refuse(sock: socket.socket) -> None:
        while b"\r\n\r\n" not in sock.recv(65536, socket.MSG_PEEK):
            pass
        sock.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
        while sock.recv(65536):
            pass

    def serve() -> None:
        with listener, contextlib.suppress(OSError):
            refuse(listener.accept()[0])

    def pieces() -> Iterator[bytes]:
        # Long enough to see the response, and short enough not to hang.
        for _ in range(1000):
            time.sleep(0.02)
            yield b"piece"
        raise AssertionError("nobody looked for the answer")

    class File:
        def __init__(self) -> None:
            self.pieces = pieces()

        def read(self, size: int = -1) -> bytes:
            return next(self.pieces)

        def __iter__(self) -> Iterator[bytes]:
            return self.pieces

    async def awaited() -> AsyncIterator[bytes]:
        for piece in pieces():
            await asyncio.sleep(0)
            yield piece

    async def of_loop() -> Any:
        async with haul.AsyncSession() as session:
            return await session.post(url, data=awaited() if kind == "generator" else File())

    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    threading.Thread(target=serve, daemon=True).start()
    body: Any = pieces() if kind == "generator" else File()
    if face == "AsyncSession":
        status = asyncio.run(of_loop()).status_code
    elif face == "fetch_many":
        status = next(haul.fetch_many([{"method": "POST", "url": url, "data": body}])).status_code
    elif face == "adapter":
        with requests.Session() as session:
            session.mount("http://", HaulAdapter())
            status = session.post(url, data=body).status_code
    else:
        with haul.post(url, data=body, stream=face == "stream") as response:
            status = response.status_code
    assert status == 401


def test_body_beyond_max_size_is_an_error(pages: Any, raw: Any) -> None:
    session = haul.Session()
    session.max_size = 1000
    assert len(session.get(f"{pages.url}/bytes/1000").content) == 1000
    endless = raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"100\r\n" + bytes(256) + b"\r\n" + b"400\r\n" + bytes(1024)).url
    for url in (f"{pages.url}/bytes/1001", endless):
        with pytest.raises(haul.exceptions.ResponseTooLarge):
            session.get(url)
        with pytest.raises(haul.exceptions.ResponseTooLarge), session.get(url, stream=True) as response:
            response.content  # noqa: B018
    (result,) = haul.fetch_many([f"{pages.url}/bytes/1001"], session=session)
    assert isinstance(result.error, haul.exceptions.ResponseTooLarge)


@pytest.mark.parametrize("send", [by_session, by_stream, by_many, by_loop, by_adapter])
@pytest.mark.parametrize("module", ["bz2", "gzip", "lzma"])
def test_decompressed_files_are_sent_whole(module: str, send: Callable[..., None], pages: Any, tmp_path: Path) -> None:
    opened = __import__(module).open
    with opened(tmp_path / "file", "wb") as file:
        file.write(b"x" * 100_000)
    with opened(tmp_path / "file") as file:
        assert send(f"{pages.url}/", file) is None
    assert pages.bodies == [b"x" * 100_000]


def test_decompressed_file_longer_than_announced_is_refused(pages: Any, tmp_path: Path) -> None:
    import gzip

    with gzip.open(tmp_path / "file", "wb") as file:
        file.write(b"x" * 100_000)
    with gzip.open(tmp_path / "file") as file, pytest.raises(haul.ConnectionError, match="longer than its announced"):
        haul.Session().send(announced(pages.url, file))


def announced(url: str, body: Any) -> haul.PreparedRequest:
    request = haul.Request("PUT", f"{url}/", data=b"x" * 47).prepare()
    request.body = body
    return request


def test_open_socket_is_read_up_to_its_length(pages: Any) -> None:
    import socket

    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("rb") as file:
        theirs.sendall(b"x" * 1000)
        request = haul.Request("PUT", f"{pages.url}/", data=b"x" * 1000).prepare()
        request.body = file
        haul.Session().send(request, timeout=10).raise_for_status()
    assert pages.bodies == [b"x" * 1000]
