"""Exceptions: classes, pickling, missing names."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import pytest

import haul


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


def test_http_error_shows_no_password(pages: Any) -> None:
    pages.routes["/404"] = lambda handler: handler.answer(b"gone", 404)
    url = pages.url.replace("//", "//user:secret@")
    client = haul.Client()
    for fetch in (haul.get, client.get):
        for path in ("/404", "/404?at=a@b"):
            with pytest.raises(haul.HTTPError) as caught:
                fetch(url + path).raise_for_status()
            assert str(caught.value).endswith(f"for url: {pages.url}{path}")
    pages.routes["/304"] = lambda handler: handler.answer(b"", 304)
    with pytest.raises(haul.HTTPError) as caught:
        client.get(f"{url}/304").raise_for_status()
    assert "secret" not in str(caught.value)


def test_missing_names_are_errors_with_a_replacement() -> None:
    with pytest.raises(AttributeError, match="urllib3"):
        haul.packages.urllib3.disable_warnings()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="urllib.parse"):
        haul.utils.quote("a b")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'nothing'$"):
        haul.nothing  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(KeyError, match="other.example"):
        haul.cookies.CookieJar().clear("other.example")


def test_exceptions_have_the_base_classes_of_requests() -> None:
    requests = pytest.importorskip("requests")
    for name in filter(functools.partial(hasattr, requests.exceptions), haul.exceptions.__all__):
        ours, theirs = getattr(haul.exceptions, name), getattr(requests.exceptions, name)
        bases = {base.__name__ for base in theirs.__mro__ if base.__module__.startswith(("requests", "builtins"))}
        assert bases <= {base.__name__ for base in ours.__mro__} | {"CompatJSONDecodeError"}, name


def test_error_has_the_prepared_request(pages: Any) -> None:
    import asyncio

    def close(handler: Any) -> None:
        handler.close_connection = True

    pages.routes["/closed"] = close
    session = haul.Session()
    session.headers["X-Own"] = "1"
    session.cookies.set("sid", "31", domain="localhost")

    async def post() -> None:
        async with haul.AsyncSession() as other:
            other.headers, other.cookies = session.headers, session.cookies
            await other.post(f"{pages.url}/closed", json=[1], params={"page": 2})

    for call in (lambda: session.post(f"{pages.url}/closed", json=[1], params={"page": 2}), lambda: asyncio.run(post())):
        with pytest.raises(haul.ConnectionError) as failed:
            call()
        request = failed.value.request
        assert isinstance(request, haul.PreparedRequest)
        assert (request.method, request.url, request.body) == ("POST", f"{pages.url}/closed?page=2", b"[1]")
        assert (request.headers["X-Own"], request.headers["Cookie"]) == ("1", "sid=31")
        pages.routes.pop("/closed", None)
        assert session.send(request).text == "page /closed?page=2"
        pages.routes["/closed"] = close


def test_all_exceptions_are_exported() -> None:
    from haul import exceptions

    names = {name for name, value in vars(exceptions).items() if isinstance(value, type) and value.__module__ == exceptions.__name__}
    assert names - set(exceptions.__all__) <= {"EngineError"}


def test_errors_of_fetch_many_have_their_request() -> None:
    session = haul.Session()
    session.cookies.set("a", "1", domain="127.0.0.1")
    session.cookies.set("b", "2")
    url = "http://127.0.0.1:1/"
    prepared = haul.Request("PUT", url, data=b"x").prepare()
    items: list[Any] = [url, {"method": "PUT", "url": url, "data": b"x"}, prepared]
    for paginate in (None, "link"):
        errors: list[Any] = [result.error for result in haul.fetch_many(items, session=session, paginate=paginate)]
        assert [(error.request.method, error.request.url) for error in errors] == [("GET", url), ("PUT", url), ("PUT", url)]
        assert [error.request.headers.get("Cookie") for error in errors] == ["a=1; b=2", "a=1; b=2", None]
