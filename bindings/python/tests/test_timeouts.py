"""Time limits for connecting and reading."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import requests

import haul
from haul.adapters import HaulAdapter


def test_unaccepted_connection_is_a_connect_timeout() -> None:
    # A listener with a full queue drops new connections.
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


def test_adapter_accepts_a_timeout_of_urllib3(adapter_session: requests.Session, pages: Any) -> None:
    from urllib3 import Timeout

    assert adapter_session.get(pages.url, timeout=Timeout(total=3)).ok
    with pytest.raises(requests.exceptions.ReadTimeout):
        adapter_session.get(f"{pages.url}/never", timeout=Timeout(total=0.1))
    # Some clients pass the default on.
    default = Timeout.DEFAULT_TIMEOUT
    assert adapter_session.get(pages.url, timeout=default).ok
    assert adapter_session.get(pages.url, timeout=(5, default)).ok


def test_requests_with_different_timeouts_share_a_connection(adapter_session: requests.Session, pages: Any) -> None:
    for own in (adapter_session, haul.Session()):
        before = pages.connections
        for seconds in (5, 6.5, (7, 8), None):
            own.get(pages.url, timeout=seconds)
        assert pages.connections - before == 1


def test_silent_server_is_a_read_timeout(pages: Any) -> None:
    for timeout in (0.1, (5, 0.1), (None, 0.1)):
        with pytest.raises(haul.ReadTimeout):
            haul.get(f"{pages.url}/never", timeout=timeout)
        with pytest.raises(haul.ReadTimeout):
            haul.get(f"{pages.url}/never", timeout=timeout, stream=True)
    for wrong in ((1, 2, 3), "3", 0, -1, (0, 1), True and "x"):
        with pytest.raises(ValueError):
            haul.get(pages.url, timeout=wrong)
    assert haul.get(pages.url, timeout=5).ok and haul.get(pages.url, timeout=None).ok


def test_stalled_body_is_a_connection_error(raw: Any) -> None:
    server = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", closes=False)
    # After the head, requests raises a ConnectionError for a timeout.
    with pytest.raises(haul.ConnectionError):
        haul.get(server.url, timeout=0.1)
    response = haul.get(server.url, timeout=0.1, stream=True)
    with pytest.raises(haul.ConnectionError):
        response.content  # noqa: B018


def test_urllib3_timeout_with_total_limits_reads(pages: Any) -> None:
    from urllib3 import Timeout

    for timeout in (Timeout(total=0.1), Timeout(connect=5, read=0.1), Timeout(0.1, read=5)):
        assert haul.get(pages.url, timeout=timeout).ok
        with pytest.raises(haul.ReadTimeout):
            haul.get(f"{pages.url}/never", timeout=timeout)
    assert haul.get(pages.url, timeout=Timeout()).ok
    assert haul.get(pages.url, timeout=Timeout.DEFAULT_TIMEOUT).ok


@pytest.mark.parametrize("stream", [False, True])
def test_client_timeout_has_a_limit_for_each_wait(pages: Any, stream: bool) -> None:
    get = haul.Session().get
    assert get(pages.url, timeout=haul.ClientTimeout(5, 5, 5, 5), stream=stream).ok
    with pytest.raises(haul.ReadTimeout):
        get(f"{pages.url}/never", timeout=haul.ClientTimeout(read=0.05), stream=stream)
    with pytest.raises(haul.ReadTimeout):
        get(f"{pages.url}/never", timeout=haul.ClientTimeout(total=0.05), stream=stream)


def test_server_that_takes_nothing_is_a_write_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(haul.exceptions.WriteTimeout):
            haul.put(url, data=bytes(64 << 20), timeout=haul.ClientTimeout(write=0.1))
        session = requests.Session()
        session.mount("http://", HaulAdapter())
        with pytest.raises(requests.exceptions.Timeout):
            session.put(url, data=bytes(64 << 20), timeout=haul.ClientTimeout(write=0.1))


def test_request_that_gets_no_turn_is_a_pool_timeout(pages: Any) -> None:
    async def main() -> None:
        async with haul.AsyncSession(max_parallel=1, timeout=haul.ClientTimeout(pool=0.05)) as session:
            first = asyncio.ensure_future(session.get(f"{pages.url}/never"))
            while not pages.heads:
                await asyncio.sleep(0.01)
            with pytest.raises(haul.PoolTimeout, match="no connection became free") as caught:
                await session.get(f"{pages.url}/x")
            assert isinstance(caught.value, haul.Timeout) and not isinstance(caught.value, haul.ConnectionError)
            assert caught.value.request.url == f"{pages.url}/x"
            assert not first.done(), "it began at once, so it has not waited"
            first.cancel()

    asyncio.run(main())
    session = haul.Session()
    session.timeout = haul.ClientTimeout(pool=0.05)
    urls = [f"{pages.url}/never", f"{pages.url}/x"]
    results = haul.fetch_many(urls, session=session, max_parallel=1, ordered=False)
    assert isinstance(next(results).error, haul.PoolTimeout)
    results.close()
    assert session.get(f"{pages.url}/wait").ok, "a call of a session does not wait for others"


def test_total_limits_a_body_that_never_ends(pages: Any) -> None:
    def drip(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        while not handler.server.released.wait(0.02):
            handler.wfile.write(b"x")
            handler.wfile.flush()

    pages.routes["/drip"] = drip
    with pytest.raises(haul.ConnectionError):
        haul.get(f"{pages.url}/drip", timeout=haul.ClientTimeout(total=0.3, read=5))


def test_session_has_a_timeout_for_all_requests(pages: Any) -> None:
    session = haul.Session(timeout=haul.ClientTimeout(read=0.05))
    for _ in range(2):
        with pytest.raises(haul.ReadTimeout):
            session.get(f"{pages.url}/never")
    with pytest.raises(haul.ReadTimeout):
        session.get(f"{pages.url}/never", stream=True)
    assert session.get(f"{pages.url}/wait", timeout=20).ok
    (result,) = haul.fetch_many([f"{pages.url}/never"], session=session)
    assert isinstance(result.error, haul.ReadTimeout)

    async def main() -> None:
        async with haul.AsyncSession(timeout=0.05) as of_asyncio:
            with pytest.raises(haul.ReadTimeout):
                await of_asyncio.get(f"{pages.url}/never")

    asyncio.run(main())


def test_client_timeout_is_checked() -> None:
    assert haul.ClientTimeout(3) == haul.ClientTimeout(total=3) != haul.ClientTimeout(read=3)
    for wrong in (0, -1, True, "3"):
        with pytest.raises(ValueError):
            haul.ClientTimeout(total=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("timeout", [{}, object(), [1, 2, 3]])
def test_timeouts_of_other_types_are_value_errors(timeout: Any) -> None:
    with pytest.raises(ValueError):
        haul.get("http://127.0.0.1:1/", timeout=timeout)
