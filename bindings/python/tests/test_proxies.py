"""Proxies of arguments, sessions and the environment."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import requests

import haul


def test_proxies_of_arguments_and_environment_are_used(proxy: Any, pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"http://me:secret@127.0.0.1:{proxy.server_port}"
    session = haul.Session()
    asked = "http://somewhere.invalid/x?y=1"
    assert session.get(asked, proxies={"http": address}).text == f"page {asked}"
    fields = dict(proxy.heads[-1][1])
    assert fields["Proxy-Authorization"] == "Basic bWU6c2VjcmV0" and fields["Host"] == "somewhere.invalid"
    monkeypatch.setenv("http_proxy", address)
    assert session.get(asked).text == f"page {asked}"
    monkeypatch.setenv("no_proxy", "example.test,localhost")
    assert session.get(pages.url + "/direct").text == "page /direct"
    monkeypatch.setenv("no_proxy", f"localhost:{pages.server_port}")
    assert session.get(pages.url + "/direct").text == "page /direct"
    monkeypatch.setenv("no_proxy", "localhost:1")
    assert session.get(pages.url + "/x").text == f"page {pages.url}/x"
    monkeypatch.setenv("no_proxy", "")
    session.trust_env = False
    with pytest.raises(haul.ConnectionError):
        session.get(asked)
    assert session.get(asked, proxies={"all": address}).ok
    assert session.get(asked, proxies={"http://somewhere.invalid": address, "http": "http://127.0.0.1:1"}).ok
    with pytest.raises(haul.exceptions.ProxyError):
        session.get(asked, proxies={"http": "http://127.0.0.1:1"})
    for malformed in ("http://:8080", "bogus://host:1", "http://host:99999"):
        with pytest.raises((haul.exceptions.InvalidProxyURL, requests.exceptions.InvalidProxyURL)):
            session.get(asked, proxies={"http": malformed})
    with pytest.raises(haul.exceptions.InvalidProxyURL, match=r'"bogus://\*\*\*@host:1": unsupported'):
        haul.get(asked, proxies={"http": "bogus://user:password@host:1"})
    assert all("Proxy-Authorization" not in dict(fields) for _, fields in pages.heads)


def test_proxy_of_none_overrides_the_environment(
    adapter_session: requests.Session, proxy: Any, pages: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
    for its in (haul.Session(), adapter_session):
        for none in (None, ""):
            before = len(pages.heads)
            assert its.get(f"{pages.url}/direct", proxies={"http": none}).text == "page /direct"
            assert its.get(f"{pages.url}/streamed", proxies={"http": none}, stream=True).text == "page /streamed"
            assert len(pages.heads) == before + 2 and not proxy.heads
    # `None` for another scheme, or of the session, does not override the environment.
    its = haul.Session()
    assert its.get("http://somewhere.invalid/", proxies={"https": None}).ok
    its.proxies = {"http": None}
    assert its.get("http://somewhere.invalid/").ok and len(proxy.heads) == 2


def test_http_proxy_is_ignored_in_cgi_programs(proxy: Any, pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUEST_METHOD", "GET")
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.server_port}")
    assert haul.get(pages.url + "/x").ok and proxy.heads == []


def test_empty_proxy_means_no_proxy(adapter_session: requests.Session, pages: Any) -> None:
    assert adapter_session.get(pages.url, proxies={"http": ""}).ok


def test_fetch_many_redirects_use_their_scheme_proxy(pages: Any, proxy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    away = "https://somewhere.invalid/x"
    asked: list[str] = []

    def refuses(handler: Any) -> None:
        asked.append(handler.path)
        handler.answer(b"", 502)

    proxy.routes["somewhere.invalid:443"] = refuses
    monkeypatch.setattr(proxy.RequestHandlerClass, "do_CONNECT", proxy.RequestHandlerClass.any, raising=False)
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location=away)
    address = f"http://127.0.0.1:{proxy.server_port}"
    session = haul.Session()
    session.proxies = {"https": address}
    (result,) = haul.fetch_many([f"{pages.url}/away"], session=session)
    assert result.error is not None and asked == ["somewhere.invalid:443"]
    # The no_proxy list of the environment applies to redirects.
    session.proxies = {}
    monkeypatch.setenv("http_proxy", address)
    monkeypatch.setenv("no_proxy", "localhost")
    proxy.routes["http://other.invalid/on"] = lambda handler: handler.answer(b"", 302, Location=f"{pages.url}/end")
    (result,) = haul.fetch_many(["http://other.invalid/on"], session=session)
    assert result.text == "page /end" and proxy.heads[-1][0] == "http://other.invalid/on"


def test_user_of_a_proxy_may_contain_at_signs(proxy: Any) -> None:
    where = f"http://user@dom:p@w@127.0.0.1:{proxy.server_port}"
    haul.get("http://host.example/", proxies={"http": where})
    with haul.Client(proxy=where) as client:
        client.get("http://host.example/")
    value = "Basic " + base64.b64encode(b"user@dom:p@w").decode()
    assert [dict(fields)["Proxy-Authorization"] for _, fields in proxy.heads] == [value] * 2


@pytest.mark.parametrize("url", ["example.com/x", "http://h:99999/", "http://[::1/"])
def test_proxy_keeps_the_error_of_invalid_urls(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    async def get() -> None:
        async with haul.AsyncSession() as session:
            await session.get(url)

    with pytest.raises(haul.RequestException) as direct:
        haul.get(url)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    for call in (lambda: haul.get(url), lambda: asyncio.run(get()), lambda: haul.get(url, proxies={"all": "http://127.0.0.1:1"})):
        with pytest.raises(haul.RequestException) as failed:
            call()
        assert type(failed.value) is type(direct.value)
    (result,) = haul.fetch_many([url])
    assert type(result.error) is type(direct.value)
