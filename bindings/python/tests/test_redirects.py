"""Where redirects lead, and what goes along."""

from __future__ import annotations

import io
from typing import Any

import pytest

import haul
from haul.structures import CaseInsensitiveDict


def test_redirects_and_their_history(httpbin: Any) -> None:
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


def test_methods_behind_redirects(pages: Any) -> None:
    for status in (301, 302, 303, 307, 308):
        pages.routes[f"/{status}"] = lambda handler, status=status: handler.answer(b"", status, Location="/to")
    seen = {}
    for status in (301, 302, 303, 307, 308):
        for method in ("POST", "PUT", "HEAD"):
            response = haul.request(method, f"{pages.url}/{status}", data=b"body" if method != "HEAD" else None)
            seen[status, method] = response.request.method, pages.bodies[-1]
    assert seen[301, "POST"] == ("GET", b"") and seen[301, "PUT"] == ("PUT", b"")
    assert seen[302, "POST"] == seen[302, "PUT"] == seen[303, "POST"] == seen[303, "PUT"] == ("GET", b"")
    assert seen[307, "POST"] == seen[308, "POST"] == ("POST", b"body")
    assert {seen[status, "HEAD"][0] for status in (301, 302, 303, 307, 308)} == {"HEAD"}


def test_locations_beyond_ascii(raw: Any) -> None:
    for location, expected in (
        ("/ü?q=ö".encode(), "%C3%BC?q=%C3%B6"),
        ("/%C3%BC".encode(), "%C3%BC"),
        (b"/\xfc", "%C3%BC"),
    ):
        server = raw(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + location + b"\r\n\r\n")
        response = haul.get(server.url, allow_redirects=False)
        assert response.next is not None and response.next.url == server.url + expected


def test_secrets_stay_with_the_first_origin(pages: Any, proxy: Any) -> None:
    there = f"http://127.0.0.1:{proxy.server_port}"
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location=f"{there}/back")
    proxy.routes["/back"] = lambda handler: handler.answer(b"", 302, Location=f"{pages.url}/end")
    session = haul.Session()
    session.cookies.set("loose", "1")
    response = session.get(f"{pages.url}/away", auth=("me", "pw"), headers={"X-Keep": "1"}, cookies={"once": "2"})
    assert response.text == "page /end" and len(response.history) == 2
    first, away, last = (CaseInsensitiveDict(fields) for fields in (pages.heads[0][1], proxy.heads[0][1], pages.heads[1][1]))
    assert first["Authorization"].startswith("Basic ") and first["Cookie"] == "loose=1; once=2"
    assert "Authorization" not in away and "Cookie" not in away and away["X-Keep"] == "1"
    assert "Authorization" not in last


def test_a_body_is_rewound_for_a_307(pages: Any) -> None:
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


def test_an_empty_location_leads_nowhere(pages: Any) -> None:
    pages.routes["/empty"] = lambda handler: handler.answer(b"here", 302, Location="")
    response = haul.get(f"{pages.url}/empty")
    assert response.status_code == 302 and response.content == b"here" and response.history == []
    assert haul.get(f"{pages.url}/empty", allow_redirects=False).next is None


def test_a_redirect_is_followed_by_hand(pages: Any) -> None:
    pages.routes["/away"] = lambda handler: handler.answer(b"x" * 100_000, 302, Location="/there")
    session = haul.Session()
    response = session.get(pages.url + "/away", allow_redirects=False, stream=True)
    next(response.iter_content(10))
    (after,) = session.resolve_redirects(response, response.request)
    assert after.text == "page /there"  # type: ignore[union-attr]
    made = haul.Response()
    made.status_code, made.headers = 302, {"location": "/made"}  # type: ignore[assignment]
    assert session.get_redirect_target(made) == "/made"
