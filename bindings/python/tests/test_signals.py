"""Signals while a call waits."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

from conftest import run_python, start_python


@pytest.mark.parametrize(
    "call",
    [
        "haul.get(url)",
        "haul.get(url, timeout=60)",
        "haul.get(url, stream=True)",
        "list(haul.fetch_many([url] * 3))",
        "asyncio.run(asynchronous())",
    ],
)
def test_ctrl_c_ends_a_wait(pages: Any, call: str) -> None:
    child = start_python(
        """
        import asyncio, os, signal, sys, threading, time, haul
        url = sys.argv[1]
        async def asynchronous():
            async with haul.AsyncSession() as session:
                await session.get(url)
        def late():
            sent = []
            def send():
                time.sleep(0.1)
                sent.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            try:
                threading.Thread(target=send).start()
                eval(sys.argv[2])
            except KeyboardInterrupt:
                return time.monotonic() - sent[0]
        print(min(late() for _ in range(5)))
        """,
        f"{pages.url}/never",
        call,
    )
    out, err = child.communicate(timeout=100)
    assert out.strip(), err
    # The quickest of five, because the machine may be busy. The engine checks for signals every 50 ms.
    assert float(out) < 0.1, f"{out} s"


def test_call_continues_after_a_signal_handler(pages: Any) -> None:
    child = start_python(
        """
        import signal, sys, haul
        signal.signal(signal.SIGUSR1, lambda *_: print("handled", flush=True))
        print(haul.get(sys.argv[1]).text)
        """,
        f"{pages.url}/slowly",
    )
    pages.routes["/slowly"] = lambda handler: (time.sleep(0.5), handler.answer(b"whole"))
    while not pages.heads:
        time.sleep(0.01)
    child.send_signal(signal.SIGUSR1)
    out, err = child.communicate(timeout=20)
    assert out.split() == ["handled", "whole"], err


HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab"


@pytest.mark.parametrize("touch", ["response.close()", "response.raw.isclosed()", "response.raw.read()"])
def test_signal_handler_may_close_the_stream_being_read(raw: Any, touch: str) -> None:
    out = run_python(
        """
        import os, signal, sys, threading, time, haul
        response = haul.get(sys.argv[1], stream=True)
        def handle(*_):
            try:
                eval(sys.argv[2])
                print("handled", flush=True)
            except RuntimeError as error:
                print(error, flush=True)
        signal.signal(signal.SIGUSR1, handle)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        threading.Timer(1, response.close).start()
        try:
            response.raw.read()
        except haul.RequestException as error:
            print(error)
        """,
        raw(HALF, closes=False).url,
        touch,
    )
    said = "the body is being read by this very thread" if "read" in touch else "handled"
    assert out.splitlines() == [said, "the response was closed"]
