"""Event hooks, the logger, and the facts about a response."""

from __future__ import annotations

import asyncio
import logging
import pickle
import re
import socket
from pathlib import Path
from typing import Any

import pytest

import haul
from conftest import EventRoute

GUIDE = Path(__file__).parents[3] / "docs" / "python.md"


def recorded(session: Any) -> list[haul.Event]:
    """Returns the list to which the events of a session are added, but not those of connections."""
    events: list[haul.Event] = []
    for name, hooks in session.event_hooks.items():
        if name not in ("connect", "tls"):
            hooks.append(events.append)
    return events


def names_of(events: list[haul.Event]) -> list[str]:
    return [event.name for event in events]


def redirect(handler: Any) -> None:
    handler.answer(b"", 302, Location="/to")


def test_hooks_are_told_each_step(pages: Any) -> None:
    pages.routes["/from"] = redirect
    session = haul.Session()
    events = recorded(session)
    response = session.get(f"{pages.url}/from")
    assert names_of(events) == ["request", "head", "redirect", "request", "head", "done"]
    assert [event.attempt for event in events] == [1, 1, 1, 2, 2, 2]
    assert {event.call for event in events} == {events[0].call} and events[0].state is events[-1].state
    assert events[2].response.status_code == 302 and events[2].request.url == f"{pages.url}/to"
    assert events[-1].response is response and events[-1].error is None
    assert [event.seconds for event in events] == sorted(event.seconds for event in events)
    session.post(pages.url, json={})
    assert names_of(events[6:]) == ["request", "head", "done"] and events[6].call != events[0].call
    assert repr(events[-1]) == f"<Event done of call {events[-1].call}: POST {pages.url}/>"


def test_hooks_are_told_connections(pages: Any, secure_pages: Any, bundle: str) -> None:
    session = haul.Session()
    told: list[haul.Event] = []
    for hooks in session.event_hooks.values():
        hooks.append(told.append)
    for _ in range(2):
        session.get(secure_pages.url, verify=bundle)
    assert names_of(told) == ["request", "connect", "tls", "head", "done", "request", "head", "done"]
    times = told[3].response.timings
    assert told[2].seconds - told[1].seconds == pytest.approx(times.secured - times.connected)
    assert [event.seconds for event in told[:5]] == sorted(event.seconds for event in told[:5])
    told.clear()
    list(haul.fetch_many([pages.url], session=session))
    assert names_of(told) == ["request", "connect", "head", "done"]


def test_hooks_for_connections_may_be_coroutine_functions(pages: Any) -> None:
    told: list[str] = []

    async def hook(event: haul.Event) -> None:
        await asyncio.sleep(0)
        told.append(event.name)

    async def main() -> None:
        async with haul.AsyncSession() as session:
            session.event_hooks = {"connect": [hook], "head": [hook]}
            await session.get(pages.url)
            await session.get(pages.url)

    asyncio.run(main())
    assert told == ["connect", "head", "head"]


def test_hooks_are_told_failures(pages: Any) -> None:
    session = haul.Session()
    events = recorded(session)
    with pytest.raises(haul.ReadTimeout) as caught:
        session.get(f"{pages.url}/never", timeout=0.05)
    assert names_of(events) == ["request", "done"] and events[-1].error is caught.value
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.request.url == f"{pages.url}/never"


def test_streamed_call_is_done_when_its_body_ends(pages: Any, events: EventRoute) -> None:
    session = haul.Session()
    told = recorded(session)
    with session.stream("GET", events.url) as response:
        assert names_of(told) == ["request", "head"]
        for _ in range(3):
            events.taken.release()
        assert len(list(response.iter_content(None))) >= 1
        assert names_of(told) == ["request", "head", "done"]
    assert len(told) == 3
    session.get(f"{pages.url}/bytes/300000", stream=True).close()
    assert names_of(told[3:]) == ["request", "head", "done"]


