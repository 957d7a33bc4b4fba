"""The future of a response, whose task continues without another turn of the event loop."""

from __future__ import annotations

from asyncio import CancelledError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Generator
    from contextvars import Context
    from typing import Any

    from ._haul import Batch, ReceivedResponse

__all__ = ["ReplyFuture"]


class ReplyFuture:
    """A future for the one task that awaits it, with the methods that ``asyncio.Task`` calls.

    An ``asyncio.Future`` continues its task in the next turn of the loop, which takes a tenth of the
    instructions of a small request. :meth:`continue_task` continues it at once."""

    __slots__ = ("_asyncio_future_blocking", "_loop", "_batch", "_number", "_callback", "_context", "_reply", "_error", "is_done")

    def __init__(self, loop: AbstractEventLoop, batch: Batch, number: int) -> None:
        self._loop = loop
        self._batch = batch
        self._number = number
        self._asyncio_future_blocking = False
        self._callback: Callable[[Any], object] | None = None
        self._context: Context | None = None
        self._reply: Any = None
        self._error: BaseException | None = None
        #: True if the request is over, or its task was cancelled.
        self.is_done = False

    def get_loop(self) -> AbstractEventLoop:
        """Returns the loop of the task."""
        return self._loop

    def result(self) -> Any:
        """Returns the response, or raises the error of the request."""
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
        finally:
            # The traceback of the error refers to this frame.
            del error
        return self._reply

    def add_done_callback(self, callback: Callable[[Any], object], *, context: Context | None = None) -> None:
        """Stores the function that continues the task."""
        self._callback, self._context = callback, context
        if self.is_done:
            self._schedule()

    def cancel(self, msg: Any = None) -> bool:
        """Cancels the request, closes its connection, and continues the task with a
        ``CancelledError``. Returns false if the request is over."""
        if self.is_done:
            return False
        self._batch.cancel(self._number)
        self.set_exception(CancelledError() if msg is None else CancelledError(msg))
        return True

    def set_exception(self, error: BaseException) -> None:
        """Continues the task with an error, in the next turn of the loop."""
        self._error, self.is_done = error, True
        self._schedule()

    def set_result(self, reply: ReceivedResponse) -> None:
        """Continues the task with a response, in the next turn of the loop."""
        self._reply, self.is_done = reply, True
        self._schedule()

    def continue_task(self, reply: ReceivedResponse) -> None:
        """Continues the task with a response, at once.

        Only a callback of the loop calls it, as its last step: the program's code runs in here, and
        may raise a ``KeyboardInterrupt``."""
        self._reply, self.is_done = reply, True
        callback, context = self._callback, self._context
        if callback is not None and context is not None:
            context.run(callback, self)

    def _schedule(self) -> None:
        # The traceback of an error refers to this future, so this must not refer to its task.
        callback, self._callback = self._callback, None
        if callback is not None:
            self._loop.call_soon(callback, self, context=self._context)

    def __await__(self) -> Generator[Any, Any, ReceivedResponse]:
        if not self.is_done:
            self._asyncio_future_blocking = True
            yield self
            # An error is raised at the `yield`.
            return self._reply  # type: ignore[no-any-return]
        return self.result()  # type: ignore[no-any-return]
