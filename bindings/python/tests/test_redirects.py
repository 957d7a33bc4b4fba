"""Redirects: targets, methods, bodies and secrets."""

from __future__ import annotations

import asyncio
import io
import threading
from typing import Any

import pytest
import requests

import haul
from conftest import make_adapter_session
from haul.structures import CaseInsensitiveDict


def test_redirects_are_followed_and_recorded_in_history(httpbin: Any) -> None:
    session = haul.Session()
    response = session.get(httpbin.url + "/redirect/3")
    assert [one.status_code for one in response.history] == [302, 302, 302]
    assert response.url == httpbin.url + "/get"
    assert [len(one.history) for one in response.history] == [0, 1, 2]
    response = session.get(httpbin.url + "/redirect/2", allow_redirects=False)
    assert response.is_redirect and response.next is not None
    assert response.next.url == httpbin.url + "/relative-redirect/1"
    session.max_redirects = 3
    with pytest.raises(haul.TooManyRedirects) as caught:
        session.get(httpbin.url + "/redirect/5")
    assert caught.value.response is not None and caught.value.response.status_code == 302


def test_method_after_a_redirect_follows_rfc_9110(pages: Any) -> None:
    for status in (301, 302, 303, 307, 308):
        pages.routes[f"/{status}"] = lambda handler, status=status: handler.answer(b"", status, Location="/to")
    seen = {}
    for status in (301, 302, 303, 307, 308):
        for method in ("POST", "PUT", "HEAD"):
            response = haul.request(method, f"{pages.url}/{status}", data=b"body" if method != "HEAD" else None)
            seen[status, method] = response.request.method, pages.bodies[-1]
    assert {seen[status, "POST"] for status in (301, 302, 303)} == {seen[303, "PUT"]} == {("GET", b"")}
    assert {seen[status, "PUT"] for status in (301, 302, 307, 308)} == {("PUT", b"body")}
    assert seen[307, "POST"] == seen[308, "POST"] == ("POST", b"body")
    assert {seen[status, "HEAD"][0] for status in (301, 302, 303, 307, 308)} == {"HEAD"}


def test_location_beyond_ascii_is_percent_encoded(raw: Any) -> None:
    for location, expected in (
        ("/ü?q=ö".encode(), "%C3%BC?q=%C3%B6"),
        ("/%C3%BC".encode(), "%C3%BC"),
        (b"/\xfc", "%FC"),
        ("/ü".encode() + b"\xfc", "%C3%BC%FC"),
    ):
        server = raw(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + location + b"\r\n\r\n")
        response = haul.get(server.url, allow_redirects=False)
        assert response.next is not None and response.next.url == server.url + expected


@pytest.mark.parametrize("make", [haul.Session, make_adapter_session])
def test_latin1_location_keeps_its_bytes(make: Any, pages: Any) -> None:
    def away(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /caf\xe9\r\n\r\n")

    pages.routes["/away"] = away
    with make() as session:
        assert session.get(f"{pages.url}/away").url == f"{pages.url}/caf%E9"
    assert [result.url for result in haul.fetch_many([f"{pages.url}/away"])] == [f"{pages.url}/caf%E9"]
    assert {path for path, _ in pages.heads} == {"/away", "/caf%E9"}


@pytest.mark.parametrize("status", [301, 302])
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "PROPFIND"])
def test_methods_other_than_post_keep_their_body(method: str, status: int, pages: Any) -> None:
    pages.routes["/old"] = lambda handler: handler.answer(b"", status, Location="/new")
    with haul.Session() as session:
        session.request(method, f"{pages.url}/old", data=b"content", headers={"Content-Type": "text/x"})
        session.request(method, f"{pages.url}/old", json=[1])
        session.request(method, f"{pages.url}/old", data=io.BytesIO(b"file"), stream=True).close()
        before = len(pages.bodies)
        with pytest.raises(haul.exceptions.UnrewindableBodyError):
            session.request(method, f"{pages.url}/old", data=iter([b"once"]))
        assert pages.bodies[before:] == [b"once"], "no empty body"

    async def of_loop() -> None:
        async with haul.AsyncSession() as session:
            await session.request(method, f"{pages.url}/old", data=b"awaited")

    asyncio.run(of_loop())
    list(haul.fetch_many([{"method": method, "url": f"{pages.url}/old", "data": io.BytesIO(b"many")}]))
    of_new = [(dict(fields).get("Content-Type"), body) for (path, fields), body in zip(pages.heads, pages.bodies) if path == "/new"]
    assert of_new == [("text/x", b"content"), ("application/json", b"[1]"), (None, b"file"), (None, b"awaited"), (None, b"many")]


def test_next_raises_if_the_body_was_consumed(pages: Any) -> None:
    pages.routes["/old"] = lambda handler: handler.answer(b"", 307, Location="/new")
    response = haul.put(f"{pages.url}/old", data=iter([b"once"]), allow_redirects=False)
    assert response.status_code == 307
    with pytest.raises(haul.exceptions.UnrewindableBodyError):
        response.next  # noqa: B018
    kept = haul.put(f"{pages.url}/old", data=b"kept", allow_redirects=False).next
    assert kept is not None and kept.body == b"kept"


