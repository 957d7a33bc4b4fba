"""fetch_many and AsyncSession."""

from __future__ import annotations

import asyncio
import copy
import gc
import inspect
import io
import itertools
import os
import pickle
import resource
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import haul


def test_results_come_in_order(pages: Any) -> None:
    session = haul.Session()
    found = list(haul.fetch_many((f"{pages.url}/{i}" for i in range(500)), 8, session=session))
    assert [result.index for result in found] == list(range(500))
    assert all(result.text == f"page /{i}" for i, result in enumerate(found))
    assert pages.most_open <= 8


def test_results_come_as_they_are_complete(pages: Any) -> None:
    urls = [f"{pages.url}/wait", *(f"{pages.url}/{i}" for i in range(20))]
    found = [result.index for result in haul.fetch_many(urls, 4, ordered=False)]
    assert sorted(found) == list(range(21)) and found[0] != 0


def test_what_fails_has_its_place(pages: Any) -> None:
    items = [f"{pages.url}/a", "no url", haul.Request("POST", f"{pages.url}/b", data={"a": "1"}), "http://127.0.0.1:1/",
             {"url": f"{pages.url}/c", "params": {"q": 1}}]  # fmt: skip
    found = list(haul.fetch_many(items, 2))
    assert [bool(result) for result in found] == [True, False, True, False, True]
    assert isinstance(found[1].error, haul.exceptions.MissingSchema) and isinstance(found[3].error, haul.ConnectionError)
    assert found[4].url == f"{pages.url}/c?q=1" and b"a=1" in pages.bodies
    with pytest.raises(haul.ConnectionError):
        found[3].content  # noqa: B018
    with pytest.raises(TypeError):
        list(haul.fetch_many([5]))  # type: ignore[list-item]
    with pytest.raises(ValueError):
        haul.fetch_many([], 0)


def test_an_item_may_have_settings_of_its_own(pages: Any) -> None:
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location="/x")
    items = [
        {"url": f"{pages.url}/never", "timeout": 0.1},
        {"url": f"{pages.url}/away", "allow_redirects": False},
        {"url": f"{pages.url}/away", "method": "POST", "json": [1], "verify": False},
    ]
    late, stays, goes = haul.fetch_many(items, timeout=20)
    assert isinstance(late.error, haul.ReadTimeout)
    assert (stays.status_code, goes.url) == (302, f"{pages.url}/x")
    for one in (pages.url, items[0]):
        with pytest.raises(TypeError, match="not one"):
            haul.fetch_many(one)  # type: ignore[arg-type]


def test_the_input_is_taken_as_it_is_needed(pages: Any) -> None:
    taken = itertools.count()
    results = haul.fetch_many((f"{pages.url}/{i}" for i in taken), 4)
    for _, result in zip(range(50), results):
        assert result.ok
    assert next(taken) < 100
    results.close()  # type: ignore[attr-defined]


def test_redirects_and_cookies_of_the_session(pages: Any) -> None:
    pages.routes["/set"] = lambda handler: handler.answer(b"", 302, Location="/next", Set_Cookie="a=b; Path=/")
    session = haul.Session()
    session.headers["X-Ours"] = "1"
    (result,) = haul.fetch_many([f"{pages.url}/set"], session=session)
    assert (result.url, result.text) == (f"{pages.url}/next", "page /next")
    sent = dict(pages.heads[-1][1])
    assert sent["Cookie"] == "a=b" and sent["X-Ours"] == "1" and session.cookies["a"] == "b"
    (kept,) = haul.fetch_many([f"{pages.url}/set"], allow_redirects=False)
    assert kept.status_code == 302


def test_a_jar_that_takes_the_place_of_another_is_not_taken_for_it(pages: Any) -> None:
    pages.routes["/set"] = lambda handler: handler.answer(b"", Set_Cookie="a=b; Path=/")
    session = haul.Session()
    for _ in range(20):
        # Where the one before last was, in memory.
        session.cookies = {}
        (result,) = haul.fetch_many([f"{pages.url}/set"], session=session)
        assert "Cookie" not in dict(pages.heads[-1][1]) and session.cookies["a"] == "b", result


def test_memory_is_bounded(pages: Any) -> None:
    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    size = 1_000_000
    list(haul.fetch_many([f"{pages.url}/bytes/{size}"] * 4, 4))
    before = peak()
    total = 0
    for result in haul.fetch_many([f"{pages.url}/bytes/{size}"] * 200, 8, max_memory=4 << 20):
        total += len(result.content)
    assert total == 200 * size
    # The server is in this process, too.
    assert peak() - before < 64 << 10, "KiB"


def runners() -> list[Any]:
    import uvloop

    return [pytest.param(asyncio.run, id="asyncio"), pytest.param(uvloop.run, id="uvloop")]


