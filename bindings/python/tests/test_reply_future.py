"""The future of a response, and the tasks that wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import os
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import haul
from haul._reply_future import ReplyFuture

TASKS = [pytest.param(asyncio.Task, id="C"), pytest.param(asyncio.tasks._PyTask, id="Python")]  # type: ignore[attr-defined]


class FakeBatch:
    """A batch that only records which requests were cancelled."""

    def __init__(self) -> None:
        self.cancelled: list[int] = []

    def cancel(self, number: int) -> None:
        self.cancelled.append(number)


def run_with_future(task_class: Any, body: Callable[[ReplyFuture, Any, FakeBatch], Coroutine[Any, Any, None]]) -> None:
    """Runs `body` with a future, the task that awaits it, and its batch."""

    async def main() -> None:
        loop, batch = asyncio.get_running_loop(), FakeBatch()
        future = ReplyFuture(loop, batch, 7)  # type: ignore[arg-type]

        async def wait() -> Any:
            return await future

        task = task_class(wait(), loop=loop)
        await asyncio.sleep(0)
        await body(future, task, batch)

    asyncio.run(main())


@pytest.mark.parametrize("task_class", TASKS)
def test_task_is_continued_at_once(task_class: Any) -> None:
    async def body(future: ReplyFuture, task: Any, batch: FakeBatch) -> None:
        found = []

        def callback() -> None:
            future.continue_task("reply")  # type: ignore[arg-type]
            found.append((task.done(), future.is_done, future.cancel()))

        asyncio.get_running_loop().call_soon(callback)
        assert await task == "reply"
        await asyncio.sleep(0)
        assert found == [(True, True, False)] and batch.cancelled == []

    run_with_future(task_class, body)


@pytest.mark.parametrize("task_class", TASKS)
def test_result_and_error_continue_the_task_later(task_class: Any) -> None:
    async def result(future: ReplyFuture, task: Any, batch: FakeBatch) -> None:
        future.set_result("reply")  # type: ignore[arg-type]
        assert not task.done()
        assert await task == "reply"

    async def error(future: ReplyFuture, task: Any, batch: FakeBatch) -> None:
        future.set_exception(ValueError("failed"))
        assert not task.done()
        with pytest.raises(ValueError, match="failed"):
            await task

    run_with_future(task_class, result)
    run_with_future(task_class, error)


@pytest.mark.parametrize("task_class", TASKS)
def test_cancelled_task_cancels_the_request(task_class: Any) -> None:
    async def body(future: ReplyFuture, task: Any, batch: FakeBatch) -> None:
        task.cancel("enough")
        assert batch.cancelled == [7] and future.is_done
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    run_with_future(task_class, body)


def test_finished_future_does_not_suspend() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        finished, failed = (ReplyFuture(loop, FakeBatch(), number) for number in range(2))  # type: ignore[arg-type]
        finished.set_result("reply")  # type: ignore[arg-type]
        failed.set_exception(ValueError("failed"))
        with pytest.raises(StopIteration) as ended:
            next(finished.__await__())
        assert ended.value.value == "reply"
        with pytest.raises(ValueError, match="failed"):
            await failed

    asyncio.run(main())


def test_error_is_freed_without_the_collector() -> None:
    class Failure(Exception):
        pass

    freed: list[weakref.ref[Failure]] = []

    async def body(future: ReplyFuture, task: Any, batch: FakeBatch) -> None:
        error = Failure()
        freed.append(weakref.ref(error))
        future.set_exception(error)
        del error
        await asyncio.wait([task])
        assert isinstance(task.exception(), Failure)

    gc.collect()
    gc.disable()
    try:
        run_with_future(asyncio.Task, body)
        assert freed[0]() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("task_class", TASKS)
@pytest.mark.parametrize("debug", [False, True])
def test_requests_run_in_tasks_of_either_kind(pages: Any, task_class: Any, debug: bool) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)

    async def chain(session: haul.AsyncSession, number: int) -> None:
        variable.set(number)
        for at in range(5):
            assert (await session.get(f"{pages.url}/{number}/{at}")).text == f"page /{number}/{at}"
            assert variable.get() == number
        with pytest.raises(haul.ConnectionError):
            await session.get("http://127.0.0.1:1/")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(session.get(f"{pages.url}/never"), 0.1)

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(lambda loop, coroutine, **kwargs: task_class(coroutine, loop=loop, **kwargs))
        async with haul.AsyncSession() as session:
            await chain(session, 1)
            await asyncio.gather(*(chain(session, number) for number in range(2, 6)))
            assert variable.get() == 1

    asyncio.run(main(), debug=debug)


class NestingLoop(asyncio.SelectorEventLoop):
    """A loop that a task can run, as with nest_asyncio."""

    _nest_patched = True

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[Any] = []
        self.set_exception_handler(lambda loop, context: self.failures.append(context))

    def _run_once(self) -> None:
        # An inner loop may have run the callbacks of the outer one.
        with contextlib.suppress(IndexError):
            super()._run_once()  # type: ignore[misc]

    def run_inside(self, coroutine: Any) -> Any:
        outer, task = asyncio.current_task(self), asyncio.tasks._PyTask(coroutine, loop=self)  # type: ignore[attr-defined]
        asyncio.tasks._leave_task(self, outer)  # type: ignore[arg-type]
        while not task.done() and not self.failures:
            self._run_once()
        asyncio.tasks._enter_task(self, outer)  # type: ignore[arg-type]
        return task.result()


def test_task_may_run_its_loop_again(pages: Any) -> None:
    loop = NestingLoop()

    async def main() -> None:
        async with haul.AsyncSession() as session:
            for number in range(3):
                assert (await session.get(f"{pages.url}/{number}")).ok
                assert loop.run_inside(session.get(f"{pages.url}/inner")).ok

    try:
        loop.run_until_complete(asyncio.tasks._PyTask(main(), loop=loop))  # type: ignore[attr-defined]
    finally:
        loop.close()
    assert loop.failures == []


def test_exit_of_a_continued_task_ends_the_loop(pages: Any) -> None:
    async def main() -> None:
        async with haul.AsyncSession() as session:
            await session.get(f"{pages.url}/x")
            raise SystemExit(3)

    with pytest.raises(SystemExit) as ended:
        asyncio.run(main())
    assert ended.value.code == 3


def test_forked_child_uses_the_loop_and_session_of_its_parent(pages: Any) -> None:
    loop = asyncio.new_event_loop()
    session = haul.AsyncSession()

    async def fetch() -> str:
        return (await asyncio.wait_for(session.get(f"{pages.url}/x"), 20)).text

    assert loop.run_until_complete(fetch()) == "page /x"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if loop.run_until_complete(fetch()) == "page /x" else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert loop.run_until_complete(fetch()) == "page /x"
    loop.run_until_complete(session.aclose())
    loop.close()
