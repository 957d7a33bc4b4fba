"""Mounted functions, ``haul.testing`` and the plugin of pytest."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import haul
from haul.testing import Mock, response


def test_response_is_that_of_a_server() -> None:
    made = response(404, "ä", headers=[("Set-Cookie", "a=1"), ("X", "1"), ("X", "2")])
    assert (made.status_code, made.reason, made.text, made.content, made.ok) == (404, "Not Found", "ä", "ä".encode(), False)
    assert made.headers["X"] == "1, 2" and made.headers["content-length"] == "2"
    assert response(json={"a": None}).json() == {"a": None} and response(299, reason="Fine").reason == "Fine"
    assert list(response(content=b"a\nb").iter_lines()) == [b"a", b"b"] and response(content=b"x").raw.read() == b"x"
    assert response(headers={"Content-Type": "text/x"}, json=1).headers["content-type"] == "text/x"


def test_mounted_function_answers(pages: Any) -> None:
    asked: list[haul.PreparedRequest] = []

    def answer(request: haul.PreparedRequest) -> haul.Response:
        asked.append(request)
        if request.path_url == "/from":
            return response(302, headers={"Location": "/to", "Set-Cookie": "seen=1; Path=/"})
        return response(json={"path": request.path_url})

    session = haul.Session()
    session.mount("https://api.example/", answer)
    got = session.post("https://api.example/from", json={"a": 1}, headers={"X": "y"})
    assert got.json() == {"path": "/to"} and [hop.status_code for hop in got.history] == [302] and got.url == "https://api.example/to"
    assert asked[0].body == b'{"a": 1}' and asked[0].headers["X"] == "y" and asked[0].method == "POST"
    assert asked[1].headers["Cookie"] == "seen=1" and session.cookies["seen"] == "1"
    assert session.get(f"{pages.url}/x").text == "page /x", "others are sent"
    with session.stream("GET", "https://api.example/s") as streamed:
        assert b"".join(streamed.iter_content(3)) == b'{"path": "/s"}'


def test_mounted_function_may_fail() -> None:
    def refuse(request: haul.PreparedRequest) -> Any:
        raise haul.ConnectTimeout("too late")

    session = haul.Session()
    session.mount("https://", refuse)
    session.mount("https://wrong.example/", lambda request: b"bytes")
    with pytest.raises(haul.ConnectTimeout) as caught:
        session.get("https://h/")
    assert caught.value.request.url == "https://h/"
    with pytest.raises(TypeError, match="has to return a haul.Response"):
        session.get("https://wrong.example/")


def test_mounted_function_answers_in_asyncio() -> None:
    async def answer(request: haul.PreparedRequest) -> haul.Response:
        await asyncio.sleep(0)
        return response(302, headers={"Location": "/to"}) if request.path_url == "/from" else response(content=b"a\nb")

    async def main() -> None:
        async with haul.AsyncSession() as session:
            session.mount("https://slow.example/", answer)
            session.mount("https://plain.example/", lambda request: response(content=request.path_url.encode()))
            got = await session.get("https://slow.example/from")
            assert got.text == "a\nb" and len(got.history) == 1 and got.request.url == "https://slow.example/to"
            assert (await session.get("https://plain.example/x")).text == "/x"
            async with session.stream("GET", "https://slow.example/") as streamed:
                assert [line async for line in streamed.aiter_lines()] == [b"a", b"b"]
            with pytest.raises(TypeError, match="functions, no adapters"):
                session.mount("https://", object())  # type: ignore[arg-type]

    asyncio.run(main())


def test_mounted_function_answers_in_fetch_many(pages: Any) -> None:
    session = haul.Session()
    session.mount("https://api.example/", lambda request: response(content=request.path_url.encode()))
    urls = ["https://api.example/1", f"{pages.url}/2", "https://api.example/3"]
    results = list(haul.fetch_many(urls, session=session))
    assert [(result.index, result.text) for result in results] == [(0, "/1"), (1, "page /2"), (2, "/3")]


def test_mock_answers_every_session(haul_mock: Mock) -> None:
    session = haul.Session()
    haul_mock.get("https://api.example/items", response(503), response(json=[1]))
    haul_mock.post("https://api.example/items", lambda request: response(201, request.body))
    haul_mock.add(None, "https://api.example/down?now", haul.ReadTimeout("slow"))
    assert haul.get("https://api.example/items?page=1").status_code == 503
    assert session.get("https://api.example/items").json() == [1] and session.get("https://api.example/items").ok
    assert haul.post("https://api.example/items", data=b"x").content == b"x"
    with pytest.raises(haul.ReadTimeout):
        session.delete("https://api.example/down?now")
    with pytest.raises(haul.ConnectionError, match="no answer to GET https://api.example/down"):
        session.get("https://api.example/down")
    (result,) = haul.fetch_many(["https://api.example/items"])
    assert result.ok

    async def main() -> int:
        async with haul.AsyncSession() as of_asyncio:
            return (await of_asyncio.get("https://api.example/items")).status_code

    assert asyncio.run(main()) == 200
    assert [call.method for call in haul_mock.calls] == ["GET", "GET", "GET", "POST", "DELETE", "GET", "GET", "GET"]


def test_mock_ends_with_its_block(pages: Any) -> None:
    with Mock() as outer:
        outer.get(f"{pages.url}/x", response(content=b"outer"))
        with Mock() as inner:
            inner.get(f"{pages.url}/x", response(content=b"inner"))
            assert haul.get(f"{pages.url}/x").text == "inner"
        assert haul.get(f"{pages.url}/x").text == "outer"
    assert haul.get(f"{pages.url}/x").text == "page /x"


def test_retries_do_not_apply_to_functions() -> None:
    session = haul.Session(retries=3)
    asked: list[str] = []
    session.mount("https://", lambda request: asked.append("x") or response(503))
    assert session.get("https://h/").status_code == 503 and asked == ["x"]


def test_plugin_is_found_by_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        """
import haul
from haul.testing import response

