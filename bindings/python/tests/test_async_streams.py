"""Streams of AsyncSession: bodies that an event loop reads and produces."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import io
import os
import resource
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import haul
from conftest import pattern, run_python

#: The number of streams that are open at once.
MANY = 1000
#: The number of threads that may come for other reasons, such as a check of the netrc file.
FEW = 10


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Allows the descriptors of both ends of many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4 * MANY:
        pytest.skip("the limit of descriptors is too low")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4 * MANY), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class StreamServer:
    """A server in the loop that answers each request in two halves, the second when it is released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.bodies: list[bytes] = []
        self.ended = 0

    async def __aenter__(self) -> StreamServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=2 * MANY)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.released.set()
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"chunked" in head.lower():
            body = b""
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                await reader.readline()
            await reader.readline()
            self.bodies.append(body)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst")
        await self.released.wait()
        writer.write(b"-last")
        self.ended += 1
        writer.close()


def test_open_streams_take_no_threads(many_descriptors: None) -> None:
    async def main() -> None:
        async with StreamServer() as server, haul.AsyncSession() as session:
            async with session.stream("GET", server.url) as response:
                assert await response._read(5) == b"first"
                before = threads()
                opened = [await session.stream("GET", server.url) for _ in range(MANY)]
                assert [await response._read(5) for response in opened] == [b"first"] * MANY
                assert threads() < before + FEW, "each stream takes a thread"
                reading = [asyncio.ensure_future(response.aread()) for response in opened]
                await asyncio.sleep(0)
                server.released.set()
                assert await asyncio.gather(*reading) == [b"-last"] * MANY
                assert threads() < before + FEW

    asyncio.run(main())


def test_open_uploads_take_no_threads(many_descriptors: None) -> None:
    async def main() -> None:
        begun, go_on = 0, asyncio.Event()
        all_begun = asyncio.Event()

        async def pieces(number: int) -> AsyncIterator[bytes]:
            nonlocal begun
            yield b"%d " % number
            begun += 1
            if begun == MANY:
                all_begun.set()
            await go_on.wait()
            yield b"end"

        async with StreamServer() as server, haul.AsyncSession() as session:
            server.released.set()
            await session.post(server.url, data=b"")
            before = threads()
            sending = [asyncio.ensure_future(session.post(server.url, data=pieces(i))) for i in range(MANY)]
            await all_begun.wait()
            assert threads() < before + FEW
            go_on.set()
            assert {response.content for response in await asyncio.gather(*sending)} == {b"first-last"}
            assert sorted(server.bodies) == sorted(b"%d end" % i for i in range(MANY))

    asyncio.run(main())


def test_slow_reader_does_not_buffer_the_body() -> None:
    # In a process of its own, whose peak of memory is that of this body.
    out = run_python(
        """
        import asyncio, resource, haul

        PIECE, COUNT = b"x" * (1 << 20), 300
        sent = 0

        async def serve(reader, writer):
            global sent
            await reader.readuntil(b"\\r\\n\\r\\n")
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % (COUNT * len(PIECE)))
            for _ in range(COUNT):
                writer.write(PIECE)
                await writer.drain()
                sent += 1
            writer.close()

        async def main():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            async with haul.AsyncSession() as session, session.stream("GET", url) as response:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                # The server goes on until it is stopped: the kernel and haul have taken what they take.
                last = -1
                while sent != last:
                    last = sent
                    await asyncio.sleep(0.2)
                held = sent
                received = 0
                async for piece in response.aiter_content():
                    received += len(piece)
                after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            assert received == COUNT * len(PIECE), received
            print(held, (after - before) >> 10)

        asyncio.run(main())
        """
    )
    held, grown = map(int, out.split())
    assert held < 50, f"{held} MiB were sent though nobody read"
    assert grown < 50, f"{grown} MiB of memory were taken for a body of 300 MiB"


def test_slow_server_stops_an_asynchronous_generator() -> None:
    produced = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal produced
        for _ in range(400):
            produced += 1
            yield bytes(1 << 20)

    async def main() -> None:
        async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.Event().wait()

        # A reader of asyncio takes 128 KiB and then stops.
        server = await asyncio.start_server(ignore, "127.0.0.1", 0)
        async with haul.AsyncSession() as session:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            task = asyncio.ensure_future(session.put(url, data=pieces()))
            last = -1
            while produced != last or not produced:
                last = produced
                await asyncio.sleep(0.2)
            assert produced < 50
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())


