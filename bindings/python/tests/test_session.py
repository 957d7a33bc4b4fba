"""Sessions and responses: requests' habits."""

from __future__ import annotations

import array
import http.cookiejar
import io
import json
import mmap
import os
import pickle
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import requests

import haul
from haul.adapters import HaulAdapter
from haul.auth import HTTPDigestAuth
from haul.structures import CaseInsensitiveDict


def test_one_connection_serves_requests_one_after_the_other(pages: Any) -> None:
    with haul.Session() as session:
        for i in range(20):
            response = session.get(f"{pages.url}/{i}")
            assert (response.status_code, response.text, response.ok) == (200, f"page /{i}", True)
    assert pages.connections == 1


def test_the_verbs(pages: Any) -> None:
    with haul.Session() as session:
        for name in ("get", "post", "put", "patch", "delete", "options", "head"):
            response = getattr(session, name)(f"{pages.url}/x")
            assert response.status_code == 200
            assert response.request.method == name.upper()
        assert session.head(f"{pages.url}/x").content == b""
    lengths = [dict(fields).get("Content-Length") for _, fields in pages.heads]
    assert lengths == [None, "0", "0", "0", "0", "0", None, None]


@pytest.mark.parametrize("data", [bytearray(b"abcd"), memoryview(b"abcd"), memoryview(b"a.b.c.d")[::2], array.array("h", b"abcd"), "mmap"])
def test_whatever_shows_its_memory_is_a_body(pages: Any, tmp_path: Path, data: Any) -> None:
    if data == "mmap":
        (tmp_path / "file").write_bytes(b"..abcd")
        with open(tmp_path / "file", "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        data.seek(2)
    haul.post(f"{pages.url}/whole", data=data)
    assert pages.bodies[-1] == b"abcd" and dict(pages.heads[-1][1])["Content-Length"] == "4"
    if not hasattr(data, "read"):
        haul.post(f"{pages.url}/pieces", data=iter([data, data]))
        assert pages.bodies[-1] == b"abcdabcd"
        haul.post(f"{pages.url}/form", files={"f": data})
        assert b"\r\n\r\nabcd\r\n" in pages.bodies[-1]


def test_settings_count_from_the_next_request_on(pages: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def sent(session: haul.Session) -> tuple[str, CaseInsensitiveDict]:
        session.get(pages.url)
        path, fields = pages.heads[-1]
        return path, CaseInsensitiveDict(fields)

    def warm() -> haul.Session:
        """One whose requests had no settings so far."""
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


@pytest.mark.parametrize("size", [0, 1, 300, 65_535, 65_536, 65_537, 335_114, 3_000_000])
def test_bodies_of_any_size_are_whole(pages: Any, size: int) -> None:
    expected = bytes(i % 251 for i in range(size))
    response = haul.get(f"{pages.url}/bytes/{size}")
    assert response.content == expected
    assert response.headers["content-length"] == str(size)
    streamed = haul.get(f"{pages.url}/bytes/{size}", stream=True)
    assert b"".join(streamed.iter_content(1000)) == expected


def test_query_headers_and_what_is_left_out(pages: Any) -> None:
    session = haul.Session()
    session.params = {"a": "1"}
    session.headers["X-Ours"] = "yes"
    response = session.get(
        f"{pages.url}/q?z=0", params={"b": ["x y", "é"], "c": None}, headers={"accept": None, "X-Mine": "1", "x-ours": "over"}
    )
    path, fields = pages.heads[-1]
    assert path == "/q?z=0&a=1&b=x+y&b=%C3%A9"
    sent = CaseInsensitiveDict(fields)
    assert "accept" not in sent and sent["x-mine"] == "1" and sent["X-Ours"] == "over"
    assert response.url == pages.url + path
    assert response.request.headers["x-ours"] == "over"
    session.headers["X-Ours"] = "changed"
    session.get(f"{pages.url}/")
    assert dict(pages.heads[-1][1])["X-Ours"] == "changed"


def test_bodies(pages: Any, tmp_path: Path) -> None:
    session = haul.Session()
    url = f"{pages.url}/post"

    def sent(**kwargs: Any) -> tuple[bytes, dict[str, str]]:
        response = session.post(url, **kwargs)
        assert response.status_code == 200
        return pages.bodies[-1], dict(pages.heads[-1][1])

    body, fields = sent(data={"a": "b c", "d": [1, 2]})
    assert (body, fields["Content-Type"]) == (b"a=b+c&d=1&d=2", "application/x-www-form-urlencoded")
    body, fields = sent(data=[("k", "v"), ("k", "w")])
    assert body == b"k=v&k=w"
    body, fields = sent(data="grün")
    assert body == "grün".encode() and "Content-Type" not in fields
    body, fields = sent(json={"a": [1, None]})
    assert json.loads(body) == {"a": [1, None]} and fields["Content-Type"] == "application/json"
    body, fields = sent(json={"a": 1}, headers={"content-type": "application/vnd.x+json"})
    assert fields.get("content-type") == "application/vnd.x+json" and "Content-Type" not in fields
    with pytest.raises(haul.exceptions.InvalidJSONError):
        session.post(url, json=float("nan"))
    with pytest.raises(TypeError, match="data has to be a form.*PosixPath"):
        session.post(url, data=tmp_path)

    body, fields = sent(data=(piece for piece in (b"ab", b"", "cd", b"e" * 100_000)))
    assert body == b"abcd" + b"e" * 100_000
    assert fields["Transfer-Encoding"] == "chunked" and "Content-Length" not in fields
    body, fields = sent(data=iter([b"ab", b"c"]), headers={"content-length": "3"})
    assert (body, fields["content-length"], fields.get("Transfer-Encoding")) == (b"abc", "3", None)
    body, fields = sent(data=io.StringIO("\u00fcber"))
    assert body == "\u00fcber".encode() and fields["Content-Length"] == "5"
    file = tmp_path / "f.bin"
    file.write_bytes(os.urandom(200_000))
    with file.open("rb") as opened:
        body, fields = sent(data=opened)
    assert body == file.read_bytes() and fields["Content-Length"] == "200000"
    body, fields = sent(data=io.BytesIO(b"in memory"))
    assert body == b"in memory" and fields["Content-Length"] == "9"


def test_a_generator_that_raises_is_raised(pages: Any) -> None:
    class Mine(Exception):
        pass

    def pieces() -> Any:
        yield b"one"
        raise Mine("in the middle")

    with pytest.raises(Mine, match="in the middle"):
        haul.post(f"{pages.url}/post", data=pieces())
    with pytest.raises(TypeError):
        haul.post(f"{pages.url}/post", data=iter([1, 2]))


def test_forms_with_files(httpbin: Any, tmp_path: Path) -> None:
    path = tmp_path / "named.txt"
    path.write_bytes(b"from a file")
    with path.open("rb") as opened:
        response = haul.post(
            httpbin.url + "/post",
            data={"field": "välue", "many": ["1", "2"]},
            files={"a": opened, "b": ("other.bin", b"\x00\x01", "application/x-b", {"X-Part": "1"}), "c": "text"},
        )
    assert f'filename="{path.name}"'.encode() in response.request.body
    got = response.json()
    assert got["form"] == {"field": "välue", "many": ["1", "2"]}
    assert got["files"]["a"] == "from a file" and got["files"]["c"] == "text"
    assert response.request.headers["Content-Type"].startswith("multipart/form-data; boundary=")
    with pytest.raises(ValueError):
        haul.post(httpbin.url + "/post", data="text", files={"a": b"b"})


def test_cookies_are_kept_sent_and_seen(httpbin: Any) -> None:
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


def test_cookies_are_kept_in_a_file(httpbin: Any, tmp_path: Path) -> None:
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


def test_jars_of_the_standard_library_take_cookies(tmp_path: Path) -> None:
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


def test_a_subclass_own_methods_are_called(pages: Any) -> None:
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


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("example.test/", haul.exceptions.MissingSchema),
        ("", haul.exceptions.MissingSchema),
        ("localhost:3128", haul.exceptions.InvalidSchema),
        ("http:/example.test", haul.exceptions.InvalidURL),
        ("http://", haul.exceptions.InvalidURL),
        ("http://*example.test", haul.exceptions.InvalidURL),
        ("http://.example.test", haul.exceptions.InvalidURL),
        ("http://a b/", haul.exceptions.InvalidURL),
        ("http://[::1/", haul.exceptions.InvalidURL),
        ("http://h:99999/", haul.exceptions.InvalidURL),
        ("ftp://example.test/", haul.exceptions.InvalidSchema),
        ("mailto:me@example.test", haul.exceptions.InvalidSchema),
        ("http://127.0.0.1:1/", haul.ConnectionError),
        ("http://name.invalid/", haul.ConnectionError),
    ],
)
def test_urls_that_lead_nowhere(url: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        haul.get(url)
    with pytest.raises(error):
        haul.get(url, stream=True)


def test_brackets_of_a_url_are_encoded_as_by_requests(pages: Any) -> None:
    pages.routes["/there"] = lambda handler: handler.answer(b"", 302, Location="/x[1]?y[2]=3")
    adapted = requests.Session()
    adapted.mount("http://", HaulAdapter())
    for session in (requests.Session(), adapted, haul.Session()):
        pages.heads.clear()
        assert session.get(pages.url + "/a[b]?c[d]=[e]").url == pages.url + "/a%5Bb%5D?c%5Bd%5D=%5Be%5D"
        session.get(pages.url + "/a", params="c[d]=1")
        session.get(pages.url + "/there")
        paths = [path for path, _ in pages.heads]
        assert paths == ["/a%5Bb%5D?c%5Bd%5D=%5Be%5D", "/a?c%5Bd%5D=1", "/there", "/x%5B1%5D?y%5B2%5D=3"]
    assert haul.Request("GET", "http://[::1]:8/[").prepare().url == "http://[::1]:8/%5B"


def test_a_url_that_leads_nowhere_tells_no_password() -> None:
    for url in ("htp://us:secret@bad/x@y", "us:secret@bad/", "//us:secret@bad/", "http:us:secret@bad", "http://us:secret@ba d/"):
        with pytest.raises(haul.RequestException) as caught:
            haul.get(url)
        assert "secret" not in str(caught.value) and "bad" in str(caught.value).replace(" ", "")


def test_a_part_that_cannot_be_sent(pages: Any) -> None:
    for part in (("f", b"x", "text/plain\r\nX: 1"), ("f", b"x", "text/plain", {"X": "1\r\nY: 2"}), ("f", b"x", "text/plain", {"X\n": "1"})):
        with pytest.raises(haul.exceptions.InvalidHeader):
            haul.post(pages.url, files={"a": part})
    for part in (Path("name.txt"), ("f", Path("name.txt")), ("f", [b"x"])):
        with pytest.raises(TypeError, match="a file has to be bytes, text or something with read, not "):
            haul.post(pages.url, files={"a": part})
    haul.post(pages.url, files={'a"\r\nX: 1': ('f"\r\nX: 1', b"x")})
    assert b'name="a%22%0D%0AX: 1"; filename="f%22%0D%0AX: 1"\r\n\r\nx' in pages.bodies[-1]


def test_limits_of_time(pages: Any) -> None:
    for timeout in (0.1, (5, 0.1), (None, 0.1)):
        with pytest.raises(haul.ReadTimeout):
            haul.get(f"{pages.url}/never", timeout=timeout)
        with pytest.raises(haul.ReadTimeout):
            haul.get(f"{pages.url}/never", timeout=timeout, stream=True)
    for wrong in ((1, 2, 3), "3", 0, -1, (0, 1), True and "x"):
        with pytest.raises(ValueError):
            haul.get(pages.url, timeout=wrong)
    assert haul.get(pages.url, timeout=5).ok and haul.get(pages.url, timeout=None).ok


def test_a_body_that_stands_still(raw: Any) -> None:
    server = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", closes=False)
    # The head was in time: with requests it is a ConnectionError, whether the body is streamed or not.
    with pytest.raises(haul.ConnectionError):
        haul.get(server.url, timeout=0.1)
    response = haul.get(server.url, timeout=0.1, stream=True)
    with pytest.raises(haul.ConnectionError):
        response.content  # noqa: B018


def test_a_timeout_of_urllib3_with_a_total(pages: Any) -> None:
    from urllib3 import Timeout

    for timeout in (Timeout(total=0.1), Timeout(connect=5, read=0.1), Timeout(0.1, read=5)):
        assert haul.get(pages.url, timeout=timeout).ok
        with pytest.raises(haul.ReadTimeout):
            haul.get(f"{pages.url}/never", timeout=timeout)
    assert haul.get(pages.url, timeout=Timeout()).ok
    assert haul.get(pages.url, timeout=Timeout.DEFAULT_TIMEOUT).ok


def test_a_length_of_the_programs_own_gives_way_to_the_bodys(pages: Any) -> None:
    session = haul.Session()
    for _ in range(2):
        for kwargs in ({"data": b"abc"}, {"data": {"a": "b"}}, {"json": [1]}, {"files": {"f": b"c"}}):
            session.post(pages.url, headers={"content-length": "1"}, **kwargs)
            fields = CaseInsensitiveDict(pages.heads[-1][1])
            assert fields["content-length"] == str(len(pages.bodies[-1])) and len(pages.bodies[-1]) > 2
        session.headers["Content-Length"] = "1"


def test_a_prepared_body_can_be_exchanged(pages: Any) -> None:
    session = haul.Session()
    prepared = haul.Request("POST", pages.url, data={"a": "b"}).prepare()
    for body in ("exactly this, ü", b"or that", ""):
        prepared.body = body
        response = session.send(prepared)
        sent = dict(pages.heads[-1][1])["Content-Length"]
        assert pages.bodies[-1] == (body.encode() if isinstance(body, str) else body)
        assert sent == response.request.headers["Content-Length"] == str(len(pages.bodies[-1]))


def test_hooks(pages: Any) -> None:
    seen: list[Any] = []
    session = haul.Session()
    session.hooks["response"].append(lambda response, **kwargs: seen.append((response.url, kwargs["timeout"])))
    session.get(pages.url + "/x", timeout=3)
    assert seen == [(pages.url + "/x", 3)]
    changed = session.get(pages.url, hooks={"response": lambda response, **_: "instead"} and {"response": [_replace]})
    assert changed.status_code == 299


def _replace(response: Any, **kwargs: Any) -> Any:
    response.status_code = 299
    return response


def test_errors_and_responses_can_be_pickled(pages: Any) -> None:
    pages.routes["/404"] = lambda handler: handler.answer(b"gone", 404, X_A="1")
    response = haul.get(pages.url + "/404")
    with pytest.raises(haul.HTTPError) as caught:
        response.raise_for_status()
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value) and error.response.content == b"gone"
    assert error.response.headers == response.headers and error.request.url == pages.url + "/404"
    with pytest.raises(haul.ConnectionError) as refused:
        haul.get("http://127.0.0.1:1/")
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    with pytest.raises(haul.JSONDecodeError) as broken:
        response.json()
    again = pickle.loads(pickle.dumps(broken.value))
    assert (str(again), again.doc, again.pos) == (str(broken.value), "gone", 0)


