"""Bodies of :mod:`haul.httpx`: those of requests, and the streams of responses."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import httpx

from ._async_body import AsyncBody
from ._haul import EngineError

if TYPE_CHECKING:
    from ._haul import StreamedBody

__all__ = ["AsyncResponseStream", "ResponseStream", "async_body_of", "body_of", "is_refused_by_proxy", "translated"]

_LOCAL = frozenset({"Header", "Setup", "Read", "Rewind", "Upload", "CaFile", "ClientCertificate", "Cipher", "CrlFile"})


def is_refused_by_proxy(failure: EngineError) -> bool:
    """Returns whether a proxy has refused to connect to the server."""
    kind, message = failure.args[:2]
    return kind == "Connect" and (message.startswith("CONNECT tunnel failed") or ("proxy" in message and "refused" in message))


def translated(failure: EngineError, request: httpx.Request) -> httpx.TransportError:
    """Converts a failure of the engine into the exception of httpx."""
    kind, message, _, phase = failure.args[:4]
    cls: type[httpx.TransportError]
    if (kind == "UnsupportedScheme" and phase == "connect") or message.startswith("Invalid URL"):
        cls = httpx.UnsupportedProtocol
    elif kind == "Timeout":
        is_write = "took no data" in message
        cls = httpx.ConnectTimeout if phase == "connect" else httpx.WriteTimeout if is_write else httpx.ReadTimeout
    elif kind in ("Proxy", "ProxyResolve") or is_refused_by_proxy(failure):
        cls = httpx.ProxyError
    elif kind in ("Url", "Resolve", "Connect", "TlsHandshake", "PeerCertificate", "QuicConnect") or (
        phase == "connect" and kind not in _LOCAL
    ):
        cls = httpx.ConnectError
    elif kind in _LOCAL:
        cls = httpx.LocalProtocolError
    elif kind == "Send":
        cls = httpx.WriteError
    else:
        # The other failures of receiving are malformed responses.
        is_network = kind == "TlsRefused" or (kind == "Receive" and "(os error" in message)
        cls = httpx.ReadError if is_network else httpx.RemoteProtocolError
    return cls(message, request=request)


def body_of(request: httpx.Request) -> Any:
    """Returns the body of a request for the engine; ``None`` if it has none."""
    stream = request.stream
    if isinstance(stream, httpx.ByteStream):
        content = b"".join(stream)
        return content if content or "content-length" in request.headers else None
    assert isinstance(stream, httpx.SyncByteStream)
    return iter(stream)


def async_body_of(request: httpx.Request) -> Any:
    """Returns the body of a request of an asynchronous client for the engine."""
    if isinstance(request.stream, httpx.ByteStream):
        return body_of(request)
    assert isinstance(request.stream, httpx.AsyncByteStream)
    if _is_in_trio():
        return _TrioBody(request.stream)
    return AsyncBody(request.stream, asyncio.get_running_loop())


def _is_in_trio() -> bool:
    """Returns whether the caller runs in trio, not in asyncio."""
    if "trio" not in sys.modules:
        return False
    import trio

    try:
        trio.lowlevel.current_trio_token()
    except RuntimeError:
        return False
    return True


class _TrioBody:
    """A blocking iterator over an asynchronous iterable, whose pieces trio produces."""

    def __init__(self, pieces: httpx.AsyncByteStream) -> None:
        import trio

        self._trio = trio
        self._pieces = aiter(pieces)
        self._token = trio.lowlevel.current_trio_token()
        self._scope: Any = None
        self._is_stopped = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if not self._is_stopped:
            try:
                piece = self._trio.from_thread.run(self._next, trio_token=self._token)
            except self._trio.RunFinishedError:
                self._is_stopped = True
        if self._is_stopped:
            # StopIteration would look like the end of the body.
            raise ConnectionAbortedError("the request was cancelled")
        if piece is None:
            raise StopIteration
        return bytes(piece)

    async def _next(self) -> bytes | None:
        # A scope serves one block.
        with self._trio.CancelScope() as self._scope:
            if self._is_stopped:
                self._scope.cancel()
            return await anext(self._pieces, None)
        return None

    def stop(self) -> None:
        """Ends the body, and cancels the piece in progress. Runs in the thread of trio."""
        self._is_stopped = True
        if self._scope is not None:
            self._scope.cancel()


class ResponseStream(httpx.SyncByteStream):
    """The body of a response, as the server has sent it: httpx decodes it."""

    def __init__(self, body: StreamedBody, request: httpx.Request, release: Callable[[], None]) -> None:
        self._body = body
        self._request = request
        self._release: Callable[[], None] | None = release

    def __iter__(self) -> Iterator[bytes]:
        try:
            while piece := self._body.read_some(None, False):
                yield piece
        except EngineError as failure:
            raise translated(failure, self._request) from None

    def close(self) -> None:
        """Closes the body. Its connection is reused only if the body was read to its end."""
        self._body.close()
        release, self._release = self._release, None
        if release is not None:
            release()


class AsyncResponseStream(httpx.AsyncByteStream):
    """The body of a response of an asynchronous client."""

    def __init__(
        self, run: Callable[..., Any], body: StreamedBody, request: httpx.Request, release: Callable[[], None]
    ) -> None:
        self._run = run
        self._body = body
        self._request = request
        self._release: Callable[[], None] | None = release

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            # A cancelled read may have taken bytes, so it closes the body.
            while piece := await self._run(self._body.close, self._body.read_some, None, False):
                yield piece
        except EngineError as failure:
            raise translated(failure, self._request) from None

    async def aclose(self) -> None:
        """Closes the body. Its connection is reused only if the body was read to its end."""
        self._body.close()
        release, self._release = self._release, None
        if release is not None:
            release()