@pytest.mark.parametrize("what", ["read", "iteration", "upload"])
def test_cancelled_stream_closes_its_connection(what: str) -> None:
    async def main() -> None:
        async with haul.AsyncSession() as session:
            gone, begun = asyncio.Event(), asyncio.Event()

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                if what != "upload":
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst")
                begun.set()
                # A close with unread bytes resets the connection.
                with contextlib.suppress(ConnectionResetError):
                    while await reader.read(100):
                        pass
                gone.set()
                writer.close()

            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"

            async def forever() -> AsyncIterator[bytes]:
                yield b"x"
                await asyncio.Event().wait()

            async def use() -> None:
                if what == "upload":
                    await session.post(url, data=forever(), stream=True)
                response = await session.stream("GET", url)
                if what == "read":
                    await response.aread()
                async for _ in response.aiter_content():
                    pass

            task = asyncio.ensure_future(use())
            await begun.wait()
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(gone.wait(), 20)
            assert not session._loop_batches.current().producers
            server.close()

    asyncio.run(main())


def test_generator_that_raises_ends_the_request(pages: Any) -> None:
    class Own(Exception):
        pass

    async def pieces(after: int) -> AsyncIterator[bytes]:
        for _ in range(after):
            yield bytes(100_000)
        raise Own(after)

    async def main() -> None:
        async with haul.AsyncSession() as session:
            for after in (0, 1, 30):
                for stream in (False, True):
                    with pytest.raises(Own, match=str(after)):
                        await session.put(f"{pages.url}/up", data=pieces(after), stream=stream)
            with pytest.raises(TypeError, match="bytes or text"):
                await session.put(f"{pages.url}/up", data=wrong())  # type: ignore[arg-type]
            assert (await session.get(f"{pages.url}/x")).text == "page /x"
        assert not pages.bodies[:-1]

    async def wrong() -> AsyncIterator[int]:
        yield 7

    asyncio.run(main())


def test_generator_has_to_keep_to_its_length(pages: Any) -> None:
    async def pieces(*given: bytes) -> AsyncIterator[bytes]:
        for piece in given:
            yield piece

    async def main() -> None:
        async with haul.AsyncSession() as session:
            five = {"Content-Length": "5"}
            assert (await session.put(f"{pages.url}/up", data=pieces(b"ab", b"", b"cde"), headers=five)).ok
            assert pages.bodies == [b"abcde"] and ("Content-Length", "5") in pages.heads[0][1]
            for given in ([b"abc", b"def"], [b"abcde", b"f"], [b"abc"]):
                with pytest.raises(haul.ConnectionError):
                    await session.put(f"{pages.url}/up", data=pieces(*given), headers=five)

    asyncio.run(main())


def test_streams_of_a_closed_loop_are_released() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        peers: list[socket.socket] = []

        def serve() -> None:
            peer, _ = listener.accept()
            peer.recv(10_000)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst")
            peers.append(peer)

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        session = haul.AsyncSession()
        loop = asyncio.new_event_loop()
        response = loop.run_until_complete(session.stream("GET", url))
        assert loop.run_until_complete(response._read(5)) == b"first"
        waiting = loop.create_task(response.aread())
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        server.join(20)
        # Another loop reads on.
        peers[0].sendall(b"-last")
        assert asyncio.run(response.aread()) == b"-last"
        asyncio.run(session.aclose())
        # asyncio reports the task as pending.
        waiting._log_destroy_pending = False  # type: ignore[attr-defined]
        del waiting, response
        gc.collect()
        peers[0].settimeout(20)
        assert peers[0].recv(1) == b"", "the connection was closed"
        peers[0].close()


def test_streams_can_be_read_after_their_session_is_gone(pages: Any) -> None:
    async def main() -> None:
        async with haul.AsyncSession() as session:
            response = await session.stream("GET", f"{pages.url}/bytes/900000")
        assert await response.aread() == pattern(900_000)

    asyncio.run(main())


