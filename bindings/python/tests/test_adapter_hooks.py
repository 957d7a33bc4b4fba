"""Methods of HaulAdapter that subclasses override."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from haul.adapters import HaulAdapter


class OverridesPools(HaulAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, assert_fingerprint="00" * 32, **kwargs)  # type: ignore[misc]


class OverridesChecks(HaulAdapter):
    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        super().cert_verify(conn, url, verify, cert)  # type: ignore[misc]
        conn.assert_fingerprint = "00" * 32


class OverridesPoolsToo(OverridesPools, requests.adapters.HTTPAdapter):
    """As docs/python.md has subclasses of both."""


class NamesAHost(HaulAdapter, requests.adapters.HTTPAdapter):
    """Sets what toolbelt's HostHeaderSSLAdapter does."""

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        self.poolmanager.connection_pool_kw["assert_hostname"] = "elsewhere.test"
        return super().send(*args, **kwargs)


@pytest.mark.parametrize("kind", [OverridesPools, OverridesChecks, OverridesPoolsToo, NamesAHost])
def test_tls_hooks_of_a_subclass_are_called(kind: Any, secure_pages: Any, bundle: str) -> None:
    adapter = kind(max_retries=0)
    with requests.Session() as session:
        session.verify = bundle
        session.mount("https://", adapter)
        with pytest.raises(requests.exceptions.SSLError, match="ingerprint|elsewhere.test"):
            session.get(secure_pages.url)
        assert secure_pages.heads == []
        session.mount("https://", HaulAdapter())
        assert session.get(secure_pages.url).ok
        # A hook of the instance counts, too.
        seen: list[str] = []
        own = HaulAdapter()
        own.cert_verify = lambda conn, url, verify, cert: seen.append(url)  # type: ignore[attr-defined]
        session.mount("https://", own)
        assert session.get(secure_pages.url).ok and seen == [f"{secure_pages.url}/"]


@pytest.mark.parametrize("bases", [(HaulAdapter,), (HaulAdapter, requests.adapters.HTTPAdapter)])
def test_request_hooks_of_a_subclass_are_called(bases: Any, pages: Any) -> None:
    def add_headers(self: Any, request: Any, **kwargs: Any) -> None:
        assert set(kwargs) == {"stream", "timeout", "verify", "cert", "proxies"}
        request.headers["X-Added"] = "yes"

    def request_url(self: Any, request: Any, proxies: Any) -> str:
        plain: str = super(kind, self).request_url(request, proxies)
        assert plain == "/one?q"
        return "/other?q"

    kind: Any = type("Changing", bases, {"add_headers": add_headers, "request_url": request_url})
    with requests.Session() as session:
        session.mount("http://", kind())
        assert session.get(f"{pages.url}/one?q#f").text == "page /other?q"
        assert dict(pages.heads[-1][1])["X-Added"] == "yes"
        # A target that is not of this server is for requests' own adapter to send.
        kind.request_url = lambda self, request, proxies: "http://elsewhere.test/x"
        assert session.get(f"{pages.url}/one").text == "page http://elsewhere.test/x"
