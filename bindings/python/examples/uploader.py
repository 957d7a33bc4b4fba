"""Uploads files: each by a PUT that is read from the disk as it is sent, or all in one form.

    python uploader.py https://example.com/store/ a.bin b.bin
    python uploader.py --form https://example.com/upload a.bin b.bin"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import BinaryIO
from urllib.parse import quote

import haul


class Reader:
    """A file that reports how much of it was read. haul takes its length from ``__len__``."""

    def __init__(self, file: BinaryIO, report: Callable[[int, int], None]) -> None:
        self._file, self._report = file, report
        self._size, self._sent = os.fstat(file.fileno()).st_size, 0

    def __len__(self) -> int:
        return self._size

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self._sent += len(piece)
        self._report(self._sent, self._size)
        return piece

    def seek(self, offset: int, whence: int = 0) -> int:
        """Goes back, so that a retry or a redirect can send the file again."""
        self._sent = self._file.seek(offset, whence)
        return self._sent

    def tell(self) -> int:
        return self._file.tell()


def put(session: haul.Session, base: str, path: str) -> haul.Response:
    """Stores a file under its name."""

    def report(sent: int, size: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{path}: {sent} of {size} bytes", end="", file=sys.stderr)

    with open(path, "rb") as file:
        return session.put(base + quote(os.path.basename(path)), data=Reader(file, report))


def post_form(session: haul.Session, url: str, paths: list[str]) -> haul.Response:
    """Sends files as those that a browser's form has."""
    with ExitStack() as opened:
        files = [("file", (os.path.basename(path), opened.enter_context(open(path, "rb")))) for path in paths]
        return session.post(url, data={"count": len(paths)}, files=files)


if __name__ == "__main__":
    with haul.Session(timeout=(10, 60), retries=2) as session:
        if sys.argv[1] == "--form":
            responses = [post_form(session, sys.argv[2], sys.argv[3:])]
        else:
            responses = [put(session, sys.argv[1], path) for path in sys.argv[2:]]
    for response in responses:
        print(response.status_code, response.url)
    sys.exit(0 if all(response.ok for response in responses) else 1)
