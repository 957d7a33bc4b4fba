"""Streams that several threads use, and threads at the end of the interpreter."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import run_python

HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab"


TOUCHES = ("close()", "raw.close()", "raw.isclosed()", "raw.length_remaining", "raw.release_conn()")


@pytest.mark.parametrize("touch", [f"response.{touch}" for touch in TOUCHES])
def test_stream_being_read_can_be_closed_and_inspected(raw: Any, touch: str) -> None:
    out = run_python(
        """
        import sys, threading, time, haul
        response = haul.get(sys.argv[1], stream=True)
        def read():
            try:
                response.raw.read()
            except haul.RequestException as error:
                print("closed" if "was closed" in str(error) else error)
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        time.sleep(0.3)
        began = time.monotonic()
        eval(sys.argv[2])
        assert time.monotonic() - began < 5
        response.close()
        reader.join(10)
        print("left", response.raw.read(), response.raw.isclosed())
        """,
        raw(HALF, closes=False).url,
        touch,
    )
    assert out.split("\n")[:2] == ["closed", "left b'' True"]


def test_ctrl_c_ends_waiting_for_another_reader(raw: Any) -> None:
    out = run_python(
        """
        import os, signal, sys, threading, time, haul
        response = haul.get(sys.argv[1], stream=True)
        threading.Thread(target=response.raw.read, daemon=True).start()
        time.sleep(0.3)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            response.raw.read()
        except KeyboardInterrupt:
            print("interrupted")
        """,
        raw(HALF, closes=False).url,
    )
    assert out == "interrupted\n"


UNDER_WAY = {
    "wait": "session.get(url + '/never')",
    "download": "while True: session.get(url + '/bytes/1000000')",
    "upload": "session.post(url + '/post', data=iter(lambda: b'x' * 65536, None))",
    "many": "list(haul.fetch_many([{'method': 'POST', 'url': url + '/post', 'data': iter(lambda: b'x' * 65536, None)}]))",
}


@pytest.mark.parametrize("what", UNDER_WAY)
def test_interpreter_exits_while_daemon_threads_transfer(pages: Any, what: str) -> None:
    run_python(
        """
        import ctypes, sys, threading, time, haul
        url, session = sys.argv[1], haul.Session()
        def run():
            exec(sys.argv[2])
        # The process continues for a second after the end of the interpreter.
        libc = ctypes.CDLL(None)
        libc.__cxa_atexit(libc.sleep, ctypes.c_void_p(1), None)
        for _ in range(4):
            threading.Thread(target=run, daemon=True).start()
        time.sleep(0.2)
        """,
        pages.url,
        UNDER_WAY[what],
    )
