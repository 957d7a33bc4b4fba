"""``haul.Client``, ``haul.AsyncClient`` and the bar of ``fetch_many``."""

from __future__ import annotations

import asyncio
import copy
import pickle
import sys
import threading
from typing import Any

import httpx
import pytest

import haul
from haul.testing import response


def redirect(handler: Any) -> None:
    handler.answer(b"moved", 302, Location="/to")


def test_urls_are_relative_to_the_base_url(pages: Any) -> None:
    with haul.Client(base_url=f"{pages.url}/v1", params={"key": "a"}, headers={"X-Own": "b"}) as client:
        assert client.get("/items", params={"page": 2}).text == "page /v1/items?key=a&page=2"
        assert client.get("items").text == client.get(f"{pages.url}/v1/items").text == "page /v1/items?key=a"
        assert client.get("").text == "page /v1/?key=a" and client.base_url == f"{pages.url}/v1/"
    assert all(dict(fields)["X-Own"] == "b" for _, fields in pages.heads)
    with pytest.raises(ValueError, match="neither a query nor a fragment"):
        haul.Client(base_url="http://h/?a=b")


def test_redirects_are_followed_if_asked(pages: Any) -> None:
    pages.routes["/from"] = redirect
    with haul.Client(base_url=pages.url) as client:
        first = client.get("/from")
        assert first.status_code == 302 and first.has_redirect_location and not first.is_success and not first.is_error
        assert first.next_request.url == f"{pages.url}/to" and client.send(first.next_request).text == "page /to"
        with pytest.raises(haul.HTTPError, match="302 is no success"):
            first.raise_for_status()
        followed = client.get("/from", follow_redirects=True)
        assert followed.text == "page /to" and [type(hop) for hop in followed.history] == [haul.client.ClientResponse]
        client.follow_redirects = True
        assert client.get("/from").raise_for_status().is_success and client.head("/from").url == f"{pages.url}/to"
        assert client.get("/from", follow_redirects=False).status_code == 302


def test_bodies_are_sent_by_httpx_names(pages: Any) -> None:
    with haul.Client(base_url=pages.url) as client:
        client.post("/", content=b"bytes")
        client.put("/", data={"a": "b"})
        client.patch("/", json={"a": 1})
        client.request("POST", "/", content=iter([b"pie", b"ces"]))
        client.post("/", files={"f": ("name", b"content")})
        assert client.delete("/").is_success and client.options("/").is_success
        with pytest.raises(TypeError, match="cannot be data"):
            client.post("/", content=b"x", data={"a": "b"})
    assert pages.bodies[:4] == [b"bytes", b"a=b", b'{"a": 1}', b"pieces"] and b"content" in pages.bodies[4]


def test_responses_have_httpx_names(pages: Any) -> None:
    def answer(handler: Any) -> None:
        handler.send_response(200)
        for name, value in (("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Vary", "A, B"), ("Content-Type", "text/plain; charset=utf-8")):
            handler.send_header(name, value)
        handler.send_header("Content-Length", "9")
        handler.end_headers()
        handler.wfile.write("ä\nb\r\nçd".encode()[:9])

    pages.routes["/"] = answer
    pages.routes["/error"] = lambda handler: handler.answer(b"", 503)
    with haul.Client(base_url=pages.url) as client:
        got = client.get("/")
        assert got.headers.get_list("set-cookie") == ["a=1", "b=2"] and got.headers["Set-Cookie"] == "a=1, b=2"
        assert got.headers.get_list("vary", split_commas=True) == ["A", "B"] and got.headers.get_list("none") == []
        assert ("set-cookie", "b=2") in got.headers.multi_items()
        assert got.http_version == "HTTP/1.1" and got.reason_phrase == "OK" and got.charset_encoding == "utf-8"
        assert got.read() == got.content and list(got.iter_lines()) == ["ä", "b", "çd"]
        assert "".join(got.iter_text(1)) == got.text == "ä\nb\r\nçd" and list(got.iter_bytes(5))[0] == got.content[:5]
        assert client.cookies["a"] == "1"
        failed = client.get("/error")
        assert failed.is_server_error and failed.is_error and not failed.is_client_error and not failed.is_informational
        with pytest.raises(haul.HTTPError, match="503 Server Error"):
            failed.raise_for_status()
        got.headers["Vary"] = "own"
        assert got.headers.get_list("vary") == ["own"]


