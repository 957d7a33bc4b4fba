"""AsyncSession."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import haul
from conftest import pattern


def runners() -> list[Any]:
    import uvloop

    return [pytest.param(asyncio.run, id="asyncio"), pytest.param(uvloop.run, id="uvloop")]


@pytest.mark.parametrize("run", runners())
def test_thousand_requests_run_at_once(pages: Any, run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    async def main() -> None:
        async with haul.AsyncSession(max_parallel=1000) as session:
            responses = await asyncio.gather(*(session.get(f"{pages.url}/{i}") for i in range(1000)))
            assert [response.text for response in responses] == [f"page /{i}" for i in range(1000)]
        async with haul.AsyncSession(max_parallel=5) as session:
            await asyncio.gather(*(session.get(f"{pages.url}/wait") for _ in range(25)))

    run(main())


@pytest.mark.parametrize("run", runners())
def test_cancellation_frees_the_connection(pages: Any, run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    async def main() -> None:
        async with haul.AsyncSession(max_parallel=1) as session:
            task = asyncio.ensure_future(session.get(f"{pages.url}/never"))
            while not pages.heads:
                await asyncio.sleep(0.01)
            # The request occupies the only slot.
            other = asyncio.ensure_future(session.get(f"{pages.url}/x"))
            await asyncio.sleep(0.05)
            assert not other.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await asyncio.wait_for(other, 5)).text == "page /x"
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(session.get(f"{pages.url}/never"), 0.1)
            with pytest.raises(haul.ReadTimeout):
                await session.get(f"{pages.url}/never", timeout=0.1)

    run(main())


def test_async_session_behaves_like_a_session(pages: Any) -> None:
    pages.routes["/set"] = lambda handler: handler.answer(b"", 302, Location="/next", Set_Cookie="a=b; Path=/")
    seen: list[str] = []

    async def main() -> None:
        async with haul.AsyncSession() as session:
            session.headers["X-Ours"] = "1"
            response = await session.get(f"{pages.url}/set", auth=("me", "pw"))
            assert [one.status_code for one in response.history] == [302] and response.url == f"{pages.url}/next"
            fields = dict(pages.heads[-1][1])
            assert fields["Cookie"] == "a=b" and fields["X-Ours"] == "1" and fields["Authorization"].startswith("Basic")
            response = await session.get(f"{pages.url}/set", allow_redirects=False)
            assert response.next is not None and response.next.url == f"{pages.url}/next"
            response = await session.post(f"{pages.url}/p", data=iter([b"a", b"b"]))
            assert pages.bodies[-1] == b"ab"
            await session.post(f"{pages.url}/p", files={"f": b"content"})
            assert b"content" in pages.bodies[-1]
            async with await session.get(f"{pages.url}/bytes/200000", stream=True) as streamed:
                assert sum([len(piece) async for piece in streamed.aiter_content(1000)]) == 200_000
            await session.get(f"{pages.url}/x", hooks={"response": lambda response, **_: seen.append(response.url)})
            for url, error in (("bad", haul.exceptions.MissingSchema), ("http://127.0.0.1:1/", haul.ConnectionError)):
                with pytest.raises(error):
                    await session.get(url)

    asyncio.run(main())
    asyncio.run(main())
    assert seen == [f"{pages.url}/x"] * 2


def test_hook_may_be_a_coroutine_function(pages: Any) -> None:
    async def main() -> None:
        async def replace(response: Any, **settings: Any) -> Any:
            await asyncio.sleep(0)
            response.seen = settings["timeout"]
            return response

        async with haul.AsyncSession() as session:
            session.hooks["response"].append(replace)
            assert (await session.get(f"{pages.url}/x", timeout=5)).seen == 5

            async def refuse(response: Any, **_: Any) -> None:
                response.raise_for_status()

            pages.routes["/missing"] = lambda handler: handler.answer(b"", 404)
            with pytest.raises(haul.HTTPError):
                await session.get(f"{pages.url}/missing", hooks={"response": refuse})

    asyncio.run(main())


def test_unsupported_calls_raise_a_type_error(pages: Any) -> None:
    async def produced() -> Any:
        yield b"a"

    async def main() -> None:
        async with haul.AsyncSession() as session:
            with pytest.raises(TypeError, match="adapters"):
                session.mount("http://", object())
            with pytest.raises(TypeError, match="connection"):
                await session.get(pages.url, hooks={"response": lambda response, **_: response.connection.send(response.request)})
            with pytest.raises(TypeError, match="asynchronous"):
                haul.Request("POST", pages.url, data=produced()).prepare()

    asyncio.run(main())


def test_prepared_requests_are_sent(pages: Any) -> None:
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location="/x")

    async def main() -> None:
        async with haul.AsyncSession() as session:
            prepared = session.prepare_request(haul.Request("GET", f"{pages.url}/away", headers={"X-Ours": "1"}))
            for stream in (False, True):
                response = await session.send(prepared, stream=stream)
                assert await response.aread() == b"page /x" and len(response.history) == 1
            assert (await session.send(prepared, allow_redirects=False)).status_code == 302
            with pytest.raises(ValueError, match="Prepared"):
                await session.send(haul.Request("GET", pages.url))  # type: ignore[arg-type]

    asyncio.run(main())


def test_lines_are_delivered_as_they_arrive(events: Any) -> None:
    async def main() -> None:
        async with haul.AsyncSession() as session:
            async with await session.get(events.url, stream=True, timeout=5) as streamed:
                expected = iter([b"event 0", b"event 1", b"event 2"])
                async for line in streamed.aiter_lines():
                    assert line == next(expected)
                    events.taken.release()
                assert not list(expected)

    asyncio.run(main())


def test_event_loop_is_not_blocked_by_requests(pages: Any) -> None:
    async def main() -> float:
        worst, done = 0.0, False

        async def watch() -> None:
            nonlocal worst
            while not done:
                began = time.perf_counter()
                await asyncio.sleep(0.001)
                worst = max(worst, time.perf_counter() - began)

        async with haul.AsyncSession(max_parallel=20) as session:
            watcher = asyncio.ensure_future(watch())
            await asyncio.gather(*(session.get(f"{pages.url}/wait") for _ in range(60)))
            done = True
            await watcher
        return worst

    # All waits together take 150 ms.
    assert asyncio.run(main()) < 20


@pytest.mark.parametrize("run", runners())
@pytest.mark.parametrize("what", ["head", "body", "upload"])
@pytest.mark.parametrize("ends", ["cancel", "aclose"])
def test_blocking_calls_can_be_cancelled(raw: Any, pages: Any, run: Any, what: str, ends: str) -> None:
    half = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab", closes=False)
    begun: list[float] = []

    async def use(session: haul.AsyncSession) -> None:
        if what == "upload":
            await session.post(f"{pages.url}/never", data=iter([b"x"]))
        async with await session.get(f"{pages.url}/never" if what == "head" else half.url, stream=True) as response:
            async for _ in response.aiter_content():
                pass

    async def main() -> None:
        async with haul.AsyncSession() as session:
            task = asyncio.ensure_future(use(session))
            await asyncio.sleep(0.3)
            begun.append(time.perf_counter())
            task.cancel() if ends == "cancel" else await session.aclose()
            # Closing the session cancels no task.
            with pytest.raises(asyncio.CancelledError if ends == "cancel" else haul.ConnectionError):
                await task
            assert not session._calls
            assert (await session.get(f"{pages.url}/x")).text == "page /x"

    run(main())
    assert time.perf_counter() - begun[0] < 5
    for thread in threading.enumerate():
        if thread.name.startswith("haul"):
            thread.join(5)
            assert not thread.is_alive(), "it was not stopped"


def test_streams_do_not_occupy_the_default_executor(pages: Any) -> None:
    async def main() -> None:
        async with haul.AsyncSession() as session:
            tasks = [asyncio.ensure_future(session.get(f"{pages.url}/never", stream=True)) for _ in range(50)]
            while len(pages.heads) < 50:
                await asyncio.sleep(0.01)
            assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5) == "free"
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def test_slow_generator_does_not_delay_other_requests(pages: Any) -> None:
    produced = threading.Event()

    def pieces() -> Any:
        yield b"a"
        assert produced.wait(20)
        yield b"b"

    async def main() -> None:
        async with haul.AsyncSession() as session:
            task = asyncio.ensure_future(session.post(f"{pages.url}/p", data=pieces()))
            await asyncio.sleep(0.2)
            assert (await asyncio.wait_for(session.get(f"{pages.url}/x"), 5)).text == "page /x"
            produced.set()
            assert (await task).text == "page /p"
        assert b"ab" in pages.bodies

    asyncio.run(main())


def test_aclose_ends_requests_with_a_connection_error(pages: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        session = haul.AsyncSession()
        tasks = [asyncio.ensure_future(session.get(f"{pages.url}/never")) for _ in range(3)]
        while len(pages.heads) < 3:
            await asyncio.sleep(0.01)
        tasks[2].cancel()
        await session.aclose()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        for error in found[:2]:
            assert isinstance(error, haul.ConnectionError) and "closed" in str(error)
            assert error.request.url == f"{pages.url}/never"
        assert [task.cancelled() for task in tasks] == [False, False, True]
        # The session can be used again, as in requests.
        assert (await session.get(f"{pages.url}/x")).ok
        await session.aclose()

    asyncio.run(main())
    gc.collect()
    assert not caplog.records


def test_loops_in_several_threads_share_a_session(pages: Any) -> None:
    session = haul.AsyncSession()

    async def main() -> int:
        responses = []
        for _ in range(10):
            responses += await asyncio.gather(*(asyncio.wait_for(session.get(f"{pages.url}/wait"), 20) for _ in range(4)))
        return sum(response.text == "waited" for response in responses)

    with ThreadPoolExecutor(3) as threads:
        assert [done.result() for done in [threads.submit(asyncio.run, main()) for _ in range(3)]] == [40] * 3
    asyncio.run(session.aclose())


def test_aclose_ends_requests_of_loops_in_other_threads(pages: Any) -> None:
    session = haul.AsyncSession()
    thread = ThreadPoolExecutor(1)
    waiting = thread.submit(lambda: asyncio.run(session.get(f"{pages.url}/never")))  # type: ignore[arg-type]
    while not pages.heads:
        time.sleep(0.01)
    asyncio.run(session.aclose())
    with pytest.raises(haul.ConnectionError, match="closed"):
        waiting.result(timeout=10)


@pytest.mark.parametrize("run", runners())
def test_unclosed_session_warns_and_is_released(pages: Any, run: Callable[..., None]) -> None:
    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    async def main() -> None:
        async def once() -> None:
            await haul.AsyncSession().get(f"{pages.url}/x")

        async def settled(most: tuple[int, int]) -> bool:
            for _ in range(500):
                if all(now <= then for now, then in zip(held(), most)):
                    return True
                await asyncio.sleep(0.01)
            return False

        with pytest.warns(ResourceWarning, match="unclosed"):
            await once()
            gc.collect()
        await asyncio.sleep(0.2)
        before = held()
        with pytest.warns(ResourceWarning, match="unclosed"):
            for _ in range(10):
                await once()
            gc.collect()
        # The server runs in this process, and closes its side of a connection a little later.
        assert await settled((before[0] + 4, before[1] + 1)), (before, held())

    run(main())


@pytest.mark.parametrize("run", runners())
@pytest.mark.parametrize("stream", [False, True])
def test_body_may_be_an_asynchronous_generator(pages: Any, run: Callable[[Coroutine[Any, Any, None]], None], stream: bool) -> None:
    async def pieces(*given: Any) -> Any:
        for piece in given:
            await asyncio.sleep(0)
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def main() -> None:
        async with haul.AsyncSession() as session:
            async with await session.post(f"{pages.url}/up", data=pieces(b"one ", "two ", b"", b"3" * 100_000), stream=stream) as response:
                await response.aread()
            assert response.status_code == 200 and pages.bodies == [b"one two " + b"3" * 100_000]
            with pytest.raises(ZeroDivisionError):
                await session.post(f"{pages.url}/up", data=pieces(b"one", ZeroDivisionError()), stream=stream)
            pages.routes["/hop"] = lambda handler: handler.answer(b"", 307, Location="/up")
            with pytest.raises(haul.exceptions.UnrewindableBodyError):
                await session.post(f"{pages.url}/hop", data=pieces(b"one"), stream=stream)

    run(main())
    with pytest.raises(TypeError):
        haul.post(f"{pages.url}/up", data=pieces(b"one"))


@pytest.mark.parametrize("stream", [False, True])
def test_cancellation_ends_an_asynchronous_generator(pages: Any, stream: bool) -> None:
    ended = []

    async def pieces() -> Any:
        try:
            yield b"some"
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def main() -> None:
        async with haul.AsyncSession() as session:
            post = asyncio.ensure_future(session.post(f"{pages.url}/up", data=pieces(), stream=stream))
            await asyncio.sleep(0.1)
            post.cancel()
            with pytest.raises(asyncio.CancelledError):
                await post
        await asyncio.sleep(0.05)
        assert ended == ["cancelled"]
        session = haul.AsyncSession()
        post = asyncio.ensure_future(session.post(f"{pages.url}/up", data=pieces(), stream=stream))
        await asyncio.sleep(0.1)
        await session.aclose()
        with pytest.raises(haul.ConnectionError):
            await post
        await asyncio.sleep(0.05)
        assert ended == ["cancelled"] * 2

    asyncio.run(main())


def test_call_is_awaited_or_entered(pages: Any) -> None:
    async def main() -> None:
        async with haul.AsyncSession() as session:
            assert (await session.get(f"{pages.url}/1")).text == "page /1"
            async with session.post(f"{pages.url}/2", json={}) as response:
                assert response.text == "page /2"
            async with session.get(f"{pages.url}/bytes/300000", stream=True) as response:
                assert not response._stream.ended
            assert response._stream.ended, "leaving the block closes it"
            async with session.stream("GET", f"{pages.url}/bytes/300000") as response:
                assert await response.aread() == pattern(300000)
            task = asyncio.create_task(session.get(f"{pages.url}/3"))
            assert (await asyncio.wait_for(task, 20)).text == "page /3"
            async with asyncio.timeout(20) if hasattr(asyncio, "timeout") else contextlib.nullcontext():
                with pytest.raises(haul.HTTPError):
                    pages.routes["/4"] = lambda handler: handler.answer(b"", 500)
                    async with session.get(f"{pages.url}/4") as response:
                        response.raise_for_status()

    asyncio.run(main())
    with pytest.warns(RuntimeWarning, match="never awaited"):
        haul.AsyncSession().get(pages.url)
        gc.collect()


def test_request_of_a_subclass_is_called(pages: Any) -> None:
    class Own(haul.AsyncSession):
        async def request(self, method: str, url: Any, **kwargs: Any) -> haul.AsyncResponse:  # type: ignore[override]
            return await super().request(method, f"{pages.url}{url}", **kwargs)

    async def main() -> None:
        async with Own() as session:
            assert (await session.get("/x")).text == "page /x"
            async with session.get("/y", stream=True) as response:
                assert await response.aread() == b"page /y"

    asyncio.run(main())


def wakes_of_engine_threads() -> int:
    """Returns how often the engine's threads have waited so far."""
    wakes = 0
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/self/task/{task}/status") as file:
            fields = dict(line.split(":", 1) for line in file)
            if fields["Name"].strip().startswith("haul-"):
                wakes += int(fields["voluntary_ctxt_switches"])
    return wakes


