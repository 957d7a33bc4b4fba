"""Exceptions: classes, pickling, missing names."""

from __future__ import annotations

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
    for name in haul.exceptions.__all__:
        ours, theirs = getattr(haul.exceptions, name), getattr(requests.exceptions, name)
        bases = {base.__name__ for base in theirs.__mro__ if base.__module__.startswith(("requests", "builtins"))}
        assert bases <= {base.__name__ for base in ours.__mro__} | {"CompatJSONDecodeError"}, name
