"""The batches of event loops: one descriptor wakes a loop for all requests and streams of a session."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ._async_body import AsyncBody
from ._haul import Batch, EngineError
from ._reply_future import ReplyFuture
from ._thread_calls import close, closed_error, in_loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ._haul import Client, ReceivedResponse, StreamedBody
    from .models import Call

__all__ = ["LoopBatch", "LoopBatches"]

_T = TypeVar("_T")

_MAX_RESULTS_AT_ONCE = 64
_END = object()
#: The number of forks since the module was loaded. Comparing it costs nothing, ``os.getpid`` a system call.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class LoopBatch:
    """The batch of one event loop, and the futures that wait for its results or for a wake-up of its
    tasks.

    The loop holds it as the callback of a reader, so it has no reference to the session, and only a
    weak one to the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, batch: Batch) -> None:
        self.batch: Batch | None = batch
        self.futures: dict[int, ReplyFuture] = {}
        self._made_after_forks = _forks
        self._loop = weakref.ref(loop)
        #: The number of the last task.
        self._last_task = 0
        #: The futures that wait until a task is woken.
        self._waits: dict[int, set[asyncio.Future[None]]] = {}
        #: The producers of request bodies, by the number of the task that the engine wakes for the next
        #: piece.
        self.producers: dict[int, _UploadProducer] = {}
        self._runs: dict[Callable[[], None], asyncio.Future[None]] = {}
        loop.add_reader(batch.fileno(), self._drain)

    @property
    def is_open(self) -> bool:
        """True if the event loop is still open, in this process."""
        loop = self._loop()
        return loop is not None and not loop.is_closed() and self._made_after_forks == _forks

    def _drain(self) -> None:
        """Passes results to the futures that wait for them, and wakes tasks."""
        batch = self.batch
        if batch is None:
            return
        # The number is limited, so that the loop can do other work between.
        finished = batch.try_next(_MAX_RESULTS_AT_ONCE)
        only: ReplyFuture | None = None
        reply: Any = None
        for number, reply, error in finished:
            future = self.futures.pop(number, None)
            if future is None or future.is_done:
                continue
            if reply is None:
                future.set_exception(error if error is not None else RuntimeError("the request has no result"))
            elif len(finished) == 1:
                only = future
            else:
                future.set_result(reply)
        # Most sessions never have tasks.
        for task in batch.woken_tasks() if self._last_task else ():
            for wait in self._waits.pop(task, ()):
                if not wait.done():
                    wait.set_result(None)
            producer = self.producers.get(task)
            if producer is not None:
                producer.wake()
        if only is not None:
            # The program's code runs in here, so this is the last step. Of several tasks, one that ran in
            # here would go before those whose results came first.
            if getattr(self._loop(), "_nest_patched", False):
                # The loop of nest_asyncio may run again inside of that code, and cannot call this
                # function again before it has returned.
                only.set_result(reply)
            else:
                only.continue_task(reply)

    def submit(self, call: Call, as_is: bool = False) -> ReplyFuture:
        """Sends a request, with ``as_is`` unchanged. Returns the future of its response."""
        batch, loop = self.batch, self._loop()
        assert batch is not None and loop is not None
        number = batch.submit(*call, as_is)
        future = self.futures[number] = ReplyFuture(loop, batch, number)
        return future

    def release(self) -> None:
        """Ends requests in progress: at once if called in the thread of the loop, otherwise soon."""
        loop = self._loop()
        if loop is None or not self.is_open or not in_loop(loop, self._cancel_all, loop):
            self.batch = None

    def _cancel_all(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self.batch = self.batch, None
        futures, self.futures = self.futures, {}
        waits, self._waits = self._waits, {}
        if batch is not None:
            loop.remove_reader(batch.fileno())
        for future in futures.values():
            if not future.is_done:
                future.set_exception(closed_error())
        for tasks in waits.values():
            for wait in tasks:
                close(wait)
        for producer in list(self.producers.values()):
            producer.end()

    async def run_once(self, function: Callable[[], None]) -> None:
        """Runs a function in a thread; or waits for its end, if it runs already for another task."""
        run = self._runs.get(function)
        if run is None:
            run = self._runs[function] = asyncio.ensure_future(asyncio.to_thread(function))
            run.add_done_callback(lambda _: self._runs.pop(function, None))
        await asyncio.shield(run)

    def new_task(self) -> int:
        """Returns the number of a new task."""
        self._last_task += 1
        return self._last_task

    async def until(self, task: int, poll: Callable[..., _T | None], *args: Any) -> _T:
        """Polls whenever the task is woken, until there is a result."""
        while (result := poll(*args)) is None:
            await self.woken(task)
        return result

    async def woken(self, task: int) -> None:
        """Waits until the task is woken."""
        wait: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.batch is None:
            close(wait)
        self._waits.setdefault(task, set()).add(wait)
        try:
            await wait
        finally:
            waits = self._waits.get(task)
            if waits is not None:
                waits.discard(wait)
                if not waits:
                    del self._waits[task]

    async def open(self, call: Call, stream: bool) -> tuple[ReceivedResponse, StreamedBody | None]:
        """Sends a prepared request. Returns the head of its response and its body; or the whole response and
        ``None``, unless ``stream`` is set."""
        batch = self.batch
        if batch is None:
            raise EngineError("Closed", "the session was closed", None, "connect")
        options, method, url, _, fields, body, _, _ = call
        producer = None
        if isinstance(body, AsyncBody):
            producer = _UploadProducer(self, batch, body.pieces)
            body = producer.upload
        task = self.new_task()
        exchange = batch.open(task, options, method, url, fields, body, True)
        try:
            reply, source = await self.until(task, exchange.poll)
        except BaseException:
            exchange.close()
            if producer is not None:
                producer.end()
            raise
        if stream:
            return reply, source
        try:
            content = await self.until(task, source.poll_read)
        except BaseException:
            source.close()
            raise
        return source.complete(reply, content), None


class _UploadProducer:
    """The task that produces the body of a request, one piece whenever the engine wants one.

    It ends with the request: when that needs no more pieces, the program's iterator is cancelled."""

    def __init__(self, loop_batch: LoopBatch, batch: Batch, pieces: AsyncIterator[Any]) -> None:
        self._number = loop_batch.new_task()
        self._producers = loop_batch.producers
        self._wanted: asyncio.Future[None] | None = None
        self.upload = batch.upload(self._number)
        self._task = asyncio.ensure_future(self._run(pieces))
        self._producers[self._number] = self

    def wake(self) -> None:
        """Records that the next piece is needed, or that no further piece is."""
        if self.upload.is_over:
            self.end()
        elif self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)

    def end(self) -> None:
        """Cancels the iterator that produces the body."""
        self._task.cancel()

    async def _run(self, pieces: AsyncIterator[Any]) -> None:
        upload = self.upload
        try:
            while True:
                while not upload.is_wanted:
                    self._wanted = asyncio.get_running_loop().create_future()
                    await self._wanted
                piece: Any = await anext(pieces, _END)
                if piece is _END:
                    upload.finish()
                    return
                upload.push(piece)
        except BaseException as error:
            # The request raises it, unless it is over.
            if not upload.is_over:
                upload.fail(error)
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
        finally:
            self._producers.pop(self._number, None)


