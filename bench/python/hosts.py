#!/usr/bin/env python3
"""Pages of many hosts with aiohttp, for the job hosts:

    hosts.py LIST PARALLEL SECONDS NAMESERVER PORT [CA]

Prints the pages of the URLs in the file LIST that it gets, in the order in which they arrive. PARALLEL URLs at a time, each within
SECONDS. Names are looked up with aiodns at NAMESERVER. A URL that fails is passed over.
"""

from __future__ import annotations

import asyncio
import ssl
import sys

import aiohttp

LIST, PARALLEL, SECONDS, NAMESERVER, PORT, *CA = sys.argv[1:]


async def fetch(session: aiohttp.ClientSession, urls: list[str]) -> None:
    """Takes URLs from the end of the list until none is left."""
    while urls:
        try:
            async with session.get(urls.pop()) as response:
                page = await response.read()
        except (aiohttp.ClientError, TimeoutError):
            continue
        if response.status == 200:
            sys.stdout.buffer.write(page)


async def main() -> None:
    with open(LIST) as file:
        urls = file.read().split()
    urls.reverse()
    resolver = aiohttp.AsyncResolver(nameservers=[NAMESERVER], udp_port=int(PORT), tcp_port=int(PORT))
    context = ssl.create_default_context(cafile=CA[0]) if CA else True
    connector = aiohttp.TCPConnector(limit=int(PARALLEL), resolver=resolver, ssl=context)
    timeout = aiohttp.ClientTimeout(total=float(SECONDS))
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        await asyncio.gather(*(fetch(session, urls) for _ in range(int(PARALLEL))))


asyncio.run(main())
