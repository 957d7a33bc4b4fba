"""Responses, with the API of requests. The module also exports the request classes.

Creating a :class:`Response` is cheap: headers, cookies, history and the request are built at their
first use, from the data of the engine.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._request_objects import PreparedRequest, Request
from ._request_body import length_of
from ._haul import EngineError, prepare_url
from .cookies import CookieJar
from .exceptions import ConnectionError, HTTPError, RequestException, StreamConsumedError, from_engine_error
from .structures import CaseInsensitiveDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from functools import cached_property as lazy
    from typing import Any, TypeVar

    from ._events import Observation
    from ._haul import Jar, SharedOptions, ReceivedResponse
    from ._response_facts import ConnectionInfo, Timings

    #: The arguments of the engine's call: options, method, URL, query, fields, body, jar, cookie.
    Call = tuple[SharedOptions, str, str, str | None, Any, Any, Jar | None, str | None]
    _Response = TypeVar("_Response", bound="Response")
else:

    class lazy:
        """An attribute that is computed at its first use.

        ``functools.cached_property`` takes a lock up to Python 3.11."""

        def __init__(self, make):
            self.make = make
            self.name = make.__name__
            self.__doc__ = make.__doc__

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.make(instance)
            return value


__all__ = ["PreparedRequest", "Request", "Response"]

REDIRECT_STATI = (301, 302, 303, 307, 308)
CONTENT_CHUNK_SIZE = 10 * 1024
ITER_CHUNK_SIZE = 512
#: The most bytes that are read of a redirect's streamed body, so that its connection can be reused.
MAX_DISCARDED_BYTES = 64 << 10

_new = object.__new__


def failed_request(call: Call) -> PreparedRequest:
    """Returns the request of a call of the engine that has failed."""
    _, _, url, query, _, _, jar, cookie = call
    try:
        url = prepare_url(url, query)
        kept = None if jar is None else jar.header(url)
    except EngineError:
        # The URL is the failure.
        kept = None
    return _prepared(call, url, "; ".join(part for part in (kept, cookie) if part) or None)


def _prepared(call: Call, url: str, sent_cookie: str | None) -> PreparedRequest:
    """Returns the request of a call of the engine, for programs that look at it."""
    options, method, _, _, fields, body, _, _ = call
    request = PreparedRequest()
    request.method = method
    request.url = url
    request.headers = CaseInsensitiveDict(options.fields())
    for name, value in fields or ():
        name = name.decode("latin-1") if isinstance(name, bytes) else name
        if value is None:
            request.headers.pop(name, None)
        else:
            request.headers[name] = value
    if sent_cookie is not None and "cookie" not in request.headers:
        request.headers["Cookie"] = sent_cookie
    if body is not None and "content-length" not in request.headers:
        request.headers["Content-Length"] = str(length_of(body) or 0)
    request.body = body or None
    request._cookies = CookieJar()
    if "authorization" not in request.headers:
        # The engine sends the user and password of the URL.
        request.prepare_auth(None)
    return request


class Response:
    """The response to a request."""

    __attrs__ = ["_content", "status_code", "url", "headers", "history", "encoding", "reason", "cookies", "elapsed", "request"]

    # None only in a response that the program creates. Typed as in requests, so that comparisons
    # need no check.
    status_code: int = None  # type: ignore[assignment]
    connection: Any = None
    _reply: Any = None
    _call: Call | None = None
    _stream: Any = None
    _content: Any = False
    _content_consumed = False
    #: The observation of a call whose body is being read.
    _observation: Observation | None = None
    _next: PreparedRequest | None = None
    #: The error that :attr:`next` raises.
    _next_error: RequestException | None = None

    def __init__(self) -> None:
        self._content = False

    @lazy
    def headers(self) -> CaseInsensitiveDict:
        """The header fields.

        Fields with the same name are joined with commas (RFC 9110 section 5.3)."""
        fields = CaseInsensitiveDict()
        if self._reply is not None:
            store = fields._store
            for name, value in self._reply.fields():
                key = name.lower()
                if key in store:
                    store[key] = (store[key][0], f"{store[key][1]}, {value}")
                else:
                    store[key] = (name, value)
        return fields

    @property
    def trailers(self) -> CaseInsensitiveDict:
        """The trailer fields, which the server sends behind the body (RFC 9110 section 6.5).

        There are none before the body was read to its end, and in a response that was pickled."""
        source = self._reply if self._stream is None else self._stream
        fields = CaseInsensitiveDict()
        for name, value in () if source is None else source.trailers():
            known = fields.get(name)
            fields[name] = value if known is None else f"{known}, {value}"
        return fields

    @lazy
    def url(self) -> Any:
        """The final URL, after redirects."""
        return None if self._reply is None else self._reply.url

    @lazy
    def reason(self) -> Any:
        """The reason phrase."""
        return None if self._reply is None else self._reply.reason

    @lazy
    def encoding(self) -> Any:
        """The encoding for :attr:`text`, from the Content-Type. The program may set it."""
        kind = self.headers.get("content-type") if self._reply is None else self._reply.joined("content-type")
        return encoding_of(kind)

    @lazy
    def cookies(self) -> CookieJar:
        """The cookies set by this response."""
        jar = CookieJar()
        if self._reply is not None:
            self._reply.cookies_into(jar._jar)
        return jar

    @lazy
    def elapsed(self) -> timedelta:
        """The time from the call to the first byte of the response."""
        from datetime import timedelta

        return timedelta(seconds=0.0 if self._reply is None else self._reply.elapsed)

    @property
    def timings(self) -> Timings | None:
        """The times of the request; ``None`` if the engine has not sent it.

        >>> haul.get("https://example.com/").timings                 # doctest: +SKIP
        Timings(resolved=0.004, connected=0.02, secured=0.05, sent=0.05, first_byte=0.08, total=0.08)
        """
        if self._reply is None:
            return None
        from ._response_facts import Timings

        return Timings(self._reply)

    @property
    def connection_info(self) -> ConnectionInfo | None:
        """The addresses, the TLS parameters and the certificates of the connection; ``None`` if the
        engine has not sent the request.

        >>> haul.get("https://example.com/").connection_info.tls_version        # doctest: +SKIP
        'TLSv1.3'
        """
        if self._reply is None:
            return None
        from ._response_facts import ConnectionInfo

        return ConnectionInfo(self._reply)

    @lazy
    def history(self) -> list[Response]:
        """The redirects that led here, oldest first."""
        return []

    @lazy
    def request(self) -> Any:
        """The request that was answered."""
        return None if self._call is None else _prepared(self._call, self._reply.url, self._reply.sent_cookie)

    @lazy
    def raw(self) -> Any:
        """The body as a file object. Reads of a streamed body do not decode by default."""
        if self._reply is None:
            content = self._content
            if not isinstance(content, bytes):
                return None
            from ._raw_body import MemoryBody

            # The response of a mounted function.
            return MemoryBody(content)
        from ._raw_body import RawBody

        return RawBody(self._reply, self._stream)

    def __enter__(self) -> Response:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Response [{self.status_code}]>"

    def _repr_html_(self) -> str:
        from ._html import response_html

        return response_html(self)

    def __bool__(self) -> bool:
        return self.ok

    def __iter__(self) -> Iterator[bytes]:
        return self.iter_content(128)

    def __getstate__(self) -> dict[str, Any]:
        if not self._content_consumed:
            self.content  # noqa: B018 - pickling needs the whole body
        return {name: getattr(self, name, None) for name in self.__attrs__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._content_consumed = True
        self.raw = None

    @property
    def ok(self) -> bool:
        """True if the status is not an error (400 to 599)."""
        return not 400 <= (self.status_code or 0) < 600

    @property
    def is_redirect(self) -> bool:
        """True if the response is a redirect with a Location."""
        return self.status_code in REDIRECT_STATI and "location" in self.headers

    @property
    def is_permanent_redirect(self) -> bool:
        """True if the response is a permanent redirect (301 or 308)."""
        return self.status_code in (301, 308) and "location" in self.headers

    @property
    def next(self) -> PreparedRequest | None:
        """The request to the target of a redirect, if redirects are not followed.

        :raises UnrewindableBodyError: the request needs a body that cannot be read again.
        :raises InvalidSchema: haul cannot request the target, such as that of an app.
        :raises InvalidURL: the target is malformed."""
        if self._next_error is not None:
            raise self._next_error
        return self._next

    @property
    def apparent_encoding(self) -> str:
        """The encoding that the content appears to have: UTF-8 if the content is valid UTF-8.

        Otherwise ``charset_normalizer`` or ``chardet`` guesses, if one is installed."""
        try:
            self.content.decode("utf-8")
        except UnicodeDecodeError:
            pass
        else:
            return "utf-8"
        for name in ("charset_normalizer", "chardet"):
            try:
                detector = __import__(name)
            except ImportError:
                continue
            found = detector.detect(self.content)["encoding"]
            if found:
                return str(found)
        return "ISO-8859-1"

    @property
    def content(self) -> Any:
        """The body."""
        if self._content is False:
            if self._content_consumed:
                raise RuntimeError("The content for this response was already consumed")
            if self.status_code == 0 or self.raw is None:
                self._content = None
            else:
                self._content = b"".join(self.iter_content(CONTENT_CHUNK_SIZE)) or b""
        self._content_consumed = True
        return self._content

    def _discard_body(self) -> None:
        """Reads the body of a redirect, at most :data:`MAX_DISCARDED_BYTES` of a streamed one."""
        if self._stream is None or self._content_consumed:
            self.content  # noqa: B018 - read as without a redirect
            return
        pieces = _DiscardedBody()
        for piece in self.iter_content(MAX_DISCARDED_BYTES):
            if not pieces.add(piece):
                self._content_consumed = True
                return
        self._content = pieces.joined()

    @property
    def text(self) -> str:
        """The body as text."""
        content = self.content
        if not content:
            return ""
        encoding = self.apparent_encoding if self.encoding is None else self.encoding
        try:
            return str(content, encoding, errors="replace")
        except (LookupError, TypeError):
            return str(content, errors="replace")

    def json(self, **kwargs: Any) -> Any:
        """Parses the body as JSON.

        :raises JSONDecodeError: the body is not valid JSON."""
        import json

        from .exceptions import JSONDecodeError

        try:
            if not self.encoding and self.content and len(self.content) > 3:
                try:
                    return json.loads(self.content.decode(json.detect_encoding(self.content)), **kwargs)
                except UnicodeDecodeError:
                    pass
            return json.loads(self.text, **kwargs)
        except json.JSONDecodeError as error:
            raise JSONDecodeError(error.msg, error.doc, error.pos, response=self) from error

    def iter_content(self, chunk_size: int | None = 1, decode_unicode: bool = False) -> Iterator[Any]:
        """Yields the body in pieces of at most ``chunk_size`` bytes; with ``None``, as they arrive.

        A chunked body is yielded chunk by chunk.

        :raises StreamConsumedError: the body was read already, and not stored."""
        if self._content_consumed and isinstance(self._content, bool):
            raise StreamConsumedError("The content for this response was already consumed")
        if chunk_size is not None and not isinstance(chunk_size, int):
            raise TypeError(f"chunk_size must be an int, it is instead a {type(chunk_size)}.")
        if chunk_size is not None and chunk_size < 0:
            chunk_size = None
        pieces = self._slices(chunk_size) if self._content_consumed else self._pieces(chunk_size)
        return _decoded(pieces, self.encoding) if decode_unicode else pieces

    def _slices(self, size: int | None) -> Iterator[bytes]:
        content = self._content or b""
        size = size or len(content)
        for at in range(0, len(content), size or 1):
            yield content[at : at + size]

    def _pieces(self, size: int | None) -> Iterator[bytes]:
        stream = self._stream
        try:
            if stream is not None:
                while piece := stream.piece(size or None, True):
                    yield piece
            elif self.raw is not None:
                # The body is from an adapter of another library.
                if hasattr(self.raw, "stream"):
                    yield from self.raw.stream(size, decode_content=True)
                else:
                    while piece := self.raw.read(size):
                        yield piece
        except EngineError as failure:
            error = _stream_error(failure, self._request_or_none())
            self._tell_end(error)
            raise error from None
        self._content_consumed = True
        self._tell_end()

    def _tell_end(self, error: BaseException | None = None) -> None:
        """Tells the hooks of the session that a streamed body was read to its end, or given up."""
        observation, self._observation = self._observation, None
        if observation is not None:
            observation.tell("done", self.request, self, error)

    def _request_or_none(self) -> Any:
        return self.request

    def iter_lines(
        self, chunk_size: int = ITER_CHUNK_SIZE, decode_unicode: bool = False, delimiter: Any = None
    ) -> Iterator[Any]:
        """Yields the lines of the body, as ``splitlines`` or ``split(delimiter)`` would split the whole
        body."""
        from ._line_splitter import LineSplitter

        lines = LineSplitter(delimiter)
        for piece in self.iter_content(chunk_size, decode_unicode):
            yield from lines.push(piece)
        yield from lines.end()

    @property
    def links(self) -> dict[str, dict[str, str]]:
        """The Link header (RFC 8288), by relation or URL."""
        header = self.headers.get("link")
        found = {}
        for link in _parse_links(header) if header else []:
            found[link.get("rel") or link["url"]] = link
        return found

    def raise_for_status(self) -> None:
        """Raises an exception for an error status.

        :raises HTTPError: the status is 400 to 599."""
        status = self.status_code or 0
        if not 400 <= status < 600:
            return
        reason = self.reason
        if isinstance(reason, bytes):
            try:
                reason = reason.decode("utf-8")
            except UnicodeDecodeError:
                reason = reason.decode("latin-1")
        whose = "Client" if status < 500 else "Server"
        raise HTTPError(f"{status} {whose} Error: {reason} for url: {self._shown_url()}", response=self)

    def _shown_url(self) -> Any:
        """Returns the URL for a message, which may go to a log: without user and password."""
        url = self.url
        if not isinstance(url, str) or "@" not in url:
            return url
        from ._redirects import without_user

        return without_user(url)

    def close(self) -> None:
        """Returns the connection to the pool if the body was read to its end; otherwise closes it.
        """
        self._tell_end()
        if self._stream is not None:
            self.raw.close()
        elif not self._content_consumed:
            raw = self.__dict__.get("raw")
            if raw is not None and hasattr(raw, "close"):
                raw.close()


class _DiscardedBody:
    """The pieces of a redirect's body, up to :data:`MAX_DISCARDED_BYTES`."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._left = MAX_DISCARDED_BYTES

    def add(self, piece: bytes) -> bool:
        """Adds a piece. Returns whether the limit allowed it."""
        self._pieces.append(piece)
        self._left -= len(piece)
        return self._left >= 0

    def joined(self) -> bytes:
        return b"".join(self._pieces)


