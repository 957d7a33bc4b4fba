#!/usr/bin/env python3
"""Requests one at a time on a warm connection, for the job python:

    one_by_one.py WAY HOST PORT PATH COUNT [FORM]

WAY is a client, used as its manual recommends for such a program. Each returns the body as bytes. With FORM, which is encoded, its
fields are posted, and each client encodes them again. Prints the length of all bodies.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode

Call = Callable[[], bytes]

host, port, path = sys.argv[2:5]
url = f"http://{host}:{port}{path}"
count = int(sys.argv[5])
form = dict(parse_qsl(sys.argv[6])) if len(sys.argv) > 6 else None
FORM = "application/x-www-form-urlencoded"


def like_requests(session) -> Call:
    """Returns the call for a client whose sessions have the methods of requests."""
    if form is not None:
        return lambda: session.post(url, data=form).content
    return lambda: session.get(url).content


def haul() -> Call:
    import haul

    return like_requests(haul.Session())


def requests() -> Call:
    import requests

    return like_requests(requests.Session())


def requests_haul() -> Call:
    import requests
    from haul.adapters import HaulAdapter

    session = requests.Session()
    session.mount("http://", HaulAdapter())
    return like_requests(session)


def niquests() -> Call:
    sys.path.insert(0, sys.prefix + "/apart")
    import niquests

    return like_requests(niquests.Session())


def httpx() -> Call:
    import httpx

    return like_requests(httpx.Client())


def curl_cffi() -> Call:
    from curl_cffi import requests

    return like_requests(requests.Session())


def urllib3() -> Call:
    import urllib3

    pool = urllib3.PoolManager()
    if form is not None:
        return lambda: pool.request("POST", url, fields=form, encode_multipart=False).data
    return lambda: pool.request("GET", url).data


def http_client() -> Call:
    from http.client import HTTPConnection

    connection = HTTPConnection(host, int(port))

    def get() -> bytes:
        connection.request("GET", path)
        return connection.getresponse().read()

    def post() -> bytes:
        connection.request("POST", path, urlencode(form), {"Content-Type": FORM})
        return connection.getresponse().read()

    return get if form is None else post


def pycurl() -> Call:
    from io import BytesIO

    import pycurl

    handle = pycurl.Curl()
    handle.setopt(pycurl.URL, url)

    def call() -> bytes:
        body = BytesIO()
        if form is not None:
            handle.setopt(pycurl.POSTFIELDS, urlencode(form))
        handle.setopt(pycurl.WRITEDATA, body)
        handle.perform()
        return body.getvalue()

    return call


def pycurl_file() -> Callable[[], range]:
    """Writes the bodies to a file. The call returns something with their length."""
    import pycurl

    handle = pycurl.Curl()
    handle.setopt(pycurl.URL, url)
    file = open("/dev/null", "wb")
    handle.setopt(pycurl.WRITEDATA, file)

    def call() -> range:
        handle.perform()
        return range(int(handle.getinfo(pycurl.SIZE_DOWNLOAD_T)))

    return call


async def one_after_another(session, read) -> int:
    total = 0
    for _ in range(count):
        async with session.get(url) if form is None else session.post(url, data=form) as response:
            total += len(await read(response))
    return total


async def aiohttp() -> int:
    import aiohttp

    async with aiohttp.ClientSession() as session:
        return await one_after_another(session, lambda response: response.read())


async def haul_async() -> int:
    import haul

    total = 0
    async with haul.AsyncSession() as session:
        for _ in range(count):
            response = await (session.get(url) if form is None else session.post(url, data=form))
            total += len(response.content)
    return total


async def haul_task() -> int:
    """The synchronous call in a task of asyncio: the least that a call in an event loop can cost."""
    import haul

    call = like_requests(haul.Session())

    async def length() -> int:
        return len(call())

    return sum([await asyncio.create_task(length()) for _ in range(count)])


WAYS = {
    "haul": haul, "requests": requests, "requests+haul": requests_haul, "niquests": niquests, "httpx": httpx,
    "curl_cffi": curl_cffi, "urllib3": urllib3, "http.client": http_client, "pycurl": pycurl,
    "pycurl-file": pycurl_file,
}  # fmt: skip
LOOPS = {"aiohttp": aiohttp, "haul-async": haul_async, "haul-task": haul_task}

way = sys.argv[1]
if way in LOOPS:
    import asyncio

    print(asyncio.run(LOOPS[way]()))
else:
    call = WAYS[way]()
    print(sum(len(call()) for _ in range(count)))
