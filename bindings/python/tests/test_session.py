"""Sessions: connections, settings, hooks, subclasses."""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

import haul
from haul.structures import CaseInsensitiveDict


def test_sequential_requests_share_one_connection(pages: Any) -> None:
    with haul.Session() as session:
        for i in range(20):
            response = session.get(f"{pages.url}/{i}")
            assert (response.status_code, response.text, response.ok) == (200, f"page /{i}", True)
    assert pages.connections == 1


def test_each_http_method_has_a_function(pages: Any) -> None:
    with haul.Session() as session:
        for name in ("get", "post", "put", "patch", "delete", "options", "head"):
            response = getattr(session, name)(f"{pages.url}/x")
            assert response.status_code == 200
            assert response.request.method == name.upper()
        assert session.head(f"{pages.url}/x").content == b""
    lengths = [dict(fields).get("Content-Length") for _, fields in pages.heads]
    assert lengths == [None, "0", "0", "0", "0", "0", None, None]


def test_changed_settings_apply_to_the_next_request(pages: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def sent(session: haul.Session) -> tuple[str, CaseInsensitiveDict]:
        session.get(pages.url)
        path, fields = pages.heads[-1]
        return path, CaseInsensitiveDict(fields)

    def warm() -> haul.Session:
        """Returns a session that has sent requests without settings."""
        session = haul.Session()
        for _ in range(3):
            assert sent(session)[0] == "/"
        return session

    session = warm()
    session.headers["X-Ours"] = "yes"
    assert sent(session)[1]["x-ours"] == "yes"
    session.headers = {"X-Other": "yes"}
    fields = sent(session)[1]
    assert "x-ours" not in fields and fields["x-other"] == "yes"
    session.auth = ("user", "password")
    assert sent(session)[1]["authorization"].startswith("Basic ")
    session.auth = None
    assert "authorization" not in sent(session)[1]
    session.params["a"] = "1"
    assert sent(session)[0] == "/?a=1"
    session.params.clear()
    session.cookies["name"] = "value"
    assert sent(session)[1]["cookie"] == "name=value"

    seen: list[Any] = []
    session = warm()
    session.hooks["response"].append(lambda response, **_: seen.append(response))
    sent(session)
    assert len(seen) == 1
    session = warm()
    session.stream = True
    assert session.get(pages.url).raw.read(4) == b"page"
    session = warm()
    session.proxies["http"] = "http://127.0.0.1:1"
    with pytest.raises(haul.exceptions.ProxyError):
        session.get(pages.url)
    for name, url in (("verify", pages.url.replace("http", "https")), ("cert", pages.url)):
        session = warm()
        setattr(session, name, str(tmp_path / "none"))
        with pytest.raises(OSError, match="invalid path"):
            session.get(url)

    session = warm()
    for name in ("http_proxy", "ALL_PROXY"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "http://127.0.0.1:1")
            with pytest.raises(haul.exceptions.ProxyError):
                session.get(pages.url)
        assert sent(session)[0] == "/"
    with monkeypatch.context() as patch:
        patch.setenv("CURL_CA_BUNDLE", str(tmp_path / "none"))
        with pytest.raises(OSError, match="invalid path"):
            session.get(pages.url.replace("http", "https"))
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text("machine localhost login user password pass\n")
    monkeypatch.setenv("HOME", str(home))
    assert sent(session)[1]["authorization"].startswith("Basic ")
    session.trust_env = False
    assert "authorization" not in sent(session)[1]


def test_overridden_methods_of_a_subclass_are_called(pages: Any) -> None:
    called: list[str] = []

    class Ours(haul.Session):
        def send(self, request: Any, stream: Any = None, timeout: Any = None, **kwargs: Any) -> Any:
            called.append("send")
            return super().send(request, stream=stream, timeout=timeout, **kwargs)

    class Preparing(haul.Session):
        def prepare_request(self, request: Any) -> Any:
            prepared = super().prepare_request(request)
            prepared.headers["X-Ours"] = "yes"
            return prepared

    class Keeping(haul.Session):
        def rebuild_auth(self, request: Any, response: Any) -> None:
            called.append("rebuild_auth")

    class Trusting(haul.Session):
        def should_strip_auth(self, old_url: str, new_url: str) -> bool:
            called.append(f"{old_url} {new_url}")
            return False

    other = pages.url.replace("localhost", "127.0.0.1")
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location=f"{other}/x")
    response = Ours().get(f"{pages.url}/away", cookies={"a": "b"}, auth=("me", "pw"))
    assert called == ["send"] * 2 and [one.status_code for one in response.history] == [302]
    assert not {"Cookie", "Authorization"} & set(dict(pages.heads[-1][1]))
    for _ in range(2):
        Preparing().get(pages.url)
        assert dict(pages.heads[-1][1])["X-Ours"] == "yes"
    del called[:]
    for kind in (Keeping, Trusting):
        kind().get(f"{pages.url}/away", auth=("me", "pw"))
        assert dict(pages.heads[-1][1])["Authorization"].startswith("Basic ")
    assert called == ["rebuild_auth", f"{pages.url}/away {other}/x"]