def test_items(haul_mock):
    haul_mock.get("https://api.example/items", response(json=[1]))
    assert haul.get("https://api.example/items").json() == [1] and len(haul_mock.calls) == 1
"""
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_mock_compares_normalised_urls(haul_mock: Any) -> None:
    for url in ("https://a.example", "https://b.example/x y", "https://C.example/x", "https://d.example/x?q=a b"):
        haul_mock.get(url, haul.testing.response(content=url))
        assert haul.get(url).text == url


def test_raw_of_a_mocked_response_is_a_file(haul_mock: Any) -> None:
    haul_mock.get("https://a.example/", haul.testing.response(content=b"content"))
    response = haul.get("https://a.example/", stream=True)
    assert response.raw.read(3, decode_content=True) == b"con" and response.raw.read() == b"tent"
    assert response.content == b"content" and list(response.iter_content(4)) == [b"cont", b"ent"]


def test_mounted_functions_report_the_same_events(haul_mock: Any) -> None:
    import asyncio

    haul_mock.get("https://a.example/", haul.testing.response())
    steps: list[str] = []
    session = haul.Session()
    for name in ("request", "head", "done"):
        session.event_hooks[name].append(lambda event: steps.append(event.name))
    session.get("https://a.example/")
    list(haul.fetch_many(["https://a.example/"], session=session))

    async def get() -> None:
        async with haul.AsyncSession() as other:
            other.event_hooks = session.event_hooks
            await other.get("https://a.example/")

    asyncio.run(get())
    assert steps == ["request", "head", "done"] * 3


def test_hooks_may_raise_for_mounted_functions(haul_mock: Any) -> None:
    haul_mock.get("https://a.example/", haul.testing.response())
    request = haul.Request("GET", "https://a.example/", hooks={"response": lambda response, **_: 1 / 0}).prepare()
    failed, answered = haul.fetch_many([request, "https://a.example/"])
    assert isinstance(failed.error, ZeroDivisionError) and answered.ok
    assert request.hooks["response"]


def test_hook_may_choose_the_mounted_function() -> None:
    session = haul.Session()
    session.mount("https://new.example/", lambda request: haul.testing.response(content="new"))
    session.event_hooks["request"].append(lambda event: setattr(event.request, "url", "https://new.example/"))
    assert session.get("https://old.example/").text == "new"


def test_repeated_answer_has_its_own_headers() -> None:
    with Mock() as mock:
        mock.get("https://h/", response(headers={"X": "1"}))
        haul.get("https://h/").headers["X"] = "2"
        assert haul.get("https://h/").headers["X"] == "1"


def test_answer_to_head_has_no_body() -> None:
    with Mock() as mock:
        mock.add("HEAD", "https://h/", response(200, b"xxx"))
        answer = haul.head("https://h/")
    assert (answer.content, answer.headers["Content-Length"]) == (b"", "3")


def test_mounted_adapter_gets_settings_of_session(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    class Adapter:
        def send(self, request: haul.PreparedRequest, **settings: Any) -> haul.Response:
            seen.update(settings)
            return response()

        def close(self) -> None:
            pass

    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", __file__)
    session = haul.Session()
    session.timeout = 7.0
    session.mount("http://", Adapter())
    session.get("http://h.example/")
    assert (seen["timeout"], seen["verify"], seen["stream"]) == (7.0, __file__, False)
    assert seen["proxies"]["http"] == "http://proxy.example:3128"
    session.get("http://h.example/", timeout=1, verify=False)
    assert (seen["timeout"], seen["verify"]) == (1, False)


def test_asyncio_hook_sees_cookies_of_response(pages: Any) -> None:
    pages.routes["/login"] = lambda handler: handler.answer(b"", Set_Cookie="a=1; Path=/")

    async def main() -> None:
        async with haul.AsyncSession() as session:
            seen: list[Any] = []
            session.hooks["response"].append(lambda response, **settings: seen.append(session.cookies.get("a")))
            await session.get(f"{pages.url}/login")
            assert seen == ["1"]

    asyncio.run(main())
