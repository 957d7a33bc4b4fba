"""Memory over many requests: `make python-soak` sends 200,000 of the common kinds, the tests fewer."""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

import haul
from conftest import start_python
from haul.adapters import HaulAdapter


@pytest.mark.parametrize("way", ["sync", "many", "async"])
def test_memory_stays_flat_in_a_child_process(pages: Any, way: str) -> None:
    count = int(os.environ.get("HAUL_TEST_REQUESTS", "1500"))
    out, err = start_python(
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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries map memory for each large block")
@pytest.mark.skipif(
    "LD_PRELOAD" in os.environ or any(name.startswith("MALLOC_") for name in os.environ),
    reason="the environment changes the allocator",
)
def test_long_bodies_of_lone_requests_reuse_their_memory(pages: Any) -> None:
    """A second copy of each body would make the C library return memory to the kernel each time."""
    out, err = start_python(
        """
        import asyncio, resource, sys, haul
        def page_faults():
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        async def get(session, count):
            for _ in range(count):
                assert len((await session.get(sys.argv[1])).content) == 335_000
        async def main():
            async with haul.AsyncSession() as session:
                await get(session, 50)
                before = page_faults()
                await get(session, 200)
                print(page_faults() - before)
        asyncio.run(main())
        """,
        f"{pages.url}/bytes/335000",
    ).communicate(timeout=120)
    assert out, err
    assert int(out) < 200 * 10, "a body has 82 pages"


COUNT = int(os.environ.get("HAUL_REQUESTS", "2000"))


PAGE = os.sysconf("SC_PAGE_SIZE")


# A separate process, so that only the memory of the client is measured.
SERVER = r"""
import re, socket, threading

def serve(connection):
    had = b""
    while piece := connection.recv(1 << 16):
        had += piece
        while b"\r\n\r\n" in had:
            head, _, rest = had.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            length = int(length[1]) if length else 0
            if len(rest) < length:
                break
            had = rest[length:]
            gone = head.split(b" ")[1] == b"/go"
            start = b"302 Found\r\nLocation: /" if gone else b"200 OK\r\nSet-Cookie: a=1\r\nX-Many: 1\r\nX-Many: 2"
            connection.sendall(b"HTTP/1.1 %b\r\nContent-Length: 300\r\n\r\n%b" % (start, b"y" * 300))

listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        server.kill()


def resident() -> int:
    """Returns the resident memory in KiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE // 1024


def assert_flat(run: Callable[[int], None], times: int) -> None:
    """Checks that `run(n)`, which makes n requests, does not leak. A small object has 56 bytes."""
    run(times // 5 + 200)
    before = resident()
    run(times)
    grown = resident() - before
    print(f"{times} times, {grown} KiB")
    assert grown <= 256 + times * 0.016, f"{times} times, {grown} KiB"


def repeated(once: Callable[[], object]) -> Callable[[int], None]:
    def run(times: int) -> None:
        for _ in range(times):
            once()

    return run


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(haul.ConnectionError):
        call()


def test_memory_is_flat_over_gets(url: str) -> None:
    with haul.Session() as session:
        assert_flat(repeated(lambda: session.get(url).headers["x-many"]), COUNT)


def test_memory_is_flat_over_forms(url: str) -> None:
    with haul.Session() as session:
        assert_flat(repeated(lambda: session.post(url, data={"a": "1", "b": ["2", "3"]}).text), COUNT)


def test_memory_is_flat_over_other_requests(url: str) -> None:
    with haul.Session() as session:
        kinds: dict[str, Callable[[], object]] = {
            "redirect": lambda: session.get(f"{url}/go").history[0].headers,
            "stream": lambda: list(session.get(url, stream=True).iter_content(100)),
            "left": lambda: session.get(url, stream=True).close(),
            "json": lambda: session.put(url, json={"a": [1]}).elapsed,
            "files": lambda: session.post(url, files={"f": ("name", b"x" * 100)}).cookies,
            "failure": lambda: refused(lambda: session.get("http://127.0.0.1:1/")),
            "session": lambda: haul.Session().get(url),
            "function": lambda: haul.get(url, headers={"X-A": "1"}),
        }
        for kind, once in kinds.items():
            print(kind, end=": ")
            assert_flat(repeated(once), COUNT // 5)


def test_memory_is_flat_through_the_adapter(url: str) -> None:
    with requests.Session() as session:
        session.mount("http://", HaulAdapter())
        assert_flat(repeated(lambda: session.get(url).text), COUNT // 5)


def test_memory_is_flat_over_fetch_many(url: str) -> None:
    def run(times: int) -> None:
        for result in haul.fetch_many((url for _ in range(times)), 20):
            assert len(result.content) == 300

    assert_flat(run, COUNT)


def test_memory_is_flat_in_asyncio(url: str) -> None:
    async def worker(session: haul.AsyncSession, times: int) -> None:
        for _ in range(times):
            assert (await session.get(url)).status_code == 200

    async def several(times: int) -> None:
        async with haul.AsyncSession() as session:
            await asyncio.gather(*(worker(session, times // 20) for _ in range(20)))

    assert_flat(lambda times: asyncio.run(several(times)), COUNT)


def test_memory_is_flat_over_cancelled_requests(url: str) -> None:
    async def several(times: int) -> None:
        async with haul.AsyncSession() as session:
            for _ in range(times):
                task = asyncio.ensure_future(session.get(url))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

    assert_flat(lambda times: asyncio.run(several(times)), COUNT // 5)