def test_what_there_is_not_is_said_with_what_there_is_instead() -> None:
    with pytest.raises(AttributeError, match="urllib3"):
        haul.packages.urllib3.disable_warnings()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="urllib.parse"):
        haul.utils.quote("a b")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'nothing'$"):
        haul.nothing  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(KeyError, match="other.example"):
        haul.cookies.CookieJar().clear("other.example")


def test_every_exception_is_where_requests_has_it() -> None:
    requests = pytest.importorskip("requests")
    for name in haul.exceptions.__all__:
        ours, theirs = getattr(haul.exceptions, name), getattr(requests.exceptions, name)
        bases = {base.__name__ for base in theirs.__mro__ if base.__module__.startswith(("requests", "builtins"))}
        assert bases <= {base.__name__ for base in ours.__mro__} | {"CompatJSONDecodeError"}, name


def test_a_session_is_used_by_many_threads(pages: Any) -> None:
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


def test_the_dict_of_fields() -> None:
    fields = CaseInsensitiveDict({"Content-Type": "a"}, Accept="b")
    fields["CONTENT-TYPE"] = "c"
    assert list(fields.items()) == [("CONTENT-TYPE", "c"), ("Accept", "b")]
    assert fields == {"content-type": "c", "accept": "b"} and "accept" in fields and len(fields) == 2
    del fields["ACCEPT"]
    assert fields.copy() == fields and fields.get("accept") is None
    assert pickle.loads(pickle.dumps(fields)) == fields


