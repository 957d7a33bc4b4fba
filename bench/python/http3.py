#!/usr/bin/env python3
"""Bodies over HTTP/3, for the job h3:

    http3.py WAY CA one URL       a large body, read in pieces
    http3.py WAY CA list FILE     the bodies of many URLs, 50 at a time

WAY is a client, used as its manual recommends for such a program. Prints the length of all bodies.
"""

from __future__ import annotations

import asyncio
import sys

PIECE = 1 << 20
PARALLEL = 50


def niquests_session(ca: str):
    sys.path.insert(0, sys.prefix + "/apart")
    import niquests

    session = niquests.Session(multiplexed=True, disable_http1=True, disable_http2=True)
    session.verify = ca
    return session


def niquests_one(ca: str, url: str) -> int:
    with niquests_session(ca) as session:
        response = session.get(url, stream=True)
        response.raise_for_status()
        return sum(len(piece) for piece in response.iter_content(PIECE))


def niquests_list(ca: str, urls: list[str]) -> int:
    total = 0
    with niquests_session(ca) as session:
        for start in range(0, len(urls), PARALLEL):
            responses = [session.get(url) for url in urls[start : start + PARALLEL]]
            session.gather()
            total += sum(len(response.content) for response in responses)
    return total


def curl_cffi_one(ca: str, url: str) -> int:
    from curl_cffi import CurlHttpVersion, requests

    with requests.Session(verify=ca, http_version=CurlHttpVersion.V3ONLY) as session:
        total = 0

        def take(piece: bytes) -> int:
            nonlocal total
            total += len(piece)
            return len(piece)

        session.get(url, content_callback=take).raise_for_status()
        return total


def curl_cffi_list(ca: str, urls: list[str]) -> int:
    from curl_cffi import CurlHttpVersion, requests

    async def fetch() -> int:
        async with requests.AsyncSession(
            verify=ca, http_version=CurlHttpVersion.V3ONLY, max_clients=PARALLEL
        ) as session:
            total = 0
            for start in range(0, len(urls), PARALLEL):
                calls = [session.get(url) for url in urls[start : start + PARALLEL]]
                total += sum(len(response.content) for response in await asyncio.gather(*calls))
            return total

    return asyncio.run(fetch())


WAYS = {"niquests": (niquests_one, niquests_list), "curl_cffi": (curl_cffi_one, curl_cffi_list)}

way, ca, what, name = sys.argv[1:]
one, many = WAYS[way]
if what == "one":
    print(one(ca, name))
else:
    with open(name) as lines:
        print(many(ca, lines.read().split()))
