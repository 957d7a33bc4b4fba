"""``Response.raw``: a body as a file object, with the API of urllib3's responses."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from ._haul import EngineError
from .structures import CaseInsensitiveDict

if TYPE_CHECKING:
    from ._haul import ReceivedResponse, StreamedBody

__all__ = ["MemoryBody", "RawBody", "ReadMethod"]

#: A method of :class:`StreamedBody`, which decides how much one read returns.
ReadMethod = Literal["read", "read_some", "piece"]


class _Fields(CaseInsensitiveDict):
    """Header fields, joined with commas for each name.

    :meth:`getlist` returns them apart, as in urllib3: joined Set-Cookie fields cannot be separated.
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        super().__init__()
        self._fields = fields
        for name, value in fields:
            known = self.get(name)
            self[name] = value if known is None else f"{known}, {value}"

    def getlist(self, name: str) -> list[str]:
        """Returns the values of all fields with this name."""
        return [value for other, value in self._fields if other.lower() == name.lower()]


class MemoryBody(io.BytesIO):
    """The body of a response that the program has made, as a file. There is nothing to decode."""

    def read(self, amt: int | None = None, decode_content: bool | None = None) -> bytes:
        """Returns at most ``amt`` bytes; with ``None``, the rest."""
        return super().read(amt)

    def stream(self, amt: int | None = 2**16, decode_content: bool | None = None) -> Iterator[bytes]:
        """Yields the body in pieces of at most ``amt`` bytes."""
        while piece := self.read(amt):
            yield piece


class RawBody(io.IOBase):
    """The body of a response as a file. Without streaming it is at its end, as in requests.

    :param translate: converts errors of the engine into the exceptions that the caller expects.
    """

    #: The ``urllib3.Retry`` of the request, if it had one.
    retries: Any = None
    #: ``None``, as in urllib3.
    msg = None
    #: ``None``: the engine does not expose its connections.
    connection = None
    #: True if reading to the end closes the body. An ``io`` reader on top of the body needs it
    #: unset.
    auto_close = True
    #: A body that is shorter than announced is an error.
    enforce_content_length = True

    def __init__(
        self,
        reply: ReceivedResponse,
        stream: StreamedBody | None,
        translate: Callable[[EngineError], BaseException] | None = None,
    ) -> None:
        #: The response of the engine.
        self.reply = reply
        self._stream = stream
        self._translate = translate
        self._position = 0
        self._data = b""
        #: The default of ``decode_content`` for reads, as in urllib3. requests sets it.
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
        """Returns the value of a header field."""
        return self.headers.get(name, default)

    @property
    def version_string(self) -> str:
        """:attr:`version` as text."""
        return {10: "HTTP/1.0", 11: "HTTP/1.1", 20: "HTTP/2", 30: "HTTP/3"}[self.version]

    def info(self) -> Any:
        """Same as :attr:`headers`."""
        return self.headers

    @property
    def url(self) -> str:
        """The URL that the body came from."""
        return self.reply.url

    # requests-cache reads this attribute.
    _request_url = url

    def geturl(self) -> str:
        """Same as :attr:`url`."""
        return self.url

    @property
    def length_remaining(self) -> int | None:
        """The number of bytes still to come; ``None`` if unknown, for example because the body is
        decoded."""
        length = self.reply.get("content-length")
        if length is None or self.reply.has("content-encoding") or self.reply.has("transfer-encoding"):
            return None
        return 0 if self._stream is None or self._stream.ended else int(length) - self._position

    @property
    def closed(self) -> bool:
        """True if the body was closed, or read to its end while :attr:`auto_close` is set."""
        return super().closed or (self.auto_close and self._stream is not None and self._stream.ended)

    @property
    def data(self) -> bytes:
        """The rest of the body. Later calls return the same bytes."""
        return self._data or self.read(cache_content=True)

    #: False: chunk boundaries are not available.
    chunked = False

    def supports_chunked_reads(self) -> bool:
        """Returns False: chunk boundaries are not available."""
        return False

    def readable(self) -> bool:
        return True

    def read(self, amt: int | None = None, decode_content: bool | None = None, cache_content: bool = False) -> bytes:
        """Reads at most ``amt`` bytes, or the rest.

        ``cache_content`` keeps the rest in :attr:`data`."""
        piece = self._next("read", amt, decode_content)
        if cache_content and (amt is None or amt < 0):
            self._data = piece
        return piece

    def read1(self, amt: int | None = None, decode_content: bool | None = None) -> bytes:
        """Reads the bytes that have arrived, at most ``amt``. Waits if there are none."""
        return self._next("read_some", amt, decode_content)

    def _next(self, how: ReadMethod, amt: int | None, decode_content: bool | None) -> bytes:
        if self.closed or self._stream is None:
            return b""
        size = None if amt is None or amt < 0 else amt
        decode = self.decode_content if decode_content is None else decode_content
        try:
            piece: bytes = getattr(self._stream, how)(size, bool(decode))
        except EngineError as failure:
            if self._translate is None:
                from .models import _stream_error

                raise _stream_error(failure, None) from None
            raise self._translate(failure) from None
        self._position += len(piece)
        return piece

    def readinto(self, buffer: Any) -> int:
        """Reads into a buffer. Returns the number of bytes read."""
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
        """Iterates over the lines of the decoded body, as in urllib3. :meth:`readline` does not
        decode."""
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
        """Yields the rest in pieces of at most ``amt`` bytes; a chunked body chunk by chunk."""
        while piece := self._next("piece", amt or 65536, decode_content):
            yield piece

    def tell(self) -> int:
        """Returns the number of bytes read so far."""
        return self._position

    def isclosed(self) -> bool:
        """Returns whether the body has ended."""
        return self.closed or self._stream is None or self._stream.ended

    def close(self) -> None:
        """Closes the body. Its connection is reused only if the body was read to its end."""
        if self._stream is not None:
            self._stream.close()
        super().close()

    def release_conn(self) -> None:
        """Returns the connection to the pool if the body was read to its end."""
        if self._stream is not None and self._stream.ended:
            self._stream.close()

    def drain_conn(self) -> None:
        """Reads the rest of the body and returns the connection to the pool."""
        if self._stream is not None:
            try:
                self._stream.read(None, False)
            except (EngineError, RuntimeError):
                # The body broke off, or a part of it was decoded already. Its connection is closed
                # below.
                pass
            self.close()

    def get_redirect_location(self) -> str | bool:
        """Returns the target of a redirect; ``False`` for other responses."""
        return self.reply.location() or False

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")