@pytest.mark.parametrize("run", runners())
def test_a_thousand_at_once(pages: Any, run: Callable[[Coroutine[Any, Any, None]], None]) -> None:
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
            # It has the only place there is.
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


def test_an_async_session_has_a_sessions_habits(pages: Any) -> None:
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


def test_a_hook_of_an_async_session_may_be_a_coroutine_function(pages: Any) -> None:
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


def test_what_an_async_session_cannot_do_it_says(pages: Any) -> None:
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


def test_an_async_session_sends_what_is_prepared(pages: Any) -> None:
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


def test_chunks_are_not_held_back_from_the_loop(events: Any) -> None:
    async def main() -> None:
        async with haul.AsyncSession() as session:
            async with await session.get(events.url, stream=True, timeout=5) as streamed:
                expected = iter([b"event 0", b"event 1", b"event 2"])
                async for line in streamed.aiter_lines():
                    assert line == next(expected)
                    events.taken.release()
                assert not list(expected)

    asyncio.run(main())


def test_many_do_not_hold_up_the_loop(pages: Any) -> None:
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

    # Waits of 150 ms in all: had one of them been the loop's, it would show.
    assert asyncio.run(main()) < 20


@pytest.mark.parametrize("run", runners())
@pytest.mark.parametrize("what", ["head", "body", "upload"])
@pytest.mark.parametrize("ends", ["cancel", "aclose"])
def test_what_waits_on_a_thread_can_be_given_up(raw: Any, pages: Any, run: Any, what: str, ends: str) -> None:
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
            # Closing cancels nobody.
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


def test_streams_wait_beside_each_other_and_beside_the_loops_own_calls(pages: Any) -> None:
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


def test_a_body_that_is_produced_slowly_does_not_hold_others_up(pages: Any) -> None:
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


def test_closing_an_async_session_cancels_nobody(pages: Any, caplog: pytest.LogCaptureFixture) -> None:
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
        # It can be used again, as requests' can.
        assert (await session.get(f"{pages.url}/x")).ok
        await session.aclose()

    asyncio.run(main())
    gc.collect()
    assert not caplog.records


def test_loops_in_several_threads_share_an_async_session(pages: Any) -> None:
    session = haul.AsyncSession()

    async def main() -> int:
        responses = []
        for _ in range(10):
            responses += await asyncio.gather(*(asyncio.wait_for(session.get(f"{pages.url}/wait"), 20) for _ in range(4)))
        return sum(response.text == "waited" for response in responses)

    with ThreadPoolExecutor(3) as threads:
        assert [done.result() for done in [threads.submit(asyncio.run, main()) for _ in range(3)]] == [40] * 3
    asyncio.run(session.aclose())


def test_closing_it_ends_what_another_threads_loop_waits_for(pages: Any) -> None:
    session = haul.AsyncSession()
    thread = ThreadPoolExecutor(1)
    waiting = thread.submit(lambda: asyncio.run(session.get(f"{pages.url}/never")))  # type: ignore[arg-type]
    while not pages.heads:
        time.sleep(0.01)
    asyncio.run(session.aclose())
    with pytest.raises(haul.ConnectionError, match="closed"):
        waiting.result(timeout=10)


@pytest.mark.parametrize("run", runners())
def test_an_async_session_that_is_not_closed_says_so_and_is_let_go(pages: Any, run: Callable[..., None]) -> None:
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
        # The server's side of a connection is this process', too, and ends a little later.
        assert await settled((before[0] + 4, before[1] + 1)), (before, held())

    run(main())


def test_a_body_that_is_made_slowly_holds_up_no_other_request(pages: Any) -> None:
    others_came = threading.Event()

    def slowly() -> Any:
        yield b"a"
        assert others_came.wait(30)
        yield b"b"

    items = [haul.Request("POST", f"{pages.url}/slow", data=slowly()), *(f"{pages.url}/{i}" for i in range(5))]
    came = []
    for result in haul.fetch_many(items, 2, ordered=False):
        assert result.ok
        came.append(result.index)
        if len(came) == 5:
            others_came.set()
    assert came[-1] == 0 and pages.bodies[-1] == b"ab"


@pytest.mark.parametrize("run", runners())
@pytest.mark.parametrize("stream", [False, True])
def test_a_body_may_be_awaited(pages: Any, run: Callable[[Coroutine[Any, Any, None]], None], stream: bool) -> None:
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
def test_a_body_that_is_awaited_for_ever_ends_with_its_request(pages: Any, stream: bool) -> None:
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