def response_from(kind: type[_Response], reply: ReceivedResponse, call: Call | None, stream: Any = None) -> _Response:
    """Builds a response from that of the engine.

    (A class method would cost more for each response.)"""
    response = _new(kind)
    response._reply = reply
    response._call = call
    response.status_code = reply.status
    if stream is None:
        response._content = reply.body
        response._content_consumed = True
    else:
        response._stream = stream
    return response


def _stream_error(failure: Exception, request: Any) -> Exception:
    if failure.args[0] == "Timeout":
        # requests raises a ReadTimeout before the head, and a ConnectionError after it.
        return ConnectionError(failure.args[1], request=request)
    return from_engine_error(failure, request)


def encoding_of(content_type: str | None) -> str | None:
    """Returns the encoding that requests takes for a Content-Type; ``None`` for none."""
    if not content_type:
        return None
    kind, *parameters = content_type.split(";")
    found = None
    for parameter in parameters:
        name, equals, value = parameter.strip().partition("=")
        if equals and name.strip("\"' ").lower() == "charset":
            # The last charset wins, even if it is empty, as in requests.
            found = value.strip("\"' ")
    if found is not None:
        return found
    if "text" in kind:
        return "ISO-8859-1"
    return "utf-8" if "application/json" in kind else None


def _decoded(pieces: Iterator[bytes], encoding: str | None) -> Iterator[Any]:
    if encoding is None:
        yield from pieces
        return
    import codecs

    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for piece in pieces:
        text = decoder.decode(piece)
        if text:
            yield text
    text = decoder.decode(b"", final=True)
    if text:
        yield text


def _parse_links(value: str) -> list[dict[str, str]]:
    import re

    links = []
    for part in re.split(r",[ \t]*<", value.strip(" '\"")):
        url, _, parameters = part.partition(";")
        link = {"url": url.strip("<> '\"")}
        for parameter in parameters.split(";"):
            key, equals, text = parameter.partition("=")
            if not equals:
                break
            link[key.strip(" '\"")] = text.strip(" '\"")
        links.append(link)
    return links
