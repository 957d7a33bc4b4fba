"""In whose name requests are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import haul
from haul.auth import HTTPBasicAuth, HTTPDigestAuth
from haul.structures import CaseInsensitiveDict


def test_authentication(httpbin: Any) -> None:
    session = haul.Session()
    url = httpbin.url + "/basic-auth/user/pass%20word"
    assert session.get(url).status_code == 401
    assert session.get(url, auth=("user", "pass word")).status_code == 200
    assert session.get(url, auth=HTTPBasicAuth("user", "pass word")).status_code == 200
    assert session.get(url.replace("://", "://user:pass%20word@")).status_code == 200
    for algorithm in ("MD5", "SHA-256"):
        digest = f"{httpbin.url}/digest-auth/auth/user/secret/{algorithm}"
        assert session.get(digest, auth=HTTPDigestAuth("user", "secret")).status_code == 200, algorithm
        assert session.get(digest, auth=HTTPDigestAuth("user", "wrong")).status_code == 401

    def token(request: Any) -> Any:
        request.headers["Authorization"] = "Bearer tok"
        return request

    assert session.get(httpbin.url + "/bearer", auth=token).json()["token"] == "tok"


def test_an_auth_that_answers_by_the_responses_connection(pages: Any, httpbin: Any) -> None:
    import requests

    session = haul.Session()
    digest = requests.auth.HTTPDigestAuth("user", "secret")
    for _ in range(2):
        response = session.get(httpbin.url + "/digest-auth/auth/user/secret", auth=digest)
        assert response.status_code == 200
        assert [one.status_code for one in response.history] in ([401], [])
        assert response.request.headers["Authorization"].startswith("Digest ")

    def once(handler: Any) -> None:
        fields = CaseInsensitiveDict(handler.headers.items())
        if fields.get("authorization") == "Ours" and fields.get("cookie") == "step=1":
            handler.answer(b"", 302, Location="/x")
        else:
            handler.answer(b"who?", 401, Set_Cookie="step=1")

    def answer(response: Any, **kwargs: Any) -> Any:
        if response.status_code != 401:
            return None
        response.content  # noqa: B018
        again = response.request.copy()
        again.headers["Authorization"] = "Ours"
        last = response.connection.send(again, **kwargs)
        last.history.append(response)
        last.request = again
        return last

    def ours(request: Any) -> Any:
        request.register_hook("response", answer)
        return request

    pages.routes["/once"] = once
    for stream in (False, True):
        response = haul.Session().get(f"{pages.url}/once", auth=ours, stream=stream)
        assert response.text == "page /x" and [one.status_code for one in response.history] == [302]
        assert [one.status_code for one in response.history[0].history] in ([401], [])


def test_netrc_of_a_host_on_the_way_does_not_go_back_to_the_first(
    pages: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = pages.url.replace("localhost", "127.0.0.1")
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password secret")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location=f"{other}/back")
    pages.routes["/back"] = lambda handler: handler.answer(b"", 302, Location=f"{pages.url}/x")
    haul.get(f"{pages.url}/away")
    assert ["Authorization" in dict(fields) for _, fields in pages.heads] == [False, True, False]


def test_netrc(httpbin: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "nr").write_text("machine 127.0.0.1 login user password pass\n")
    url = httpbin.url.replace("localhost", "127.0.0.1") + "/basic-auth/user/pass"
    session = haul.Session()
    assert session.get(url).status_code == 401
    monkeypatch.setenv("NETRC", str(tmp_path / "nr"))
    assert session.get(url).status_code == 200
    # No user of the URL's own.
    assert session.get(url + "?by=a@b").status_code == 200
    session.trust_env = False
    assert session.get(url).status_code == 401


def test_what_may_have_logged_a_connection_in_is_the_next_calls_of_nobody(pages: Any) -> None:
    """NTLM and Negotiate do that. Where a request is what is logged in, the next call may have its connection."""

    def ours(request: Any) -> Any:
        request.headers["Authorization"] = "Negotiate abc"
        return request

    haul.get(pages.url)
    for auth, connections in ((("user", "pass"), 1), (HTTPBasicAuth("user", "pass"), 1), (ours, 2), (None, 2)):
        haul.get(pages.url, auth=auth)
        assert pages.connections == connections