def test_secrets_stay_with_the_first_origin(pages: Any, proxy: Any) -> None:
    there = f"http://127.0.0.1:{proxy.server_port}"
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location=f"{there}/back")
    proxy.routes["/back"] = lambda handler: handler.answer(b"", 302, Location=f"{pages.url}/end")
    session = haul.Session()
    session.cookies.set("loose", "1")
    response = session.get(f"{pages.url}/away", auth=("me", "pw"), headers={"X-Keep": "1", "X-Api-Key": "k"}, cookies={"once": "2"})
    assert response.text == "page /end" and len(response.history) == 2
    first, away, last = (CaseInsensitiveDict(fields) for fields in (pages.heads[0][1], proxy.heads[0][1], pages.heads[1][1]))
    assert first["Authorization"].startswith("Basic ") and first["Cookie"] == "loose=1; once=2" and first["X-Api-Key"] == "k"
    assert "Authorization" not in away and "Cookie" not in away and away["X-Keep"] == "1"
    assert "X-Api-Key" not in away
    assert "Authorization" not in last and "X-Api-Key" not in last


def test_userinfo_in_location_is_not_sent(pages: Any, proxy: Any) -> None:
    there = f"http://me:pw@127.0.0.1:{proxy.server_port}/end?by=a@b"
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location=there)
    response = haul.get(f"{pages.url}/away")
    assert response.url == there.replace("me:pw@", "") and "Authorization" not in dict(proxy.heads[0][1])
    # The user of the first URL is used for its origin.
    pages.routes["/on"] = lambda handler: handler.answer(b"", 302, Location="/end")
    pages.heads.clear()
    haul.get(f"{pages.url}/on".replace("//", "//you:pw@"))
    assert ["Authorization" in dict(fields) for _, fields in pages.heads] == [True, True]


def test_file_is_rewound_after_a_307(pages: Any) -> None:
    pages.routes["/307"] = lambda handler: handler.answer(b"", 307, Location="/to")
    body = io.BytesIO(b"skipped, the body")
    body.seek(9)
    assert haul.post(f"{pages.url}/307", data=body).status_code == 200
    assert pages.bodies == [b"the body", b"the body"]
    with pytest.raises(haul.exceptions.UnrewindableBodyError):

        class Once(io.RawIOBase):
            left = [b"x"]

            def tell(self) -> int:
                raise OSError

            def __iter__(self) -> Any:
                return iter(self.left)

            def read(self, size: int = -1) -> bytes:
                return self.left.pop() if self.left else b""

        haul.post(f"{pages.url}/307", data=Once())


def test_generator_is_never_sent_twice(pages: Any) -> None:
    class Readable:
        left = [b"x"]

        def read(self, size: int = -1) -> bytes:
            return self.left.pop() if self.left else b""

    class Anew:
        def __iter__(self) -> Any:
            return iter([b"x"])

    pages.routes["/307"] = lambda handler: handler.answer(b"", 307, Location="/to")
    pages.routes["/303"] = lambda handler: handler.answer(b"", 303, Location="/to")
    for body in (iter([b"x"]), (piece for piece in [b"x"]), Readable()):
        with pytest.raises(haul.exceptions.UnrewindableBodyError):
            haul.put(f"{pages.url}/307", data=body)
    assert pages.bodies == [b"x"] * 3, "no empty one in its place"
    assert haul.put(f"{pages.url}/307", data=Anew()).status_code == 200 and pages.bodies[-2:] == [b"x", b"x"]
    assert haul.put(f"{pages.url}/303", data=iter([b"y"])).request.method == "GET" and pages.bodies[-2:] == [b"y", b""]


def test_empty_location_is_no_redirect(pages: Any) -> None:
    pages.routes["/empty"] = lambda handler: handler.answer(b"here", 302, Location="")
    response = haul.get(f"{pages.url}/empty")
    assert response.status_code == 302 and response.content == b"here" and response.history == []
    assert haul.get(f"{pages.url}/empty", allow_redirects=False).next is None


def test_location_without_host_stays_with_the_origin(pages: Any) -> None:
    pages.routes["/d/e"] = lambda handler: handler.answer(b"", 302, Location=location)
    for session in (requests.Session(), haul.Session()):
        for location in ("http:/x?y=1", "HTTP:/x?y=1"):
            assert session.get(pages.url + "/d/e").url == pages.url + "/x?y=1"
        for location, refusals in (
            ("mailto:x", ("InvalidSchema",)), ("x:/y", ("InvalidSchema",)), ("https:/x", ("InvalidURL", "LocationValueError")),
        ):  # fmt: skip
            with pytest.raises(ValueError) as refused:
                session.get(pages.url + "/d/e")
            assert type(refused.value).__name__ in refusals
    for location, path in (("http:x", "/d/x"), ("http:?q", "/d/e?q"), ("http:", "/d/e")):
        after = haul.get(pages.url + "/d/e", allow_redirects=False).next
        assert after is not None and after.url == pages.url + path


