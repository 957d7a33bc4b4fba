"""Cookies of sessions, requests and redirects."""

from __future__ import annotations

import http.cookiejar
import pickle
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import haul


def test_cookies_of_responses_are_stored_and_sent(httpbin: Any) -> None:
    session = haul.Session()
    response = session.get(httpbin.url + "/cookies/set?sid=31&other=1")
    assert response.json()["cookies"] == {"sid": "31", "other": "1"}
    assert response.history[0].cookies.get_dict() == {"sid": "31", "other": "1"}
    assert session.cookies["sid"] == "31" and "other" in session.cookies
    session.cookies.set("mine", "x")
    response = session.get(httpbin.url + "/cookies", cookies={"once": "y"})
    assert response.json()["cookies"] == {"sid": "31", "other": "1", "mine": "x", "once": "y"}
    assert response.request.headers["Cookie"] == "sid=31; other=1; mine=x; once=y"
    assert session.get(httpbin.url + "/cookies").json()["cookies"] == {"sid": "31", "other": "1", "mine": "x"}
    del session.cookies["sid"]
    again = pickle.loads(pickle.dumps(session))
    assert again.get(httpbin.url + "/cookies").json()["cookies"] == {"other": "1", "mine": "x"}


def test_cookies_are_saved_to_and_loaded_from_files(httpbin: Any, tmp_path: Path) -> None:
    file = tmp_path / "cookies.txt"
    session = haul.Session()
    session.cookies.load(file)
    session.get(httpbin.url + "/cookies/set?sid=31")
    session.cookies.save(file)
    assert file.stat().st_mode & 0o777 == 0o600
    other = haul.Session()
    other.cookies.load(str(file))
    assert other.get(httpbin.url + "/cookies").json()["cookies"] == {"sid": "31"}
    with pytest.raises(OSError, match="missing"):
        other.cookies.save(tmp_path / "missing" / "cookies.txt")


def test_cookies_can_be_copied_to_standard_jars(tmp_path: Path) -> None:
    jar = haul.cookies.CookieJar()
    jar.set("sub", "1", domain=".host.example", expires=4102444800)
    jar.set("own", "2", domain="host.example", rest={"HttpOnly": None})
    standard = http.cookiejar.MozillaCookieJar(tmp_path / "cookies.txt")
    for cookie in jar:
        standard.set_cookie(cookie)
    standard.save(ignore_discard=True)
    again = haul.cookies.CookieJar()
    again.load(tmp_path / "cookies.txt")
    assert sorted(again, key=str) == sorted(jar, key=str)
    request = urllib.request.Request("http://host.example/")
    standard.add_cookie_header(request)
    assert request.get_header("Cookie") == "sub=1; own=2"


@pytest.mark.parametrize("kind", ["haul", "requests"])
def test_cookies_of_a_jar_go_to_their_domain(pages: Any, kind: str) -> None:
    there = pages.url.replace("localhost", "127.0.0.1")
    pages.routes["/on"] = lambda handler: handler.answer(b"", 302, Location="/away")
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location=f"{there}/end")
    jar: Any = haul.cookies.CookieJar() if kind == "haul" else pytest.importorskip("requests").cookies.RequestsCookieJar()
    jar.set("another", "1", domain="example.com")
    jar.set("address", "2", domain="127.0.0.1")
    jar.set("any", "3")
    haul.get(f"{pages.url}/on", cookies=jar)
    assert [dict(fields).get("Cookie") for _, fields in pages.heads] == ["any=3", "any=3", "address=2"]
    pages.heads.clear()
    haul.get(f"{there}/end", cookies=jar)
    assert dict(pages.heads[0][1])["Cookie"] == "address=2; any=3"


def test_server_cookie_replaces_that_of_the_request(pages: Any) -> None:
    def sets(handler: Any) -> None:
        handler.answer(b"", 302, Location="/end", Set_Cookie="given=new")

    pages.routes["/sets"] = sets
    there = pages.url.replace("localhost", "127.0.0.1")
    jar = haul.cookies.CookieJar()
    jar.set("given", "old", domain="127.0.0.1")
    session = haul.Session()
    session.cookies.set("loose", "the session's")
    jar.set("loose", "its own")
    session.get(f"{there}/sets", cookies=jar)
    assert [dict(fields)["Cookie"] for _, fields in pages.heads] == ["given=old; loose=its own", "given=new; loose=its own"]


def sent_cookies(pages: Any) -> list[str | None]:
    return [dict(fields).get("Cookie") for _, fields in pages.heads]


def by_session(session: haul.Session, url: str, **kwargs: Any) -> None:
    session.get(url, **kwargs)


def by_stream(session: haul.Session, url: str, **kwargs: Any) -> None:
    session.get(url, stream=True, **kwargs).close()


def by_many(session: haul.Session, url: str, **kwargs: Any) -> None:
    (result,) = haul.fetch_many([{"url": url, **kwargs}], session=session)
    result.raise_for_status()