def test_body_is_streamed(pages: Any) -> None:
    with haul.Client(base_url=pages.url) as client, client.stream("GET", "/bytes/300000") as got:
        assert got._stream is not None and sum(len(piece) for piece in got.iter_bytes()) == 300000


def test_arguments_of_a_request_precede_those_of_the_client(pages: Any) -> None:
    with haul.Client(base_url=pages.url, auth=("u", "p")) as client:
        client.get("/")
        client.get("/", auth=("v", "q"))
        client.get("/", auth=None)
        given = [dict(fields).get("Authorization") for _, fields in pages.heads]
        assert len(set(given)) == 3 and given[2] is None
        assert client.timeout == 5.0 and client.session.max_redirects == 20
        with pytest.raises(haul.ReadTimeout):
            client.get("/never", timeout=0.05)
        assert client.get("/", timeout=None).is_success
    assert client.is_closed
    with pytest.raises(RuntimeError, match="closed"):
        client.get("/")


def test_built_request_is_sent() -> None:
    with haul.Client(base_url="https://api.example/v1", headers={"X-Own": "a"}) as client:
        client.mount("https://api.example/", lambda request: response(headers=[("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")], json=request.url))
        request = client.build_request("GET", "/x", params={"a": "b"})
        assert request.url == "https://api.example/v1/x?a=b" and request.headers["X-Own"] == "a"
        got = client.send(request)
        assert got.json() == request.url and got.headers.get_list("set-cookie") == ["a=1", "b=2"]
        (result,) = haul.fetch_many(["https://api.example/y"], session=client.session)
        assert result.json() == "https://api.example/y"


