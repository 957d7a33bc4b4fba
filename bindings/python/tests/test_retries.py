"""``haul.Retry`` in sessions and ``fetch_many``."""

from __future__ import annotations

import asyncio
import io
import socket
import threading
import time
from email.utils import formatdate
from typing import Any

import pytest

import haul

#: Retries without a wait.
AT_ONCE = haul.Retry(3, backoff=0)


def serve_in_turn(pages: Any, path: str, *statuses: int, **fields: str) -> list[int]:
    """Answers the requests to a path with these statuses in turn, and then with 200. Returns the list
    of those that were sent."""
    sent: list[int] = []
    lock = threading.Lock()

    def answer(handler: Any) -> None:
        with lock:
            sent.append(statuses[len(sent)] if len(sent) < len(statuses) else 200)
            status = sent[-1]
        handler.answer(b"body", status, **(fields if status != 200 else {}))

    pages.routes[path] = answer
    return sent


def get_with(kind: str, url: str, retries: Any, **arguments: Any) -> haul.Response:
    """Sends a request by one of the ways of haul."""
    method = arguments.pop("method", "GET")
    if kind == "session":
        return haul.Session(retries=retries).request(method, url, **arguments)
    if kind == "stream":
        with haul.Session(retries=retries).request(method, url, stream=True, **arguments) as response:
            response.content  # noqa: B018
            return response
    if kind == "prepared":
        session = haul.Session(retries=retries)
        session.hooks["response"].append(lambda response, **_: None)
        return session.request(method, url, **arguments)
    if kind == "many":
        (result,) = haul.fetch_many([{"method": method, "url": url, **arguments}], retries=retries)
        return result.unwrap()

    async def main() -> haul.Response:
        async with haul.AsyncSession(retries=retries) as session:
            response = await session.request(method, url, stream=kind == "async stream", **arguments)
            await response.aread()
            return response

    return asyncio.run(main())


KINDS = ["session", "stream", "prepared", "many", "async", "async stream"]


@pytest.mark.parametrize("kind", KINDS)
def test_transient_status_is_retried(pages: Any, kind: str) -> None:
    sent = serve_in_turn(pages, "/busy", 503, 429)
    assert get_with(kind, f"{pages.url}/busy", AT_ONCE).status_code == 200 and sent == [503, 429, 200]
    sent = serve_in_turn(pages, "/busy", 503, 503, 503, 503)
    response = get_with(kind, f"{pages.url}/busy", haul.Retry(2, backoff=0))
    assert response.status_code == 503 and response.content == b"body" and len(sent) == 3
    sent = serve_in_turn(pages, "/busy", 404)
    assert get_with(kind, f"{pages.url}/busy", AT_ONCE).status_code == 404 and sent == [404]


@pytest.mark.parametrize("kind", KINDS)
def test_method_decides_a_retry(pages: Any, kind: str) -> None:
    sent = serve_in_turn(pages, "/busy", 503)
    assert get_with(kind, f"{pages.url}/busy", AT_ONCE, method="POST", data=b"x").status_code == 503 and sent == [503]
    sent = serve_in_turn(pages, "/busy", 503)
    pages.bodies.clear()
    anything = haul.Retry(3, backoff=0, allowed_methods=None)
    assert get_with(kind, f"{pages.url}/busy", anything, method="POST", data=b"x").status_code == 200
    assert pages.bodies == [b"x", b"x"]


@pytest.mark.parametrize("kind", KINDS)
def test_lost_connection_is_retried(raw: Any, kind: str) -> None:
    server = raw(b"")
    with pytest.raises(haul.ConnectionError):
        get_with(kind, server.url, haul.Retry(2, backoff=0))
    assert server.taken == 3
    server = raw(b"")
    with pytest.raises(haul.ConnectionError):
        get_with(kind, server.url, haul.Retry(5, read=1, backoff=0))
    assert server.taken == 2


