"""The file objects of :class:`haul.fsspec.HaulFileSystem`."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from fsspec.asyn import AbstractAsyncStreamedFile  # type: ignore[import-untyped]
from fsspec.caching import AllBytes  # type: ignore[import-untyped]
from fsspec.spec import AbstractBufferedFile  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from .fsspec import HaulFileSystem
    from .models import Response

__all__ = ["AsyncStreamFile", "CountedFile", "RangeFile", "StreamFile", "first_byte", "length_of_body"]

_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")


def length_of_body(response: Response) -> int | None:
    """Returns the Content-Length of a response without a content coding; ``None`` if there is none."""
    length = response.headers.get("content-length", "")
    coding = response.headers.get("content-encoding", "identity").lower()
    return int(length) if length.isdecimal() and coding in ("", "identity") else None


def first_byte(response: Response, start: int) -> int | None:
    """Returns the position in the file of the first byte of a body, after a request for a range.

    Some servers send the range with status 200, others the whole file. Without a Content-Range the
    two cannot be told apart, and the position is ``None``."""
    found = _CONTENT_RANGE.match(response.headers.get("content-range", ""))
    if found is not None:
        return int(found[1])
    return start if response.status_code == 206 or start == 0 else None


class RangeFile(AbstractBufferedFile):  # type: ignore[misc]
    """A file whose parts are requested when they are read, in blocks that fsspec caches."""

    size: int
    cache: Any

    def __init__(self, fs: HaulFileSystem, url: str, size: int, options: dict[str, Any], **settings: Any) -> None:
        self._options = options
        self.details = {"name": url, "size": size, "type": "file"}
        super().__init__(fs, url, "rb", size=size, **settings)
        self.kwargs = options

    def read(self, length: int | None = -1) -> bytes:
        """Reads at most ``length`` bytes, or the rest.

        One request reads a whole file that is larger than a block."""
        is_whole = (length is None or length < 0) and self.loc == 0
        if is_whole and self.size > self.blocksize and not isinstance(self.cache, AllBytes):
            content = self.fs._cat_whole(self.path, self._options)
            self.size = len(content)
            self.cache = AllBytes(size=len(content), fetcher=None, blocksize=None, data=content)
        return super().read(-1 if length is None else length)  # type: ignore[no-any-return]

    def _fetch_range(self, start: int, end: int) -> bytes:
        """Requests the bytes from ``start`` up to ``end``.

        :raises ValueError: the server sends the whole file instead."""
        end = min(end, self.size)
        if start >= end:
            return b""
        with self.fs._open_range(self.path, start, end, self._options) as response:
            if response.status_code == 416:
                return b""
            self.fs._raise_for_status(response, self.path)
            first = first_byte(response, start)
            if first is None and length_of_body(response) == end - start < self.size:
                first = start
            if first != start:
                remedy = "open the file with block_size=0 to read it as a stream"
                raise ValueError(f"{self.path}: the server does not send ranges; {remedy}")
            content: bytes = response.raw.read(end - start, True)
        return content


class StreamFile(AbstractBufferedFile):  # type: ignore[misc]
    """A file that is read once, from its beginning to its end, because its size is not known or its
    server does not send ranges."""

    def __init__(self, fs: HaulFileSystem, url: str, options: dict[str, Any]) -> None:
        self.details = {"name": url, "size": None}
        super().__init__(fs, url, "rb", block_size=0, cache_type="none")
        self.kwargs = options
        # Bytes after the end of a line, which were received with it.
        self._ahead = bytearray()
        self._response = fs._open_stream(url, options)

    def seek(self, loc: int, whence: int = 0) -> int:
        """Accepts only the current position.

        :raises ValueError: any other position."""
        if (whence, loc) not in ((0, self.loc), (1, 0)):
            raise ValueError("a stream cannot be rewound or skipped")
        return self.loc  # type: ignore[no-any-return]

    def read(self, length: int | None = -1) -> bytes:
        """Reads at most ``length`` bytes, or the rest."""
        rest = -1 if length is None or length < 0 else length
        content = self._take(len(self._ahead) if rest < 0 else rest)
        if rest < 0 or len(content) < rest:
            content += self._response.raw.read(rest if rest < 0 else rest - len(content), True)
        self.loc += len(content)
        return content

    def readuntil(self, char: bytes = b"\n", blocks: int | None = None) -> bytes:
        """Reads up to and including the first ``char``, or the rest.

        :param blocks: the number of bytes to receive at a time. Default: 64 KiB."""
        searched = 0
        while (found := self._ahead.find(char, searched)) < 0:
            searched = max(0, len(self._ahead) - len(char) + 1)
            piece = self._response.raw.read(blocks or 1 << 16, True)
            if not piece:
                break
            self._ahead += piece
        line = self._take(len(self._ahead) if found < 0 else found + len(char))
        self.loc += len(line)
        return line

    def _take(self, length: int) -> bytes:
        """Returns at most ``length`` of the bytes that were received ahead."""
        taken = bytes(self._ahead[:length])
        del self._ahead[:length]
        return taken

    def close(self) -> None:
        """Closes the stream. Its connection is reused only if the file was read to its end."""
        # There is no response if opening it has failed.
        if "_response" in self.__dict__:
            self._response.close()
        super().close()


class AsyncStreamFile(AbstractAsyncStreamedFile):  # type: ignore[misc]
    """A file of :meth:`haul.fsspec.HaulFileSystem.open_async`, read once, from its beginning."""

    def __init__(self, fs: HaulFileSystem, url: str, size: int | None, options: dict[str, Any]) -> None:
        self.details = {"name": url, "size": size}
        super().__init__(fs, url, "rb", block_size=0, cache_type="none")
        self.kwargs = options
        self.size = size
        self._response: Any = None

    async def read(self, num: int = -1) -> bytes:
        """Reads at most ``num`` bytes, or the rest."""
        if self._response is None:
            self._response = await self.fs._stream(self.path, self.kwargs)
        content: bytes = await self._response._read(None if num is None or num < 0 else num)
        self.loc += len(content)
        return content

    async def close(self) -> None:
        """Closes the stream. Its connection is reused only if the file was read to its end."""
        if self._response is not None:
            self._response.close()
        await super().close()


class CountedFile:
    """A file that is sent, and that informs a callback about its progress."""

    def __init__(self, file: Any, callback: Any) -> None:
        self._file = file
        self._callback = callback

    def size(self) -> int | None:
        """Returns the number of bytes from the current position on, if the file can be rewound."""
        try:
            position = self._file.tell()
            end: int = self._file.seek(0, io.SEEK_END)
            self._file.seek(position)
        except OSError:
            return None
        return end - int(position)

    def read(self, size: int = -1) -> bytes:
        piece: bytes = self._file.read(size)
        self._callback.relative_update(len(piece))
        return piece

    def tell(self) -> int:
        return self._file.tell()  # type: ignore[no-any-return]

    def seek(self, position: int, whence: int = 0) -> int:
        return self._file.seek(position, whence)  # type: ignore[no-any-return]
