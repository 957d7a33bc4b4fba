"""haul.select, haul.select_json, and the same arguments of fetch_many."""

from __future__ import annotations

from typing import Any

import pytest

import haul

PAGE = "<title>T</title><h1>One\n <b>&amp;</b> two</h1><a class=x href='a?b&amp;c'>1</a><a class=x href=mailto:d>2</a>"


def test_text_and_attributes_are_selected() -> None:
    assert haul.select(PAGE, "h1") == ["One & two"]
    assert haul.select(PAGE, "a.x@href") == ["a?b&c", "mailto:d"]
    assert haul.select(PAGE, "a.x@href", url="http://h/d/e") == ["http://h/d/a?b&c", "mailto:d"]
    assert haul.select(PAGE, ["a", "title"]) == ["T", "1", "2"]
    assert haul.select(PAGE.encode(), "a@href", extract="[?](.)") == ["b"]
    assert haul.select("<p>caf\u00e9", "p") == ["caf\u00e9"] == haul.select(b"<p>caf\xe9", "p")
    assert haul.select("", "p") == []


def test_json_values_keep_their_types() -> None:
    text = '{"a": [1, 2.5, "x\\n", null, true, {"b": []}, ""]}'
    assert haul.select_json(text, "$.a[*]") == [1, 2.5, "x\n", None, True, {"b": []}, ""]
    assert haul.select_json('{"a":1}\n{"a":"2"}', "$.a") == [1, "2"]
    assert haul.select_json(text, "$.a[*]", extract="[0-9]") == ["1", "2", "5"]


def test_named_queries_give_a_dict() -> None:
    assert haul.select(PAGE, {"title": "h1", "links": "a@href", "none": "i"}) == {
        "title": ["One & two"], "links": ["a?b&c", "mailto:d"], "none": [],
    }  # fmt: skip
    assert haul.select_json('{"a":1}\n{"a":[2],"b":"3"}', {"x": "$.b", "y": "$.a"}) == {"x": ["3"], "y": [1, [2]]}
    assert haul.select(PAGE, {"host": "a@href"}, extract="^[a-z]+") == {"host": ["a", "mailto"]}


def test_malformed_queries_and_pages_are_value_errors() -> None:
    for call in (lambda: haul.select("", "a["), lambda: haul.select("", "p:last-child"), lambda: haul.select("", []),
                 lambda: haul.select("", "a", extract="("), lambda: haul.select_json("", "x"),
                 lambda: haul.select("", "a", url="ftp://h/")):  # fmt: skip
        with pytest.raises(ValueError):
            call()
    with pytest.raises(ValueError, match="line 2 column 1"):
        haul.select_json("{}\n<", "$.a")


def test_responses_give_their_url_and_charset(pages: Any) -> None:
    response = haul.get(f"{pages.url}/dir/page")
    assert haul.select(response, "nothing") == []


def test_fetch_many_selects_from_each_page(pages: Any) -> None:
    urls = [f"{pages.url}/{i}" for i in range(20)] + ["http://127.0.0.1:1/"]
    found = list(haul.fetch_many(urls, select="body"))
    assert [result.values for result in found[:20]] == [[f"page /{i}"] for i in range(20)]
    with pytest.raises(AttributeError, match="the request failed"):
        found[20].values
    with pytest.raises(ValueError):
        next(haul.fetch_many(urls, select="a["))
    with pytest.raises(ValueError):
        haul.fetch_many(urls, select="a", select_json="$")
    named = next(haul.fetch_many(urls, select={"text": "body"}))
    assert named.values == {"text": ["page /0"]}
    results = list(haul.fetch_many(urls[:2], select_json="$"))
    with pytest.raises(ValueError, match="not JSON"):
        results[0].values
    with pytest.raises(AttributeError, match="without select"):
        next(haul.fetch_many(urls[:1])).values