def by_urls(session: haul.Session, url: str) -> None:
    (result,) = haul.fetch_many([url], session=session)
    result.raise_for_status()


def by_loop(session: haul.Session, url: str, **kwargs: Any) -> None:
    import asyncio

    async def get() -> None:
        async with haul.AsyncSession() as other:
            other.headers, other.cookies = session.headers, session.cookies
            await other.get(url, **kwargs)

    asyncio.run(get())


SENDERS = [by_session, by_stream, by_many, by_urls, by_loop]


@pytest.mark.parametrize("send", SENDERS)
def test_session_cookie_field_replaces_jar_cookies(send: Any, pages: Any) -> None:
    session = haul.Session()
    session.headers["Cookie"] = "login=abc"
    session.cookies.set("srv", "1", domain="localhost")
    session.cookies.set("everywhere", "2")
    send(session, f"{pages.url}/a")
    assert sent_cookies(pages) == ["login=abc"]


def test_session_cookie_field_can_be_removed(pages: Any) -> None:
    session = haul.Session()
    session.headers["Cookie"] = "login=abc"
    session.cookies.set("srv", "1", domain="localhost")
    session.get(f"{pages.url}/", headers={"Cookie": None}, cookies={"c": "1"})
    assert sent_cookies(pages) == ["srv=1; c=1"]


@pytest.mark.parametrize("send", SENDERS)
def test_cookie_without_domain_obeys_its_attributes(send: Any, pages: Any) -> None:
    session = haul.Session()
    session.cookies.set("token", "x", secure=True)
    session.cookies.set("admin", "1", path="/admin")
    session.cookies.set("past", "1", expires=1)
    session.cookies.set("older", "1", expires=-5)
    session.cookies.set("later", "1", expires=4102444800)
    session.cookies = pickle.loads(pickle.dumps(session.cookies)).copy()
    for path in ("/x", "/admin", "/admin/a", "/administrator"):
        send(session, pages.url + path)
    assert sent_cookies(pages) == ["later=1", "admin=1; later=1", "admin=1; later=1", "later=1"]


def test_cookies_without_domain_differ_by_path() -> None:
    jar = haul.cookies.CookieJar()
    jar.set("a", "1")
    jar.set("a", "2", path="/x")
    assert jar.get_cookie_header("https://h.example/x/y") == "a=2; a=1"
    assert jar.get("a", path="/x") == "2" and jar.list_paths() == ["/", "/x"]
    jar.set("a", None, path="/x")
    assert jar.get_dict() == {"a": "1"}


def test_cookie_with_past_expiry_is_dropped() -> None:
    jar = haul.cookies.CookieJar()
    jar.set("a", "1", domain="h.example", expires=-5)
    assert jar.get_cookie_header("http://h.example/") is None


@pytest.mark.parametrize("send", [by_session, by_stream, by_many, by_urls, by_loop])
def test_cookies_of_redirects_are_stored_and_sent(send: Any, pages: Any) -> None:
    pages.routes["/login"] = lambda handler: handler.answer(b"", 302, Location="/in", Set_Cookie="sid=31")
    session = haul.Session()
    session.cookies.set("mine", "1")
    session.cookies.set("known", "2", domain="localhost")
    send(session, f"{pages.url}/login")
    assert sent_cookies(pages) == ["known=2; mine=1", "known=2; sid=31; mine=1"]
    assert session.cookies["sid"] == "31"


def test_cookies_of_a_request_accompany_those_of_the_jar(pages: Any) -> None:
    pages.routes["/login"] = lambda handler: handler.answer(b"", 302, Location="/in", Set_Cookie="sid=31")
    session = haul.Session()
    session.cookies.set("known", "2", domain="localhost")
    by_many(session, f"{pages.url}/login", cookies={"c": "1"})
    by_many(session, f"{pages.url}/own", headers={"Cookie": "own=1"})
    assert sent_cookies(pages) == ["known=2; c=1", "known=2; sid=31; c=1", "own=1"]


def test_cookies_of_many_do_not_follow_to_other_origins(pages: Any) -> None:
    other = pages.url.replace("localhost", "127.0.0.1")
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location=f"{other}/there")
    session = haul.Session()
    session.cookies.set("mine", "1")
    session.cookies.set("known", "2", domain="localhost")
    by_many(session, f"{pages.url}/away", cookies={"c": "1"})
    by_urls(session, f"{pages.url}/away")
    assert sent_cookies(pages) == ["known=2; mine=1; c=1", None, "known=2; mine=1", None]


def test_cookie_of_an_item_replaces_the_sessions(pages: Any) -> None:
    session = haul.Session()
    session.cookies.set("sid", "old", domain="localhost")
    own = haul.cookies.CookieJar()
    own.set("sid", "new", domain="localhost")
    session.get(pages.url, cookies=own)
    list(haul.fetch_many([{"url": pages.url, "cookies": own}], session=session))
    assert [dict(fields)["Cookie"] for _, fields in pages.heads] == ["sid=new"] * 2
