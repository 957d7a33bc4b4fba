"""fetch_many."""

from __future__ import annotations

import copy
import inspect
import itertools
import pickle
import random
import resource
import socket
import threading
import time
from typing import Any

import pytest

import haul


def test_results_come_in_order(pages: Any) -> None:
    session = haul.Session()
    found = list(haul.fetch_many((f"{pages.url}/{i}" for i in range(500)), 8, session=session))
    assert [result.index for result in found] == list(range(500))
    assert all(result.text == f"page /{i}" for i, result in enumerate(found))
    assert pages.most_open <= 8


def test_unordered_results_come_as_they_complete(pages: Any) -> None:
    urls = [f"{pages.url}/wait", *(f"{pages.url}/{i}" for i in range(20))]
    found = [result.index for result in haul.fetch_many(urls, 4, ordered=False)]
    assert sorted(found) == list(range(21)) and found[0] != 0


def test_failed_requests_keep_their_position(pages: Any) -> None:
    items = [f"{pages.url}/a", "no url", haul.Request("POST", f"{pages.url}/b", data={"a": "1"}), "http://127.0.0.1:1/",
             {"url": f"{pages.url}/c", "params": {"q": 1}}]  # fmt: skip
    found = list(haul.fetch_many(items, 2))
    assert [bool(result) for result in found] == [True, False, True, False, True]
    assert isinstance(found[1].error, haul.exceptions.MissingSchema) and isinstance(found[3].error, haul.ConnectionError)
    assert found[4].url == f"{pages.url}/c?q=1" and b"a=1" in pages.bodies
    with pytest.raises(haul.ConnectionError):
        found[3].json()
    with pytest.raises(TypeError):
        list(haul.fetch_many([5]))  # type: ignore[list-item]
    with pytest.raises(ValueError):
        haul.fetch_many([], 0)


def test_dict_items_have_their_own_settings(pages: Any) -> None:
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location="/x")
    items = [
        {"url": f"{pages.url}/never", "timeout": 0.1},
        {"url": f"{pages.url}/away", "allow_redirects": False},
        {"url": f"{pages.url}/away", "method": "POST", "json": [1], "verify": False},
    ]
    late, stays, goes = haul.fetch_many(items, timeout=20)
    assert isinstance(late.error, haul.ReadTimeout)
    assert (stays.status_code, goes.url) == (302, f"{pages.url}/x")
    for one in (pages.url, items[0]):
        with pytest.raises(TypeError, match="not one"):
            haul.fetch_many(one)  # type: ignore[arg-type]


def test_endless_input_is_consumed_lazily(pages: Any) -> None:
    taken = itertools.count()
    results = haul.fetch_many((f"{pages.url}/{i}" for i in taken), 4)
    for _, result in zip(range(50), results):
        assert result.ok
    assert next(taken) < 100
    results.close()  # type: ignore[attr-defined]


def test_redirects_and_cookies_of_the_session_are_used(pages: Any) -> None:
    pages.routes["/set"] = lambda handler: handler.answer(b"", 302, Location="/next", Set_Cookie="a=b; Path=/")
    session = haul.Session()
    session.headers["X-Ours"] = "1"
    (result,) = haul.fetch_many([f"{pages.url}/set"], session=session)
    assert (result.url, result.text) == (f"{pages.url}/next", "page /next")
    sent = dict(pages.heads[-1][1])
    assert sent["Cookie"] == "a=b" and sent["X-Ours"] == "1" and session.cookies["a"] == "b"
    (kept,) = haul.fetch_many([f"{pages.url}/set"], allow_redirects=False)
    assert kept.status_code == 302


def test_replaced_cookie_jar_is_used_at_once(pages: Any) -> None:
    pages.routes["/set"] = lambda handler: handler.answer(b"", Set_Cookie="a=b; Path=/")
    session = haul.Session()
    for _ in range(20):
        # The new jar may have the address of a former one.
        session.cookies = {}
        (result,) = haul.fetch_many([f"{pages.url}/set"], session=session)
        assert "Cookie" not in dict(pages.heads[-1][1]) and session.cookies["a"] == "b", result


