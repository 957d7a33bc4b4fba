"""Signals, forks, imports, memory, types: the module inside a process."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import haul

PACKAGE = Path(haul.__file__).parent


# What a shell runs in the background ignores SIGINT, and so do its children: the tests, and theirs.
SETTING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def python(code: str, *args: str, **kwargs: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SETTING + textwrap.dedent(code), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs
    )


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
    child = python(
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
    # A busy machine makes one wait end late, but not the quickest of five. The engine asks after signals every 50 ms at least.
    assert float(out) < 0.1, f"{out} s"


def test_a_handler_that_raises_nothing_lets_the_call_go_on(pages: Any) -> None:
    child = python(
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


def _fetch(url: str) -> str:
    return haul.get(url).text


_shared = haul.Session()


def _fetch_shared(url: str) -> str:
    return _shared.get(url).text


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(pages: Any, method: str) -> None:
    assert _fetch_shared(f"{pages.url}/parent") == "page /parent"
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        urls = [f"{pages.url}/{i}" for i in range(20)]
        for work in (_fetch, _fetch_shared):
            assert pool.map(work, urls) == [f"page /{i}" for i in range(20)]
    # The parent's connection was not the children's to use or to end.
    assert _fetch_shared(f"{pages.url}/parent") == "page /parent"


def test_a_fork_while_many_are_under_way(pages: Any) -> None:
    results = haul.fetch_many([f"{pages.url}/{i}" for i in range(50)], 4)
    assert next(results).text == "page /0"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            found = [result.text for result in haul.fetch_many([f"{pages.url}/c{i}" for i in range(10)], 4)]
            code = 0 if found == [f"page /c{i}" for i in range(10)] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [result.text for result in results] == [f"page /{i}" for i in range(1, 50)]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_child_does_not_read_its_parents_streams(pages: Any, secure_pages: Any, scheme: str) -> None:
    url = f"{(secure_pages if scheme == 'https' else pages).url}/bytes/3000000"
    with haul.get(url, stream=True, verify=False) as response:
        begun = response.raw.read(1000)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                response.raw.read()
            except haul.exceptions.ChunkedEncodingError as error:
                status = 0 if "belongs to the parent" in str(error) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(begun + response.content) == 3_000_000


def test_importing_it_imports_little() -> None:
    out, err = python(
        """
        import sys
        before = set(sys.modules)
        import haul
        print(*sorted(set(sys.modules) - before))
        """
    ).communicate(timeout=20)
    modules = set(out.split())
    assert "haul._haul" in modules, err
    heavy = {"asyncio", "email", "http.client", "http.cookiejar", "requests", "ssl", "socket", "urllib.parse", "datetime", "logging", "typing", "re", "json"}
    assert not modules & heavy


@pytest.mark.parametrize("way", ["sync", "many", "async"])
def test_memory_stays_flat(pages: Any, way: str) -> None:
    count = int(os.environ.get("HAUL_TEST_REQUESTS", "1500"))
    out, err = python(
        """
        import asyncio, resource, sys, haul
        url, way, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
        def rss():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * resource.getpagesize() >> 10
        def sync(n):
            session = haul.Session()
            for i in range(n):
                assert session.get(url, params={"i": i}, timeout=20).content
        def many(n):
            for result in haul.fetch_many((f"{url}?{i}" for i in range(n)), 8):
                assert result.content
        def asynchronous(n):
            async def main():
                async with haul.AsyncSession(max_parallel=8) as session:
                    for i in range(0, n, 20):
                        for response in await asyncio.gather(*(session.get(f"{url}?{i + j}") for j in range(20))):
                            assert response.content
            asyncio.run(main())
        run = {"sync": sync, "many": many, "async": asynchronous}[way]
        run(500)
        before = rss()
        run(count)
        print(rss() - before)
        """,
        f"{pages.url}/x",
        way,
        str(count),
    ).communicate(timeout=1200)
    assert out, err
    assert int(out) < 2048, "KiB more than after the first 500"


def test_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    # A copy: where packages are installed, mypy takes its neighbours for the program's own modules.
    shutil.copytree(PACKAGE, tmp_path / "haul", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    program = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "-p", "haul"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_programs_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(
        """
import asyncio
import haul
from haul.adapters import HaulAdapter

class Token(haul.auth.AuthBase):
    def __call__(self, r: haul.PreparedRequest) -> haul.PreparedRequest:
        r.headers["Authorization"] = "token"
        return r

def one(session: haul.Session) -> dict[str, int]:
    response = session.get("http://host.example/", params={"page": 1}, timeout=(3, 10), auth=Token())
    if response.status_code >= 500 or response.status_code == haul.codes.not_found:
        raise haul.HTTPError(response.text, response=response)
    for line in response.iter_lines():
        print(line, response.elapsed.total_seconds(), response.history[0].url)
    parsed: dict[str, int] = response.json()
    return parsed

def many(urls: list[str]) -> int:
    haul.Session().mount("http://", HaulAdapter(max_retries=3))
    return sum(result.status_code < 300 for result in haul.fetch_many(urls) if result.error is None)

async def awaited(urls: list[str]) -> list[str]:
    async with haul.AsyncSession() as session:
        return [response.text for response in await asyncio.gather(*(session.get(url) for url in urls))]
"""
    )
    program = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "program.py"]
    result = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_the_types_of_the_compiled_part_are_those_it_has() -> None:
    pytest.importorskip("mypy")
    program = [sys.executable, "-m", "mypy.stubtest", "haul._haul"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def ended(code: str, *args: str) -> str:
    """What a program prints that has to end by itself: one that stands still with the interpreter held is killed."""
    child = python(code, *args)
    try:
        out, err = child.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        child.kill()
        raise
    assert child.returncode == 0, (child.returncode, out, err)
    return out


HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab"


TOUCHES = ("close()", "raw.close()", "raw.isclosed()", "raw.length_remaining", "raw.release_conn()")


@pytest.mark.parametrize("touch", [f"response.{touch}" for touch in TOUCHES])
def test_a_stream_that_is_being_read_can_be_touched(raw: Any, touch: str) -> None:
    out = ended(
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


@pytest.mark.parametrize("touch", ["response.close()", "response.raw.isclosed()", "response.raw.read()"])
def test_a_handler_of_a_signal_touches_the_stream_that_its_thread_reads(raw: Any, touch: str) -> None:
    out = ended(
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


def test_a_stream_that_another_thread_reads_is_waited_for_and_ctrl_c_ends_that(raw: Any) -> None:
    out = ended(
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
def test_the_interpreter_ends_while_daemon_threads_are_under_way(pages: Any, what: str) -> None:
    ended(
        """
        import ctypes, sys, threading, time, haul
        url, session = sys.argv[1], haul.Session()
        def run():
            exec(sys.argv[2])
        # The process stays for a while when the interpreter has gone.
        libc = ctypes.CDLL(None)
        libc.__cxa_atexit(libc.sleep, ctypes.c_void_p(1), None)
        for _ in range(4):
            threading.Thread(target=run, daemon=True).start()
        time.sleep(0.2)
        """,
        pages.url,
        UNDER_WAY[what],
    )
