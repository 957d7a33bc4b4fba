"""``Response.raw``: a body as a file, with the names of urllib3's responses."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ._haul import Failure

if TYPE_CHECKING:
    from ._haul import Reply, Stream

__all__ = ["RawBody"]


class RawBody(io.IOBase):
    """A body under way. Of one that was read whole nothing is left to read, as by requests.

    :param translate: what turns the engine's failures into exceptions of the caller's.
    """

    def __init__(
        self,
        reply: Reply,
        stream: Stream | None,
        translate: Callable[[Failure], BaseException] | None = None,
    ) -> None:
        #: What the engine keeps of the response.
        self.reply = reply
        self._stream = stream
        self._translate = translate
        self._told = 0
        #: What urllib3's ``read`` does where it is not told; requests sets it on a response that others shall read.
        self.decode_content = False
        self.status = reply.status
        self.reason = reply.reason
        self.version = reply.version
        self._original_response: Any = None
        self._headers: Any = None
        if stream is None:
            self.close()

    @property
    def headers(self) -> Any:
        """The fields, in a dict that does not care for case."""
        if self._headers is None:
            from .structures import CaseInsensitiveDict

            self._headers = CaseInsensitiveDict()
            for name, value in self.reply.fields():
                known = self._headers.get(name)
                self._headers[name] = value if known is None else f"{known}, {value}"
        return self._headers

    @headers.setter
    def headers(self, headers: Any) -> None:
        self._headers = headers

    def getheaders(self) -> Any:
        """As :attr:`headers`."""
        return self.headers

    def getheader(self, name: str, default: Any = None) -> Any:
        """The value under this name."""
        return self.headers.get(name, default)

    def readable(self) -> bool:
        return True

    def read(self, amt: int | None = None, decode_content: bool | None = None, cache_content: bool = False) -> bytes:
        """At most ``amt`` bytes; without it, the rest."""
        if self.closed:
            return b""
        size = None if amt is None or amt < 0 else amt
        decode = self.decode_content if decode_content is None else decode_content
        try:
            piece = self._stream.read(size, bool(decode)) if self._stream is not None else b""
        except Failure as failure:
            if self._translate is None:
                from .models import _stream_error

                raise _stream_error(failure, None) from None
            raise self._translate(failure) from None
        self._told += len(piece)
        return piece

    def read1(self, amt: int | None = None, decode_content: bool | None = None) -> bytes:
        """As :meth:`read`, in one piece."""
        return self.read(65536 if amt is None or amt < 0 else amt, decode_content)

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer; how much of it."""
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def readline(self, size: int | None = -1, /) -> bytes:
        line = bytearray()
        limit = -1 if size is None else size
        while limit < 0 or len(line) < limit:
            byte = self.read(1)
            line += byte
            if not byte or byte == b"\n":
                break
        return bytes(line)

    def stream(self, amt: int | None = 65536, decode_content: bool | None = None) -> Iterator[bytes]:
        """The rest in pieces of at most ``amt`` bytes."""
        while piece := self.read(amt or 65536, decode_content):
            yield piece

    def tell(self) -> int:
        """How many bytes were read."""
        return self._told

    def isclosed(self) -> bool:
        """Whether there is no more to come."""
        return self.closed

    def close(self) -> None:
        """Lets go of the connection."""
        if self._stream is not None:
            self._stream.close()
        super().close()

    def release_conn(self) -> None:
        """Lets go of the connection, if the body was read to its end."""
        if self._stream is not None and self._stream.ended:
            self._stream.close()

    def drain_conn(self) -> None:
        """Reads the rest, and lets go of the connection."""
        if self._stream is not None:
            try:
                self._stream.read(None, False)
            except Failure:
                # Then it is closed below, and serves nobody.
                pass
            self.close()

    def get_redirect_location(self) -> str | bool:
        """Where it leads, if it is a redirect; else ``False``."""
        return self.reply.location() or False

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")