@pytest.mark.skipif(sys.platform != "linux", reason="the engine's thread runs all requests")
@pytest.mark.parametrize("run", runners())
def test_lone_requests_do_not_wake_the_engines_thread(pages: Any, run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    async def main() -> None:
        async with haul.AsyncSession() as session:
            await warm_up(session, f"{pages.url}/first")
            before = wakes_of_engine_threads()
            for i in range(50):
                assert (await session.get(f"{pages.url}/{i}", timeout=30)).text == f"page /{i}"
                assert (await session.post(f"{pages.url}/{i}", data={"a": "b"})).text == f"page /{i}"
            assert wakes_of_engine_threads() < before + 10
            assert pages.connections == 1

    run(main())


async def until(condition: Callable[[], bool]) -> None:
    """Lets the loop run until the condition is true."""

    async def look() -> None:
        while not condition():
            await asyncio.sleep(0.001)

    await asyncio.wait_for(look(), 30)


async def warm_up(session: haul.AsyncSession, url: str) -> None:
    """Opens a connection and uses it twice. Lone requests run on the loop's thread then."""
    for _ in range(2):
        await session.get(url)


@pytest.mark.parametrize("run", runners())
def test_lone_request_can_be_cancelled(pages: Any, run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    async def main() -> None:
        async with haul.AsyncSession() as session:
            await warm_up(session, f"{pages.url}/first")
            task = asyncio.ensure_future(session.get(f"{pages.url}/never"))
            await until(lambda: len(pages.heads) == 3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await session.get(f"{pages.url}/x")).text == "page /x"
            assert pages.connections == 2

    run(main())


@pytest.mark.parametrize("run", runners())
def test_lone_request_ends_at_its_timeout(pages: Any, run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    async def main() -> None:
        async with haul.AsyncSession() as session:
            await warm_up(session, f"{pages.url}/first")
            with pytest.raises(haul.ReadTimeout):
                await session.get(f"{pages.url}/never", timeout=0.1)
            assert (await session.get(f"{pages.url}/x")).text == "page /x"

    run(main())


def test_lone_request_is_not_late_in_a_busy_loop(pages: Any) -> None:
    is_busy, sent = threading.Event(), threading.Event()

    def answer(handler: Any) -> None:
        is_busy.wait(20)
        handler.answer(b"in time")
        handler.wfile.flush()
        sent.set()

    pages.routes["/in-time"] = answer

    async def main() -> None:
        async with haul.AsyncSession() as session:
            await warm_up(session, f"{pages.url}/first")
            task = asyncio.ensure_future(session.get(f"{pages.url}/in-time", timeout=2))
            await until(lambda: len(pages.heads) == 3)
            # The response arrives in a busy loop, which is busy until the time limit is over.
            is_busy.set()
            assert sent.wait(20)
            time.sleep(2)
            assert (await task).text == "in time"

    asyncio.run(main())


def test_long_body_of_a_lone_request_arrives_in_a_busy_loop(pages: Any) -> None:
    piece, count = b"x" * (1 << 20), 48
    written: list[int] = []
    sent = threading.Event()

    def slowly(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(piece) * count))
        handler.end_headers()
        for _ in range(count):
            handler.wfile.write(piece)
            handler.wfile.flush()
            written.append(len(piece))
        sent.set()

    pages.routes["/long"] = slowly

    async def main() -> None:
        async with haul.AsyncSession() as session:
            await warm_up(session, f"{pages.url}/first")
            task = asyncio.ensure_future(session.get(f"{pages.url}/long"))
            # More than the sockets' buffers take.
            await until(lambda: len(written) >= 16)
            # Now the loop is busy. The rest exceeds the sockets' buffers, too.
            assert sent.wait(20)
            assert len((await task).content) == len(piece) * count

    asyncio.run(main())


def test_lone_requests_use_tls_connections(secure_pages: Any, bundle: str) -> None:
    async def main() -> None:
        async with haul.AsyncSession() as session:
            for i in range(5):
                assert (await session.get(f"{secure_pages.url}/{i}", verify=bundle)).text == f"page /{i}"
            assert (await session.get(f"{secure_pages.url}/bytes/200000", verify=bundle)).content == pattern(200_000)
            assert secure_pages.connections == 1

    asyncio.run(main())


def test_subclass_has_attributes_of_its_own(pages: Any) -> None:
    class Api(haul.AsyncSession):
        def __init__(self, token: str) -> None:
            self.early = "before"
            super().__init__()
            self._token = token
            self._cookies = self._headers = self._client = "mine"
            self.limit = 5
            self.timeout = 20
            self.region = "eu"

        @property
        def region(self) -> str:
            return self._region

        @region.setter
        def region(self, name: str) -> None:
            self._region = name.upper()

        async def me(self) -> Any:
            return (await self.get(f"{pages.url}/me", headers={"X-Token": self._token})).text

    async def run() -> None:
        async with Api("abc") as api:
            assert await api.me() == "page /me"
            assert (api.early, api.limit, api.region, api._cookies) == ("before", 5, "EU", "mine")
            assert api.timeout == api._session.timeout == 20
            api.headers = {"X-One": "1"}
            assert api._session.headers["x-one"] == "1"

    asyncio.run(run())
    assert dict(pages.heads[0][1])["X-Token"] == "abc"