def test_memory_for_bodies_is_bounded(pages: Any) -> None:
    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    size = 1_000_000
    list(haul.fetch_many([f"{pages.url}/bytes/{size}"] * 4, 4))
    before = peak()
    total = 0
    for result in haul.fetch_many([f"{pages.url}/bytes/{size}"] * 200, 8, max_memory=4 << 20):
        total += len(result.content)
    assert total == 200 * size
    # The server runs in this process, too.
    assert peak() - before < 64 << 10, "KiB"


def test_unread_bodies_survive_later_ones(pages: Any) -> None:
    # More bodies than a batch keeps read buffers. Their lengths are from one byte to three read buffers of 128 KiB.
    content = random.Random(1).randbytes(2 << 20)
    bodies = [content[i * 4096 :][: 1 + (i * 37_717) % 400_000] for i in range(160)]
    pages.routes["/part"] = lambda handler: handler.answer(bodies[int(handler.path.partition("?")[2])])
    found = list(haul.fetch_many([f"{pages.url}/part?{i}" for i in range(len(bodies))], 8))
    assert [result.content for result in found] == bodies
    assert all(result.content is result.content for result in found)


def test_slow_upload_does_not_delay_other_requests(pages: Any) -> None:
    others_came = threading.Event()

    def slowly() -> Any:
        yield b"a"
        assert others_came.wait(30)
        yield b"b"

    items = [haul.Request("POST", f"{pages.url}/slow", data=slowly()), *(f"{pages.url}/{i}" for i in range(5))]
    came = []
    for result in haul.fetch_many(items, 2, ordered=False):
        assert result.ok
        came.append(result.index)
        if len(came) == 5:
            others_came.set()
    assert came[-1] == 0 and pages.bodies[-1] == b"ab"


def test_failed_result_can_be_copied_and_inspected(pages: Any) -> None:
    failed, fetched = haul.fetch_many(["http://127.0.0.1:1/", f"{pages.url}/x"])
    for one in (failed, fetched):
        for copied in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert copied.index == one.index and type(copied.error) is type(one.error) and bool(copied) is bool(one)
        assert not hasattr(one, "no_such_name") and not hasattr(one, "__len__") and hasattr(one, "error")
        assert {"index", "request", "response", "error", "unwrap"} <= set(dir(one))
        assert dict(inspect.getmembers(one))["index"] == one.index
    assert "content" in dir(fetched) and "content" not in dir(failed)
    assert not hasattr(haul.many.Result.__new__(haul.many.Result), "error")
    assert not hasattr(haul.many.Result.__new__(haul.many.Result), "request")


def test_failed_result_lacks_values_of_response() -> None:
    (failed,) = haul.fetch_many(["http://127.0.0.1:1/"], select="h1")
    methods = {"iter_content", "iter_lines", "json", "raise_for_status", "close"}
    for one in (failed, copy.copy(failed), pickle.loads(pickle.dumps(failed))):
        names = {name for name in dir(haul.Response) if not name.startswith("_")} | {"values"}
        assert {name for name in names if hasattr(one, name)} == methods | {"ok", "request"}
        assert methods | {"ok"} <= set(dir(one)) and one.ok is False
        assert getattr(one, "text", "none") == "none" and one.close() is None
        for name in ("text", "status_code", "values"):
            with pytest.raises(AttributeError, match=f"has no '{name}': ConnectionError") as raised:
                getattr(one, name)
            assert raised.value.__cause__ is one.error


def test_methods_of_failed_result_raise_its_error() -> None:
    (failed,) = haul.fetch_many(["http://127.0.0.1:1/"])
    for call in (failed.raise_for_status, failed.json, failed.iter_lines, lambda: failed.iter_content(9), failed.unwrap):
        with pytest.raises(haul.ConnectionError) as raised:
            call()
        assert raised.value is failed.error


def test_result_is_ok_unless_status_is_error(pages: Any) -> None:
    pages.routes["/missing"] = lambda request: request.answer(b"", 404)
    fetched, missing = haul.fetch_many([f"{pages.url}/x", f"{pages.url}/missing"])
    assert fetched.ok and bool(missing) and missing.ok is False
    with pytest.raises(haul.HTTPError):
        missing.raise_for_status()


