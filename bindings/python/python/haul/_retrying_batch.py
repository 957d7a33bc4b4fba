"""A batch that sends failed requests again, for ``fetch_many(retries=…)``."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable
from time import monotonic, sleep

from ._haul import EngineError
from ._retry_policy import HostHolds, Retry, RetryState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._haul import Batch, ReceivedResponse
    from .models import Call

    #: The number of a request, with its response or its exception.
    NumberedResult = tuple[int, ReceivedResponse | None, Exception | None]

__all__ = ["RetryingBatch"]


class _Attempts:
    """A request of the batch, with its retries so far."""

    __slots__ = ("number", "call", "state")

    def __init__(self, number: int, call: Call, state: RetryState) -> None:
        self.number = number
        self.call = call
        self.state = state

    def wait_after(self, reply: ReceivedResponse | None, failed: Exception | None) -> float | None:
        """Returns the wait before another try; ``None`` if this result is final."""
        method, body = self.call[1], self.call[5]
        if reply is not None:
            wait = self.state.after_response(reply, method)
        else:
            wait = None if failed is None else self.state.after_failure(failed, method)
        # Other bodies can be read only once. One of a request that was not sent was not read.
        is_kept = body is None or isinstance(body, (str, bytes))
        is_unsent = isinstance(failed, EngineError) and failed.args[3] == "connect"
        return wait if is_kept or is_unsent else None


class RetryingBatch:
    """A :class:`Batch` whose results are final: requests that may be sent again were sent again.

    The waits occupy no place among the requests in progress. With ``ordered``, the results that come
    before their turn are kept here."""

    def __init__(
        self, batch: Batch, rules: Retry, holds: HostHolds, ordered: bool, tell: Callable[[int, Any, Any, float], None]
    ) -> None:
        self._batch = batch
        self._rules = rules
        self._holds = holds
        self._ordered = ordered
        #: Called with the number, the response or exception, and the wait before each retry.
        self._tell = tell
        self._submitted = 0
        self._running: dict[int, _Attempts] = {}
        #: The requests that wait, by the time at which they are due.
        self._waiting: list[tuple[float, int, _Attempts]] = []
        self._finished: dict[int, NumberedResult] = {}
        self._turn = 0
        self._pid = os.getpid()

    def submit(self, *call: Any) -> int:
        """Adds a request and returns its number, which begins at 0. Never waits."""
        number = self._submitted
        attempts = _Attempts(number, call, RetryState(self._rules, self._holds))
        held = self._holds.wait(call[2])
        if held:
            self._wait(attempts, held)
        else:
            self._running[self._batch.submit(*call)] = attempts
        self._submitted += 1
        return number

    def next(self, most: int) -> list[NumberedResult]:
        """Waits for results, and returns at most ``most`` of them. Returns none in a forked child."""
        while True:
            self._resume()
            ready = self._ready(most)
            if ready or not (self._running or self._waiting):
                return ready
            pause = max(self._waiting[0][0] - monotonic(), 0.0) if self._waiting else None
            if not self._running:
                sleep(pause or 0.0)
                continue
            finished = self._batch.next(most, pause)
            if not finished and os.getpid() != self._pid:
                return []
            for inner, reply, failed in finished:
                attempts = self._running.pop(inner)
                wait = attempts.wait_after(reply, failed)
                if wait is None:
                    self._finished[attempts.number] = attempts.number, reply, failed
                else:
                    self._tell(attempts.number, reply, failed, wait)
                    self._wait(attempts, wait)

    def _wait(self, attempts: _Attempts, seconds: float) -> None:
        heapq.heappush(self._waiting, (monotonic() + seconds, attempts.number, attempts))

    def _resume(self) -> None:
        """Sends the requests that are due, unless their host has asked for a longer pause."""
        while self._waiting and self._waiting[0][0] <= monotonic():
            attempts = heapq.heappop(self._waiting)[2]
            held = self._holds.wait(attempts.call[2])
            if held:
                self._wait(attempts, held)
                continue
            try:
                self._running[self._batch.submit(*attempts.call)] = attempts
            except EngineError as failure:
                self._finished[attempts.number] = attempts.number, None, failure

    def _ready(self, most: int) -> list[NumberedResult]:
        """Removes and returns the results whose turn has come."""
        ready: list[NumberedResult] = []
        while self._finished and len(ready) < most:
            number = self._turn if self._ordered else next(iter(self._finished))
            if number not in self._finished:
                break
            ready.append(self._finished.pop(number))
            self._turn += 1
        return ready