def test_redirects_go_by_the_proxy_of_their_scheme(pages: Any, proxy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    away = "https://somewhere.invalid/x"
    asked: list[str] = []

    def refuses(handler: Any) -> None:
        asked.append(handler.path)
        handler.answer(b"", 502)

    proxy.routes["somewhere.invalid:443"] = refuses
    monkeypatch.setattr(proxy.RequestHandlerClass, "do_CONNECT", proxy.RequestHandlerClass.any, raising=False)
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location=away)
    address = f"http://127.0.0.1:{proxy.server_port}"
    session = haul.Session()
    session.proxies = {"https": address}
    (result,) = haul.fetch_many([f"{pages.url}/away"], session=session)
    assert result.error is not None and asked == ["somewhere.invalid:443"]
    # And who is asked without one, by the environment's word.
    session.proxies = {}
    monkeypatch.setenv("http_proxy", address)
    monkeypatch.setenv("no_proxy", "localhost")
    proxy.routes["http://other.invalid/on"] = lambda handler: handler.answer(b"", 302, Location=f"{pages.url}/end")
    (result,) = haul.fetch_many(["http://other.invalid/on"], session=session)
    assert result.text == "page /end" and proxy.heads[-1][0] == "http://other.invalid/on"


def test_failed_result_can_be_looked_at(pages: Any) -> None:
    failed, fetched = haul.fetch_many(["http://127.0.0.1:1/", f"{pages.url}/x"])
    for one in (failed, fetched):
        for copied in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert copied.index == one.index and type(copied.error) is type(one.error) and bool(copied) is bool(one)
        assert not hasattr(one, "no_such_name") and not hasattr(one, "__len__") and hasattr(one, "error")
        assert {"index", "request", "response", "error", "unwrap"} <= set(dir(one))
        assert dict(inspect.getmembers(one))["index"] == one.index
    assert "content" in dir(fetched) and "content" not in dir(failed)
    assert not hasattr(haul.many.Result.__new__(haul.many.Result), "error")
    with pytest.raises(haul.ConnectionError):
        failed.status_code  # noqa: B018


def test_exception_class_ignores_earlier_redirects(pages: Any, raw: Any, secure_pages: Any) -> None:
    refused = socket.create_server(("127.0.0.1", 0))
    refused_url = f"http://127.0.0.1:{refused.getsockname()[1]}/"
    refused.close()
    urls = {
        "refused": refused_url,
        "certificate": secure_pages.url,
        "silent": f"{pages.url}/never",
        "empty": raw(b"").url,
        "head": raw(b"HTTP/1.1 200 OK\r\nX: y").url,
        "body": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc").url,
        "name": "http://nowhere.invalid/",
    }
    for name, url in urls.items():
        pages.routes[f"/to/{name}"] = lambda handler, url=url: handler.answer(b"", 302, Location=url)
    for name, url in urls.items():
        direct, behind = haul.fetch_many([url, f"{pages.url}/to/{name}"], timeout=0.5)
        with pytest.raises(haul.RequestException) as caught:
            haul.get(url, timeout=0.5)
        assert type(behind.error) is type(direct.error) is type(caught.value), (name, behind.error, direct.error)


@pytest.mark.parametrize("face", ["Session", "AsyncSession", "fetch_many"])
def test_digest_with_a_stale_nonce_rewinds_a_file(face: str, pages: Any) -> None:
    asked = itertools.count()

    def challenge(handler: Any) -> None:
        number = next(asked)
        authorization = handler.headers.get("Authorization", "")
        if number >= 3 and f'nonce="n{number - 1}"' in authorization:
            return handler.answer(b"stored")
        stale = ", stale=true" if "Digest" in authorization else ""
        handler.answer(b"", 401, WWW_Authenticate=f'Digest realm="r", qop="auth", nonce="n{number}"{stale}')

    pages.routes["/digest"] = challenge
    auth, url = haul.auth.HTTPDigestAuth("me", "pw"), f"{pages.url}/digest"
    file = io.BytesIO(b"--" + b"content" * 30_000)
    file.seek(2)
    if face == "Session":
        response = haul.put(url, data=file, auth=auth)
    elif face == "fetch_many":
        response = next(haul.fetch_many([{"method": "PUT", "url": url, "data": file, "auth": auth}])).unwrap()
    else:

        async def of_loop() -> Any:
            async with haul.AsyncSession() as session:
                return await session.put(url, data=file, auth=auth)

        response = asyncio.run(of_loop())
    assert response.text == "stored" and pages.bodies[-1] == b"content" * 30_000


def test_digest_never_sends_a_generator_twice(pages: Any) -> None:
    pages.routes["/digest"] = lambda handler: handler.answer(
        b"", 401, WWW_Authenticate='Digest realm="r", qop="auth", nonce="n", stale=true'
    )
    auth = haul.auth.HTTPDigestAuth("me", "pw")
    with pytest.raises(haul.RequestException):
        haul.put(f"{pages.url}/digest", data=iter([b"once"]), auth=auth)
    assert pages.bodies.count(b"once") <= 1 and set(pages.bodies[1:]) <= {b"once"}
