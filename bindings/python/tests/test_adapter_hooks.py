"""HaulAdapter: retries of bodies, and the methods that subclasses override."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from haul.adapters import HaulAdapter


def test_retry_sends_no_generator_twice(pages: Any) -> None:
    from urllib3 import Retry

    class OnceFile:
        def __init__(self) -> None:
            self.left = [b"x"]

        def read(self, size: int = -1) -> bytes:
            return self.left.pop() if self.left else b""

        def __iter__(self) -> Any:
            return iter(self.read, b"")

    class Again:
        def __iter__(self) -> Any:
            return iter([b"x"])

    def busy(handler: Any) -> None:
        handler.answer(b"", 503 if len(pages.bodies) < 2 else 200, Retry_After="0")

    def close(handler: Any) -> None:
        handler.close_connection = True

    pages.routes["/busy"], pages.routes["/close"] = busy, close
    session = requests.Session()
    session.mount("http://", HaulAdapter(max_retries=Retry(3, status_forcelist=[503], allowed_methods=None)))
    for body in (iter([b"x"]), (piece for piece in [b"x"]), OnceFile()):
        pages.bodies.clear()
        with pytest.raises(requests.exceptions.UnrewindableBodyError):
            session.put(f"{pages.url}/busy", data=body)
        assert pages.bodies == [b"x"]
    for body in (iter([b"x"]), OnceFile()):
        pages.bodies.clear()
        with pytest.raises(requests.exceptions.ConnectionError):
            session.put(f"{pages.url}/close", data=body)
        assert pages.bodies == [b"x"]
    pages.bodies.clear()
    assert session.put(f"{pages.url}/busy", data=Again()).ok and pages.bodies == [b"x", b"x"]
    # What was not read yet can be sent later.
    body = iter([b"x"])
    tries: list[Any] = []

    class Late(Retry):
        def sleep(self, response: Any = None) -> None:
            tries.append(response)

    session.mount("http://", HaulAdapter(max_retries=Late(1, allowed_methods=None)))
    with pytest.raises(requests.exceptions.ConnectionError):
        session.put("http://127.0.0.1:1/", data=body)
    assert len(tries) == 1 and next(body) == b"x"


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
