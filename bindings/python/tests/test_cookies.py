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