def test_what_requests_programs_do_besides(pages: Any, httpbin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import http.cookiejar

    session = haul.Session()
    # Another's jar, filled or to be filled.
    theirs = haul.cookies.cookiejar_from_dict({"a": "1"}, http.cookiejar.CookieJar())
    session.get(pages.url, cookies=theirs)
    assert dict(pages.heads[-1][1])["Cookie"] == "a=1"
    session.cookies = theirs
    session.get(pages.url)
    assert dict(pages.heads[-1][1])["Cookie"] == "a=1" and session.cookies["a"] == "1"
    # Settings by hand, the environment's among them; also one that a test has put there.
    with monkeypatch.context() as patch:
        patch.setattr(os, "environ", {"REQUESTS_CA_BUNDLE": "/some/path", "https_proxy": "http://proxy:1"})
        settings = session.merge_environment_settings("https://example.test/", {}, None, True, None)
        assert settings["verify"] == "/some/path" and settings["proxies"] == {"https": "http://proxy:1"}
    settings = session.merge_environment_settings(pages.url, {}, None, None, None)
    prepared = session.prepare_request(haul.Request("GET", pages.url + "/by-hand"))
    assert session.send(prepared, **settings).text == "page /by-hand"
    # A challenge that nobody here can answer is the program's.
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


def test_a_send_that_is_put_in_the_place_of_ours_is_called(pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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


class _Elsewhere(requests.adapters.BaseAdapter):
    """Answers URLs of a scheme of its own, as adapters of tests and for Unix sockets do."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, str | None]] = []

    def send(self, request: Any, *args: Any, **kwargs: Any) -> requests.Response:
        self.seen.append((request.url, request.headers.get("Cookie")))
        response = requests.Response()
        response._content = b"answer"
        response.url, response.request = request.url, request
        response.status_code = 200 if request.url.endswith("/end") else 302
        response.headers["Location"] = "end" if request.url.endswith("/relative") else "other://host.example/relative"
        response.cookies.set("sid", "31", domain=request.url.split("/")[2])
        return response

    def close(self) -> None:
        pass


def test_urls_of_an_adapters_own_scheme() -> None:
    session, adapter = haul.Session(), _Elsewhere()
    for scheme in ("other://", "http+unix://"):
        session.mount(scheme, adapter)
    response = session.get("other://host.example/start")
    assert (response.text, response.url) == ("answer", "other://host.example/end")
    assert [url for url, _ in adapter.seen] == [f"other://host.example/{path}" for path in ("start", "relative", "end")]
    assert adapter.seen[-1][1] == "sid=31"
    # Such a host is none for the jar.
    assert session.get("http+unix://%2Frun%2Fsocket/end").text == "answer"
    assert session.get("http+unix://%2Frun%2Fsocket/end").text == "answer"


@pytest.mark.parametrize("kind", [requests, haul])
def test_a_request_without_the_sessions_content_type_has_its_bodys(kind: Any, pages: Any) -> None:
    session = kind.Session()
    session.headers["Content-Type"] = "text/plain"
    for arguments in ({"data": {"a": "b"}}, {"json": {}}, {"data": b"x"}):
        session.post(pages.url, **arguments)
        session.post(pages.url, headers={"content-type": None}, **arguments)
    kinds = [CaseInsensitiveDict(dict(fields)).get("Content-Type") for _, fields in pages.heads]
    assert kinds == ["text/plain", "application/x-www-form-urlencoded", "text/plain", "application/json", "text/plain", None]