def test_line_end_across_reads_ends_one_line(pages: Any) -> None:
    has_line = threading.Event()
    came: list[bool] = []

    def torn_line_end(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 7\r\n\r\n\xc3\xa4\r")
        handler.wfile.flush()
        came.append(has_line.wait(30))
        handler.wfile.write(b"\n\r\nb")

    pages.routes["/lines"] = torn_line_end
    # The server sends the LF once the line before it was returned.
    found: list[str] = []
    with haul.Client(base_url=pages.url) as client, client.stream("GET", "/lines") as streamed:
        for line in streamed.iter_lines():
            found.append(line)
            has_line.set()
    assert found == ["ä", "", "b"]

    async def main() -> None:
        has_line.clear()
        found.clear()
        async with haul.AsyncClient(base_url=pages.url) as client, client.stream("GET", "/lines") as streamed:
            async for line in streamed.aiter_lines():
                found.append(line)
                has_line.set()

    asyncio.run(main())
    assert found == ["ä", "", "b"]
    assert came == [True, True]


def test_async_client_has_httpx_names(pages: Any) -> None:
    pages.routes["/from"] = redirect

    async def pieces() -> Any:
        yield b"pie"
        yield b"ces"

    async def main() -> None:
        async with haul.AsyncClient(base_url=pages.url, follow_redirects=True) as client:
            got = await client.get("/from")
            assert got.raise_for_status().text == "page /to" and got.headers.get_list("content-length") == ["8"]
            await client.post("/", content=pieces())
            assert pages.bodies[-1] == b"pieces"
            async with client.stream("GET", "/bytes/300000") as streamed:
                assert sum([len(piece) async for piece in streamed.aiter_bytes()]) == 300000
            async with client.stream("GET", "/text") as streamed:
                assert [line async for line in streamed.aiter_lines()] == ["page /text"]
            async with client.stream("GET", "/text") as streamed:
                assert "".join([text async for text in streamed.aiter_text()]) == "page /text"
            all_of_them = await asyncio.gather(*(client.get(f"/{i}") for i in range(20)))
            assert [each.text for each in all_of_them] == [f"page /{i}" for i in range(20)]
            for send in (client.put, client.patch, client.delete, client.options, client.head):
                assert (await send("/")).is_success
            assert (await client.send(client.build_request("GET", "/built"))).text == "page /built"
            client.mount("https://api.example/", lambda request: response(json=1))
            assert (await client.get("https://api.example/")).json() == 1
        with pytest.raises(RuntimeError, match="closed"):
            await client.get("/")

    asyncio.run(main())


def test_progress_is_shown_by_tqdm(pages: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    results = list(haul.fetch_many([f"{pages.url}/{i}" for i in range(3)], progress=True))
    assert [result.text for result in results] == [f"page /{i}" for i in range(3)] and "3/3" in capsys.readouterr().err
    assert len(list(haul.fetch_many(iter([pages.url]), progress=True))) == 1 and "1URL" in capsys.readouterr().err


def test_progress_without_tqdm_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        haul.fetch_many([], progress=True)


@pytest.mark.parametrize("kind", ["text/plain", "text/html", "text/javascript", "application/octet-stream", None])
def test_text_without_charset_is_utf_8(kind: str | None, pages: Any) -> None:
    fields = {} if kind is None else {"Content_Type": kind}
    pages.routes["/text"] = lambda handler: handler.answer('{"a": "grüß"}'.encode(), **fields)
    url = f"{pages.url}/text"

    async def get() -> None:
        async with haul.AsyncClient() as client:
            response = await client.get(url)
            assert (response.text, response.json()) == ('{"a": "grüß"}', {"a": "grüß"})
            async with client.stream("GET", url) as response:
                assert [line async for line in response.aiter_lines()] == ['{"a": "grüß"}']

    with haul.Client() as client:
        response = client.get(url)
        assert (response.text, response.json(), response.encoding) == ('{"a": "grüß"}', {"a": "grüß"}, "utf-8")
        assert response.charset_encoding is None
        with client.stream("GET", url) as response:
            assert "".join(response.iter_text()) == '{"a": "grüß"}'
        client.event_hooks["done"].append(lambda event: event.response.text)
        seen = client.get(url)
        assert (seen.text, seen.encoding) == ('{"a": "grüß"}', "utf-8")
        pages.routes["/text"] = lambda handler: handler.answer(b"gr\xfc\xdf", **fields)
        assert client.get(url).text == "gr\ufffd\ufffd"
        pages.routes["/text"] = lambda handler: handler.answer('{"a": "grüß"}'.encode(), **fields)
        response.encoding = "latin-1"
        assert response.encoding == "latin-1"
    asyncio.run(get())
    assert httpx.get(url).text == '{"a": "grüß"}'


def test_charset_of_the_content_type_is_obeyed(pages: Any) -> None:
    pages.routes["/latin"] = lambda handler: handler.answer("grüß".encode("latin-1"), Content_Type="text/plain; charset=latin-1")
    with haul.Client() as client:
        response = client.get(f"{pages.url}/latin")
        assert (response.text, response.charset_encoding) == ("grüß", "latin-1")


@pytest.mark.parametrize("charset", ["utf-8", "utf-16-le"])
def test_lines_are_split_after_decoding(charset: str, pages: Any) -> None:
    text = "a\u010a\nb\u2028c\x85d\x0be\r\nf"
    pages.routes["/lines"] = lambda handler: handler.answer(text.encode(charset), Content_Type=f"text/plain; charset={charset}")
    with haul.Client() as client, client.stream("GET", f"{pages.url}/lines") as response:
        lines = list(response.iter_lines())
    with httpx.stream("GET", f"{pages.url}/lines") as peer:
        assert lines == list(peer.iter_lines()) == ["a\u010a", "b", "c", "d", "e", "f"]


def test_headers_can_be_copied_and_pickled(pages: Any) -> None:
    def cookies(handler: Any) -> None:
        handler.send_response(200)
        for value in ("a=1", "b=2"):
            handler.send_header("Set-Cookie", value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    pages.routes["/cookies"] = cookies
    with haul.Client() as client:
        response = client.get(f"{pages.url}/cookies")
    copies = (response.headers.copy(), copy.copy(response.headers), copy.deepcopy(response.headers), pickle.loads(pickle.dumps(response)).headers)
    for fields in copies:
        assert fields.get_list("set-cookie") == ["a=1", "b=2"] and fields == response.headers


def test_built_request_keeps_its_settings(pages: Any) -> None:
    pages.routes["/on"] = redirect

    async def run() -> None:
        async with haul.AsyncClient() as client:
            with pytest.raises(haul.ReadTimeout):
                await client.send(client.build_request("GET", f"{pages.url}/never", timeout=0.2))

    with haul.Client() as client:
        with pytest.raises(haul.ReadTimeout):
            client.send(client.build_request("GET", f"{pages.url}/never", timeout=0.2))
        request = client.build_request("GET", f"{pages.url}/on", follow_redirects=True)
        assert client.send(request).text == "page /to"
        assert client.send(request, follow_redirects=False).status_code == 302
        client.follow_redirects = True
        assert client.send(client.build_request("GET", f"{pages.url}/on")).text == "page /to"
    asyncio.run(run())


def test_values_are_written_as_by_httpx(pages: Any) -> None:
    values: dict[str, Any] = {"a": True, "b": False, "c": None, "d": [True, None, 1], "e": "x"}
    for client in (haul.Client(params={"z": True}), httpx.Client(params={"z": True})):
        with client:
            client.get(f"{pages.url}/", params=values)
            client.post(f"{pages.url}/", data=values)
    paths = [path for path, _ in pages.heads]
    assert paths[0] == "/?z=true&a=true&b=false&c=&d=true&d=&d=1&e=x" and paths[3] == "/?z=true" and pages.bodies[1] == pages.bodies[3]


def test_header_pairs_are_joined_by_name(pages: Any) -> None:
    with haul.Client(headers=[("X-Own", "1"), ("x-own", "2")]) as client:
        client.get(pages.url)
        client.get(pages.url, headers=[(b"X-Own", b"3"), (b"X-Other", b"4"), (b"X-Own", b"5")])
        client.headers = [("X-Own", "6"), ("X-Own", "7")]
        client.get(pages.url, headers=[("Cookie", "a=1"), ("Cookie", "b=2")])
    first, second, third = ({name.lower(): value for name, value in fields} for _, fields in pages.heads)
    assert first["x-own"] == "1, 2" and (second["x-own"], second["x-other"]) == ("3, 5", "4")
    assert third["x-own"] == "6, 7" and third["cookie"] == "a=1; b=2"


def test_files_have_the_types_that_httpx_guesses(pages: Any) -> None:
    files: dict[str, Any] = {
        "f": ("a.txt", b"x"), "g": b"y", "h": ("b.unknown", b"z"), "i": ("c.txt", b"t", "text/html"),
        "j": ("d.txt", b"u", None, {"Content-Type": "a/b"}),
    }  # fmt: skip
    for client in (haul.Client(), httpx.Client()):
        with client:
            client.post(f"{pages.url}/", files=files)
    kinds = [[line for line in body.splitlines() if line.startswith(b"Content-")] for body in pages.bodies]
    assert kinds[0] == kinds[1]


def test_assigned_headers_keep_the_defaults(pages: Any) -> None:
    with haul.Client() as client:
        client.headers = {"X-Own": "1", "Accept": "text/html"}
        client.get(f"{pages.url}/")
    fields = dict(pages.heads[0][1])
    assert fields["User-Agent"].startswith("haul/") and (fields["X-Own"], fields["Accept"]) == ("1", "text/html")


def test_unprepared_request_is_a_value_error() -> None:
    async def send() -> None:
        async with haul.AsyncClient() as client:
            await client.send(haul.Request("GET", "http://a.example/"))  # type: ignore[arg-type]

    with haul.Client() as client, pytest.raises(ValueError, match="only send PreparedRequests"):
        client.send(haul.Request("GET", "http://a.example/"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="only send PreparedRequests"):
        asyncio.run(send())


def test_unread_body_of_a_closed_response_is_an_error(pages: Any) -> None:
    def refused(read: Any) -> bool:
        with pytest.raises(haul.exceptions.StreamConsumedError):
            read()
        return True

    with haul.Client(base_url=pages.url) as client:
        with client.stream("GET", "/unread") as response:
            pass
        assert all(map(refused, (response.read, response.json, lambda: response.text, lambda: list(response.iter_bytes()))))
        with client.stream("GET", "/bytes/300000") as response:
            assert next(response.iter_bytes(1000)) and refused(response.read)
        with client.stream("GET", "/read") as response:
            assert response.read() == b"page /read"
        assert response.text == "page /read" and list(response.iter_bytes()) == [b"page /read"]

    async def main() -> None:
        async with haul.AsyncClient(base_url=pages.url) as client:
            async with client.stream("GET", "/unread") as response:
                pass
            assert refused(response.json) and refused(lambda: response.aiter_bytes().__anext__().send(None))
            with pytest.raises(haul.exceptions.StreamConsumedError):
                await response.aread()
            async with client.stream("GET", "/bytes/300000") as response:
                assert await anext(response.aiter_bytes(1000))
                with pytest.raises(haul.exceptions.StreamConsumedError):
                    await response.aread()
            async with client.stream("GET", "/read") as response:
                assert await response.aread() == b"page /read"
            assert response.text == "page /read"

    asyncio.run(main())


def test_unread_body_does_not_block_the_event_loop(pages: Any) -> None:
    async def main() -> None:
        async with haul.AsyncClient(base_url=pages.url) as client:
            async with client.stream("GET", "/page") as response:
                whole = (lambda: response.content, lambda: response.text, response.json, response.read)
                pieces = (response.iter_bytes, response.iter_text, response.iter_lines, response.iter_content, lambda: response)
                for read in (*whole, *(lambda each=each: next(iter(each())) for each in pieces)):
                    with pytest.raises(RuntimeError, match="aread"):
                        read()
                assert await response.aread() == b"page /page" and response.text == "page /page"
                assert list(response.iter_lines()) == ["page /page"]

    asyncio.run(main())


@pytest.mark.parametrize("status, location", [(200, None), (302, "/to"), (302, None), (304, None), (304, "/to"), (404, "/to")])
def test_redirect_properties_are_those_of_httpx(pages: Any, status: int, location: str | None) -> None:
    fields = {} if location is None else {"Location": location}
    pages.routes["/from"] = lambda handler: handler.answer(b"", status, **fields)
    with haul.Client() as client:
        ours, theirs = client.get(f"{pages.url}/from"), httpx.get(f"{pages.url}/from")
    assert (ours.is_redirect, ours.has_redirect_location) == (theirs.is_redirect, theirs.has_redirect_location)


@pytest.mark.parametrize("status", [302, 304])
def test_client_response_without_location_is_no_redirect(pages: Any, status: int) -> None:
    pages.routes["/from"] = lambda handler: handler.answer(b"", status)
    with haul.Client(base_url=pages.url) as client, haul.Session() as session:
        response = client.get("/from")
        assert response.is_redirect and session.get_redirect_target(response) is None
        session.mount("http://mounted.example/", lambda request: response)
        assert session.get("http://mounted.example/").status_code == status
