"""``AsyncSession``: a session for asyncio, with the same names.

Requests run on the engine's own thread; the event loop is woken by one descriptor, whatever their number. A task that is cancelled gives
its request up, and its connection is closed.
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

from ._asked import PreparedRequest, Request, hooks_of
from ._awaited import AwaitedBody
from ._bodies import is_awaited, is_stream
from ._haul import Batch, Failure, Stop, split_url
from ._lines import Lines
from ._redirects import _pass_over
from ._threads import Calls, close, in_loop
from .exceptions import ChunkedEncodingError, ContentDecodingError, UnrewindableBodyError, from_failure
from .models import ITER_CHUNK_SIZE, MOST_PASSED_OVER, Response, _Passed, _stream_error, answer
from .sessions import Session, _is_unanswerable

if TYPE_CHECKING:
    from types import TracebackType

    from ._haul import Reply

__all__ = ["AsyncResponse", "AsyncSession"]


_MOST_AT_ONCE = 64

async def _call_hooks(hooks: Mapping[str, Any] | None, response: Any, settings: dict[str, Any]) -> Any:
    """As ``dispatch_hook``; a hook may be a coroutine function."""
    for hook in hooks_of(hooks):
        changed = hook(response, **settings)
        if inspect.isawaitable(changed):
            changed = await changed
        if changed is not None:
            response = changed
    return response


def _stopper(request: PreparedRequest, stop: Stop) -> Callable[[], None]:
    """Stops a call and the code that produces its body."""
    body = request.body
    if not isinstance(body, AwaitedBody):
        return stop.set

    def both() -> None:
        stop.set()
        body.stop()

    return both


class _NoConnection:
    """``Response.connection`` where there is none to wait for: says so to an ``auth`` that wants to send once more."""

    def send(self, *args: Any, **kwargs: Any) -> Response:
        """:raises TypeError: always."""
        raise TypeError("an auth that answers by response.connection.send does not work in an AsyncSession: it would hold the loop up")


class AsyncResponse(Response):
    """A response whose body, if it is streamed, is read without blocking the event loop."""

    connection: Any = _NoConnection()
    #: Those of its session.
    _calls = Calls()

    async def aread(self) -> bytes:
        """Reads the whole body."""
        if self._content is False:
            self._content = b"".join([piece async for piece in self.aiter_content(None)])
            self._content_consumed = True
        return self._content or b""

    async def _apass_over(self) -> None:
        """As :meth:`_pass_over`, but for one that does not come whole, which is no failure here."""
        if self._stream is None or self._content_consumed:
            return
        pieces = _Passed()
        try:
            async for piece in self.aiter_content(MOST_PASSED_OVER):
                if not pieces.take(piece):
                    self._content_consumed = True
                    return
        except (ChunkedEncodingError, ContentDecodingError):
            self._content_consumed = True
            return
        self._content = pieces.joined()

    async def aiter_content(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """The body in pieces of at most ``chunk_size`` bytes; with ``None``, as they arrive. A chunked body comes chunk by chunk."""
        if self._stream is None or self._content_consumed:
            for piece in self.iter_content(chunk_size):
                yield piece
            return
        stream = self._stream
        try:
            # What a read that was given up has taken is lost: nothing can be read behind it.
            while piece := await self._calls.run(stream.close, stream.piece, chunk_size or None, True):
                yield piece
        except Failure as failure:
            raise _stream_error(failure, self.request) from None
        self._content_consumed = True

    async def aiter_lines(self, chunk_size: int = ITER_CHUNK_SIZE, delimiter: bytes | None = None) -> AsyncIterator[bytes]:
        """The body line by line, whatever pieces it arrives in: as ``splitlines`` or ``split(delimiter)`` of the whole."""
        lines = Lines(delimiter)
        async for piece in self.aiter_content(chunk_size):
            for line in lines.push(piece):
                yield line
        for line in lines.end():
            yield line

    async def aclose(self) -> None:
        """Closes the response and gives up its connection."""
        self.close()

    async def __aenter__(self) -> AsyncResponse:
        return self

    async def __aexit__(self, *args: object) -> None:
        self.close()


class _Lane:
    """What the requests of one event loop run in: a batch of the engine's, and who waits for what comes of it. The loop keeps it as its
    reader's callback, so it knows neither the session nor, but weakly, the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, batch: Batch) -> None:
        self.batch: Batch | None = batch
        self.futures: dict[int, asyncio.Future[Reply]] = {}
        self.pid = os.getpid()
        self._loop = weakref.ref(loop)
        loop.add_reader(batch.fileno(), self._drain)

    @property
    def is_open(self) -> bool:
        """Whether its event loop is still open, in this process."""
        loop = self._loop()
        return loop is not None and not loop.is_closed() and self.pid == os.getpid()

    def _drain(self) -> None:
        """Passes finished requests to the tasks that await them."""
        batch = self.batch
        # No more than this at once: the loop has other things to do.
        for number, reply, error in batch.try_next(_MOST_AT_ONCE) if batch is not None else ():
            future = self.futures.pop(number, None)
            if future is None or future.done():
                continue
            if reply is not None:
                future.set_result(reply)
            else:
                future.set_exception(error if error is not None else RuntimeError("nothing came of it"))

    def release(self) -> None:
        """Ends requests in progress: at once in the thread of its loop, elsewhere as soon as the loop gets to it."""
        loop = self._loop()
        if loop is None or not self.is_open or not in_loop(loop, self._release, loop):
            self.batch = None

    def _release(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self.batch = self.batch, None
        futures, self.futures = self.futures, {}
        if batch is not None:
            loop.remove_reader(batch.fileno())
        for future in futures.values():
            close(future)


class AsyncSession:
    """Settings, cookies and warm connections for any number of requests, of one event loop or of several in threads of their own.

    >>> async def main():
    ...     async with AsyncSession() as session:
    ...         responses = await asyncio.gather(*(session.get(f"http://127.0.0.1/{i}") for i in range(100)))

    ``headers``, ``cookies``, ``auth``, ``proxies``, ``params``, ``verify``, ``cert``, ``hooks``, ``max_redirects``, ``trust_env`` and
    ``http2`` are those of :class:`haul.Session`.

    :param max_parallel: most requests at once, in all, of an event loop; others wait for their turn.
    :param per_host: most requests at once to one host; default as many as in all.

    Neither counts requests with ``stream=True``, whose end is not the session's to know.
    """

    _OWN = ("_session", "_max_parallel", "_per_host", "_lanes", "_lock", "_calls")

    def __init__(self, max_parallel: int = 256, per_host: int | None = None) -> None:
        if max_parallel < 1 or (per_host is not None and per_host < 1):
            raise ValueError("max_parallel and per_host have to be at least 1")
        self._session = Session()
        self._max_parallel = max_parallel
        self._per_host = per_host or max_parallel
        self._lanes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Lane] = weakref.WeakKeyDictionary()
        #: Held while lanes are added or taken away.
        self._lock = threading.Lock()
        self._calls = Calls()

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
        # None if `__init__` raised.
        lanes = [lane for lane in self.__dict__.get("_lanes", {}).values() if lane.is_open]
        if lanes:
            warnings.warn(f"unclosed {self!r}: no aclose() and no async with", ResourceWarning, source=self, stacklevel=2)
        for lane in lanes:
            lane.release()

    async def aclose(self) -> None:
        """Ends requests in progress with a ConnectionError and closes the connections."""
        with self._lock:
            lanes = list(self._lanes.values())
            self._lanes.clear()
        for lane in lanes:
            lane.release()
        self._calls.end()
        self._session.close()

    close = aclose

    async def get(self, url: Any, **kwargs: Any) -> AsyncResponse:
        """GET; see :meth:`request`."""
        return await self.request("GET", url, **kwargs)

    async def options(self, url: Any, **kwargs: Any) -> AsyncResponse:
        """OPTIONS; see :meth:`request`."""
        return await self.request("OPTIONS", url, **kwargs)

    async def head(self, url: Any, **kwargs: Any) -> AsyncResponse:
        """HEAD; see :meth:`request`, but redirects are not followed unless asked for."""
        kwargs.setdefault("allow_redirects", False)
        return await self.request("HEAD", url, **kwargs)

    async def post(self, url: Any, data: Any = None, json: Any = None, **kwargs: Any) -> AsyncResponse:
        """POST; see :meth:`request`."""
        return await self.request("POST", url, data=data, json=json, **kwargs)

    async def put(self, url: Any, data: Any = None, **kwargs: Any) -> AsyncResponse:
        """PUT; see :meth:`request`."""
        return await self.request("PUT", url, data=data, **kwargs)

    async def patch(self, url: Any, data: Any = None, **kwargs: Any) -> AsyncResponse:
        """PATCH; see :meth:`request`."""
        return await self.request("PATCH", url, data=data, **kwargs)

    async def delete(self, url: Any, **kwargs: Any) -> AsyncResponse:
        """DELETE; see :meth:`request`."""
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
        """Sends a request and waits for its response; arguments as those of :meth:`haul.Session.request`.

        With ``stream=True`` the body is left to be read by :meth:`AsyncResponse.aiter_content`. Such a request takes a thread while
        it waits, as does one whose ``data`` is a file or a generator. ``data`` may be an asynchronous
        iterable, too; its pieces are made in the loop."""
        session = self._session
        if is_awaited(data):
            data = AwaitedBody(data, asyncio.get_running_loop())
        settings = {"timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies}
        is_streamed = session.stream if stream is None else stream
        call = None
        if not (files or hooks or is_streamed):
            call = session._short(method, url, params, data, headers, cookies, auth, timeout, proxies, verify, cert, json)
        if call is not None:
            try:
                reply = await self._exchange(call)
            except Failure as failure:
                raise from_failure(failure, Request(method, url, headers=headers), call[0].proxied) from None
            response: Response = answer(AsyncResponse, reply, call)
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
        """Sends a request that is prepared; arguments are those of :meth:`request` that say how.

        :raises ValueError: it is not prepared."""
        if not isinstance(request, PreparedRequest):
            raise ValueError("You can only send PreparedRequests.")
        settings = {"timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies}
        is_streamed = bool(self._session.stream if stream is None else stream)
        response = await self._send_once(request, is_streamed, settings)
        return await self._follow(response, allow_redirects, None, is_streamed, settings)

    def mount(self, prefix: str, adapter: Any) -> None:
        """:raises TypeError: adapters block, and an event loop must not."""
        raise TypeError("an AsyncSession takes no adapters: all its requests go by haul's engine")

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
                    await response._apass_over()
                _pass_over(response)
            try:
                request = session._hop(response, url, request, history, origin, first_cookies)
            except UnrewindableBodyError as error:
                if follow:
                    raise
                response._not_next = error
                break
            if not follow:
                response._next = request
                break
            response = await self._send_once(request, stream, settings)
            response.history = list(history)
        return response  # type: ignore[return-value]

    async def _send_once(self, request: PreparedRequest, stream: bool, settings: dict[str, Any]) -> Response:
        session = self._session
        call = session._long(request, settings)
        source = None
        try:
            if stream:
                plan, method, url, _, fields, body, _, _ = call
                stop = Stop()
                stopper = _stopper(request, stop)
                reply, source = await self._calls.run(stopper, session._client.open, plan, method, url, fields, body, stop)
            elif is_stream(request.body) or hasattr(request.body, "read"):
                # The program's own code makes it, in a thread that the interpreter waits for when it ends.
                stop = Stop()
                reply = await self._calls.run(_stopper(request, stop), session._client.send, *call, stop)
            else:
                reply = await self._exchange(call)
        except Failure as failure:
            if not stream and _is_unanswerable(failure, request):
                return await self._send_once(request, stream, settings)
            raise from_failure(failure, request, call[0].proxied) from None
        response = answer(AsyncResponse, reply, None, source)
        response._calls = self._calls
        response.request = request
        changed = await _call_hooks(request.hooks, response, {**settings, "stream": stream})
        reply.cookies_into(session.cookies._jar)
        return changed  # type: ignore[no-any-return]

    async def _exchange(self, call: Any) -> Reply:
        """One exchange on the engine's thread."""
        loop = asyncio.get_running_loop()
        lane = self._lanes.get(loop)
        if lane is None or lane.batch is None or lane.pid != os.getpid():
            lane = self._add_lane(loop)
        batch: Any = lane.batch
        number = batch.submit(*call)
        future: asyncio.Future[Reply] = loop.create_future()
        lane.futures[number] = future
        try:
            return await future
        except asyncio.CancelledError:
            batch.cancel(number)
            raise

    def _add_lane(self, loop: asyncio.AbstractEventLoop) -> _Lane:
        """This loop's; and those of loops that are closed are let go."""
        batch = Batch(self._session._client, max_parallel=self._max_parallel, per_host=self._per_host, ordered=False, memory=1 << 40)
        lane = _Lane(loop, batch)
        with self._lock:
            for other in [other for other, its in self._lanes.items() if not its.is_open]:
                del self._lanes[other]
            self._lanes[loop] = lane
        return lane
