"""``AsyncSession``: a session for asyncio, with the API of :class:`haul.Session`.

Requests run on a thread of the engine. One descriptor wakes the event loop, whatever the number of
requests. Cancelling a task cancels its request and closes the connection.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any

from ._request_objects import PreparedRequest, Request, hooks_of
from ._async_body import AsyncBody
from ._request_body import is_awaited, is_stream
from ._haul import Batch, EngineError, StopFlag, split_url
from ._line_splitter import LineSplitter
from ._redirects import _discard_body
from .many import check_limits
from ._thread_calls import ThreadCalls, close, in_loop
from .exceptions import ChunkedEncodingError, ContentDecodingError, UnrewindableBodyError, from_engine_error
from .models import ITER_CHUNK_SIZE, MAX_DISCARDED_BYTES, Response, _DiscardedBody, _stream_error, response_from
from .sessions import Session, _is_unanswerable

if TYPE_CHECKING:
    from types import TracebackType

    from ._haul import ReceivedResponse

__all__ = ["AsyncResponse", "AsyncSession"]


_MAX_RESULTS_AT_ONCE = 64

async def _call_hooks(hooks: Mapping[str, Any] | None, response: Any, settings: dict[str, Any]) -> Any:
    """Calls the hooks like ``dispatch_hook``. A hook may be a coroutine function."""
    for hook in hooks_of(hooks):
        changed = hook(response, **settings)
        if inspect.isawaitable(changed):
            changed = await changed
        if changed is not None:
            response = changed
    return response


def _stopper(request: PreparedRequest, stop: StopFlag) -> Callable[[], None]:
    """Returns a function that stops a call and the code that produces its body."""
    body = request.body
    if not isinstance(body, AsyncBody):
        return stop.set

    def both() -> None:
        stop.set()
        body.stop()

    return both


class _UnusableConnection:
    """``Response.connection`` of an :class:`AsyncResponse`: an ``auth`` cannot send by it."""

    def send(self, *args: Any, **kwargs: Any) -> Response:
        """Refuses, because sending would block the event loop.

        :raises TypeError: always."""
        raise TypeError("an auth that sends by response.connection.send would block the event loop; use it with haul.Session")


class AsyncResponse(Response):
    """A response whose streamed body is read without blocking the event loop."""

    connection: Any = _UnusableConnection()
    #: The blocking calls of the session.
    _calls = ThreadCalls()

    async def aread(self) -> bytes:
        """Reads the whole body."""
        if self._content is False:
            self._content = b"".join([piece async for piece in self.aiter_content(None)])
            self._content_consumed = True
        return self._content or b""

    async def _read(self, size: int | None) -> bytes:
        """Reads the next ``size`` bytes of a streamed body, or fewer at its end; with ``None`` the
        rest."""
        stream = self._stream
        try:
            return await self._calls.run(stream.close, stream.read, size, True)  # type: ignore[no-any-return]
        except EngineError as failure:
            raise _stream_error(failure, self.request) from None

    async def _adiscard_body(self) -> None:
        """Reads and drops the body like :meth:`_discard_body`. A truncated body is no failure."""
        if self._stream is None or self._content_consumed:
            return
        pieces = _DiscardedBody()
        try:
            async for piece in self.aiter_content(MAX_DISCARDED_BYTES):
                if not pieces.add(piece):
                    self._content_consumed = True
                    return
        except (ChunkedEncodingError, ContentDecodingError):
            self._content_consumed = True
            return
        self._content = pieces.joined()

    async def aiter_content(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """Yields the body in pieces of at most ``chunk_size`` bytes; with ``None``, as they arrive.

        A chunked body is yielded chunk by chunk."""
        if self._stream is None or self._content_consumed:
            for piece in self.iter_content(chunk_size):
                yield piece
            return
        stream = self._stream
        try:
            # A cancelled read may have taken bytes, so it closes the stream.
            while piece := await self._calls.run(stream.close, stream.piece, chunk_size or None, True):
                yield piece
        except EngineError as failure:
            raise _stream_error(failure, self.request) from None
        self._content_consumed = True

    async def aiter_lines(self, chunk_size: int = ITER_CHUNK_SIZE, delimiter: bytes | None = None) -> AsyncIterator[bytes]:
        """Yields the lines of the body, as ``splitlines`` or ``split(delimiter)`` of the whole."""
        lines = LineSplitter(delimiter)
        async for piece in self.aiter_content(chunk_size):
            for line in lines.push(piece):
                yield line
        for line in lines.end():
            yield line

    async def aclose(self) -> None:
        """Closes the response. Its connection is reused only if the body was read to its end."""
        self.close()

    async def __aenter__(self) -> AsyncResponse:
        return self

    async def __aexit__(self, *args: object) -> None:
        self.close()


class _LoopBatch:
    """The batch of one event loop, and the futures that wait for its results.

    The loop holds it as the callback of a reader, so it has no reference to the session, and only a
    weak one to the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, batch: Batch) -> None:
        self.batch: Batch | None = batch
        self.futures: dict[int, asyncio.Future[ReceivedResponse]] = {}
        self.pid = os.getpid()
        self._loop = weakref.ref(loop)
        loop.add_reader(batch.fileno(), self._drain)

    @property
    def is_open(self) -> bool:
        """True if the event loop is still open, in this process."""
        loop = self._loop()
        return loop is not None and not loop.is_closed() and self.pid == os.getpid()

    def _drain(self) -> None:
        """Passes results to the futures that wait for them."""
        batch = self.batch
        # The number is limited, so that the loop can do other work between.
        for number, reply, error in batch.try_next(_MAX_RESULTS_AT_ONCE) if batch is not None else ():
            future = self.futures.pop(number, None)
            if future is None or future.done():
                continue
            if reply is not None:
                future.set_result(reply)
            else:
                future.set_exception(error if error is not None else RuntimeError("the request has no result"))

    def release(self) -> None:
        """Ends requests in progress, at once in the thread of the loop, else soon."""
        loop = self._loop()
        if loop is None or not self.is_open or not in_loop(loop, self._cancel_all, loop):
            self.batch = None

    def _cancel_all(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self.batch = self.batch, None
        futures, self.futures = self.futures, {}
        if batch is not None:
            loop.remove_reader(batch.fileno())
        for future in futures.values():
            close(future)


class AsyncSession:
    """Settings, cookies and open connections for requests, in one or several event loops.

    >>> async def main():
    ...     async with AsyncSession() as session:
    ...         responses = await asyncio.gather(*(session.get(f"http://127.0.0.1/{i}") for i in range(100)))

    ``headers``, ``cookies``, ``auth``, ``proxies``, ``params``, ``verify``, ``cert``, ``hooks``,
    ``max_redirects``, ``trust_env``, ``http2`` and ``http3`` are those of :class:`haul.Session`.

    :param max_parallel: maximum number of requests at once in an event loop; others wait.
    :param per_host: maximum number of requests at once to one host; default: from 6 to 50, as many as help.
    :param rate, rate_host, limit_rate_total, stall_time: as in :func:`haul.fetch_many`, in an event loop.

    None of them counts requests with ``stream=True``.
    """

    _OWN = ("_session", "_max_parallel", "_per_host", "_limits", "_loop_batches", "_lock", "_calls")

    def __init__(
        self,
        max_parallel: int = 256,
        per_host: int | None = None,
        *,
        rate: float | None = None,
        rate_host: float | None = None,
        limit_rate_total: int | None = None,
        stall_time: float | None = None,
    ) -> None:
        if max_parallel < 1 or (per_host is not None and per_host < 1):
            raise ValueError("max_parallel and per_host have to be at least 1")
        check_limits(rate, rate_host, limit_rate_total, stall_time)
        self._session = Session()
        self._limits: dict[str, Any] = {
            "rate": rate, "rate_host": rate_host, "limit_rate_total": limit_rate_total, "stall_time": stall_time,
        }  # fmt: skip
        self._max_parallel = max_parallel
        self._per_host = per_host
        self._loop_batches: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopBatch] = weakref.WeakKeyDictionary()
        #: Held while loop batches are added or removed.
        self._lock = threading.Lock()
        self._calls = ThreadCalls()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._session, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._OWN:
            object.__setattr__(self, name, value)
        else:
            setattr(self._session, name, value)

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        # There are no loop batches if `__init__` has raised.
        loop_batches = [loop_batch for loop_batch in self.__dict__.get("_loop_batches", {}).values() if loop_batch.is_open]
        if loop_batches:
            warnings.warn(f"unclosed {self!r}: call aclose(), or use async with", ResourceWarning, source=self, stacklevel=2)
        for loop_batch in loop_batches:
            loop_batch.release()

    async def aclose(self) -> None:
        """Ends requests in progress with a ConnectionError, and closes the connections."""
        with self._lock:
            loop_batches = list(self._loop_batches.values())
            self._loop_batches.clear()
        for loop_batch in loop_batches:
            loop_batch.release()
        self._calls.end()
        self._session.close()

    close = aclose

    async def get(self, url: Any, **kwargs: Any) -> AsyncResponse:
        """Sends a GET request; see :meth:`request`."""
        return await self.request("GET", url, **kwargs)

    async def options(self, url: Any, **kwargs: Any) -> AsyncResponse:
        """Sends an OPTIONS request; see :meth:`request`."""
        return await self.request("OPTIONS", url, **kwargs)

    async def head(self, url: Any, **kwargs: Any) -> AsyncResponse:
        """Sends a HEAD request; see :meth:`request`. Redirects need ``allow_redirects=True``."""
        kwargs.setdefault("allow_redirects", False)
        return await self.request("HEAD", url, **kwargs)

    async def post(self, url: Any, data: Any = None, json: Any = None, **kwargs: Any) -> AsyncResponse:
        """Sends a POST request; see :meth:`request`."""
        return await self.request("POST", url, data=data, json=json, **kwargs)

    async def put(self, url: Any, data: Any = None, **kwargs: Any) -> AsyncResponse:
        """Sends a PUT request; see :meth:`request`."""
        return await self.request("PUT", url, data=data, **kwargs)

    async def patch(self, url: Any, data: Any = None, **kwargs: Any) -> AsyncResponse:
        """Sends a PATCH request; see :meth:`request`."""
        return await self.request("PATCH", url, data=data, **kwargs)

    async def delete(self, url: Any, **kwargs: Any) -> AsyncResponse:
        """Sends a DELETE request; see :meth:`request`."""
        return await self.request("DELETE", url, **kwargs)

    async def request(
        self,
        method: str,
        url: Any,
        params: Any = None,
        data: Any = None,
        headers: Any = None,
        cookies: Any = None,
        files: Any = None,
        auth: Any = None,
        timeout: Any = None,
        allow_redirects: bool = True,
        proxies: Any = None,
        hooks: Any = None,
        stream: bool | None = None,
        verify: Any = None,
        cert: Any = None,
        json: Any = None,
    ) -> AsyncResponse:
        """Sends a request and waits for its response. Arguments: see :meth:`haul.Session.request`.

        With ``stream=True``, :meth:`AsyncResponse.aiter_content` reads the body. Such a request
        occupies a thread while it waits, as does a request whose ``data`` is a file or a generator.
        ``data`` may also be an asynchronous iterable, which runs in the event loop."""
        session = self._session
        if is_awaited(data):
            data = AsyncBody(data, asyncio.get_running_loop())
        settings = {"timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies}
        is_streamed = session.stream if stream is None else stream
        call = None
        if not (files or hooks or is_streamed):
            call = session._direct_call(method, url, params, data, headers, cookies, auth, timeout, proxies, verify, cert, json)
        if call is not None:
            try:
                reply = await self._exchange(call)
            except EngineError as failure:
                raise from_engine_error(failure, Request(method, url, headers=headers), call[0].proxied) from None
            response: Response = response_from(AsyncResponse, reply, call)
            reply.cookies_into(session.cookies._jar)
            if reply.location() is None:
                return response  # type: ignore[return-value]
        else:
            request = Request(method, url, headers, files, data or {}, params or {}, auth, cookies, hooks, json)
            response = await self._send_once(session.prepare_request(request), bool(is_streamed), settings)
        return await self._follow(response, allow_redirects, cookies, bool(is_streamed), settings)

    async def send(
        self,
        request: PreparedRequest,
        *,
        stream: bool | None = None,
        timeout: Any = None,
        verify: Any = None,
        cert: Any = None,
        proxies: Any = None,
        allow_redirects: bool = True,
    ) -> AsyncResponse:
        """Sends a prepared request. The other arguments are those of :meth:`request`.

        :raises ValueError: the request is not prepared."""
        if not isinstance(request, PreparedRequest):
            raise ValueError("You can only send PreparedRequests.")
        settings = {"timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies}
        is_streamed = bool(self._session.stream if stream is None else stream)
        response = await self._send_once(request, is_streamed, settings)
        return await self._follow(response, allow_redirects, None, is_streamed, settings)

    def mount(self, prefix: str, adapter: Any) -> None:
        """Refuses adapters, which would block the event loop.

        :raises TypeError: always."""
        raise TypeError("an AsyncSession takes no adapters: they would block the event loop")

    async def _follow(
        self, response: Response, follow: bool, first_cookies: Any, stream: bool, settings: dict[str, Any]
    ) -> AsyncResponse:
        session = self._session
        if session.get_redirect_target(response) is None:
            return response  # type: ignore[return-value]
        request = response.request
        origin = split_url(request.url or "")[:3]
        history: list[Response] = []
        while (url := session.get_redirect_target(response)) is not None:
            if follow:
                if isinstance(response, AsyncResponse):
                    await response._adiscard_body()
                _discard_body(response)
            try:
                request = session._redirected_request(response, url, request, history, origin, first_cookies)
            except UnrewindableBodyError as error:
                if follow:
                    raise
                response._next_error = error
                break
            if not follow:
                response._next = request
                break
            response = await self._send_once(request, stream, settings)
            response.history = list(history)
        return response  # type: ignore[return-value]

    async def _send_once(self, request: PreparedRequest, stream: bool, settings: dict[str, Any]) -> Response:
        session = self._session
        call = session._prepared_call(request, settings)
        source = None
        try:
            if stream:
                options, method, url, _, fields, body, _, _ = call
                stop = StopFlag()
                stopper = _stopper(request, stop)
                reply, source = await self._calls.run(stopper, session._client.open, options, method, url, fields, body, stop)
            elif is_stream(request.body) or hasattr(request.body, "read"):
                # The program's own code produces the body, in a thread that the interpreter joins
                # at exit.
                stop = StopFlag()
                reply = await self._calls.run(_stopper(request, stop), session._client.send, *call, stop)
            else:
                reply = await self._exchange(call)
        except EngineError as failure:
            if not stream and _is_unanswerable(failure, request):
                return await self._send_once(request, stream, settings)
            raise from_engine_error(failure, request, call[0].proxied) from None
        response = response_from(AsyncResponse, reply, None, source)
        response._calls = self._calls
        response.request = request
        changed = await _call_hooks(request.hooks, response, {**settings, "stream": stream})
        reply.cookies_into(session.cookies._jar)
        return changed  # type: ignore[no-any-return]

    async def _exchange(self, call: Any) -> ReceivedResponse:
        """Sends one request on the thread of the engine."""
        loop = asyncio.get_running_loop()
        loop_batch = self._loop_batches.get(loop)
        if loop_batch is None or loop_batch.batch is None or loop_batch.pid != os.getpid():
            loop_batch = self._add_loop_batch(loop)
        batch: Any = loop_batch.batch
        number = batch.submit(*call)
        future: asyncio.Future[ReceivedResponse] = loop.create_future()
        loop_batch.futures[number] = future
        try:
            return await future
        except asyncio.CancelledError:
            batch.cancel(number)
            raise

    def _add_loop_batch(self, loop: asyncio.AbstractEventLoop) -> _LoopBatch:
        """Creates the batch of a loop, and drops the batches of closed loops."""
        batch = Batch(
            self._session._client, max_parallel=self._max_parallel, per_host=self._per_host, ordered=False,
            memory=1 << 40, **self._limits,
        )  # fmt: skip
        loop_batch = _LoopBatch(loop, batch)
        with self._lock:
            for other in [other for other, batch_of in self._loop_batches.items() if not batch_of.is_open]:
                del self._loop_batches[other]
            self._loop_batches[loop] = loop_batch
        return loop_batch
