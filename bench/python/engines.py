#!/usr/bin/env python3
"""Tables of URLs in Ray Data, for `bench engines`:

    engines.py FAST_PORT SLOW_PORT [--rows N] [--bytes N] [--hosts N] [--rounds N] [--parallel N] [--ways TEXT]

Each way fetches the same rows in turn, on two processors: haul.ray.fetch as users call it, haul.arrow.fetch in map_batches (no
partition by host), Ray Data's own expression `download`, aiohttp in map_batches, and threads with urllib.request in map_batches, as
the downloader of img2dataset does (images stored as they come). They get the same blocks and may have the same number of requests in
progress, except `download`, which sets its own number of threads. Each result is checked: all bodies, with their length and their URL.

The floor is a map_batches that makes bodies of the same length without a request: the CPU time that Ray itself needs. The table has
rows a second, the CPU time of all processes of the cluster, and the ratios of haul.ray.fetch's times to those of the way. A line
compares haul.ray.fetch, with all that Ray does for it, with the best peer, and gives the goals.

Then haul.ray.fetch fetches half of the rows from the slow port with one worker, and with two. Ray delays the second worker by a
second, and each task by 0.03 s with one worker, 0.15 s with two, so a few thousand rows would measure Ray's delays. `--ways`
measures only the ways whose names contain the text, and `--ways none` only one worker and two. A way that takes five times as long as
the quickest peer runs only in the first round.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import haul.ray
import pyarrow as pa
import ray
import ray.data
from haul import arrow
from ray.data.expressions import download

TICKS = os.sysconf("SC_CLK_TCK")


class ClusterCpu:
    """Counts the CPU time of this process and its descendants. A thread samples them each second, since Ray's workers end when they
    like, and their parent does not wait for them: what they used last is remembered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The CPU time of each process, by its number and its start.
        self._times: dict[tuple[int, str], float] = {}
        threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self) -> None:
        while True:
            self.seconds()
            time.sleep(1)

    def seconds(self) -> float:
        """Returns the CPU time so far, in seconds."""
        parents: dict[int, int] = {}
        times: dict[int, tuple[str, float]] = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(path.name)] = int(fields[1])
            times[int(path.name)] = fields[19], sum(map(int, fields[11:13])) / TICKS
        found = {os.getpid()}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        with self._lock:
            for pid in found & times.keys():
                start, used = times[pid]
                self._times[pid, start] = max(used, self._times.get((pid, start), 0.0))
            return sum(self._times.values())


def by_haul(rows: Any, parallel: int) -> Any:
    return haul.ray.fetch(rows, tasks=8, max_parallel=parallel, per_host=8)


def by_arrow(rows: Any, parallel: int) -> Any:
    def fetch(table: pa.Table) -> pa.Table:
        return pa.Table.from_batches(arrow.fetch(table, max_parallel=parallel, per_host=8))

    return rows.map_batches(fetch, batch_format="pyarrow", batch_size=None)


def by_download(rows: Any, parallel: int) -> Any:
    return rows.with_column("body", download("url"))


def by_aiohttp(rows: Any, parallel: int) -> Any:
    def fetch(table: pa.Table) -> pa.Table:
        import aiohttp

        async def all_of(urls: list[str]) -> list[bytes]:
            connector = aiohttp.TCPConnector(limit=parallel, limit_per_host=8)
            async with aiohttp.ClientSession(connector=connector) as session:

                async def one(url: str) -> bytes:
                    async with session.get(url) as response:
                        return await response.read()

                return await asyncio.gather(*map(one, urls))

        return table.append_column("body", pa.array(asyncio.run(all_of(table["url"].to_pylist())), pa.large_binary()))

    return rows.map_batches(fetch, batch_format="pyarrow", batch_size=None)


def by_threads(rows: Any, parallel: int) -> Any:
    def fetch(table: pa.Table) -> pa.Table:
        import urllib.request
        from multiprocessing.pool import ThreadPool

        def one(url: str) -> bytes:
            request = urllib.request.Request(url, data=None, headers={"User-Agent": "Mozilla/5.0"})
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.read()

        with ThreadPool(parallel) as pool:
            bodies = pool.map(one, table["url"].to_pylist())
        return table.append_column("body", pa.array(bodies, pa.large_binary()))

    return rows.map_batches(fetch, batch_format="pyarrow", batch_size=None)


def by_nothing(rows: Any, length: int) -> Any:
    def make(table: pa.Table) -> pa.Table:
        # One copy of the bytes, as each of the other ways makes at least.
        content = pa.py_buffer(b"x" * (length * table.num_rows))
        ends = pa.array(range(0, len(content) + 1, length), pa.int64()).buffers()[1]
        return table.append_column("body", pa.Array.from_buffers(pa.large_binary(), table.num_rows, [None, ends, content]))

    return rows.map_batches(make, batch_format="pyarrow", batch_size=None)


OURS = "haul.ray.fetch"
FLOOR = "no requests (floor)"
WAYS: dict[str, Callable[..., Any]] = {
    OURS: by_haul,
    "haul.arrow in map_batches": by_arrow,
    "Ray Data, download": by_download,
    "aiohttp in map_batches": by_aiohttp,
    "threads, as img2dataset": by_threads,
}


CPU = ClusterCpu()


class Times(NamedTuple):
    """The wall and CPU time of a way, in seconds."""

    wall: float
    cpu: float


