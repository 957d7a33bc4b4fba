"""The requests that users of pytest-httpbin make, by sessions of haul."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest

import haul
from haul.auth import HTTPDigestAuth

pytest.importorskip("pytest_httpbin")


@pytest.fixture
def session() -> haul.Session:
    return haul.Session(timeout=20)


def test_query_headers_and_user_agent_arrive(httpbin: Any, session: haul.Session) -> None:
    got = session.get(httpbin.url + "/get", params={"a": ["1", "2"], "b": "ä"}, headers={"X-Own": "y"}).json()
    assert got["args"] == {"a": ["1", "2"], "b": "ä"} and got["headers"]["X-Own"] == "y"
    assert session.get(httpbin.url + "/user-agent").json()["user-agent"].startswith("haul/")


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_bodies_arrive(httpbin: Any, session: haul.Session, method: str) -> None:
    url = f"{httpbin.url}/{method}"
    assert session.request(method.upper(), url, data={"a": "b"}).json()["form"] == {"a": "b"}
    assert session.request(method.upper(), url, json={"a": [None]}).json()["json"] == {"a": [None]}
    assert session.request(method.upper(), url, data=b"\x01x").json()["data"] == "\x01x"
    files = {"f": ("name.txt", io.BytesIO(b"content"), "text/plain")}
    assert session.request(method.upper(), url, files=files).json()["files"] == {"f": "content"}


@pytest.mark.parametrize("status", [200, 204, 404, 418, 500, 503])
def test_statuses_are_returned(httpbin: Any, session: haul.Session, status: int) -> None:
    got = session.get(f"{httpbin.url}/status/{status}")
    assert got.status_code == status and got.ok == (status < 400)
    if status >= 400:
        with pytest.raises(haul.HTTPError):
            got.raise_for_status()


@pytest.mark.parametrize("path", ["/redirect/3", "/relative-redirect/3", "/absolute-redirect/3"])
def test_redirects_are_followed(httpbin: Any, session: haul.Session, path: str) -> None:
    got = session.get(httpbin.url + path)
    assert got.url == httpbin.url + "/get" and [hop.status_code for hop in got.history] == [302] * 3
    session.max_redirects = 2
    with pytest.raises(haul.TooManyRedirects):
        session.get(httpbin.url + path)


def test_redirect_keeps_or_changes_the_method(httpbin: Any, session: haul.Session) -> None:
    where = f"{httpbin.url}/redirect-to"
    kept = session.post(where, params={"url": "/post", "status_code": "307"}, data={"a": "b"})
    assert kept.json()["form"] == {"a": "b"}
    assert session.post(where, params={"url": "/get", "status_code": "303"}, data={"a": "b"}).request.method == "GET"


def test_cookies_are_kept(httpbin: Any, session: haul.Session) -> None:
    session.get(httpbin.url + "/cookies/set", params={"a": "b"})
    assert session.get(httpbin.url + "/cookies").json() == {"cookies": {"a": "b"}}
    session.get(httpbin.url + "/cookies/delete", params={"a": ""})
    assert session.get(httpbin.url + "/cookies", cookies={"c": "d"}).json() == {"cookies": {"c": "d"}}


@pytest.mark.parametrize("coding", ["gzip", "deflate", "brotli"])
def test_bodies_are_decoded(httpbin: Any, session: haul.Session, coding: str) -> None:
    assert session.get(f"{httpbin.url}/{coding}").json()["method"] == "GET"


def test_credentials_are_sent(httpbin: Any, session: haul.Session) -> None:
    assert session.get(httpbin.url + "/basic-auth/u/p").status_code == 401
    assert session.get(httpbin.url + "/basic-auth/u/p", auth=("u", "p")).json()["user"] == "u"
    assert session.get(httpbin.url.replace("://", "://u:p@") + "/basic-auth/u/p").ok
    assert session.get(httpbin.url + "/hidden-basic-auth/u/p", auth=("u", "wrong")).status_code == 404
    assert session.get(httpbin.url + "/bearer", headers={"Authorization": "Bearer t"}).json()["token"] == "t"
    assert session.get(httpbin.url + "/digest-auth/auth/u/p/MD5", auth=HTTPDigestAuth("u", "p")).ok


def test_bodies_are_streamed(httpbin: Any, session: haul.Session) -> None:
    with session.stream("GET", httpbin.url + "/stream/5") as streamed:
        assert len(list(streamed.iter_lines())) == 5
    with session.stream("GET", httpbin.url + "/stream-bytes/5000?seed=1") as streamed:
        assert sum(len(piece) for piece in streamed.iter_content(1000)) == 5000
    assert len(session.get(httpbin.url + "/range/100", headers={"Range": "bytes=10-19"}).content) == 10
    assert len(session.get(httpbin.url + "/drip?numbytes=5&duration=0").content) == 5


def test_conditions_and_encodings(httpbin: Any, session: haul.Session) -> None:
    assert session.get(httpbin.url + "/etag/abc", headers={"If-None-Match": "abc"}).status_code == 304
    assert session.get(httpbin.url + "/cache", headers={"If-Modified-Since": "x"}).status_code == 304
    assert "∮" in session.get(httpbin.url + "/encoding/utf8").text
    assert session.get(httpbin.url + "/response-headers?X-Own=a").headers["x-own"] == "a"
    links = session.get(httpbin.url + "/links/3/0").text
    assert haul.select(links, "a@href", url=httpbin.url) == [f"{httpbin.url}/links/3/1", f"{httpbin.url}/links/3/2"]


def test_delay_is_a_timeout(httpbin: Any, session: haul.Session) -> None:
    with pytest.raises(haul.ReadTimeout):
        session.get(httpbin.url + "/delay/1", timeout=(5, 0.05))


def test_certificate_of_httpbin_is_verified(httpbin_secure: Any, session: haul.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_httpbin import certs

    assert session.get(httpbin_secure.url + "/get", verify=certs.where()).ok
    assert session.get(httpbin_secure.url + "/get", verify=False).ok
    with pytest.raises(haul.exceptions.SSLError):
        session.get(httpbin_secure.url + "/get", verify=True)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certs.where())
    assert session.get(httpbin_secure.url + "/get").json()["url"].startswith("https://")


def test_many_and_asynchronous_requests_succeed(httpbin: Any) -> None:
    urls = [f"{httpbin.url}/get?i={i}" for i in range(20)]
    assert [result.json()["args"]["i"] for result in haul.fetch_many(urls)] == [str(i) for i in range(20)]

    async def main() -> list[haul.AsyncResponse]:
        async with haul.AsyncSession() as session:
            return await asyncio.gather(*(session.get(url) for url in urls))

    assert [got.json()["args"]["i"] for got in asyncio.run(main())] == [str(i) for i in range(20)]


def test_client_with_a_base_url_reaches_httpbin(httpbin: Any) -> None:
    with haul.Client(base_url=httpbin.url, follow_redirects=True) as client:
        assert client.get("/redirect/1").raise_for_status().json()["url"].endswith("/get")
        assert client.post("/post", content=b"x").json()["data"] == "x"
