"""Headers that cannot be sent."""

from __future__ import annotations

from typing import Any

import pytest
import requests

import haul
from haul.adapters import HaulAdapter


@pytest.mark.parametrize("value", ["a\r\nb", "a\nb", " a", b"a\nb", 5, 1.5, ["a"]])
def test_headers_that_cannot_be_sent(pages: Any, value: Any) -> None:
    for headers in ({"X-A": value}, *([{value: "v"}] if isinstance(value, (str, bytes)) else [])):
        with pytest.raises(haul.exceptions.InvalidHeader):
            haul.get(pages.url, headers=headers)
    assert pages.heads == []


def over_adapter() -> requests.Session:
    session = requests.Session()
    session.mount("http://", HaulAdapter())
    return session


@pytest.mark.parametrize("make", [haul.Session, over_adapter])
def test_invalid_header_shows_no_value(make: Any, pages: Any) -> None:
    for headers in ({"X-Token": "secret\r\nX: 1"}, {"X-Token": b"secret\0"}, {"X-Token": ["secret"]}, {"X-Token: secret": "v"}):
        prepared = haul.Request("GET", pages.url).prepare() if make is haul.Session else requests.Request("GET", pages.url).prepare()
        prepared.headers.update(headers)
        for send in (lambda: haul.get(pages.url, headers=headers), lambda: make().send(prepared)):
            with pytest.raises((haul.exceptions.InvalidHeader, requests.exceptions.InvalidHeader)) as caught:
                send()
            assert "X-Token" in str(caught.value) and "secret" not in repr(caught.value)
    failed = next(haul.fetch_many([haul.Request("GET", pages.url, headers={"X-Token": " secret"})]))
    assert "X-Token" in repr(failed) and "secret" not in repr(failed)


def test_a_headers_name_that_cannot_be_sent(pages: Any) -> None:
    for name in ("a b", "a:b", "", "é", b"a b"):
        for kwargs in ({}, {"stream": True}, {"data": iter([b"a"])}):
            with pytest.raises(haul.exceptions.InvalidHeader):
                haul.post(pages.url, headers={name: "v"}, **kwargs)
    assert pages.heads == []
