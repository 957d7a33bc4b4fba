"""fetch_many(..., paginate=...)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import haul
from haul.exceptions import PaginationError, PaginationWarning
from haul.testing import Mock, response

TOTAL, SIZE = 7, 3


def serve(server: Any, first: Any = None) -> None:
    """Adds listings of all kinds to a server."""

    def query(handler: Any) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(handler.path).query, keep_blank_values=True).items()}

    def items(at: int, total: int) -> list[int]:
        return list(range(at, min(at + SIZE, total)))

    def link(handler: Any) -> None:
        asked = query(handler)
        page, total = int(asked.get("page", 1)), int(asked.get("total", TOTAL))
        fields = {}
        if page * SIZE < total:
            fields["Link"] = f'</none>; rel="prev", <?total={total}&page={page + 1}>; rel="last next"'
        handler.answer(json.dumps(items((page - 1) * SIZE, total)).encode(), **fields)

    def url(handler: Any) -> None:
        page = int(query(handler).get("page", 1))
        following = f"{server.url}/url?page={page + 1}" if page * SIZE < TOTAL else None
        handler.answer(json.dumps({"items": items((page - 1) * SIZE, TOTAL), "links": {"next": following}}).encode())

    def cursor(handler: Any) -> None:
        at = int((query(handler).get("after") or "<0>").strip("<>"))
        following = f"<{at + SIZE}>" if at + SIZE < TOTAL else ""
        handler.answer(json.dumps({"items": items(at, TOTAL), "cursor": following}).encode())

    def count(handler: Any) -> None:
        page = int(query(handler).get("page", 1))
        found = items((page - 1) * SIZE, TOTAL)
        if not found and "missing" in query(handler):
            handler.answer(b"no", 404)
        else:
            handler.answer(json.dumps(found).encode())

    def html(handler: Any) -> None:
        page = int(query(handler).get("page", 1))
        found = items((page - 1) * SIZE, TOTAL)
        text = "".join(f"<li><a href='item/{item}'>item {item}</a></li>" for item in found)
        if page * SIZE < TOTAL:
            text += f"<a rel=next href='?page={page + 1}&amp;x=1#top'>more</a><b>{page + 1}</b>"
        handler.answer(text.encode(), Content_Type="text/html")

    server.routes.update({"/link": link, "/url": url, "/cursor": cursor, "/count": count, "/html": html})


def numbers(results: Any) -> list[int]:
    pages = [result.json() for result in results]
    return [number for page in pages for number in (page if isinstance(page, list) else page["items"])]


@pytest.mark.parametrize(
    ("path", "paginate"),
    [
        ("/link", "link"),
        ("/link", {"link": True}),
        ("/url", "$.links.next"),
        ("/cursor?after=", {"json": "$.cursor", "query": "after"}),
        ("/count", haul.Pagination(query="page")),
        ("/count?missing", {"query": "page"}),
    ],
)
@pytest.mark.parametrize("ordered", [True, False])
def test_each_kind_of_paging_yields_all_items(pages: Any, path: str, paginate: Any, ordered: bool) -> None:
    serve(pages)
    results = list(haul.fetch_many([pages.url + path], paginate=paginate, ordered=ordered))
    assert numbers(results) == list(range(TOTAL))
    assert [result.page for result in results] == list(range(1, len(results) + 1))
    assert {result.index for result in results} == {0} and len({path for path, _ in pages.heads}) == len(pages.heads)


@pytest.mark.parametrize("paginate", ["a[rel=next]@href", {"css": "b", "query": "page"}, {"query": "page"}])
def test_html_listings_end_at_the_last_page(pages: Any, paginate: Any) -> None:
    serve(pages)
    select = {"name": "li > a", "link": "li > a@href"}
    results = list(haul.fetch_many([f"{pages.url}/html"], paginate=paginate, select=select))
    values = [result.values for result in results]
    assert [name for page in values for name in page["name"]] == [f"item {number}" for number in range(TOTAL)]
    assert values[0]["link"] == [f"{pages.url}/item/{number}" for number in range(SIZE)]
    # A counted listing has a page without values at its end.
    assert len(results) == len(pages.heads) == (4 if paginate == {"query": "page"} else 3)


def test_listings_come_in_order_within_any_memory(pages: Any) -> None:
    serve(pages)
    totals = [number * 5 % 17 for number in range(30)]
    urls = [f"{pages.url}/link?total={total}" for total in totals]
    expected = [number for total in totals for number in range(total)]
    for memory in (64 << 20, 1):
        results = list(haul.fetch_many(iter(urls), 8, paginate="link", max_memory=memory))
        assert numbers(results) == expected
        assert [result.index for result in results] == sorted(result.index for result in results)
    found = sorted(numbers(haul.fetch_many(urls, 8, paginate="link", ordered=False)))
    assert found == sorted(expected)


def test_failures_end_their_listing_only(pages: Any) -> None:
    serve(pages)
    pages.routes["/text"] = lambda handler: handler.answer(b"no JSON")
    items = [f"{pages.url}/text", "no url", "http://127.0.0.1:1/", f"{pages.url}/url"]
    results = list(haul.fetch_many(items, paginate="$.links.next"))
    assert [(result.index, result.page, bool(result)) for result in results] == [
        (0, 1, True), (0, 2, False), (1, 1, False), (2, 1, False), (3, 1, True), (3, 2, True), (3, 3, True),
    ]  # fmt: skip
    assert isinstance(results[1].error, PaginationError) and "not JSON" in str(results[1].error)
    pages.routes["/broken"] = lambda handler: handler.answer(b"[]", 500)
    (only,) = haul.fetch_many([f"{pages.url}/broken"], paginate={"query": "page"})
    assert only.status_code == 500


def test_loop_ends_with_a_warning(pages: Any) -> None:
    pages.routes["/loop"] = lambda handler: handler.answer(b"x", Link="</loop>; rel=next")
    with pytest.warns(PaginationWarning, match="already fetched"):
        results = list(haul.fetch_many([f"{pages.url}/loop"], paginate="link"))
    assert len(results) == 1


def test_other_origin_gets_no_credentials(pages: Any) -> None:
    other = pages.url.replace("localhost", "127.0.0.1")
    pages.routes["/a"] = lambda handler: handler.answer(b"a", Link=f"<{other}/b>; rel=next")
    pages.routes["/b"] = lambda handler: handler.answer(b"b", Link=f"<{pages.url}/c>; rel=next")
    session = haul.Session()
    session.headers["X-Api-Key"] = "k"
    session.auth = ("me", "secret")
    refused = list(haul.fetch_many([f"{pages.url}/a"], paginate="link", session=session))
    assert isinstance(refused[1].error, PaginationError) and "another origin" in str(refused[1].error)
    results = haul.fetch_many([f"{pages.url}/a"], paginate={"link": True, "any_origin": True}, session=session)
    assert [result.text for result in results] == ["a", "b", "page /c"]
    sent = {path: {name.lower() for name, _ in fields} for path, fields in pages.heads}
    for path, is_ours in {"/a": True, "/b": False, "/c": True}.items():
        assert ({"authorization", "x-api-key"} <= sent[path]) is is_ours, path
        assert is_ours or not {"authorization", "x-api-key"} & sent[path]


def test_requests_keep_method_and_body(pages: Any) -> None:
    serve(pages)
    request = haul.Request("POST", f"{pages.url}/link", json={"a": 1}, headers={"X-Ours": "1"})
    results = list(haul.fetch_many([request], paginate="link"))
    assert numbers(results) == list(range(TOTAL)) and set(pages.bodies) == {b'{"a": 1}'}
    assert all(dict(fields)["X-Ours"] == "1" for _, fields in pages.heads)


def test_cookies_of_a_page_are_sent_to_the_next(pages: Any) -> None:
    pages.routes["/a"] = lambda handler: handler.answer(b"a", Link="</b>; rel=next", Set_Cookie="seen=1")
    session = haul.Session()
    assert len(list(haul.fetch_many([f"{pages.url}/a"], paginate="link", session=session))) == 2
    assert dict(pages.heads[-1][1])["Cookie"] == "seen=1"


def test_maximum_number_of_pages_is_kept(pages: Any) -> None:
    serve(pages)
    results = list(haul.fetch_many([f"{pages.url}/link?total=100"], paginate={"link": True, "max_pages": 2}))
    assert numbers(results) == list(range(2 * SIZE))


@pytest.mark.parametrize(
    "paginate",
    ["next", "a[@href", "a:last-child@href", "$[", "", {}, {"links": True}, {"link": True, "json": "$.a"}, {"query": ""},
     {"query": "p:0"}, {"css": "a@href", "json": "$.a"}, {"link": True, "query": "p"}, {"link": True, "max_pages": 0}],
)  # fmt: skip
def test_invalid_pagination_is_a_value_error(paginate: Any) -> None:
    with pytest.raises(ValueError):
        haul.fetch_many([], paginate=paginate)


def test_other_types_are_a_type_error() -> None:
    with pytest.raises(TypeError):
        haul.fetch_many([], paginate=5)  # type: ignore[arg-type]
    assert repr(haul.Pagination(query="page", max_pages=10)) == "Pagination(query='page', max_pages=10)"


def test_response_hooks_of_a_listing_are_called(pages: Any) -> None:
    for number, status in ((1, 200), (2, 404)):
        link = {"Link": f'<{pages.url}/{number + 1}>; rel="next"'}
        pages.routes[f"/{number}"] = lambda handler, status=status, link=link: handler.answer(b"page", status, **link)

    def check(response: haul.Response, **settings: Any) -> None:
        response.raise_for_status()

    item = {"url": f"{pages.url}/1", "hooks": {"response": check}}
    results = list(haul.fetch_many([item], paginate="link"))
    assert [type(result.error) for result in results] == [type(None), haul.HTTPError]


def test_url_with_a_mock_is_not_requested(pages: Any) -> None:
    with Mock() as mock:
        mock.get(f"{pages.url}/link", response(json=[1]))
        results = list(haul.fetch_many([f"{pages.url}/link"], paginate="link"))
    assert "unmount" in str(results[0].error) and len(results) == 1
    assert pages.heads == []