class LoopBatches:
    """The batches of a session, one for each event loop that uses it.

    Responses hold it, too: their bodies may be read after the session is gone, and in another loop."""

    def __init__(self, client: Client, limits: dict[str, Any]) -> None:
        self._client = client
        self._limits = limits
        self._batches: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopBatch] = weakref.WeakKeyDictionary()
        #: The batch that was used last.
        self._last: LoopBatch | None = None
        #: Held while batches are added or removed.
        self._lock = threading.Lock()

    def __del__(self) -> None:
        # There are no batches in a copy that could not be made.
        if "_batches" in self.__dict__:
            self.release(self.open_batches())

    def current(self) -> LoopBatch:
        """Returns the batch of the running loop."""
        loop = asyncio.get_running_loop()
        # Comparing the batch that was used last costs half as much as a look-up by a weak reference.
        loop_batch = self._last
        if loop_batch is None or loop_batch._loop() is not loop:
            loop_batch = self._last = self._batches.get(loop)
        if loop_batch is None or loop_batch.batch is None or loop_batch._made_after_forks != _forks:
            loop_batch = self._last = self._add(loop)
        return loop_batch

    def open_batches(self) -> list[LoopBatch]:
        """Returns the batches whose loops are open."""
        return [loop_batch for loop_batch in self._batches.values() if loop_batch.is_open]

    def take_all(self) -> list[LoopBatch]:
        """Removes and returns all batches."""
        with self._lock:
            loop_batches = list(self._batches.values())
            self._batches.clear()
            self._last = None
        return loop_batches

    @staticmethod
    def release(loop_batches: list[LoopBatch]) -> None:
        """Ends the requests in progress of these batches."""
        for loop_batch in loop_batches:
            loop_batch.release()

    def _add(self, loop: asyncio.AbstractEventLoop) -> LoopBatch:
        """Creates the batch of a loop, and drops the batches of closed loops."""
        loop_batch = LoopBatch(loop, Batch(self._client, ordered=False, memory=1 << 40, direct=True, **self._limits))
        with self._lock:
            for other in [other for other, batch_of in self._batches.items() if not batch_of.is_open]:
                del self._batches[other]
            self._batches[loop] = loop_batch
        return loop_batch
