"""URLs: encoding, refusal, and schemes of adapters."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import requests

import haul
from haul.adapters import HaulAdapter


@pytest.mark.parametrize("kind", [requests, haul])
def test_url_of_a_prepared_request_is_sent_unchanged(
    kind: Any, adapter_session: requests.Session, pages: Any
) -> None:
    own: Any = adapter_session if kind is requests else haul.Session()
    paths = ["/a/../b", "/../c", "/%2e%2e/d%2fe", "/f g"]
    for stream in (False, True):
        pages.heads.clear()
        for path in paths:
            prepared = own.prepare_request(kind.Request("GET", pages.url))
            prepared.url = pages.url + path
            own.send(prepared, stream=stream).close()
        assert [path for path, _ in pages.heads] == ["/a/../b", "/../c", "/%2e%2e/d%2fe", "/f%20g"]


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
def test_invalid_urls_raise_the_exceptions_of_requests(url: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        haul.get(url)
    with pytest.raises(error):
        haul.get(url, stream=True)


def test_brackets_are_encoded_as_in_requests(pages: Any) -> None:
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


def test_invalid_url_error_hides_the_password() -> None:
    for url in ("htp://us:secret@bad/x@y", "us:secret@bad/", "//us:secret@bad/", "http:us:secret@bad", "http://us:secret@ba d/"):
        with pytest.raises(haul.RequestException) as caught:
            haul.get(url)
        assert "secret" not in str(caught.value) and "bad" in str(caught.value).replace(" ", "")


class _Elsewhere(requests.adapters.BaseAdapter):
    """An adapter for its own scheme, like those of tests and for Unix sockets."""

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


def test_adapter_can_serve_its_own_scheme() -> None:
    session, adapter = haul.Session(), _Elsewhere()
    for scheme in ("other://", "http+unix://"):
        session.mount(scheme, adapter)
    response = session.get("other://host.example/start")
    assert (response.text, response.url) == ("answer", "other://host.example/end")
    assert [url for url, _ in adapter.seen] == [f"other://host.example/{path}" for path in ("start", "relative", "end")]
    assert adapter.seen[-1][1] == "sid=31"
    # The cookie jar refuses such a host.
    assert session.get("http+unix://%2Frun%2Fsocket/end").text == "answer"
    assert session.get("http+unix://%2Frun%2Fsocket/end").text == "answer"


def test_changed_url_of_prepared_request_is_sent_as_written(pages: Any) -> None:
    request = haul.Request("GET", f"{pages.url}/").prepare()
    request.url = f"{pages.url}/a/../b%41"
    haul.Session().send(request)
    for paginate in (None, "link"):
        (result,) = haul.fetch_many([request], paginate=paginate)
        result.raise_for_status()

    async def send() -> None:
        async with haul.AsyncSession() as session:
            await session.send(request)
            await session.send(request, stream=True)

    asyncio.run(send())
    assert [path for path, _ in pages.heads] == ["/a/../b%41"] * 5


@pytest.mark.parametrize("path", ["/a%20b?discount=100%", "/100%?q=a%20b", "/a%20b?q=%41%zz"])
def test_lone_percent_affects_one_part_of_a_url(path: str, pages: Any) -> None:
    requests.get(pages.url + path)
    haul.get(pages.url + path)
    (result,) = haul.fetch_many([pages.url + path])
    result.raise_for_status()
    assert len({path for path, _ in pages.heads}) == 1


def test_lone_percent_in_location_keeps_its_escapes(pages: Any) -> None:
    pages.routes["/on"] = lambda handler: handler.answer(b"", 302, Location="/a%20b?discount=100%")
    haul.get(f"{pages.url}/on")
    assert pages.heads[-1][0] == "/a%20b?discount=100%25"


def test_user_of_a_url_may_contain_at_signs(pages: Any) -> None:
    url = pages.url.replace("//", "//me@corp.com:p@w@")
    for kind in (requests, haul):
        assert kind.get(url).url == pages.url.replace("//", "//me%40corp.com:p%40w@") + "/"
    values = {dict(fields)["Authorization"] for _, fields in pages.heads}
    assert len(pages.heads) == 2 and len(values) == 1


def test_url_without_host_is_refused() -> None:
    for url in ("http:///x", "http://?x", "https://"):
        with pytest.raises(haul.exceptions.InvalidURL, match="No host supplied"):
            haul.get(url)
