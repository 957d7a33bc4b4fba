"""Crawls the pages of a site, and stops at a number of pages or at Ctrl-C.

    python crawler.py https://example.com/ 100

Leaving the loop cancels the requests that are in progress."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from urllib.parse import urldefrag, urlsplit

import haul


async def fetch(session: haul.AsyncSession, url: str) -> tuple[haul.Response, list[str]]:
    response = await session.get(url)
    is_page = response.headers.get("content-type", "").startswith("text/html")
    return response, haul.select(response, "a@href") if is_page else []


async def crawl(start: str) -> AsyncGenerator[haul.Response, None]:
    """Yields the responses of a site, each URL once."""
    site, seen = urlsplit(start)[:2], {start}
    async with haul.AsyncSession(timeout=haul.ClientTimeout(total=30), retries=2, rate_host=50) as session:
        tasks = {asyncio.create_task(fetch(session, start), name=start)}
        try:
            while tasks:
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    try:
                        response, links = task.result()
                    except haul.RequestException as error:
                        print(f"{task.get_name()}: {error}", file=sys.stderr)
                        continue
                    for link in (urldefrag(link).url for link in links):
                        if urlsplit(link)[:2] == site and link not in seen:
                            seen.add(link)
                            tasks.add(asyncio.create_task(fetch(session, link), name=link))
                    yield response
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def main(start: str, most: int) -> None:
    pages, count = crawl(start), 0
    try:
        async for response in pages:
            print(response.status_code, response.url, flush=True)
            count += 1
            if count == most:
                break
    finally:
        await pages.aclose()
        print(f"{count} pages")


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100))
    except KeyboardInterrupt:
        sys.exit(130)