def test_exception_class_ignores_earlier_redirects(pages: Any, raw: Any, secure_pages: Any) -> None:
    refused = socket.create_server(("127.0.0.1", 0))
    refused_url = f"http://127.0.0.1:{refused.getsockname()[1]}/"
    refused.close()
    urls = {
        "refused": refused_url,
        "certificate": secure_pages.url,
        "silent": f"{pages.url}/never",
        "empty": raw(b"").url,
        "head": raw(b"HTTP/1.1 200 OK\r\nX: y").url,
        "body": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc").url,
        "name": "http://nowhere.invalid/",
    }
    for name, url in urls.items():
        pages.routes[f"/to/{name}"] = lambda handler, url=url: handler.answer(b"", 302, Location=url)
    for name, url in urls.items():
        direct, behind = haul.fetch_many([url, f"{pages.url}/to/{name}"], timeout=0.5)
        with pytest.raises(haul.RequestException) as caught:
            haul.get(url, timeout=0.5)
        assert type(behind.error) is type(direct.error) is type(caught.value), (name, behind.error, direct.error)


@pytest.mark.parametrize("limits", [{"rate": 20}, {"rate_host": 20.0}, {"limit_rate_total": 400}])
def test_limits_delay_requests(pages: Any, limits: dict[str, Any]) -> None:
    began = time.monotonic()
    found = list(haul.fetch_many([f"{pages.url}/{'x' * 100}"] * 5, **limits))
    assert all(found) and time.monotonic() - began >= 0.199


def test_stall_time_ends_a_silent_request(pages: Any) -> None:
    urls = [f"{pages.url}/never", f"{pages.url}/a"]
    silent, good = haul.fetch_many(urls, stall_time=0.3)
    assert isinstance(silent.error, haul.ReadTimeout) and good.text == "page /a"


@pytest.mark.parametrize("name", ["rate", "rate_host", "limit_rate_total", "stall_time"])
def test_limits_have_to_be_positive(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        haul.fetch_many([], **{name: 0})
    with pytest.raises(ValueError, match=name):
        haul.AsyncSession(**{name: -1})


def test_hooks_of_items_and_sessions_are_called(pages: Any) -> None:
    pages.routes["/missing"] = lambda handler: handler.answer(b"", 404)
    seen: list[Any] = []

    def check(response: haul.Response, **settings: Any) -> None:
        seen.append(response.url)
        response.raise_for_status()

    session = haul.Session()
    items: list[Any] = [
        {"url": f"{pages.url}/a", "hooks": {"response": check}},
        haul.Request("GET", f"{pages.url}/missing", hooks={"response": check}),
        f"{pages.url}/missing",
    ]
    results = list(haul.fetch_many(items, session=session))
    assert [type(result.error) for result in results] == [type(None), haul.HTTPError, type(None)]
    session.hooks["response"].append(check)
    (last,) = haul.fetch_many(items[2:], session=session)
    assert isinstance(last.error, haul.HTTPError)
    assert seen == [f"{pages.url}/a", f"{pages.url}/missing", f"{pages.url}/missing"]


def test_hook_may_replace_the_response(pages: Any) -> None:
    other = haul.testing.response(content="other")
    (result,) = haul.fetch_many([{"url": pages.url, "hooks": {"response": lambda response, **settings: other}}])
    assert result.text == "other"


@pytest.mark.parametrize("paginate", [None, "link"])
def test_item_without_text_is_a_failed_result(paginate: str | None, pages: Any) -> None:
    items = [f"{pages.url}/a", "http://h/\udc80", b"http://h/\xff", f"{pages.url}/b"]
    results = list(haul.fetch_many(items, paginate=paginate))
    assert [result.ok for result in results] == [True, False, False, True]
    assert [type(result.error) for result in results[1:3]] == [UnicodeEncodeError, UnicodeDecodeError]


def test_items_may_be_bytes_and_subclasses_of_text(pages: Any) -> None:
    class Text(str):
        pass

    results = haul.fetch_many([Text(f"{pages.url}/a"), f"{pages.url}/b".encode()])
    assert [result.text for result in results] == ["page /a", "page /b"]


def test_headers_set_before_an_item_are_sent(pages: Any) -> None:
    session = haul.Session()

    def urls() -> Any:
        for number in range(6):
            if number == 4:
                session.headers = {"X-Number": "4"}
            session.headers["X-Number"] = str(number)
            yield f"{pages.url}/{number}"

    assert all(haul.fetch_many(urls(), session=session))
    assert {path: dict(fields)["X-Number"] for path, fields in pages.heads} == {f"/{number}": str(number) for number in range(6)}
