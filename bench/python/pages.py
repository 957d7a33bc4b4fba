#!/usr/bin/env python3
"""Many pages at once, for the job python:

    pages.py WAY LIST

WAY is a client, used as its manual recommends for such a program, with 50 requests at a time. LIST is a file of URLs. Prints the length
of all bodies.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

PARALLEL = 50

with open(sys.argv[2]) as file:
    urls = file.read().split()


def haul(ordered: bool = True) -> int:
    import haul

    return sum(len(result.content) for result in haul.fetch_many(urls, PARALLEL, ordered=ordered))


def by_threads(length: Callable[[str], int]) -> int:
    with ThreadPoolExecutor(PARALLEL) as pool:
        return sum(pool.map(length, urls))


def requests(session=None) -> int:
    import requests
    from requests.adapters import HTTPAdapter

    if session is None:
        session = requests.Session()
        session.mount("http://", HTTPAdapter(pool_maxsize=PARALLEL))
    return by_threads(lambda url: len(session.get(url).content))


def requests_haul() -> int:
    import requests as module
    from haul.adapters import HaulAdapter

    session = module.Session()
    session.mount("http://", HaulAdapter())
    return requests(session)


def niquests() -> int:
    sys.path.insert(0, sys.prefix + "/apart")
    import niquests

    session = niquests.Session(pool_maxsize=PARALLEL)
    return by_threads(lambda url: len(session.get(url).content))


def urllib3() -> int:
    import urllib3

    pool = urllib3.PoolManager(maxsize=PARALLEL)
    return by_threads(lambda url: len(pool.request("GET", url).data))


def http_client() -> int:
    from http.client import HTTPConnection
    from threading import local
    from urllib.parse import urlsplit

    thread = local()

    def length(url: str) -> int:
        parts = urlsplit(url)
        if not hasattr(thread, "connection"):
            thread.connection = HTTPConnection(parts.netloc)
        thread.connection.request("GET", parts.path)
        return len(thread.connection.getresponse().read())

    return by_threads(length)


def pycurl() -> int:
    from io import BytesIO

    import pycurl

    multi = pycurl.CurlMulti()
    waiting = iter(urls)
    total = under_way = 0
    free = [pycurl.Curl() for _ in range(PARALLEL)]
    bodies = {}
    while True:
        while free and (url := next(waiting, None)) is not None:
            handle = free.pop()
            bodies[handle] = BytesIO()
            handle.setopt(pycurl.URL, url)
            handle.setopt(pycurl.WRITEDATA, bodies[handle])
            multi.add_handle(handle)
            under_way += 1
        if not under_way:
            return total
        multi.perform()
        _, done, failed = multi.info_read()
        if failed:
            raise SystemExit(f"{failed[0][2]}")
        for handle in done:
            total += len(bodies.pop(handle).getvalue())
            multi.remove_handle(handle)
            free.append(handle)
            under_way -= 1
        if not done:
            multi.select(1.0)


async def all_of(length) -> int:
    """Runs a task for each URL, at most PARALLEL at a time, and returns the length of all bodies."""
    import asyncio

    turn = asyncio.Semaphore(PARALLEL)

    async def one(url: str) -> int:
        async with turn:
            return await length(url)

    return sum(await asyncio.gather(*(one(url) for url in urls)))


async def haul_async() -> int:
    import haul

    async with haul.AsyncSession(max_parallel=PARALLEL) as session:

        async def length(url: str) -> int:
            return len((await session.get(url)).content)

        return await all_of(length)


async def aiohttp() -> int:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=PARALLEL)) as session:

        async def length(url: str) -> int:
            async with session.get(url) as response:
                return len(await response.read())

        return await all_of(length)


async def httpx() -> int:
    import httpx

    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=PARALLEL)) as client:

        async def length(url: str) -> int:
            return len((await client.get(url)).content)

        return await all_of(length)


async def curl_cffi() -> int:
    from curl_cffi.requests import AsyncSession

    async with AsyncSession(max_clients=PARALLEL) as session:

        async def length(url: str) -> int:
            return len((await session.get(url)).content)

        return await all_of(length)


WAYS = {
    "haul": haul, "haul-unordered": lambda: haul(ordered=False), "requests": requests, "requests+haul": requests_haul,
    "niquests": niquests, "urllib3": urllib3, "http.client": http_client, "pycurl": pycurl,
}  # fmt: skip
LOOPS = {"haul-async": haul_async, "aiohttp": aiohttp, "httpx": httpx, "curl_cffi": curl_cffi}

way, _, loop = sys.argv[1].partition("/")
if way in LOOPS:
    import asyncio

    if loop == "uvloop":
        import uvloop

        print(uvloop.run(LOOPS[way]()))
    else:
        print(asyncio.run(LOOPS[way]()))
else:
    print(WAYS[way]())