def measure(way: Callable[..., Any], urls: list[str], size: int, **settings: Any) -> Times:
    """Measures a way and checks its result."""
    rows = ray.data.from_arrow([pa.table({"url": urls[at::8]}) for at in range(8)])
    cpu, began = CPU.seconds(), time.monotonic()
    # A further operator, such as select_columns, would take processors from the fetch.
    made = way(rows, **settings).materialize()
    times = Times(time.monotonic() - began, CPU.seconds() - cpu)
    check(made, urls, size, way is not by_nothing)
    return times


def check(made: Any, urls: list[str], size: int, is_fetched: bool = True) -> None:
    """Checks that each URL is there once, with its own body."""
    seen = []
    for table in ray.get(made.to_arrow_refs()):
        for url, body in zip(table["url"].to_pylist(), table["body"].to_pylist()):
            assert body is not None and len(body) == size, (url, body)
            host, _, path = url.removeprefix("http://").partition("/")
            assert not is_fetched or body.startswith(f"{host.partition(':')[0]}/{path} ".encode()), (url, body[:60])
            seen.append(url)
    assert sorted(seen) == sorted(urls)


def measure_ways(urls: list[str], given: argparse.Namespace) -> None:
    """Measures the floor and all ways in turn, and prints the table."""
    ways = {name: way for name, way in WAYS.items() if given.ways in name or name == OURS}
    results: dict[str, list[Times]] = {name: [] for name in [FLOOR, *ways]}
    for number in range(given.rounds):
        results[FLOOR].append(measure(by_nothing, urls, given.bytes, length=given.bytes))
        quickest = min((results[name][0].wall for name in ways if number and not name.startswith("haul")), default=0.0)
        for name, way in ways.items():
            if number == 0 or results[name][0].wall < 5 * quickest or name.startswith("haul"):
                results[name].append(measure(way, urls, given.bytes, parallel=given.parallel))
                print(f"round {number + 1}, {name}: {results[name][-1]}", file=sys.stderr)
    print_ways(results, given)


def print_ways(results: dict[str, list[Times]], given: argparse.Namespace) -> None:
    """Prints the table of ways, and the comparison with the best peer."""
    print(f"{given.rows} rows, {given.bytes} bytes each, {given.hosts} hosts, {given.rounds} rounds, medians")
    print(f"{'way':26} {'rows/s':>8} {'CPU s':>8} {'wall ratio':>11} {'CPU ratio':>11}")
    comparisons: list[tuple[float, str]] = []
    for name, times in results.items():
        wall, cpu = (statistics.median(column) for column in zip(*times))
        # Ratios of the same round, since the machine's speed drifts.
        pairs = list(zip(results[OURS], times))
        walls = statistics.median(ours.wall / theirs.wall for ours, theirs in pairs)
        cpus = statistics.median(ours.cpu / max(theirs.cpu, 0.01) for ours, theirs in pairs)
        print(f"{name:26} {given.rows / wall:8.0f} {cpu:8.2f} {walls:11.2f} {cpus:11.2f}")
        if name != FLOOR and not name.startswith("haul"):
            compared = f"{1 / walls:.2f} times the rows a second (goal 3), {cpus:.2f} of the CPU time (goal 0.33)"
            comparisons.append((walls, f"{name}: {compared}"))
    if comparisons:
        print(f"{OURS} beside the best, {max(comparisons)[1]}")


def measure_scaling(urls: list[str], given: argparse.Namespace) -> None:
    """Measures haul.ray.fetch with one worker and with two, and prints the rates."""
    workers: dict[int, list[float]] = {1: [], 2: []}
    parallel = given.parallel // 4
    for number in range(given.rounds):
        for count, walls in workers.items():
            rows = ray.data.from_arrow([pa.table({"url": urls[at::8]}) for at in range(8)])
            # So many parts that two workers end at almost the same time. Half a processor is left for Ray's other tasks.
            began = time.monotonic()
            task = {"num_cpus": 0.5, "concurrency": count}
            made = haul.ray.fetch(rows, tasks=24, max_parallel=parallel, per_host=8, task_options=task).materialize()
            walls.append(time.monotonic() - began)
            check(made, urls, given.bytes)
            print(f"round {number + 1}, {count} workers: {walls[-1]:.2f} s", file=sys.stderr)
    one, two = (statistics.median(walls) for walls in workers.values())
    times = statistics.median(first / second for first, second in zip(workers[1], workers[2]))
    rates = f"1 worker {len(urls) / one:.0f} rows/s, 2 workers {len(urls) / two:.0f}"
    print(f"20 ms origin, {parallel} at a time: {rates}, {times:.2f} times (goal 1.7)")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("ports", type=int, nargs=2)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--bytes", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parallel", type=int, default=64)
    parser.add_argument("--ways", default="")
    given = parser.parse_args()
    if given.ways != "none" and not any(given.ways in name for name in WAYS):
        parser.error(f"--ways: the text is in none of the names {', '.join(WAYS)}")
    fast, slow = (
        [f"http://127.9.{n % given.hosts // 250}.{n % given.hosts % 250 + 1}:{port}/{given.bytes}/{n}" for n in range(given.rows)]
        for port in given.ports
    )
    # Ray's workers have niceness 15 by default, and would wait for any other work of the machine.
    os.environ.setdefault("RAY_worker_niceness", "0")
    # A separate cluster, though another may run on this machine.
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    measure(by_haul, fast[: 8 * given.hosts], given.bytes, parallel=given.parallel)
    if given.ways != "none":
        measure_ways(fast, given)
    if given.ways in ("", "none"):
        measure_scaling(slow[: given.rows // 2], given)
    ray.shutdown()


main()