@pytest.mark.parametrize("kind", KINDS)
def test_refused_connection_is_retried_for_any_method(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[Any] = []
    after_failure = haul._retry_policy.RetryState.after_failure  # type: ignore[attr-defined]

    def count(self: Any, failure: Any, method: str) -> Any:
        counted.append(failure.args[3])
        return after_failure(self, failure, method)

    monkeypatch.setattr("haul._retry_policy.RetryState.after_failure", count)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(haul.ConnectionError):
            get_with(kind, f"http://127.0.0.1:{unused.getsockname()[1]}/", haul.Retry(5, connect=2, backoff=0), method="POST", data=b"x")
    assert counted == ["connect"] * 3


def test_other_failures_are_not_retried(secure_pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("haul.sessions.sleep", slept.append)
    session = haul.Session(retries=3)
    for url, cls in ((secure_pages.url, haul.exceptions.SSLError), ("ftp://h/", haul.exceptions.InvalidSchema)):
        with pytest.raises(cls):
            session.get(url)
    assert not any(slept)


def test_waits_double_up_to_the_limit(pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("haul.sessions.sleep", slept.append)
    serve_in_turn(pages, "/busy", *[503] * 9)
    session = haul.Session(retries=haul.Retry(5, backoff=2, max_backoff=10, jitter=0))
    session.get(f"{pages.url}/busy")
    assert [wait for wait in slept if wait] == [2, 4, 8, 10, 10]
    slept.clear()
    session.retries = haul.Retry(5, backoff=2, max_backoff=10, jitter=0.5)
    serve_in_turn(pages, "/busy", *[503] * 9)
    session.get(f"{pages.url}/busy")
    assert all(most / 2 <= wait <= most for wait, most in zip((wait for wait in slept if wait), [2, 4, 8, 10, 10], strict=True))


def test_retry_after_holds_the_host(pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("haul.sessions.sleep", slept.append)
    session = haul.Session(retries=haul.Retry(1, backoff=0))
    serve_in_turn(pages, "/busy", 429, Retry_After="30")
    session.get(f"{pages.url}/busy")
    assert 29 < max(slept) <= 30
    slept.clear()
    session.get(f"{pages.url}/other")
    assert 29 < max(slept) <= 30, "another request to the host waits, too"
    session = haul.Session(retries=haul.Retry(1, backoff=0))
    slept.clear()
    serve_in_turn(pages, "/busy", 503, Retry_After=formatdate(2e9, usegmt=True))
    assert session.get(f"{pages.url}/busy").status_code == 503 and not any(slept), "that is too long"
    session.retries = haul.Retry(1, backoff=0, respect_retry_after=False)
    serve_in_turn(pages, "/busy", 503, Retry_After="30")
    assert session.get(f"{pages.url}/busy").status_code == 200 and not any(slept)


def test_fetch_many_keeps_the_order_over_retries(pages: Any) -> None:
    serve_in_turn(pages, "/busy", 503, 503)
    urls = [f"{pages.url}/{name}" for name in ("1", "busy", "2", "3")]
    results = list(haul.fetch_many(urls, max_parallel=2, retries=AT_ONCE))
    assert [result.index for result in results] == [0, 1, 2, 3] and all(result.status_code == 200 for result in results)
    serve_in_turn(pages, "/busy", 503)
    results = list(haul.fetch_many(urls, ordered=False, retries=AT_ONCE))
    assert sorted(result.index for result in results) == [0, 1, 2, 3]
    session = haul.Session(retries=AT_ONCE)
    serve_in_turn(pages, "/busy", 503)
    assert [result.status_code for result in haul.fetch_many(urls, session=session)] == [200] * 4


def test_fetch_many_waits_for_a_held_host(pages: Any) -> None:
    asked = threading.Event()

    def busy(handler: Any) -> None:
        handler.answer(b"", 200 if asked.is_set() else 429, Retry_After="1")
        asked.set()

    pages.routes["/busy"] = busy
    results = list(haul.fetch_many([f"{pages.url}/busy", f"{pages.url}/2"], max_parallel=1, retries=haul.Retry(1, backoff=0)))
    assert [result.status_code for result in results] == [200, 200]


def test_listing_is_retried(pages: Any) -> None:
    sent = serve_in_turn(pages, "/list", 503)
    results = list(haul.fetch_many([f"{pages.url}/list"], paginate="link", retries=AT_ONCE))
    assert [result.status_code for result in results] == [200] and sent == [503, 200]


def test_body_is_sent_again_from_its_begin(pages: Any) -> None:
    session = haul.Session(retries=AT_ONCE)
    serve_in_turn(pages, "/busy", 503)
    data = io.BytesIO(b"--body")
    data.seek(2)
    assert session.put(f"{pages.url}/busy", data=data).status_code == 200 and pages.bodies == [b"body", b"body"]
    pages.bodies.clear()
    serve_in_turn(pages, "/busy", 503)
    assert session.put(f"{pages.url}/busy", data=iter([b"x"])).status_code == 503 and pages.bodies == [b"x"]


def test_hooks_are_told_retries(pages: Any, caplog: pytest.LogCaptureFixture) -> None:
    serve_in_turn(pages, "/busy", 503)
    session = haul.Session(retries=AT_ONCE)
    told: list[Any] = []
    for name in ("request", "head", "retry", "done"):
        session.event_hooks[name].append(lambda event: told.append((event.name, getattr(event.response, "status_code", None), event.wait)))
    with caplog.at_level("DEBUG", logger="haul"):
        session.get(f"{pages.url}/busy")
    assert told == [("request", None, None), ("head", 503, None), ("retry", 503, 0.0), ("request", None, None), ("head", 200, None), ("done", 200, None)]
    assert any(record.getMessage().endswith("/busy: 503; again in 0 s") for record in caplog.records)
    serve_in_turn(pages, "/busy", 503)
    told.clear()
    list(haul.fetch_many([f"{pages.url}/busy"], session=session))
    assert [name for name, *_ in told] == ["request", "retry", "request", "head", "done"]


def test_retries_are_checked() -> None:
    assert haul.Session(retries=2).retries == haul.Retry(2) and haul.Session(retries=0).retries is None
    for wrong in ({"total": -1}, {"jitter": 1.5}, {"backoff": -1.0}):
        with pytest.raises(ValueError):
            haul.Retry(**wrong)  # type: ignore[arg-type]
    for other in (True, "3", 1.5):
        with pytest.raises(TypeError, match="haul.Retry or a number"):
            haul.Session(retries=other)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["{0:%a, %d %b %Y %H:%M:%S} GMT", "{0:%a %b %d %H:%M:%S %Y}", "{0:%a, %d %b %Y %H:%M:%S} -0000"])
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_dates_of_retry_after_are_in_gmt(text: str, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import datetime

    from haul import _retry_policy

    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        monkeypatch.setattr(_retry_policy, "time", lambda: 1_700_000_000.0)
        date = datetime.datetime.fromtimestamp(1_700_000_020, datetime.timezone.utc)
        assert _retry_policy._seconds_of(text.format(date)) == 20
    finally:
        monkeypatch.undo()
        time.tzset()


def test_allowed_methods_as_text_are_refused() -> None:
    with pytest.raises(ValueError, match="allowed_methods is a list"):
        haul.Retry(allowed_methods="POST")


def test_pool_timeout_is_not_retried(pages: Any) -> None:
    import asyncio

    async def main() -> None:
        limits = haul.ClientTimeout(pool=0.05)
        async with haul.AsyncSession(max_parallel=1, retries=2, timeout=limits) as session:
            retried: list[Any] = []
            session.event_hooks["retry"].append(retried.append)
            first = asyncio.ensure_future(session.get(f"{pages.url}/never"))
            while not pages.heads:
                await asyncio.sleep(0.01)
            with pytest.raises(haul.exceptions.PoolTimeout):
                await session.get(pages.url)
            assert not retried
            first.cancel()

    asyncio.run(main())


def test_retry_after_of_a_post_holds_its_host() -> None:
    from haul._retry_policy import HostHolds, RetryState

    class Reply:
        status, url = 429, "http://h.example/"

        def get(self, name: str) -> str:
            return "30"

    holds = HostHolds()
    reply: Any = Reply()
    assert RetryState(haul.Retry(2), holds).after_response(reply, "POST") is None
    assert holds.wait("http://h.example/other") > 0
