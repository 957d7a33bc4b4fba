"""Exceptions that HaulAdapter raises."""

from __future__ import annotations

import functools
import http.client
import io
import pickle
import socket
import ssl
import struct
from typing import Any

import pytest
import requests
import urllib3

import haul
from haul.adapters import HaulAdapter


def test_adapter_raises_exceptions_of_requests(adapter_session: requests.Session, pages: Any, raw: Any) -> None:
    with pytest.raises(requests.exceptions.ConnectionError) as refused:
        adapter_session.get("http://127.0.0.1:1/")
    assert refused.value.request is not None
    with pytest.raises(requests.exceptions.ReadTimeout):
        adapter_session.get(pages.url + "/never", timeout=0.1)
    with pytest.raises(requests.exceptions.InvalidHeader):
        adapter_session.get(pages.url, headers={"X": "a\r\nb"})
    short = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort").url
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        adapter_session.get(short)
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        list(adapter_session.get(short, stream=True).iter_content(1))
    with pytest.raises(requests.exceptions.ProxyError):
        adapter_session.get("http://x.invalid/", proxies={"http": "http://127.0.0.1:1"})


@pytest.mark.parametrize("stream", [False, True])
def test_cut_status_line_is_a_connection_error(adapter_session: requests.Session, raw: Any, stream: bool) -> None:
    cut = raw(b"HTTP/1.1 2").url
    with pytest.raises(requests.exceptions.ConnectionError):
        requests.get(cut, stream=stream)
    with pytest.raises(requests.exceptions.ConnectionError):
        adapter_session.get(cut, stream=stream)
    with pytest.raises(haul.ConnectionError):
        haul.get(cut, stream=stream)


def _reset(head: bytes, handler: Any) -> None:
    """Sends bytes, and resets the connection."""
    handler.connection.sendall(head)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # Closing the last of these closes the socket.
    for file in (handler.rfile, handler.wfile, handler.connection):
        file.close()


def test_adapter_exceptions_wrap_those_of_urllib3(
    adapter_session: requests.Session, pages: Any, secure_pages: Any, raw: Any
) -> None:
    import urllib3.exceptions as inner

    def raised(url: str, **kwargs: Any) -> Any:
        with pytest.raises(requests.exceptions.RequestException) as error:
            adapter_session.get(url, **kwargs).content  # noqa: B018
        pickle.loads(pickle.dumps(error.value.args[0]))
        return error.value

    for url, reason, host in (
        ("http://127.0.0.1:1/p?q=1", inner.NewConnectionError, "127.0.0.1"),
        ("http://no.such.invalid:1/p?q=1", inner.NameResolutionError, "no.such.invalid"),
    ):
        error = raised(url)
        assert type(error) is requests.exceptions.ConnectionError
        held = error.args[0]
        assert isinstance(held, inner.MaxRetryError) and type(held.reason) is reason
        assert isinstance(held.pool, urllib3.HTTPConnectionPool)
        assert isinstance(held.reason.conn, urllib3.connection.HTTPConnection)
        assert (held.pool.host, held.pool.port, held.url) == (host, 1, "/p?q=1")
        assert str(error).startswith(f"HTTPConnectionPool(host='{host}', port=1): Max retries exceeded with url: /p?q=1")
    error = raised("http://x.invalid/", proxies={"http": "http://127.0.0.1:1"})
    assert type(error) is requests.exceptions.ProxyError
    assert isinstance(error.args[0].reason.original_error, inner.NewConnectionError)
    error = raised(secure_pages.url)
    assert type(error) is requests.exceptions.SSLError and isinstance(error.args[0].reason, inner.SSLError)
    assert isinstance(error.args[0].reason.args[0], ssl.SSLCertVerificationError)
    assert "CERTIFICATE_VERIFY_FAILED" in str(error)
    error = raised(raw(b"").url)
    assert error.args[0].args[0] == "Connection aborted." and isinstance(error.args[0].args[1], http.client.RemoteDisconnected)
    for head in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"):
        pages.routes["/reset"] = functools.partial(_reset, head)
        error = raised(f"{pages.url}/reset")
        assert isinstance(error.args[0].args[1], ConnectionResetError)
    still = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", closes=False).url
    short = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").url
    for stream in (False, True):
        error = raised(still, timeout=0.1, stream=stream)
        assert type(error) is requests.exceptions.ConnectionError and isinstance(error.args[0], inner.ReadTimeoutError)
        error = raised(short, stream=stream)
        assert type(error) is requests.exceptions.ChunkedEncodingError
        cut = error.args[0].args[1]
        assert isinstance(cut, http.client.IncompleteRead) and (cut.partial, cut.expected) == (4, 5)


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("stream", [False, True])
def test_failing_file_is_a_connection_error(pages: Any, stream: bool, retries: int) -> None:
    class Broken(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            raise OSError(5, "Input/output error")

    for adapter in (HaulAdapter(max_retries=retries), requests.adapters.HTTPAdapter()):
        with requests.Session() as session:
            session.mount("http://", adapter)
            with pytest.raises(requests.exceptions.ConnectionError) as caught:
                session.post(pages.url, data=Broken(), stream=stream)
            what, error = caught.value.args[0].args
            assert what == "Connection aborted." and error.errno == 5 and caught.value.request is not None