def test_resolve_redirects_follows_by_hand(pages: Any) -> None:
    pages.routes["/away"] = lambda handler: handler.answer(b"x" * 100_000, 302, Location="/there")
    session = haul.Session()
    response = session.get(pages.url + "/away", allow_redirects=False, stream=True)
    next(response.iter_content(10))
    (after,) = session.resolve_redirects(response, response.request)
    assert after.text == "page /there"  # type: ignore[union-attr]
    made = haul.Response()
    made.status_code, made.headers = 302, {"location": "/made"}  # type: ignore[assignment]
    assert session.get_redirect_target(made) == "/made"


def test_endless_body_of_a_redirect_is_dropped(pages: Any) -> None:
    ended = threading.Event()

    def endless(handler: Any) -> None:
        handler.send_response(302)
        handler.send_header("Location", "/end")
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            ended.set()

    pages.routes["/endless"] = endless
    with haul.get(f"{pages.url}/endless", stream=True) as response:
        assert response.content == b"page /end"
    assert ended.wait(20)
    ended.clear()

    async def run() -> bytes:
        async with haul.AsyncSession() as session:
            response = await session.get(f"{pages.url}/endless", stream=True)
            return await response.aread()

    assert asyncio.run(run()) == b"page /end"
    assert ended.wait(20)
    pages.routes["/short"] = lambda handler: handler.answer(b"moved", 302, Location="/end")
    with haul.get(f"{pages.url}/short", stream=True) as response:
        assert response.history[0].content == b"moved"


@pytest.mark.parametrize("location", ["com.example.app://cb?code=1", "http://h:99999/", "http://[::1/"])
def test_unfollowed_redirect_may_lead_anywhere(location: str, pages: Any) -> None:
    pages.routes["/auth"] = lambda handler: handler.answer(b"", 302, Location=location)
    url = f"{pages.url}/auth"

    async def get() -> list[Any]:
        async with haul.AsyncSession() as session, haul.AsyncClient() as client:
            return [
                await session.get(url, allow_redirects=False),
                await session.get(url, allow_redirects=False, stream=True),
                await client.get(url),
            ]

    with haul.Session() as session, haul.Client() as client:
        responses: list[Any] = [
            session.get(url, allow_redirects=False), session.get(url, allow_redirects=False, stream=True), session.head(url), client.get(url),
        ]  # fmt: skip
    for response in (*responses, *asyncio.run(get())):
        assert response.status_code == 302 and response.headers["Location"] == location
        with pytest.raises((haul.exceptions.InvalidSchema, haul.exceptions.InvalidURL)):
            response.next  # noqa: B018 - the property raises
    with pytest.raises(haul.RequestException):
        haul.get(url)


def test_mounted_function_redirects_in_another_scheme() -> None:
    def answer(request: haul.PreparedRequest) -> haul.Response:
        if request.url == "mock://h/a":
            return haul.testing.response(302, headers={"Location": "/b"})
        return haul.testing.response(content="b")

    async def get() -> Any:
        async with haul.AsyncSession() as session:
            session.mount("mock://", answer)
            return await session.get("mock://h/a")

    assert asyncio.run(get()).url == "mock://h/b"


def test_equal_location_fields_are_one_target(pages: Any, raw: Any) -> None:
    url = raw(f"HTTP/1.1 302 Found\r\nLocation: {pages.url}/to\r\nLocation: {pages.url}/to\r\nContent-Length: 0\r\n\r\n".encode()).url
    assert haul.get(url).url == f"{pages.url}/to"
    assert haul.get(url, stream=True).url == f"{pages.url}/to"
    (result,) = haul.fetch_many([url])
    assert result.url == f"{pages.url}/to"


@pytest.mark.parametrize("values", [("", "/to"), ("/to", ""), ("/to", "", "/to")])
def test_empty_location_fields_do_not_count(pages: Any, raw: Any, values: tuple[str, ...]) -> None:
    lines = "".join(f"Location: {value and pages.url + value}\r\n" for value in values)
    url = raw(f"HTTP/1.1 302 Found\r\n{lines}Content-Length: 0\r\n\r\n".encode()).url
    assert haul.get(url).url == haul.get(url, stream=True).url == f"{pages.url}/to"
    assert [result.url for result in haul.fetch_many([url])] == [f"{pages.url}/to"]


@pytest.mark.parametrize("settings", [{}, {"stream": True}, {"allow_redirects": False}])
def test_location_fields_that_differ_are_an_error(pages: Any, raw: Any, settings: Any) -> None:
    url = raw(b"HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n").url
    for session in (haul.Session(), make_adapter_session()):
        with pytest.raises((haul.exceptions.InvalidHeader, requests.exceptions.InvalidHeader), match="Location fields that differ"):
            session.get(url, **settings)
    (result,) = haul.fetch_many([url])
    assert isinstance(result.error, haul.exceptions.InvalidHeader)
