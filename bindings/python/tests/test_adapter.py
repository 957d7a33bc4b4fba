"""HaulAdapter in a requests.Session."""

from __future__ import annotations

import functools
import pickle
import socket
from typing import Any
from unittest import mock

import pytest
import requests
import urllib3

from haul.adapters import HaulAdapter


def test_adapter_leaves_redirects_and_cookies_to_requests(adapter_session: requests.Session, pages: Any) -> None:
    pages.routes["/set"] = lambda handler: handler.answer(b"", 302, Location="/next", Set_Cookie="a=b; Path=/")
    response = adapter_session.get(pages.url + "/set")
    assert response.text == "page /next" and len(response.history) == 1
    assert adapter_session.cookies.get_dict() == {"a": "b"} and response.history[0].cookies["a"] == "b"
    assert dict(pages.heads[-1][1])["Cookie"] == "a=b"
    assert adapter_session.post(pages.url, data={"a": 1}).ok and pages.bodies[-1] == b"a=1"
    assert adapter_session.post(pages.url, data=iter([b"x", b"y"])).ok and pages.bodies[-1] == b"xy"
    assert pages.connections == 1


def test_adapter_response_has_its_own_cookies_headers_and_history(adapter_session: requests.Session, pages: Any) -> None:
    first, second = adapter_session.get(pages.url), adapter_session.get(pages.url)
    first.cookies.set("a", "b")
    first.headers["X-New"] = "1"
    first.history.append(second)
    assert not second.cookies and "X-New" not in second.headers and not second.history
    copied = pickle.loads(pickle.dumps(second))
    assert type(copied.cookies) is type(requests.Response().cookies) and copied.content == second.content
    assert vars(requests.Response()).keys() - {"cookies"} <= vars(second).keys()


def test_adapter_omits_headers_marked_skip_header(adapter_session: requests.Session, pages: Any) -> None:
    from urllib3.util import SKIP_HEADER

    assert adapter_session.get(pages.url, headers={"User-Agent": SKIP_HEADER, "Accept-Encoding": SKIP_HEADER, "X": b"1"}).ok
    sent = dict(pages.heads[-1][1])
    assert sent["X"] == "1" and not {"User-Agent", "Accept-Encoding"} & sent.keys()


@pytest.mark.parametrize("stream", [False, True])
def test_adapter_sends_identity_without_accept_encoding(
    adapter_session: requests.Session, pages: Any, stream: bool
) -> None:
    # http.client sends this value. Programs that remove the header want the bytes unchanged.
    assert adapter_session.get(pages.url, headers={"Accept-Encoding": None}, stream=stream).ok
    assert dict(pages.heads[-1][1])["Accept-Encoding"] == "identity"
    prepared = requests.Request("GET", pages.url, headers={"accept-encoding": "gzip"}).prepare()
    assert adapter_session.send(prepared, stream=stream).ok
    assert [value for name, value in pages.heads[-1][1] if name.lower() == "accept-encoding"] == ["gzip"]


def test_adapter_sends_repeated_headers_of_prepared_requests(adapter_session: requests.Session, pages: Any) -> None:
    prepared = requests.Request("GET", pages.url).prepare()
    # httpie puts a dict with repeated names there.
    prepared.headers = urllib3.HTTPHeaderDict([("A", "1"), ("B", "2"), ("a", "3")])  # type: ignore[assignment]
    for stream in (False, True):
        assert adapter_session.send(prepared, stream=stream).ok
        assert [field for field in pages.heads[-1][1] if field[0] in "aAB"] == [("A", "1"), ("A", "3"), ("B", "2")]


@pytest.mark.parametrize(
    "part, name",
    [
        (requests.adapters.HTTPAdapter, "send"),
        (urllib3.HTTPConnectionPool, "urlopen"),
        (urllib3.HTTPConnectionPool, "ConnectionCls"),
        (socket, "socket"),
    ],
)
def test_adapter_does_not_bypass_mocks_of_requests(
    adapter_session: requests.Session, pages: Any, monkeypatch: pytest.MonkeyPatch, part: Any, name: str
) -> None:
    class Refused(Exception):
        pass

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise Refused

    own = getattr(part, name)
    assert adapter_session.get(pages.url).ok
    monkeypatch.setattr(part, name, refuse)
    with pytest.raises(Refused):
        adapter_session.get(pages.url)
    # A wrapper that traces requests is no mock.
    monkeypatch.setattr(part, name, functools.wraps(own)(refuse))
    assert adapter_session.get(pages.url).ok
    monkeypatch.setattr(part, name, own)
    assert adapter_session.get(pages.url).ok and pages.connections == 1


def test_adapter_calls_a_mock_of_http_adapter_send(pages: Any) -> None:
    class Counting(HaulAdapter):
        built = 0

        def build_response(self, req: Any, resp: Any) -> requests.Response:
            self.built += 1
            return super().build_response(req, resp)

    adapter = Counting(max_retries=2)
    assert adapter.max_retries.total == 2, "a Retry, as mocks expect it"  # type: ignore[union-attr]
    with requests.Session() as session:
        session.mount("http://", adapter)
        with mock.patch("requests.adapters.HTTPAdapter.send", return_value=requests.Response()) as send:
            assert session.get(pages.url) is send.return_value
        own = requests.adapters.HTTPAdapter.send
        with mock.patch.object(requests.adapters.HTTPAdapter, "send", autospec=True, side_effect=own) as spy:
            response = session.get(pages.url)
        assert response.text == "page /" and adapter.built == 1
        assert vars(response)["connection"] is adapter
        assert spy.call_count == 1


def test_adapter_works_with_digest_of_requests(adapter_session: requests.Session, httpbin: Any) -> None:
    url = httpbin.url + "/digest-auth/auth/user/secret"
    response = adapter_session.get(url, auth=requests.auth.HTTPDigestAuth("user", "secret"))
    assert response.status_code == 200 and [one.status_code for one in response.history] == [401]


def test_adapter_does_not_send_userinfo_in_location(adapter_session: requests.Session, pages: Any) -> None:
    there = pages.url.replace("//", "//user:secret@")
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location=f"{there}/x")
    adapter_session.get(f"{pages.url}/away")
    adapter_session.get(f"{there}/@y")
    assert [("Authorization" in dict(fields), path) for path, fields in pages.heads] == [
        (False, "/away"), (False, "/x"), (True, "/@y"),
    ]  # fmt: skip
