"""Result.record: the names of ``haul --jsonl``."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

import haul

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/records.schema.json").read_text())
validate = fastjsonschema.compile(SCHEMA)


def record(result: Any, **kwargs: Any) -> dict[str, Any]:
    found = result.record(**kwargs)
    validate(found)
    assert json.loads(json.dumps(found)) == found
    return found  # type: ignore[no-any-return]


def test_record_has_the_facts_of_a_request(pages: Any) -> None:
    fields = {"X_A": "1", "Content_Type": "text/plain; charset=utf-8"}
    pages.routes["/a"] = lambda handler: handler.answer("caf\u00e9".encode(), 404, **fields)
    (result,) = haul.fetch_many([{"method": "PUT", "url": f"{pages.url}/a?q=1#f", "data": b"sent"}])
    found = record(result)
    assert found["url"] == found["effective_url"] == f"{pages.url}/a?q=1#f"
    assert (found["method"], found["status"], found["http_version"]) == ("PUT", 404, "1.1")
    assert found["headers"]["x-a"] == ["1"] and found["body"] == "caf\u00e9" and found["error"] is None
    assert found["attempts"] == {"count": 1, "failed": []} and found["tls"] is None
    assert found["bytes"]["uploaded"] == 4 and found["bytes"]["body"] == 5
    assert found["addresses"]["remote_port"] == pages.server_port
    assert 0 < found["times"]["starttransfer"] <= found["times"]["total"]
    assert "body" not in record(result, body=False)


def test_bodies_are_text_or_base64(pages: Any) -> None:
    pages.routes["/latin"] = lambda handler: handler.answer(b"caf\xe9", Content_Type="text/plain; charset=iso-8859-1")
    pages.routes["/bytes"] = lambda handler: handler.answer(b"\xff\x00", Content_Type="image/png")
    latin, binary, empty = haul.fetch_many(f"{pages.url}/{name}" for name in ("latin", "bytes", "bytes/0"))
    assert record(latin)["body"] == "caf\u00e9"
    assert record(binary)["body_base64"] == "/wA=" and "body" not in record(binary)
    assert record(empty)["body"] == ""


def test_redirects_are_recorded_without_userinfo(pages: Any) -> None:
    pages.routes["/from"] = lambda handler: handler.answer(b"", 302, Location="/to#x")
    (result,) = haul.fetch_many([f"{pages.url}/from".replace("//", "//me:word@")])
    found = record(result)
    assert (found["url"], found["effective_url"]) == (f"{pages.url}/from", f"{pages.url}/to#x")
    assert found["redirects"] == [{"url": f"{pages.url}/from", "status": 302, "location": "/to#x"}]
    assert "word" not in json.dumps(found)


def test_failed_requests_have_records(pages: Any, raw: Any) -> None:
    cut = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nX-A: b\r\n\r\nabc")
    items: list[Any] = [
        "http://127.0.0.1:1/x", cut.url, "no url", "ftp://me:word@h/", {"url": "http://h/", "headers": {"a b": "c"}},
    ]  # fmt: skip
    refused, short, no_url, scheme, header = (record(result) for result in haul.fetch_many(items))
    assert (refused["error"]["code"], refused["error"]["name"], refused["status"]) == (7, "connect", None)
    assert (refused["url"], refused["attempts"]["count"]) == ("http://127.0.0.1:1/x", 1)
    assert (short["error"]["code"], short["error"]["name"], short["status"]) == (18, "partial_body", 200)
    assert short["headers"]["x-a"] == ["b"] and short["bytes"]["body"] == 3 and "body" not in short
    assert (no_url["error"]["code"], no_url["error"]["name"], no_url["url"]) == (3, "url", "no url")
    assert (scheme["error"]["code"], scheme["error"]["name"], scheme["url"]) == (1, "unsupported_scheme", "ftp://h/")
    assert (header["error"]["code"], header["error"]["name"], header["url"]) == (2, "setup", "http://h/")
    assert {found["attempts"]["count"] for found in (no_url, scheme, header)} == {0}


def test_values_take_the_place_of_bodies(pages: Any) -> None:
    pages.routes["/json"] = lambda handler: handler.answer(b'{"a": [1, "x", {"b": null}]}')
    urls = [f"{pages.url}/json", f"{pages.url}/text"]
    good, bad = haul.fetch_many(urls, select_json={"a": "$.a[*]"})
    assert record(good)["values"] == {"a": ["1", "x", '{"b":null}']} and "body" not in record(good)
    error = record(bad)["error"]
    assert (error["code"], error["name"]) == (61, "content_coding") and "not JSON" in error["message"]
    assert record(next(haul.fetch_many(urls, select="body")))["values"] == ['{"a": [1, "x", {"b": null}]}']


def test_pages_of_listings_have_records(pages: Any) -> None:
    pages.routes["/a"] = lambda handler: handler.answer(b"a", Link="<http://other.example/>; rel=next")
    first, second = haul.fetch_many([f"{pages.url}/a"], paginate="link")
    assert record(first)["url"] == f"{pages.url}/a"
    assert (record(second)["error"]["code"], record(second)["error"]["name"]) == (3, "url")


@pytest.mark.parametrize("path", ["/page", "/refused"])
def test_copies_keep_the_record(pages: Any, path: str) -> None:
    url = pages.url if path == "/page" else "http://127.0.0.1:1"
    (result,) = haul.fetch_many([f"{url}{path}"], select={"all": "body"})
    for copied in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert record(copied) == record(result)


@pytest.mark.parametrize("paginate", [None, "link"])
def test_record_has_the_transfer_despite_hooks(paginate: str | None, pages: Any) -> None:
    pages.routes["/no"] = lambda handler: handler.answer(b"no", 500)
    hooks: list[Any] = [lambda response, **_: response.raise_for_status(), lambda response, **_: haul.testing.response(content="other")]
    items = [{"url": f"{pages.url}/no", "hooks": {"response": hook}} for hook in hooks]
    raised, replaced = haul.fetch_many(items, paginate=paginate)
    found = record(raised)
    assert (found["status"], found["bytes"]["body"], found["attempts"]["count"]) == (500, 2, 1)
    assert found["error"]["message"] == str(raised.error)
    found = record(replaced)
    assert (found["status"], found["body"], found["error"]) == (500, "other", None)


def test_record_of_a_mounted_answer_has_no_error(haul_mock: Any) -> None:
    haul_mock.get("https://a.example/", haul.testing.response(201, "made"))
    (result,) = haul.fetch_many(["https://a.example/"])
    found = record(result)
    assert (found["status"], found["body"], found["error"]) == (201, "made", None)
