#!/usr/bin/env python3
"""Tables of URLs in Ray Data, for `bench engines`:

    engines.py FAST_PORT SLOW_PORT [--rows N] [--bytes N] [--hosts N] [--rounds N] [--parallel N]

Each way fetches the same rows in turn, on two processors: haul.ray.fetch, haul.arrow.fetch in map_batches (no partition by host), Ray
Data's own expression `download`, aiohttp in map_batches, and threads with urllib.request in map_batches, as the downloader of
img2dataset does (images stored as they come). Then haul.ray.fetch fetches from the slow port with one worker, and with two. Each
result is checked: all bodies, with their length and their URL. Prints a line for each way: rows a second, CPU time of all processes of
the cluster, and the ratios of haul.arrow's times to those of the way.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import haul.ray
import pyarrow as pa
import ray
import ray.data
from haul import arrow
from ray.data.expressions import download

TICKS = os.sysconf("SC_CLK_TCK")


def cluster_cpu() -> float:
    """Returns the CPU time of this process and its descendants, those that have ended included. Ray's workers live on between the
    measurements."""
    parents: dict[int, int] = {}
    times: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.name)] = int(fields[1])
        times[int(path.name)] = sum(map(int, fields[11:15])) / TICKS
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sum(times.get(pid, 0.0) for pid in found)


def by_haul(rows: Any, parallel: int, **more: Any) -> Any:
    return haul.ray.fetch(rows, tasks=8, max_parallel=parallel, per_host=8, **more)


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


WAYS: dict[str, Callable[..., Any]] = {
    "haul.ray.fetch": by_haul,
    "haul.arrow in map_batches": by_arrow,
    "Ray Data, download": by_download,
    "aiohttp in map_batches": by_aiohttp,
    "threads, as img2dataset": by_threads,
}


def measure(way: Callable[..., Any], urls: list[str], size: int, **settings: Any) -> tuple[float, float]:
    """Returns the wall and CPU time of a way."""
    rows = ray.data.from_arrow([pa.table({"url": urls[at::8]}) for at in range(8)])
    cpu, began = cluster_cpu(), time.monotonic()
    made = way(rows, **settings).select_columns(["url", "body"]).materialize()
    times = time.monotonic() - began, cluster_cpu() - cpu
    seen = set()
    for table in ray.get(made.to_arrow_refs()):
        for url, body in zip(table["url"].to_pylist(), table["body"].to_pylist()):
            assert body is not None and len(body) == size, (url, body)
            host, _, path = url.removeprefix("http://").partition("/")
            assert body.startswith(f"{host.partition(':')[0]}/{path} ".encode()), (url, body[:60])
            seen.add(url)
    assert len(seen) == len(urls)
    return times


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("ports", type=int, nargs=2)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--bytes", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parallel", type=int, default=64)
    given = parser.parse_args()
    fast, slow = (
        [f"http://127.9.{n % given.hosts // 250}.{n % given.hosts % 250 + 1}:{port}/{given.bytes}/{n}" for n in range(given.rows)]
        for port in given.ports
    )
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    measure(by_haul, fast[: 8 * given.hosts], given.bytes, parallel=given.parallel)
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    for _ in range(given.rounds):
        for name, way in WAYS.items():
            results[name].append(measure(way, fast, given.bytes, parallel=given.parallel))
    print(f"{given.rows} rows, {given.bytes} bytes each, {given.hosts} hosts, {given.rounds} rounds, medians")
    print(f"{'way':26} {'rows/s':>8} {'CPU s':>8} {'wall ratio':>11} {'CPU ratio':>11}")
    # The way of haul that does not partition either.
    ours_name = "haul.arrow in map_batches"
    for name, times in results.items():
        wall, cpu = (statistics.median(column) for column in zip(*times))
        # Ratios of the same round, since the machine's speed drifts.
        ratios = [statistics.median(ours[at] / theirs[at] for ours, theirs in zip(results[ours_name], times)) for at in (0, 1)]
        print(f"{name:26} {given.rows / wall:8.0f} {cpu:8.1f} {ratios[0]:11.2f} {ratios[1]:11.2f}")
    workers: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(given.rounds):
        for count, walls in workers.items():
            options = {"compute": ray.data.TaskPoolStrategy(size=count)}
            walls.append(measure(by_haul, slow, given.bytes, parallel=given.parallel // 4, task_options=options)[0])
    one, two = (statistics.median(walls) for walls in workers.values())
    rates = f"1 worker {given.rows / one:.0f} rows/s, 2 workers {given.rows / two:.0f}"
    print(f"20 ms origin, {given.parallel // 4} at a time: {rates}, {one / two:.2f} times")
    ray.shutdown()


main()
