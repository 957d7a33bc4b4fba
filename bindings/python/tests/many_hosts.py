"""A server with many loopback addresses, which records what each of its hosts was asked for.

``python many_hosts.py HOSTS NOTICE`` prints its hosts, a line after NOTICE requests, and at the end of its
input a line for each host: the number of requests, the largest number of connections at a time, and the
seconds between the first and the last request. A page is its host and path; /bytes/N are N zeros. A page whose
path ends with ?held is sent after the first line of input.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import NamedTuple


class HostRecord(NamedTuple):
    """What a host was asked for."""

    requests: int
    most_connections: int
    seconds: float


class ManyHosts:
    """A running server. ``urls`` is a list of URLs whose hosts take turns."""

    def __init__(self, hosts: int, urls: int, notice: int = 0) -> None:
        program = [sys.executable, __file__, str(hosts), str(notice)]
        self.process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.hosts = self.process.stdout.readline().split()
        self.urls = [f"http://{self.hosts[number * 7 % hosts]}/{number}" for number in range(urls)]

    def wait_for_notice(self) -> bool:
        """Waits for ``notice`` requests. Returns false if the server ended before."""
        assert self.process.stdout is not None
        return self.process.stdout.readline() == "notice\n"

    def release(self) -> None:
        """Sends the pages of URLs that end with ``?held``."""
        assert self.process.stdin is not None
        self.process.stdin.write("release\n")
        self.process.stdin.flush()

    def end(self) -> dict[str, HostRecord]:
        """Ends the server, and returns the records of its hosts."""
        text, _ = self.process.communicate("")
        rows = (line.split() for line in text.splitlines() if line != "notice")
        return {host: HostRecord(int(count), int(most), float(seconds)) for host, count, most, seconds in rows}

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class _Counts:
    def __init__(self) -> None:
        self.requests = self.connections = self.most = 0
        self.first = self.last = 0.0


async def _main(count: int, notice: int) -> None:
    counts: dict[str, _Counts] = {}
    total = 0
    released = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal total
        host = "%s:%d" % writer.get_extra_info("sockname")
        record = counts.setdefault(host, _Counts())
        record.connections += 1
        record.most = max(record.most, record.connections)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                record.last = time.monotonic()
                record.first = record.first or record.last
                record.requests += 1
                total += 1
                if total == notice:
                    print("notice", flush=True)
                path = head.split(b" ")[1]
                is_long = path.startswith(b"/bytes/")
                if path.endswith(b"?held"):
                    await released.wait()
                body = bytes(int(path[7:].partition(b"?")[0])) if is_long else host.encode() + path
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            record.connections -= 1
            writer.close()

    hosts = [f"127.{1 + number // 250}.{number % 250}.1" for number in range(count)]
    servers = [await asyncio.start_server(serve, host, 0) for host in hosts]
    print(*("%s:%d" % server.sockets[0].getsockname() for server in servers), flush=True)
    while await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        released.set()
    for host, record in counts.items():
        print(host, record.requests, record.most, record.last - record.first)


if __name__ == "__main__":
    sys.path.pop(0)
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    asyncio.run(_main(int(sys.argv[1]), int(sys.argv[2])))
