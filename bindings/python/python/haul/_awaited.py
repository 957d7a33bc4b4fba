"""Request bodies from asynchronous iterables, for the thread that sends them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import AsyncIterable, Iterator
from typing import Any

_END = object()


class AwaitedBody:
    """An asynchronous iterable as an iterator for a thread that may block: each piece is produced in the event loop."""

    def __init__(self, pieces: AsyncIterable[Any], loop: asyncio.AbstractEventLoop) -> None:
        self._pieces = aiter(pieces)
        self._loop = loop
        self._piece: concurrent.futures.Future[Any] | None = None
        self._is_stopped = False
        #: Held while a piece is asked for, which may be stopped by another thread meanwhile.
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self._lock:
            if self._is_stopped:
                # The end would be taken for that of the body.
                raise concurrent.futures.CancelledError
            self._piece = asyncio.run_coroutine_threadsafe(self._next(), self._loop)
        piece = self._piece.result()
        if piece is _END:
            raise StopIteration
        return piece

    def tell(self) -> int:
        """:raises OSError: always. The body cannot be rewound, so a redirect that keeps it is an error."""
        raise OSError("an asynchronous iterable can be sent once")

    async def _next(self) -> Any:
        return await anext(self._pieces, _END)

    def stop(self) -> None:
        """Cancels the piece in progress, because nobody waits for it any more."""
        with self._lock:
            self._is_stopped = True
            if self._piece is not None:
                self._piece.cancel()
