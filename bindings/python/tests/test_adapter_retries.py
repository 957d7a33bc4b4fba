"""HaulAdapter(max_retries=…)."""

from __future__ import annotations

import io
from typing import Any

import pytest
import requests
import urllib3

from haul.adapters import HaulAdapter


def test_adapter_obeys_a_retry_of_urllib3(pages: Any, raw: Any) -> None:
    from urllib3 import Retry

    def session_of(retries: Any) -> requests.Session:
        session = requests.Session()
        session.mount("http://", HaulAdapter(max_retries=retries))
        return session

    def now_and_then(handler: Any) -> None:
        tries = len(pages.bodies)
        handler.answer(b"at last" if tries % 3 == 0 else b"not yet", 200 if tries % 3 == 0 else 503, Retry_After="0")

    pages.routes["/busy"] = now_and_then
    patient = Retry(2, status_forcelist=[503], allowed_methods=None)
    session = session_of(patient)
    assert session.get(pages.url + "/busy").text == "at last" and len(pages.bodies) == 3
    with session.get(pages.url + "/busy", stream=True) as response:
        assert response.raw.read() == b"at last" and len(pages.bodies) == 6
    # A retry sends the body from its first position.
    data = io.BytesIO(b"--body")
    data.seek(2)
    assert session.post(pages.url + "/busy", data=data).text == "at last" and pages.bodies[6:] == [b"body"] * 3
    # One attempt too few.
    with pytest.raises(requests.exceptions.RetryError):
        session_of(patient.new(total=1)).get(pages.url + "/busy")
    pages.bodies.clear()
    kept = session_of(patient.new(total=1, raise_on_status=False)).get(pages.url + "/busy")
    assert (kept.status_code, kept.text, len(pages.bodies)) == (503, "not yet", 2)
    # The server may have processed a POST, so it is not retried; without a Retry, nothing is.
    server = raw(b"")
    for retries, method, tries in ((0, "GET", 1), (2, "POST", 1), (2, "GET", 3)):
        before = server.taken
        with pytest.raises(requests.exceptions.ConnectionError):
            session_of(retries).request(method, server.url)
        assert server.taken - before == tries
    with pytest.raises(requests.exceptions.ReadTimeout):
        session_of(0).get(pages.url + "/never", timeout=0.05)
    with pytest.raises(requests.exceptions.ConnectionError):
        session_of(1).get(pages.url + "/never", timeout=0.05)


def test_retry_never_sends_a_generator_twice(pages: Any) -> None:
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
    # A body that was not read yet can be sent later.
    body = iter([b"x"])
    tries: list[Any] = []

    class Late(Retry):
        def sleep(self, response: Any = None) -> None:
            tries.append(response)

    session.mount("http://", HaulAdapter(max_retries=Late(1, allowed_methods=None)))
    with pytest.raises(requests.exceptions.ConnectionError):
        session.put("http://127.0.0.1:1/", data=body)
    assert len(tries) == 1 and next(body) == b"x"


@pytest.mark.parametrize("retries", [urllib3.Retry(1, read=1), urllib3.Retry(0), urllib3.Retry(0, read=False)])
def test_exhausted_retries_are_named_as_in_requests(raw: Any, retries: urllib3.Retry) -> None:
    causes = []
    for adapter in (HaulAdapter(max_retries=retries), requests.adapters.HTTPAdapter(max_retries=retries)):
        with requests.Session() as session:
            session.mount("http://", adapter)
            with pytest.raises(requests.exceptions.ConnectionError) as caught:
                session.get(raw(b"").url)
        causes.append((caught.type, type(caught.value.args[0]), type(getattr(caught.value.args[0], "reason", None))))
    assert causes[0] == causes[1]