def test_hook_may_change_the_request(pages: Any) -> None:
    session = haul.Session()
    session.event_hooks = {"request": [lambda event: event.request.headers.update({"X-Trace": "7"})]}
    session.get(pages.url)
    assert ("X-Trace", "7") in pages.heads[-1][1]
    with pytest.raises(ValueError, match="there is no event 'response'; the events are request, connect"):
        session.event_hooks = {"response": []}


def test_failing_hook_ends_the_call(pages: Any) -> None:
    session = haul.Session()
    session.event_hooks["request"].append(lambda event: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        session.get(pages.url)
    assert not pages.heads


def test_hooks_of_asyncio_may_be_coroutine_functions(pages: Any, events: EventRoute) -> None:
    pages.routes["/from"] = redirect
    told: list[str] = []

    async def hook(event: haul.Event) -> None:
        await asyncio.sleep(0)
        told.append(event.name)

    async def main() -> None:
        async with haul.AsyncSession() as session:
            for name in ("request", "head", "redirect", "done"):
                session.event_hooks[name].append(hook)
            await session.get(f"{pages.url}/from")
            assert told == ["request", "head", "redirect", "request", "head", "done"]
            told.clear()
            for _ in range(3):
                events.taken.release()
            async with session.get(events.url, stream=True) as response:
                assert told == ["request", "head"]
                assert await response.aread() == b"event 0\nevent 1\nevent 2\n"
                assert told == ["request", "head", "done"]
            async with session.get(f"{pages.url}/bytes/300000", stream=True):
                pass
            assert told[3:] == ["request", "head", "done"]
            with pytest.raises(haul.ReadTimeout):
                await session.get(f"{pages.url}/never", timeout=0.05)
            assert told[6:] == ["request", "done"]

    asyncio.run(main())


def test_fetch_many_tells_hooks_of_the_session(pages: Any) -> None:
    session = haul.Session()
    events = recorded(session)
    results = list(haul.fetch_many([f"{pages.url}/1", "http://none.invalid:1/"], session=session, max_parallel=1))
    assert [bool(result) for result in results] == [True, False]
    by_call = {call: [event.name for event in events if event.call == call] for call in {event.call for event in events}}
    assert sorted(by_call.values()) == [["request", "done"], ["request", "head", "done"]]


def test_logger_has_the_steps_without_secrets(pages: Any, caplog: pytest.LogCaptureFixture) -> None:
    pages.routes["/from"] = redirect
    session = haul.Session()
    session.headers["Authorization"] = "Bearer hidden"
    with caplog.at_level(logging.DEBUG, logger="haul"):
        session.get(pages.url.replace("//", "//user:hidden@") + "/from?token=hidden&x#hidden")
        with pytest.raises(haul.ReadTimeout):
            session.get(f"{pages.url}/never", timeout=0.05)
    lines = [record.getMessage() for record in caplog.records if record.name == "haul"]
    assert not any("hidden" in line or "user" in line for line in lines)
    plain = [re.sub(r"^\[\d+\] |(?<=connection )\d+|\d\.\d{3}", "", line) for line in lines]
    address = f"{pages.url}/from?token=...&x"
    assert plain[0] == f"GET {address}"
    assert re.fullmatch(rf"GET {re.escape(address)}: 302, HTTP/1.1, new connection  to (127\.0\.0\.1|::1) port {pages.server_port}", plain[1])
    assert plain[2:4] == [f"GET {pages.url}/to: redirected by a 302", f"GET {pages.url}/to"]
    assert plain[4].startswith(f"GET {pages.url}/to: 200, HTTP/1.1, reused connection")
    assert plain[5] == f"GET {pages.url}/to: done with 200, 8 bytes in  s"
    assert plain[6:] == [f"GET {pages.url}/never", f"GET {pages.url}/never: ReadTimeout after  s"]
    caplog.clear()
    session.get(pages.url)
    assert not [record for record in caplog.records if record.name == "haul"]


def test_guide_shows_the_lines_of_the_logger(
    secure_pages: Any, bundle: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Times, numbers and addresses differ."""
    if not GUIDE.exists():
        pytest.skip("the guide is in the source tree of haul only")
    shown = re.search(r"^```text\n(\[1\] GET .*?)^```$", GUIDE.read_text(), re.S | re.M)
    assert shown
    secure_pages.routes["/items"] = lambda handler: handler.answer(bytes(5120))
    with caplog.at_level(logging.DEBUG, logger="haul"):
        haul.Session().get(f"{secure_pages.url}/items?page=2", verify=bundle)
    lines = [record.getMessage().replace(secure_pages.url, "https://example.com") for record in caplog.records]
    alike = [re.sub(r"TLS_\w+", "TLS_", re.sub(r"\d+(\.\d+)*|::1", "0", line)) for line in lines]
    assert alike == re.sub(r"TLS_\w+", "TLS_", re.sub(r"\d+(\.\d+)*", "0", shown[1])).splitlines()


def test_timings_and_connection_of_a_response(pages: Any, secure_pages: Any, bundle: str) -> None:
    session = haul.Session()
    first, second = session.get(f"{pages.url}/1"), session.get(f"{pages.url}/2")
    times = first.timings
    assert times is not None and times.resolved is not None and times.secured is None
    assert 0 < times.connected <= times.sent <= times.first_byte <= times.total < 20
    again = second.timings
    assert again.resolved is None and again.connected is None and 0 <= again.sent < again.first_byte <= again.total
    connection, other = first.connection_info, second.connection_info
    assert connection.remote[1] == pages.server_port and connection.local[1] > 0
    assert (connection.reused, other.reused) == (False, True) and connection.number == other.number
    assert connection.http_version == "HTTP/1.1" and connection.tls_version is None and connection.certificates == []
    secure = session.get(secure_pages.url, verify=bundle)
    info = secure.connection_info
    assert info.tls_version == "TLSv1.3" and info.cipher.startswith("TLS_") and info.resumed is False
    assert info.certificates[0][:1] == b"\x30" and secure.timings.secured > 0
    assert session.get(secure_pages.url, verify=bundle).connection_info.certificates == info.certificates
    assert repr(info).startswith(f"ConnectionInfo(number={info.number}, reused=False, ")
    with session.get(f"{pages.url}/bytes/3000000", stream=True) as streamed:
        assert streamed.timings.first_byte > 0 and streamed.timings.total is None and streamed.connection_info.reused
    assert pickle.loads(pickle.dumps(first)).timings is None
    (result,) = haul.fetch_many([pages.url], session=session)
    assert result.timings.total > 0 and result.connection_info.remote == connection.remote


def test_proxy_is_the_remote_of_the_connection(proxy: Any) -> None:
    response = haul.get("http://elsewhere.example/", proxies={"http": proxy.url})
    assert response.connection_info.remote[1] == proxy.server_port


def test_guide_makes_spans_of_opentelemetry(pages: Any) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    code = next(block for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S) if "start_span" in block)
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - the code of the guide
    session = haul.Session()
    names["trace_session"](session, provider.get_tracer("test"))
    pages.routes["/from"] = redirect
    session.get(f"{pages.url}/from")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(haul.ConnectionError):
            session.get(f"http://127.0.0.1:{unused.getsockname()[1]}/")
    first, second = exporter.get_finished_spans()
    assert first.name == "GET" and first.attributes["http.response.status_code"] == 200
    assert [event.name for event in first.events] == ["request", "head", "redirect", "request", "head"]
    parents = [value.split("-")[1] for name, value in pages.heads[0][1] if name.lower() == "traceparent"]
    assert parents == [f"{first.context.trace_id:032x}"]
    assert second.attributes["error.type"] == "ConnectionError" and not second.status.is_ok