def test_response_hooks_are_called_and_may_replace_responses(pages: Any) -> None:
    seen: list[Any] = []
    session = haul.Session()
    session.hooks["response"].append(lambda response, **kwargs: seen.append((response.url, kwargs["timeout"])))
    session.get(pages.url + "/x", timeout=3)
    assert seen == [(pages.url + "/x", 3)]
    changed = session.get(pages.url, hooks={"response": lambda response, **_: "instead"} and {"response": [_replace]})
    assert changed.status_code == 299


@pytest.mark.parametrize("kind", ["session", "async", "many", "listing"])
def test_response_hooks_get_all_settings(pages: Any, proxy: Any, kind: str, bundle: str) -> None:
    pages.routes["/from"] = lambda handler: handler.answer(b"", 302, Location="/to")
    seen: list[Any] = []
    session: Any = haul.AsyncSession() if kind == "async" else haul.Session()
    session.verify, session.cert, session.proxies, session.timeout = bundle, bundle, {"https": proxy.url}, 7
    session.hooks["response"].append(lambda response, **settings: seen.append(settings))

    async def send() -> None:
        async with session:
            await session.get(f"{pages.url}/from")
            await session.get(f"{pages.url}/to", timeout=3, verify=False)

    if kind == "async":
        asyncio.run(send())
    elif kind == "session":
        session.get(f"{pages.url}/from")
        session.get(f"{pages.url}/to", timeout=3, verify=False)
    else:
        items: list[Any] = [f"{pages.url}/to", {"url": f"{pages.url}/to", "timeout": 3, "verify": False}]
        list(haul.fetch_many(items, 1, session=session, paginate="link" if kind == "listing" else None))
    complete = {"timeout": 7, "verify": bundle, "cert": bundle, "proxies": {"https": proxy.url}, "stream": False}
    assert seen[:-1] == [complete] * (1 if kind in ("many", "listing") else 2)
    assert seen[-1] == {**complete, "timeout": 3, "verify": False}


def _replace(response: Any, **kwargs: Any) -> Any:
    response.status_code = 299
    return response


def test_session_works_in_many_threads(pages: Any) -> None:
    session = haul.Session()
    wrong: list[Any] = []

    def work(number: int) -> None:
        for i in range(30):
            text = session.get(f"{pages.url}/{number}/{i}").text
            if text != f"page /{number}/{i}":
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and pages.connections <= 8


