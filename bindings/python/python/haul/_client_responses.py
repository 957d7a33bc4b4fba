"""Responses of :class:`haul.Client` and :class:`haul.AsyncClient`, with the names of httpx."""

from __future__ import annotations

from asyncio import _get_running_loop
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ._async_response import AsyncResponse
from ._line_splitter import LineSplitter
from .exceptions import HTTPError, StreamConsumedError
from .models import Response, encoding_of
from .structures import CaseInsensitiveDict

if TYPE_CHECKING:
    from functools import cached_property as lazy
else:
    from .models import lazy

__all__ = ["AsyncClientResponse", "ClientHeaders", "ClientResponse", "async_client_response", "client_response"]

_AnyResponse = TypeVar("_AnyResponse", bound="ClientResponse")


class ClientHeaders(CaseInsensitiveDict):
    """The header fields of a response. Fields with the same name can be read separately, too.

    >>> fields = ClientHeaders([("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])
    >>> fields.get_list("set-cookie"), fields["set-cookie"]
    (['a=1', 'b=2'], 'a=1, b=2')
    """

    __slots__ = ("_lines",)

    def __init__(self, lines: Iterable[tuple[str, str]], values: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._lines = list(lines)
        if values is not None:
            self.update(values)
            return
        for name, value in self._lines:
            self[name] = f"{self[name]}, {value}" if name in self else value

    def copy(self) -> ClientHeaders:
        """Returns a copy."""
        return ClientHeaders(self._lines, self)

    def __getstate__(self) -> Any:
        return super().__getstate__(), self._lines

    def __setstate__(self, state: Any) -> None:
        fields, self._lines = state
        super().__setstate__(fields)

    def multi_items(self) -> list[tuple[str, str]]:
        """Returns the name, in lower case, and the value of each field line."""
        return [(name.lower(), value) for name in self for value in self.get_list(name)]

    def get_list(self, key: str, split_commas: bool = False) -> list[str]:
        """Returns the values of the field lines with this name.

        :param split_commas: whether each value is split at its commas."""
        values = [value for name, value in self._lines if name.lower() == key.lower()]
        joined = self.get(key)
        if joined != ", ".join(values):
            # The program has changed the field.
            values = [] if joined is None else [str(joined)]
        if not split_commas:
            return values
        return [part.strip() for value in values for part in value.split(",")]


class ClientResponse(Response):
    """A response with the names of httpx beside those of requests.

    :meth:`iter_lines` and :meth:`raise_for_status` are those of httpx."""

    #: True if reading the streamed body piece by piece has begun.
    _is_begun = False

    @lazy
    def headers(self) -> ClientHeaders:
        """The header fields. Those with the same name are joined with commas; see
        :meth:`ClientHeaders.get_list`."""
        return ClientHeaders([] if self._reply is None else self._reply.fields())

    @lazy
    def encoding(self) -> str:
        """The encoding for :attr:`text`: the charset of the Content-Type, otherwise UTF-8. The program may
        set it."""
        found = _named_encoding(self)
        return "utf-8" if found is None else found

    @property
    def is_informational(self) -> bool:
        """True if the status is 100 to 199."""
        return 100 <= (self.status_code or 0) < 200

    @property
    def is_success(self) -> bool:
        """True if the status is 200 to 299."""
        return 200 <= (self.status_code or 0) < 300

    @property
    def is_client_error(self) -> bool:
        """True if the status is 400 to 499."""
        return 400 <= (self.status_code or 0) < 500

    @property
    def is_server_error(self) -> bool:
        """True if the status is 500 to 599."""
        return 500 <= (self.status_code or 0) < 600

    @property
    def is_error(self) -> bool:
        """True if the status is 400 to 599."""
        return 400 <= (self.status_code or 0) < 600

    @property
    def is_redirect(self) -> bool:
        """True if the status is 300 to 399; see also :attr:`has_redirect_location`."""
        return 300 <= (self.status_code or 0) < 400

    @property
    def has_redirect_location(self) -> bool:
        """True if the response leads to another URL."""
        return super().is_redirect

    @property
    def next_request(self) -> Any:
        """The request to the target of a redirect, if redirects are not followed."""
        return self.next

    @property
    def reason_phrase(self) -> str:
        """The reason phrase."""
        return self.reason or ""

    @property
    def http_version(self) -> str:
        """``HTTP/1.0``, ``HTTP/1.1``, ``HTTP/2`` or ``HTTP/3``."""
        info = self.connection_info
        return "HTTP/1.1" if info is None else info.http_version

    @property
    def charset_encoding(self) -> str | None:
        """The charset of the Content-Type; ``None`` if it has none."""
        return _named_encoding(self)

    def raise_for_status(self: _AnyResponse) -> _AnyResponse:  # type: ignore[override]
        """Returns this response, unless its status is an error or a redirect.

        :raises HTTPError: the status is not 200 to 299."""
        super().raise_for_status()
        if not self.is_success:
            text = f"{self.status_code} is no success: {self.reason_phrase} for url: {self._shown_url()}"
            raise HTTPError(text, response=self)
        return self

    def json(self, **kwargs: Any) -> Any:
        """Parses the body as JSON, in UTF-8, UTF-16 or UTF-32 whatever the Content-Type says.

        :raises JSONDecodeError: the body is not valid JSON.
        :raises UnicodeDecodeError: the body is no text."""
        import json

        from .exceptions import JSONDecodeError

        try:
            return json.loads(self.content or b"", **kwargs)
        except json.JSONDecodeError as error:
            raise JSONDecodeError(error.msg, error.doc, error.pos, response=self) from error

    @property
    def content(self) -> Any:
        """The body.

        :raises StreamConsumedError: the response was closed, or pieces were taken, before the whole body
            was read."""
        self._refuse_a_rest()
        return super().content

    def _refuse_a_rest(self) -> None:
        if not self._is_unread():
            return
        if self._is_begun:
            raise StreamConsumedError("a part of the body was read already, so the whole body is not available", response=self)
        self._refuse_closed()

    def _refuse_closed(self) -> None:
        raw = self.__dict__.get("raw")
        if raw is not None and raw.closed and self._is_unread():
            raise StreamConsumedError("the response was closed before its body was read", response=self)

    def _is_unread(self) -> bool:
        """Returns whether the whole streamed body is not in memory, and its end was not read."""
        return self._content is False and self._stream is not None and not self._content_consumed

    def iter_content(self, chunk_size: int | None = 1, decode_unicode: bool = False) -> Iterator[Any]:
        self._refuse_closed()
        return super().iter_content(chunk_size, decode_unicode)

    def _pieces(self, size: int | None) -> Iterator[bytes]:
        self._is_begun = True
        yield from super()._pieces(size)

    def read(self) -> bytes:
        """Reads the whole body."""
        return self.content or b""

    def iter_bytes(self, chunk_size: int | None = None) -> Iterator[bytes]:
        """Yields the body in pieces of at most ``chunk_size`` bytes; with ``None``, as they arrive."""
        return self.iter_content(chunk_size)

    def iter_text(self, chunk_size: int | None = None) -> Iterator[str]:
        """Yields the body as text, a piece at a time."""
        decoder = _decoder_of(self)
        for piece in self.iter_content(chunk_size):
            if text := decoder.decode(piece):
                yield text
        if text := decoder.decode(b"", True):
            yield text

    def iter_lines(self) -> Iterator[str]:  # type: ignore[override]
        """Yields the lines of the body as text."""
        lines = LineSplitter(None)
        for text in self.iter_text():
            yield from lines.push(text)
        yield from lines.end()


class AsyncClientResponse(ClientResponse, AsyncResponse):
    """A response of :class:`haul.AsyncClient`, whose body is read without blocking the event loop."""

    @property
    def content(self) -> Any:
        """The body, after :meth:`aread`.

        :raises RuntimeError: the body of a stream is not read yet, and reading it would block the event loop."""
        self._refuse_a_rest()
        self._refuse_to_block("await aread() first")
        return super().content

    def iter_content(self, chunk_size: int | None = 1, decode_unicode: bool = False) -> Iterator[Any]:
        """Yields the body in pieces, after :meth:`aread`.

        :raises RuntimeError: the body of a stream is not read yet, and reading it would block the event
            loop."""
        self._refuse_closed()
        self._refuse_to_block("use aiter_bytes(), aiter_text() or aiter_lines(), or await aread() first")
        return super().iter_content(chunk_size, decode_unicode)

    def _refuse_to_block(self, remedy: str) -> None:
        if self._is_unread() and _get_running_loop() is not None:
            raise RuntimeError(f"the body is not read yet: {remedy}, since a blocking read would stop the event loop")

    async def aread(self) -> bytes:
        """Reads the whole body."""
        self._refuse_a_rest()
        return await super().aread()

    def aiter_content(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        self._refuse_closed()
        self._is_begun = True
        return super().aiter_content(chunk_size)

    async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
        """Yields the body in pieces of at most ``chunk_size`` bytes; with ``None``, as they arrive."""
        async for piece in self.aiter_content(chunk_size):
            yield piece

    async def aiter_text(self, chunk_size: int | None = None) -> AsyncIterator[str]:
        """Yields the body as text, a piece at a time."""
        decoder = _decoder_of(self)
        async for piece in self.aiter_content(chunk_size):
            if text := decoder.decode(piece):
                yield text
        if text := decoder.decode(b"", True):
            yield text

    async def aiter_lines(self) -> AsyncIterator[str]:  # type: ignore[override]
        """Yields the lines of the body as text."""
        lines = LineSplitter(None)
        async for text in self.aiter_text():
            for line in lines.push(text):
                yield line
        for line in lines.end():
            yield line


def _encoding_of(response: Response) -> str:
    """Returns the encoding of a body that is not read yet."""
    import codecs

    try:
        return codecs.lookup(response.encoding or "utf-8").name
    except LookupError:
        return "utf-8"


def _decoder_of(response: Response) -> Any:
    import codecs

    return codecs.getincrementaldecoder(_encoding_of(response))(errors="replace")


def _named_encoding(response: Response) -> str | None:
    """Returns the charset of the Content-Type; ``None`` if it has none."""
    kind = response.headers.get("content-type") or ""
    return encoding_of(kind) if "charset=" in kind.lower() else None


def client_response(response: Response) -> ClientResponse:
    """Returns a response of a session with the names of httpx. Both have the same body."""
    return _renamed(ClientResponse, response)


def async_client_response(response: Response) -> AsyncClientResponse:
    """Returns a response of an ``AsyncSession`` with the names of httpx. Both have the same body."""
    return _renamed(AsyncClientResponse, response)


def _renamed(kind: type[_AnyResponse], response: Response) -> _AnyResponse:
    renamed = object.__new__(kind)
    attributes = renamed.__dict__ = response.__dict__
    if attributes.get("encoding", "") in (None, "ISO-8859-1") and _named_encoding(response) is None:
        # A hook has read it, by the rules of requests.
        del attributes["encoding"]
    known = attributes.get("headers")
    if known is not None:
        reply = response._reply
        lines = attributes.get("_set_cookies", ()) if reply is None else reply.fields()
        attributes["headers"] = ClientHeaders(lines, known)
    if attributes.get("history"):
        attributes["history"] = [_renamed(kind, earlier) for earlier in attributes["history"]]
    return renamed
