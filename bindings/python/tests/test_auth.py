"""Authentication: Basic, Digest, netrc, callables."""

from __future__ import annotations

import asyncio
import base64
import io
import itertools
from pathlib import Path
from typing import Any

import pytest

import haul
from haul.auth import HTTPBasicAuth, HTTPDigestAuth
from haul.structures import CaseInsensitiveDict


@pytest.mark.parametrize("face", ["Session", "AsyncSession", "fetch_many"])
def test_digest_with_a_stale_nonce_rewinds_a_file(face: str, pages: Any) -> None:
    asked = itertools.count()

    def challenge(handler: Any) -> None:
        number = next(asked)
        authorization = handler.headers.get("Authorization", "")
        if number >= 3 and f'nonce="n{number - 1}"' in authorization:
            return handler.answer(b"stored")
        stale = ", stale=true" if "Digest" in authorization else ""
        handler.answer(b"", 401, WWW_Authenticate=f'Digest realm="r", qop="auth", nonce="n{number}"{stale}')

    pages.routes["/digest"] = challenge
    auth, url = haul.auth.HTTPDigestAuth("me", "pw"), f"{pages.url}/digest"
    file = io.BytesIO(b"--" + b"content" * 30_000)
    file.seek(2)
    if face == "Session":
        response = haul.put(url, data=file, auth=auth)
    elif face == "fetch_many":
        response = next(haul.fetch_many([{"method": "PUT", "url": url, "data": file, "auth": auth}])).unwrap()
    else:

        async def of_loop() -> Any:
            async with haul.AsyncSession() as session:
                return await session.put(url, data=file, auth=auth)

        response = asyncio.run(of_loop())
    assert response.text == "stored" and pages.bodies[-1] == b"content" * 30_000


def test_digest_never_sends_a_generator_twice(pages: Any) -> None:
    pages.routes["/digest"] = lambda handler: handler.answer(
        b"", 401, WWW_Authenticate=f'Digest realm="r", qop="auth", nonce="n{len(pages.bodies)}", stale=true'
    )
    auth = haul.auth.HTTPDigestAuth("me", "pw")
    with pytest.raises(haul.RequestException):
        haul.put(f"{pages.url}/digest", data=iter([b"once"]), auth=auth)
    assert pages.bodies.count(b"once") <= 1 and set(pages.bodies[1:]) <= {b"once"}


def test_netrc_is_not_used_after_an_https_downgrade(
    pages: Any, secure_pages: Any, bundle: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "nr").write_text("machine localhost login user password pass\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "nr"))
    secure_pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location=f"{pages.url}/end")
    assert haul.get(f"{secure_pages.url}/away", verify=bundle).ok
    assert "Authorization" in dict(secure_pages.heads[0][1]) and "Authorization" not in dict(pages.heads[0][1])
    # A redirect back to the first http origin keeps its netrc login.
    pages.routes["/to-tls"] = lambda handler: handler.answer(b"", 302, Location=f"{secure_pages.url}/away")
    assert haul.get(f"{pages.url}/to-tls", verify=bundle).ok
    assert ["Authorization" in dict(fields) for _, fields in pages.heads[1:]] == [True, True]


def test_basic_digest_and_callable_auth_work(httpbin: Any) -> None:
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


def test_auth_may_send_by_the_response_connection(pages: Any, httpbin: Any) -> None:
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


def test_netrc_of_a_redirect_target_stays_with_it(
    pages: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = pages.url.replace("localhost", "127.0.0.1")
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password secret")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location=f"{other}/back")
    pages.routes["/back"] = lambda handler: handler.answer(b"", 302, Location=f"{pages.url}/x")
    haul.get(f"{pages.url}/away")
    assert ["Authorization" in dict(fields) for _, fields in pages.heads] == [False, True, False]


def test_netrc_is_used_unless_trust_env_is_false(httpbin: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "nr").write_text("machine 127.0.0.1 login user password pass\n")
    url = httpbin.url.replace("localhost", "127.0.0.1") + "/basic-auth/user/pass"
    session = haul.Session()
    assert session.get(url).status_code == 401
    monkeypatch.setenv("NETRC", str(tmp_path / "nr"))
    assert session.get(url).status_code == 200
    # The `@` in the query is not a user.
    assert session.get(url + "?by=a@b").status_code == 200
    session.trust_env = False
    assert session.get(url).status_code == 401


def test_connection_of_unknown_auth_is_not_shared(pages: Any) -> None:
    """NTLM and Negotiate authenticate the connection; Basic authenticates each request."""

    def ours(request: Any) -> Any:
        request.headers["Authorization"] = "Negotiate abc"
        return request

    haul.get(pages.url)
    for auth, connections in ((("user", "pass"), 1), (HTTPBasicAuth("user", "pass"), 1), (ours, 2), (None, 2)):
        haul.get(pages.url, auth=auth)
        assert pages.connections == connections


def test_netrc_file_leaves_errors_of_invalid_urls(tmp_path: Any) -> None:
    (tmp_path / ".netrc").write_text("machine localhost login a password b\n")
    for url, kind in (("example.com/x", haul.exceptions.MissingSchema), ("http://h:99999/", haul.exceptions.InvalidURL)):
        with pytest.raises(kind):
            haul.get(url)
        with haul.Client() as client, pytest.raises(kind):
            client.get(url)


@pytest.mark.parametrize(
    "user, password, sent",
    [("ü", "é", b"\xfc:\xe9"), ("ü", "€", "ü:€".encode()), ("€", "ü", "€:ü".encode()), (b"\xfc", "€", b"\xfc:" + "€".encode()), (1, 2, b"1:2")],
)
def test_basic_credentials_have_one_encoding(user: Any, password: Any, sent: bytes) -> None:
    assert base64.b64decode(haul.auth.basic_value(user, password).removeprefix("Basic ")) == sent
