"""Runs blocking calls for an event loop, on threads of the session.

A loop's default executor has few threads (six on two cores), and they are the program's: streams that wait for slow servers would hold up
its own calls, and each other.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ._haul import Failure

#: Threads are started as they are needed; what finds none waits for one.
_MOST_THREADS = 256


class Calls:
    """The calls of a session that are in progress, and how to stop each."""

    def __init__(self) -> None:
        self._stops: dict[asyncio.Future[Any], Callable[[], None]] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._pid = 0
        #: Held while threads are got or let go.
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._stops)

    async def run(self, stop: Callable[[], None], function: Callable[..., Any], *args: Any) -> Any:
        """Runs a call on a thread. Cancelling the wait stops the call."""
        loop = asyncio.get_running_loop()
        waits: asyncio.Future[Any] = loop.create_future()
        call = loop.run_in_executor(self._pool(), function, *args)
        call.add_done_callback(functools.partial(_settle, waits))
        self._stops[waits] = stop
        try:
            return await waits
        except (asyncio.CancelledError, GeneratorExit):
            stop()
            # One that has not begun need not, and nobody is told of the end of one that has: the loop may be gone by then.
            call.cancel()
            raise
        finally:
            del self._stops[waits]

    def end(self) -> None:
        """Stops all calls with a ConnectionError and ends the threads."""
        for waits, stop in list(self._stops.items()):
            stop()
            in_loop(waits.get_loop(), close, waits)
        with self._lock:
            threads, self._threads = self._threads, None
            if threads is not None and self._pid == os.getpid():
                threads.shutdown(wait=False)

    def _pool(self) -> ThreadPoolExecutor:
        with self._lock:
            # A child has none of its parent's threads.
            if self._threads is None or self._pid != os.getpid():
                self._threads = ThreadPoolExecutor(_MOST_THREADS, "haul")
                self._pid = os.getpid()
            return self._threads


def _settle(waits: asyncio.Future[Any], call: asyncio.Future[Any]) -> None:
    """Passes the result of a call to its future, unless that was cancelled."""
    error = None if call.cancelled() else call.exception()
    if waits.done():
        return
    if call.cancelled():
        waits.cancel()
    elif error is not None:
        waits.set_exception(error)
    else:
        waits.set_result(call.result())


def close(future: asyncio.Future[Any]) -> None:
    """Ends the call, because its session is closed."""
    if not future.done():
        future.set_exception(Failure("Closed", "the session was closed", None, "head"))
        # Asked for now: of one whose task is gone nobody wants to read that it was never retrieved.
        future.exception()


def in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> bool:
    """Calls it in the loop's thread: at once here, elsewhere as soon as the loop comes to it. False if that is closed, maybe just now:
    then nobody waits, and it has forgotten its readers."""
    if loop is _running_loop():
        function(*args)
        return True
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        return False
    return True


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