def test_blocking_reads_of_a_stream_wait(pages: Any) -> None:
    body = gzip.compress(pattern(900_000))
    pages.routes["/gz"] = lambda handler: handler.answer(body, Content_Encoding="gzip")

    async def main() -> None:
        async with haul.AsyncSession() as session:
            for read in ("content", "raw"):
                response = await session.stream("GET", f"{pages.url}/gz")
                if read == "content":
                    assert response.content == pattern(900_000)
                else:
                    assert response.raw.read(decode_content=False) == body

    asyncio.run(main())


def test_stream_that_is_closed_fails_its_reader() -> None:
    async def main() -> None:
        async with haul.AsyncSession() as session, StreamServer() as server:
            response = await session.stream("GET", server.url)
            assert await response._read(5) == b"first"
            reading = asyncio.ensure_future(response.aread())
            await asyncio.sleep(0)
            await response.aclose()
            with pytest.raises(haul.exceptions.RequestException, match="closed"):
                await reading
            assert await response._read(5) == b"", "a closed stream is empty"

    asyncio.run(main())


def test_read_timeout_does_not_count_the_program(pages: Any) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one "
        # Longer than the limit. The server cannot respond before the end.
        await asyncio.sleep(0.6)
        yield b"two"

    async def main() -> None:
        async with haul.AsyncSession(timeout=haul.ClientTimeout(read=0.3)) as session:
            assert (await session.post(f"{pages.url}/up", data=pieces())).ok
            with pytest.raises(haul.ReadTimeout):
                await session.post(f"{pages.url}/never", data=pieces())

    asyncio.run(main())
    assert pages.bodies[0] == b"one two"


def test_two_tasks_share_a_stream(pages: Any) -> None:
    async def main() -> None:
        async with haul.AsyncSession() as session, StreamServer() as server:
            response = await session.stream("GET", server.url)
            tasks = [asyncio.ensure_future(response._read(5)) for _ in range(3)]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            server.released.set()
            assert sorted(await asyncio.gather(*tasks)) == [b"", b"-last", b"first"]

    asyncio.run(main())


def test_response_of_an_upload_has_its_times(pages: Any) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"x"

    async def main() -> None:
        async with haul.AsyncSession() as session:
            response = await session.post(f"{pages.url}/up", data=pieces())
            assert 0 < response.timings.first_byte <= response.timings.total
            assert response.connection_info.remote is not None

    asyncio.run(main())


def test_files_are_not_read_in_the_event_loop(pages: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[int] = []

    class Recorded(io.BytesIO):
        def read(self, *args: Any) -> bytes:
            readers.append(threading.get_ident())
            return super().read(*args)

    reload = haul._settings.Netrc._reload

    def recorded(self: Any, named: str | None) -> None:
        readers.append(threading.get_ident())
        reload(self, named)

    monkeypatch.setattr(haul._settings.Netrc, "_reload", recorded)
    (tmp_path / ".netrc").write_text("machine localhost login me password secret")

    async def main() -> None:
        async with haul.AsyncSession() as session:
            responses = await asyncio.gather(*(session.get(f"{pages.url}/{i}") for i in range(9)))
            assert {response.request.headers["Authorization"] for response in responses} == {"Basic bWU6c2VjcmV0"}
            assert len(readers) == 1, "it is read once for all"
            assert (await session.post(f"{pages.url}/x", files={"f": Recorded(b"in the form")})).ok
            assert (await session.post(f"{pages.url}/x", data=Recorded(b"the body"))).ok
        assert b"in the form" in pages.bodies[-2] and pages.bodies[-1] == b"the body"
        assert len(readers) >= 3 and threading.get_ident() not in readers

    asyncio.run(main())


@pytest.mark.parametrize("end", [lambda response: response.close(), lambda response: response.content])
def test_coroutine_hook_runs_after_plain_methods(end: Any, pages: Any) -> None:
    async def run() -> list[str]:
        told: list[str] = []
        is_told = asyncio.Event()

        async def done(event: haul.Event) -> None:
            told.append(event.name)
            is_told.set()

        async with haul.AsyncSession() as session:
            session.event_hooks["done"].append(done)
            end(await session.get(f"{pages.url}/bytes/100000", stream=True))
            await asyncio.wait_for(is_told.wait(), 20)
        return told

    assert asyncio.run(run()) == ["done"]