def test_rarely_used_arguments_work_as_in_requests(pages: Any, httpbin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import http.cookiejar

    session = haul.Session()
    # A jar of the standard library.
    theirs = haul.cookies.cookiejar_from_dict({"a": "1"}, http.cookiejar.CookieJar())
    session.get(pages.url, cookies=theirs)
    assert dict(pages.heads[-1][1])["Cookie"] == "a=1"
    session.cookies = theirs
    session.get(pages.url)
    assert dict(pages.heads[-1][1])["Cookie"] == "a=1" and session.cookies["a"] == "1"
    # merge_environment_settings, also with a replaced os.environ.
    with monkeypatch.context() as patch:
        patch.setattr(os, "environ", {"REQUESTS_CA_BUNDLE": "/some/path", "https_proxy": "http://proxy:1"})
        settings = session.merge_environment_settings("https://example.test/", {}, None, True, None)
        assert settings["verify"] == "/some/path" and settings["proxies"] == {"https": "http://proxy:1"}
    settings = session.merge_environment_settings(pages.url, {}, None, None, None)
    prepared = session.prepare_request(haul.Request("GET", pages.url + "/by-hand"))
    assert session.send(prepared, **settings).text == "page /by-hand"
    # The program gets the 401 of a challenge with an unsupported algorithm.
    url = httpbin.url + "/digest-auth/auth/user/pass/SHA-512"
    assert session.get(url, auth=haul.auth.HTTPDigestAuth("user", "pass")).status_code == 401
    assert haul.get(pages.url, headers={b"X-Bytes": b"1"}).request.headers["x-bytes"] == b"1"
    with haul.get(pages.url + "/bytes/300000", stream=True) as response:
        pass
    assert response.raw.closed
    haul.post(pages.url, files=[("none", None), ("number", 1)])
    assert b'name="number"' in pages.bodies[-1] and b'name="none"' not in pages.bodies[-1]
    with pytest.raises(haul.exceptions.InvalidProxyURL):
        haul.get("https://example.test/", proxies={"https": "http:/proxy:3128"})


def test_replaced_send_is_called(pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = haul.Response()
    answer.status_code = 299
    session = haul.Session()
    session.send = lambda request, **kwargs: answer  # type: ignore[method-assign]
    assert session.get(pages.url).status_code == session.post(pages.url, data="x").status_code == 299
    monkeypatch.setattr(haul.Session, "send", lambda self, request, **kwargs: answer)
    assert haul.get(pages.url).status_code == haul.Session().get(pages.url).status_code == 299
    monkeypatch.undo()
    assert haul.get(pages.url).status_code == 200
    assert len(pages.heads) == 1


def test_stream_is_a_setting_and_a_method(pages: Any) -> None:
    session = haul.Session()
    assert not session.stream and session.stream == False and repr(session.stream) == "False"  # noqa: E712
    with session.stream("GET", f"{pages.url}/bytes/300000") as response:
        assert response._content is False and len(response.content) == 300000
    session.stream = True
    assert session.stream and pickle.loads(pickle.dumps(session)).stream == True  # noqa: E712
    with session.get(f"{pages.url}/bytes/300000") as response:
        assert response._content is False
    assert session.get(pages.url, stream=False)._content == b"page /"


def test_settings_of_a_session_survive_pickling() -> None:
    session = haul.Session(timeout=haul.ClientTimeout(3), retries=haul.Retry(2, backoff=1))
    session.max_size = 10
    session.event_hooks["done"].append(print)
    copy = pickle.loads(pickle.dumps(session))
    assert (copy.timeout, copy.retries, copy.max_size) == (haul.ClientTimeout(3), haul.Retry(2, backoff=1), 10)
    assert copy.event_hooks["done"] == [print]


def test_send_refuses_unknown_arguments(pages: Any) -> None:
    with haul.Session() as session:
        prepared = session.prepare_request(haul.Request("GET", f"{pages.url}/"))
        for name in ("timout", "headers"):
            with pytest.raises(TypeError, match=name):
                session.send(prepared, **{name: 5})
        assert session.send(prepared, timeout=5, stream=True, verify=True, cert=None, proxies={}, allow_redirects=False).ok


def test_hooks_may_be_an_empty_dict(pages: Any) -> None:
    with haul.Session() as session:
        session.hooks = {}
        assert session.get(f"{pages.url}/a").text == "page /a"
        assert session.get(f"{pages.url}/b", stream=True).text == "page /b"


def test_resolve_redirects_takes_the_arguments_of_requests(pages: Any) -> None:
    pages.routes["/on"] = lambda handler: handler.answer(b"", 302, Location="/to")
    with haul.Session() as session:
        response = session.get(f"{pages.url}/on", allow_redirects=False)
        hops: list[Any] = list(session.resolve_redirects(response, response.request, True, 5))
        assert [hop.text for hop in hops] == ["page /to"]
