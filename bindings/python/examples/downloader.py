"""Downloads files side by side, with a bar for each if tqdm is installed.

    python downloader.py DIRECTORY https://example.com/a.iso https://example.com/b.iso

A file has the name NAME.part until it is complete."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import haul


class NoBar:
    """The bar of a download where tqdm is not installed."""

    def __enter__(self) -> NoBar:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def update(self, size: int) -> None:
        """Counts bytes."""


def bar_for(name: str, total: int | None) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return NoBar()
    return tqdm(total=total, desc=name, unit="B", unit_scale=True)


def name_of(url: str) -> str:
    """Returns the last part of the path of a URL, which cannot lead out of a directory."""
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    return name if name.strip(".") else "index.html"


def download(session: haul.Session, url: str, directory: Path) -> Path:
    """Downloads a URL to a file.

    :raises haul.RequestException: the body is not complete, or the status is an error."""
    target = directory / name_of(url)
    part = target.with_name(target.name + ".part")
    with session.stream("GET", url) as response:
        response.raise_for_status()
        is_encoded = "content-encoding" in response.headers
        total = None if is_encoded else int(response.headers.get("content-length", 0)) or None
        with open(part, "wb") as file, bar_for(target.name, total) as bar:
            for piece in response.iter_content(1 << 20):
                bar.update(file.write(piece))
    os.replace(part, target)
    return target


def main(directory: str, urls: list[str]) -> int:
    failures = 0
    with haul.Session(timeout=(10, 60), retries=3) as session, ThreadPoolExecutor(4) as pool:
        for url, task in [(url, pool.submit(download, session, url, Path(directory))) for url in urls]:
            try:
                print(task.result())
            except (haul.RequestException, OSError) as error:
                failures += 1
                print(f"{url}: {error}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
