"""Runs blocking calls for an event loop, on threads of the session.

The default executor of a loop has few threads (six on two cores), and the program uses them, too:
streams that wait for slow servers would delay the program's own calls, and each other.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ._haul import EngineError

#: The limit of threads, which are started as they are needed. Further calls wait for a free thread.
_MAX_THREADS = 256


class ThreadCalls:
    """The calls of a session that are in progress, and the function that stops each."""

    def __init__(self) -> None:
        self._stops: dict[asyncio.Future[Any], Callable[[], None]] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._pid = 0
        #: Held while the thread pool is created or shut down.
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._stops)

    async def run(self, stop: Callable[[], None], function: Callable[..., Any], *args: Any) -> Any:
        """Runs a call on a thread. Cancelling the wait stops the call."""
        loop = asyncio.get_running_loop()
        waits: asyncio.Future[Any] = loop.create_future()
        call = loop.run_in_executor(self._pool(), function, *args)
        call.add_done_callback(functools.partial(_pass_result, waits))
        self._stops[waits] = stop
        try:
            return await waits
        except (asyncio.CancelledError, GeneratorExit):
            stop()
            # A call that has not begun is not run. The result of a running call is dropped: the
            # loop may be closed by then.
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
            # A forked child does not have the threads of its parent.
            if self._threads is None or self._pid != os.getpid():
                self._threads = ThreadPoolExecutor(_MAX_THREADS, "haul")
                self._pid = os.getpid()
            return self._threads


def _pass_result(waits: asyncio.Future[Any], call: asyncio.Future[Any]) -> None:
    """Passes the result of a call to the future that waits for it, unless that is done."""
    error = None if call.cancelled() else call.exception()
    if waits.done():
        return
    if call.cancelled():
        waits.cancel()
    elif error is not None:
        waits.set_exception(error)
    else:
        waits.set_result(call.result())


def closed_error() -> EngineError:
    """Returns the error of a call whose session is closed."""
    return EngineError("Closed", "the session was closed", None, "head")


def close(future: asyncio.Future[Any]) -> None:
    """Ends a call whose session is closed."""
    if not future.done():
        future.set_exception(closed_error())
        # Retrieved here, so that asyncio prints no warning if the task is gone.
        future.exception()


def in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> bool:
    """Calls a function in the thread of the loop: at once if that is the current thread, else soon.

    Returns False if the loop is closed: then nothing waits in it."""
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
