"""``Response.raw``: a body as a file, with the names of urllib3's responses."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from ._haul import Failure
from .structures import CaseInsensitiveDict

if TYPE_CHECKING:
    from ._haul import Reply, Stream

__all__ = ["How", "RawBody"]

#: How much is read at once, by the names of :class:`Stream`.
How = Literal["read", "read_some", "piece"]


class _Fields(CaseInsensitiveDict):
    """Header fields, those of one name joined with commas; and, as with urllib3's, each for itself: of Set-Cookie they cannot be told apart
    any more once they are joined."""

    __slots__ = ("_each",)

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        super().__init__()
        self._each = fields
        for name, value in fields:
            known = self.get(name)
            self[name] = value if known is None else f"{known}, {value}"

    def getlist(self, name: str) -> list[str]:
        """The values of all fields of this name."""
        return [value for other, value in self._each if other.lower() == name.lower()]


class RawBody(io.IOBase):
    """A body that is being read. If the response was not streamed, nothing is left to read, as in requests.

    :param translate: converts failures of the engine into the exceptions that the caller expects.
    """

    #: The ``urllib3.Retry`` that was obeyed, if one was.
    retries: Any = None
    #: As of urllib3's behind requests.
    msg = None
    #: The engine keeps its connections to itself.
    connection = None
    #: Whether it is closed once it has been read to its end. To be unset by who puts an ``io`` reader on top of it.
    auto_close = True
    #: A body that is shorter than was announced is an error.
    enforce_content_length = True

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
        self._data = b""
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
        """The header fields, as a case-insensitive dict."""
        if self._headers is None:
            self._headers = self._dict_of(self.reply.fields())
        return self._headers

    @headers.setter
    def headers(self, headers: Any) -> None:
        self._headers = headers

    def _dict_of(self, fields: list[tuple[str, str]]) -> Any:
        return _Fields(fields)

    def getheaders(self) -> Any:
        """Same as :attr:`headers`."""
        return self.headers

    def getheader(self, name: str, default: Any = None) -> Any:
        """The value of this header field."""
        return self.headers.get(name, default)

    @property
    def version_string(self) -> str:
        """:attr:`version` in words."""
        return {10: "HTTP/1.0", 11: "HTTP/1.1", 20: "HTTP/2"}[self.version]

    def info(self) -> Any:
        """Same as :attr:`headers`."""
        return self.headers

    @property
    def url(self) -> str:
        """The URL that the body came from."""
        return self.reply.url

    # What requests-cache looks at.
    _request_url = url

    def geturl(self) -> str:
        """Same as :attr:`url`."""
        return self.url

    @property
    def length_remaining(self) -> int | None:
        """The number of bytes still to come; ``None`` if unknown, for example because the body is decoded."""
        length = self.reply.get("content-length")
        if length is None or self.reply.has("content-encoding") or self.reply.has("transfer-encoding"):
            return None
        return 0 if self._stream is None or self._stream.ended else int(length) - self._told

    @property
    def closed(self) -> bool:
        """Whether it was closed, or read to its end while :attr:`auto_close` is set."""
        return super().closed or (self.auto_close and self._stream is not None and self._stream.ended)

    @property
    def data(self) -> bytes:
        """The rest of the body. It is kept, so that later calls return the same."""
        return self._data or self.read(cache_content=True)

    #: As of one that is not: where a chunk ends is not kept.
    chunked = False

    def supports_chunked_reads(self) -> bool:
        """False: chunk boundaries are not available."""
        return False

    def readable(self) -> bool:
        return True

    def read(self, amt: int | None = None, decode_content: bool | None = None, cache_content: bool = False) -> bytes:
        """Reads at most ``amt`` bytes, or the rest, which ``cache_content`` stores in :attr:`data`."""
        piece = self._next("read", amt, decode_content)
        if cache_content and (amt is None or amt < 0):
            self._data = piece
        return piece

    def read1(self, amt: int | None = None, decode_content: bool | None = None) -> bytes:
        """Reads what has arrived, at most ``amt`` bytes; waits if there is nothing."""
        return self._next("read_some", amt, decode_content)

    def _next(self, how: How, amt: int | None, decode_content: bool | None) -> bytes:
        if self.closed or self._stream is None:
            return b""
        size = None if amt is None or amt < 0 else amt
        decode = self.decode_content if decode_content is None else decode_content
        try:
            piece: bytes = getattr(self._stream, how)(size, bool(decode))
        except Failure as failure:
            if self._translate is None:
                from .models import _stream_error

                raise _stream_error(failure, None) from None
            raise self._translate(failure) from None
        self._told += len(piece)
        return piece

    def readinto(self, buffer: Any) -> int:
        """Reads into a buffer. Returns the number of bytes."""
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

    def __iter__(self) -> Iterator[bytes]:
        """Iterates over lines of the decoded body, as in urllib3; :meth:`readline` returns them as they were sent."""
        begun: list[bytes] = []
        for piece in self.stream(decode_content=True):
            head, *tails = piece.split(b"\n")
            begun.append(head)
            for tail in tails:
                yield b"".join(begun) + b"\n"
                begun = [tail]
        if last := b"".join(begun):
            yield last

    def stream(self, amt: int | None = 65536, decode_content: bool | None = None) -> Iterator[bytes]:
        """The rest in pieces of at most ``amt`` bytes; a chunked body chunk by chunk."""
        while piece := self._next("piece", amt or 65536, decode_content):
            yield piece

    def tell(self) -> int:
        """The number of bytes read so far."""
        return self._told

    def isclosed(self) -> bool:
        """Whether the body has ended."""
        return self.closed or self._stream is None or self._stream.ended

    def close(self) -> None:
        """Closes the body and gives up its connection."""
        if self._stream is not None:
            self._stream.close()
        super().close()

    def release_conn(self) -> None:
        """Gives the connection back if the body was read to its end."""
        if self._stream is not None and self._stream.ended:
            self._stream.close()

    def drain_conn(self) -> None:
        """Reads the rest of the body and gives the connection back."""
        if self._stream is not None:
            try:
                self._stream.read(None, False)
            except (Failure, RuntimeError):
                # Then it is closed below, and serves nobody: it broke, or some of it was decoded, and this would not decode the rest.
                pass
            self.close()

    def get_redirect_location(self) -> str | bool:
        """The target of a redirect; ``False`` for other responses."""
        return self.reply.location() or False

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")
