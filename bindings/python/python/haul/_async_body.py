"""Request bodies that are asynchronous iterables."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from typing import Any

_END = object()


class AsyncBody:
    """The body of a request that an event loop produces piece by piece.

    An :class:`haul.AsyncSession` iterates over :meth:`pieces`. A thread that sends the body uses this
    object as a blocking iterator."""

    def __init__(self, pieces: AsyncIterable[Any], loop: asyncio.AbstractEventLoop) -> None:
        self._pieces = aiter(pieces)
        self._loop = loop
        self._piece: concurrent.futures.Future[Any] | None = None
        self._is_stopped = False
        #: Held while a piece is requested: another thread may call :meth:`stop` meanwhile.
        self._lock = threading.Lock()

    @property
    def pieces(self) -> AsyncIterator[Any]:
        """The asynchronous iterator over the pieces of the body."""
        return self._pieces

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self._lock:
            if self._is_stopped:
                # StopIteration would look like the end of the body.
                raise concurrent.futures.CancelledError
            self._piece = asyncio.run_coroutine_threadsafe(self._next(), self._loop)
        piece = self._piece.result()
        if piece is _END:
            raise StopIteration
        return piece

    def tell(self) -> int:
        """Refuses: the body cannot be rewound, so a redirect that needs it again is an error.

        :raises OSError: always."""
        raise OSError("an asynchronous iterable can be sent only once")

    async def _next(self) -> Any:
        return await anext(self._pieces, _END)

    def stop(self) -> None:
        """Ends the body, and cancels the piece in progress."""
        with self._lock:
            self._is_stopped = True
            if self._piece is not None:
                self._piece.cancel()
