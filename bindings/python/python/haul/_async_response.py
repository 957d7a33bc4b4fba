"""Responses of :class:`haul.AsyncSession`, and the calls that produce them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any

from ._haul import EngineError
from ._line_splitter import LineSplitter
from .exceptions import ChunkedEncodingError, ContentDecodingError
from .models import ITER_CHUNK_SIZE, MAX_DISCARDED_BYTES, Response, _DiscardedBody, _stream_error

if TYPE_CHECKING:
    from ._loop_batch import LoopBatch, LoopBatches

__all__ = ["AsyncResponse", "RequestCall", "as_call"]


class _UnusableConnection:
    """The value of ``Response.connection`` for an :class:`AsyncResponse`. An ``auth`` cannot send
    requests with it."""

    def send(self, *args: Any, **kwargs: Any) -> Response:
        """Refuses, because sending would block the event loop.

        :raises TypeError: always."""
        raise TypeError("an auth that sends by response.connection.send would block the event loop; use it with haul.Session")


class AsyncResponse(Response):
    """A response whose streamed body is read without blocking the event loop.

    >>> async with session.get("https://example.com/", stream=True) as response:   # doctest: +SKIP
    ...     async for line in response.aiter_lines():
    ...         print(line)
    """

    connection: Any = _UnusableConnection()
    #: The batches of the session, which wake the event loop when bytes have arrived.
    _loop_batches: LoopBatches | None = None
    #: The batch that wakes the reader of the body, and the number of the reader's task.
    _woken_by: tuple[LoopBatch, int] | None = None

    async def aread(self) -> bytes:
        """Reads the whole body."""
        if self._content is False:
            self._content = b"".join([piece async for piece in self.aiter_content(None)])
            self._content_consumed = True
        return self._content or b""

    async def _read(self, size: int | None) -> bytes:
        """Reads the next ``size`` bytes of a streamed body, or fewer at its end; with ``None`` the
        rest."""
        try:
            return await self._poll(self._stream.poll_read, size)
        except EngineError as failure:
            raise _stream_error(failure, self.request) from None

    async def _poll(self, poll: Callable[[int | None], bytes | None], size: int | None) -> bytes:
        """Waits for bytes of the body. Cancelling the wait closes the body."""
        piece = poll(size)
        if piece is not None:
            return piece
        loop_batches = self._loop_batches
        assert loop_batches is not None
        loop_batch = loop_batches.current()
        if self._woken_by is None or self._woken_by[0] is not loop_batch:
            self._woken_by = loop_batch, loop_batch.new_task()
            self._stream.attach(loop_batch.batch, self._woken_by[1])
        try:
            return await loop_batch.until(self._woken_by[1], poll, size)
        except (asyncio.CancelledError, GeneratorExit):
            self._stream.close()
            raise

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
            while piece := await self._poll(stream.poll_piece, chunk_size or None):
                yield piece
        except EngineError as failure:
            error = _stream_error(failure, self.request)
            await self._atell_end(error)
            raise error from None
        self._content_consumed = True
        await self._atell_end()

    async def _atell_end(self, error: BaseException | None = None) -> None:
        """Tells the hooks of the session that a streamed body was read to its end, or given up."""
        observation, self._observation = self._observation, None
        if observation is not None:
            await observation.atell("done", self.request, self, error)

    async def aiter_lines(self, chunk_size: int = ITER_CHUNK_SIZE, delimiter: bytes | None = None) -> AsyncIterator[bytes]:
        """Yields the lines of the body, as ``splitlines`` or ``split(delimiter)`` would split the whole
        body."""
        lines = LineSplitter(delimiter)
        async for piece in self.aiter_content(chunk_size):
            for line in lines.push(piece):
                yield line
        for line in lines.end():
            yield line

    async def aclose(self) -> None:
        """Closes the response. Its connection is reused only if the body was read to its end."""
        await self._atell_end()
        self.close()

    async def __aenter__(self) -> AsyncResponse:
        return self

    async def __aexit__(self, *args: object) -> None:
        await self.aclose()


class RequestCall(Coroutine[Any, Any, AsyncResponse]):
    """A request that is sent when it is awaited, or entered by ``async with``, which also closes the
    response."""

    __slots__ = ("_coroutine", "_response")

    def __init__(self, coroutine: Coroutine[Any, Any, AsyncResponse]) -> None:
        self._coroutine = coroutine
        self._response: AsyncResponse | None = None

    def send(self, value: Any) -> Any:
        """Continues the request, for the event loop."""
        return self._coroutine.send(value)

    def throw(self, *args: Any) -> Any:
        """Raises an exception in the request, for the event loop."""
        return self._coroutine.throw(*args)

    def close(self) -> None:
        """Ends the request."""
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, AsyncResponse]:
        return self._coroutine.__await__()

    async def __aenter__(self) -> AsyncResponse:
        self._response = await self._coroutine
        return self._response

    async def __aexit__(self, *args: object) -> None:
        if self._response is not None:
            await self._response.aclose()


def as_call(sent: Coroutine[Any, Any, AsyncResponse]) -> RequestCall:
    """Returns ``sent`` as a :class:`RequestCall`. ``sent`` is the result of a session's ``request``,
    which is a plain coroutine if a subclass overrides the method by a coroutine function."""
    return sent if isinstance(sent, RequestCall) else RequestCall(sent)
