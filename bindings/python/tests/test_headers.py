"""Request headers: merging, and refused values."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import requests

import haul
from conftest import make_adapter_session
from haul.structures import CaseInsensitiveDict


@pytest.mark.parametrize("header", [{"a[b]": "1"}, {"a b": "1"}, {"a": "1\0"}])
def test_invalid_header_opens_no_connection(
    adapter_session: requests.Session, pages: Any, header: dict[str, str]
) -> None:
    # A server that handles one connection at a time would wait for a request that never comes.
    for its, error in ((adapter_session, requests.exceptions.InvalidHeader), (haul.Session(), haul.exceptions.InvalidHeader)):
        for stream in (False, True):
            with pytest.raises(error, match="in header"):
                its.get(pages.url, headers=header, stream=stream)
    assert pages.connections == 0


def test_request_parameters_and_headers_override_the_session(pages: Any) -> None:
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


def test_case_insensitive_dict_keeps_the_last_spelling() -> None:
    fields = CaseInsensitiveDict({"Content-Type": "a"}, Accept="b")
    fields["CONTENT-TYPE"] = "c"
    assert list(fields.items()) == [("CONTENT-TYPE", "c"), ("Accept", "b")]
    assert fields == {"content-type": "c", "accept": "b"} and "accept" in fields and len(fields) == 2
    del fields["ACCEPT"]
    assert fields.copy() == fields and fields.get("accept") is None
    assert pickle.loads(pickle.dumps(fields)) == fields


@pytest.mark.parametrize("value", ["a\r\nb", "a\nb", " a", b"a\nb", 5, 1.5, ["a"]])
def test_invalid_header_values_are_refused(pages: Any, value: Any) -> None:
    for headers in ({"X-A": value}, *([{value: "v"}] if isinstance(value, (str, bytes)) else [])):
        with pytest.raises(haul.exceptions.InvalidHeader):
            haul.get(pages.url, headers=headers)
    assert pages.heads == []


@pytest.mark.parametrize("make", [haul.Session, make_adapter_session])
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


def test_invalid_header_names_are_refused(pages: Any) -> None:
    for name in ("a b", "a:b", "", "é", b"a b"):
        for kwargs in ({}, {"stream": True}, {"data": iter([b"a"])}):
            with pytest.raises(haul.exceptions.InvalidHeader):
                haul.post(pages.url, headers={name: "v"}, **kwargs)
    assert pages.heads == []


def test_changed_header_has_a_new_version_after_the_change() -> None:
    class Name(str):
        def lower(self) -> str:
            versions.append(fields._version)
            return super().lower()

    fields, versions = CaseInsensitiveDict(), list[int]()
    name = Name("X-One")
    fields[name] = "old"
    before = fields._version
    versions.clear()
    fields[name] = "new"
    del fields[name]
    assert versions[0] == before < versions[1] < fields._version


def test_headers_assigned_during_a_request_are_sent_next(pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session, make = haul.Session(), haul._engine_calls.SharedOptions
    session.headers = {"X-Tenant": "a"}

    def make_slowly(*args: Any, **settings: Any) -> Any:
        # Another thread assigns the headers before the options are stored.
        options = make(*args, **settings)
        if session.headers["X-Tenant"] == "a":
            session.headers = {"X-Tenant": "b"}
        return options

    monkeypatch.setattr(haul._engine_calls, "SharedOptions", make_slowly)
    session.get(pages.url)
    session.get(pages.url)
    list(haul.fetch_many([pages.url], session=session))
    assert [CaseInsensitiveDict(fields)["x-tenant"] for _, fields in pages.heads] == ["a", "b", "b"]


def test_headers_may_change_while_they_are_read(pages: Any) -> None:
    class Growing(CaseInsensitiveDict):
        def __getitem__(self, key: str) -> Any:
            # Another thread adds a header.
            self._store["x-late"] = "X-Late", "2"
            return super().__getitem__(key)

    session = haul.Session()
    session.headers = Growing({"X-One": "1", "X-Two": "2"})
    assert session.get(pages.url).ok
    assert CaseInsensitiveDict(pages.heads[-1][1])["x-two"] == "2"


def test_copied_headers_have_versions_of_their_own() -> None:
    fields = CaseInsensitiveDict({"X-One": "1"})
    assert len({fields._version, fields.copy()._version, copy.copy(fields)._version, CaseInsensitiveDict(fields)._version}) == 4
