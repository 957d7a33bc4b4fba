"""Requests and responses, with requests' names.

A :class:`Response` takes little when it is made: its headers, cookies, history and the request that it answers are made of what the engine
keeps when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ._bodies import FORM, encode_files, encode_json, encode_query, is_stream, length_of
from ._haul import Failure, prepare_url, split_url
from .cookies import CookieJar, cookiejar_from_dict
from .exceptions import (
    ConnectionError,
    HTTPError,
    InvalidURL,
    JSONDecodeError,
    MissingSchema,
    StreamConsumedError,
    from_failure,
)
from .structures import CaseInsensitiveDict

if TYPE_CHECKING:
    from datetime import timedelta
    from functools import cached_property as lazy

    from ._haul import Plan, Reply
else:

    class lazy:
        """An attribute that is made when it is first asked for. ``functools.cached_property`` takes a lock up to Python 3.11."""

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

Hooks = dict[str, list[Callable[..., Any]]]


def default_hooks() -> Hooks:
    """No hooks."""
    return {"response": []}


def dispatch_hook(hooks: Mapping[str, Any] | None, data: Any, **kwargs: Any) -> Any:
    """Calls the response hooks; what one returns takes the place of what it was called with."""
    found = (hooks or {}).get("response")
    if not found:
        return data
    for hook in [found] if callable(found) else found:
        changed = hook(data, **kwargs)
        if changed is not None:
            data = changed
    return data


class _HooksMixin:
    hooks: Hooks

    def register_hook(self, event: str, hook: Any) -> None:
        """Adds a hook (or several) for an event; ``response`` is the one there is.

        :raises ValueError: there is no such event."""
        if event not in self.hooks:
            raise ValueError(f'Unsupported event specified, with event name "{event}"')
        if callable(hook):
            self.hooks[event].append(hook)
        elif hasattr(hook, "__iter__"):
            self.hooks[event].extend(one for one in hook if callable(one))

    def deregister_hook(self, event: str, hook: Any) -> bool:
        """Removes a hook; whether it was there."""
        try:
            self.hooks[event].remove(hook)
        except ValueError:
            return False
        return True


class Request(_HooksMixin):
    """What a program asks for, before a session's settings are known."""

    def __init__(
        self,
        method: str | None = None,
        url: str | None = None,
        headers: Any = None,
        files: Any = None,
        data: Any = None,
        params: Any = None,
        auth: Any = None,
        cookies: Any = None,
        hooks: Any = None,
        json: Any = None,
    ) -> None:
        self.method = method
        self.url = url
        self.headers = {} if headers is None else headers
        self.files = [] if files is None else files
        self.data = [] if data is None else data
        self.json = json
        self.params = {} if params is None else params
        self.auth = auth
        self.cookies = cookies
        self.hooks = default_hooks()
        for event, hook in (hooks or {}).items():
            self.register_hook(event, hook)

    def __repr__(self) -> str:
        return f"<Request [{self.method}]>"

    def prepare(self) -> PreparedRequest:
        """Ready to be sent, without any session's settings."""
        prepared = PreparedRequest()
        prepared.prepare(
            self.method, self.url, self.headers, self.files, self.data, self.params, self.auth, self.cookies, self.hooks, self.json
        )
        return prepared


class PreparedRequest(_HooksMixin):
    """A request as it will go out."""

    def __init__(self) -> None:
        self.method: str | None = None
        self.url: str | None = None
        self.headers: Any = None
        self.body: Any = None
        self.hooks = default_hooks()
        self.digest: Any = None
        self._cookies: CookieJar | None = None
        self._body_position: Any = None

    def prepare(
        self,
        method: str | None = None,
        url: Any = None,
        headers: Any = None,
        files: Any = None,
        data: Any = None,
        params: Any = None,
        auth: Any = None,
        cookies: Any = None,
        hooks: Any = None,
        json: Any = None,
    ) -> None:
        """Makes all of it."""
        self.prepare_method(method)
        self.prepare_url(url, params)
        self.prepare_headers(headers)
        self.prepare_cookies(cookies)
        self.prepare_body(data, files, json)
        self.prepare_auth(auth, url)
        self.prepare_hooks(hooks)

    def __repr__(self) -> str:
        return f"<PreparedRequest [{self.method}]>"

    def copy(self) -> PreparedRequest:
        """Another one, equal."""
        other = PreparedRequest()
        other.__dict__.update(self.__dict__)
        other.headers = None if self.headers is None else self.headers.copy()
        other._cookies = None if self._cookies is None else self._cookies.copy()
        return other

    def prepare_method(self, method: str | None) -> None:
        """In capitals."""
        self.method = None if method is None else (method.decode("ascii") if isinstance(method, bytes) else method).upper()

    def prepare_url(self, url: Any, params: Any) -> None:
        """Encoded, with ``params`` behind its query.

        :raises MissingSchema: it has no scheme.
        :raises InvalidURL: it cannot be understood."""
        text = url.decode("utf-8") if isinstance(url, bytes) else str(url)
        text = text.lstrip()
        if ":" in text and not text.lower().startswith("http"):
            # Some other scheme: not ours to change.
            self.url = text
            return
        try:
            self.url = prepare_url(text, encode_query(params))
        except Failure as failure:
            if failure.args[0] == "UnsupportedScheme":
                # An adapter may be mounted for it: `http+unix://`.
                query = encode_query(params)
                self.url = text if not query else f"{text}{'&' if '?' in text else '?'}{query}"
                return
            error = from_failure(failure)
            raise error if isinstance(error, (MissingSchema, InvalidURL)) else InvalidURL(*failure.args[1:2]) from None

    def prepare_headers(self, headers: Any) -> None:
        """In a dict that does not care for case."""
        self.headers = CaseInsensitiveDict()
        for name, value in (headers or {}).items():
            self.headers[name.decode("ascii") if isinstance(name, bytes) else name] = value

    def prepare_body(self, data: Any, files: Any, json: Any = None) -> None:
        """A form, a file, JSON, or what is produced while it is sent."""
        body: Any = None
        kind: str | None = None
        if not data and json is not None:
            kind, body = "application/json", encode_json(json)
        if is_stream(data):
            if files:
                raise NotImplementedError("Streamed bodies and files are mutually exclusive.")
            length = length_of(data)
            if hasattr(data, "tell"):
                try:
                    self._body_position = data.tell()
                except OSError:
                    self._body_position = False
            body = data
            if length:
                self.headers["Content-Length"] = str(length)
            else:
                self.headers["Transfer-Encoding"] = "chunked"
        else:
            if files:
                body, kind = encode_files(files, data)
            elif data:
                if isinstance(data, (str, bytes, bytearray)):
                    body = data
                elif hasattr(data, "read"):
                    body = data
                else:
                    from ._haul import urlencode

                    body, kind = urlencode(data), FORM
            self.prepare_content_length(body)
        if kind and "content-type" not in self.headers:
            self.headers["Content-Type"] = kind
        self.body = body

    def prepare_content_length(self, body: Any) -> None:
        """Content-Length where the length is known; none for a method that has no body by nature."""
        if body is not None:
            length = length_of(body)
            if length:
                self.headers["Content-Length"] = str(length)
        elif self.method not in ("GET", "HEAD") and self.headers.get("Content-Length") is None:
            self.headers["Content-Length"] = "0"

    def prepare_auth(self, auth: Any, url: Any = "") -> None:
        """By ``auth``, or by what the URL says."""
        if auth is None and self.url is not None and "@" in self.url:
            try:
                found = split_url(self.url)[3]
            except Failure:
                found = None
            auth = found if found and any(found) else None
        if not auth:
            return
        if isinstance(auth, tuple) and len(auth) == 2:
            from .auth import HTTPBasicAuth

            auth = HTTPBasicAuth(*auth)
        changed = auth(self)
        self.__dict__.update(changed.__dict__)
        self.prepare_content_length(self.body) if not is_stream(self.body) else None

    def prepare_cookies(self, cookies: Any) -> None:
        """The Cookie header, unless there is one."""
        jar = cookies if hasattr(cookies, "set_cookie") else cookiejar_from_dict(cookies)
        if not isinstance(jar, CookieJar):
            jar = CookieJar(jar)
        self._cookies = jar
        if len(jar) and self.url is not None and "cookie" not in self.headers:
            header = jar.get_cookie_header(self.url)
            if header is not None:
                self.headers["Cookie"] = header

    def prepare_hooks(self, hooks: Any) -> None:
        """Those of a mapping."""
        for event, hook in (hooks or {}).items():
            self.register_hook(event, hook)

    @property
    def path_url(self) -> str:
        """Path and query."""
        rest = (self.url or "").partition("://")[2].partition("#")[0]
        at = min((place for place in (rest.find("/"), rest.find("?")) if place >= 0), default=len(rest))
        path = rest[at:]
        return path if path.startswith("/") else "/" + path


class Sent:
    """What was sent, for a :class:`PreparedRequest` to be made of when a program looks at it."""

    __slots__ = ("method", "plan", "fields", "body")

    def __init__(self, method: str, plan: Plan, fields: Any, body: Any) -> None:
        self.method = method
        self.plan = plan
        self.fields = fields
        self.body = body

    def prepared(self, reply: Reply) -> PreparedRequest:
        """That."""
        request = PreparedRequest()
        request.method = self.method
        request.url = reply.url
        request.headers = CaseInsensitiveDict(self.plan.fields())
        for name, value in self.fields or ():
            name = name.decode("latin-1") if isinstance(name, bytes) else name
            if value is None:
                request.headers.pop(name, None)
            else:
                request.headers[name] = value
        if reply.sent_cookie is not None and "cookie" not in request.headers:
            request.headers["Cookie"] = reply.sent_cookie
        if self.body is not None and "content-length" not in request.headers:
            request.headers["Content-Length"] = str(length_of(self.body) or 0)
        request.body = self.body or None
        request._cookies = CookieJar()
        return request


class Response:
    """What a server answered."""

    __attrs__ = ["_content", "status_code", "url", "headers", "history", "encoding", "reason", "cookies", "elapsed", "request"]

    status_code: int | None = None
    connection: Any = None
    _reply: Any = None
    _sent: Sent | None = None
    _stream: Any = None
    _content: Any = False
    _content_consumed = False
    _next: PreparedRequest | None = None

    def __init__(self) -> None:
        self._content = False

    @classmethod
    def _of(cls, reply: Reply, sent: Sent | None, stream: Any = None) -> Response:
        self = cls.__new__(cls)
        self._reply = reply
        self._sent = sent
        self.status_code = reply.status
        if stream is None:
            self._content = reply.body
            self._content_consumed = True
        else:
            self._stream = stream
        return self

    @lazy
    def headers(self) -> CaseInsensitiveDict:
        """Its fields; those of one name joined by commas, as RFC 9110 section 5.3 allows."""
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

    @lazy
    def url(self) -> Any:
        """Where it came from: the last URL, if redirects were followed."""
        return None if self._reply is None else self._reply.url

    @lazy
    def reason(self) -> Any:
        """The text that came with the status."""
        return None if self._reply is None else self._reply.reason

    @lazy
    def encoding(self) -> Any:
        """What :attr:`text` is decoded by, as the Content-Type says; to be set by who knows better."""
        if self._reply is not None:
            kind = self._reply.get("content-type")
        else:
            kind = self.headers.get("content-type")
        return _encoding_of(kind)

    @lazy
    def cookies(self) -> CookieJar:
        """The cookies that it set."""
        jar = CookieJar()
        if self._reply is not None:
            self._reply.cookies_into(jar._jar)
        return jar

    @lazy
    def elapsed(self) -> timedelta:
        """From the call to the response's first byte."""
        from datetime import timedelta

        return timedelta(seconds=0.0 if self._reply is None else self._reply.elapsed)

    @lazy
    def history(self) -> list[Response]:
        """The redirects that led here, oldest first."""
        return []

    @lazy
    def request(self) -> Any:
        """What it answers."""
        return None if self._sent is None else self._sent.prepared(self._reply)

    @lazy
    def raw(self) -> Any:
        """The body as a file; undecoded unless asked otherwise, if the response is streamed."""
        if self._reply is None:
            return None
        from ._raw import RawBody

        return RawBody(self._reply, self._stream)

    def __enter__(self) -> Response:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Response [{self.status_code}]>"

    def __bool__(self) -> bool:
        return self.ok

    def __iter__(self) -> Iterator[bytes]:
        return self.iter_content(128)

    def __getstate__(self) -> dict[str, Any]:
        if not self._content_consumed:
            self.content  # noqa: B018 - what is kept is whole
        return {name: getattr(self, name, None) for name in self.__attrs__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._content_consumed = True
        self.raw = None

    @property
    def ok(self) -> bool:
        """Whether the status is below 400."""
        return not 400 <= (self.status_code or 0) < 600

    @property
    def is_redirect(self) -> bool:
        """Whether it leads elsewhere."""
        return self.status_code in REDIRECT_STATI and "location" in self.headers

    @property
    def is_permanent_redirect(self) -> bool:
        """Whether it leads elsewhere for good."""
        return self.status_code in (301, 308) and "location" in self.headers

    @property
    def next(self) -> PreparedRequest | None:
        """The request that would follow, where redirects are not followed."""
        return self._next

    @property
    def apparent_encoding(self) -> str:
        """A guess from the content: UTF-8 if it is that, which hardly anything else happens to be; else by ``charset_normalizer`` or
        ``chardet`` where one is installed."""
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

    @property
    def text(self) -> str:
        """The body as text."""
        content = self.content
        if not content:
            return ""
        encoding = self.encoding or self.apparent_encoding
        try:
            return str(content, encoding, errors="replace")
        except (LookupError, TypeError):
            return str(content, errors="replace")

    def json(self, **kwargs: Any) -> Any:
        """The body as JSON gives it.

        :raises JSONDecodeError: it is none."""
        import json

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
        """The body in pieces of at most so many bytes; ``None`` gives them as they come.

        :raises StreamConsumedError: it was read already, and not kept."""
        if self._content_consumed and isinstance(self._content, bool):
            raise StreamConsumedError("The content for this response was already consumed")
        if chunk_size is not None and not isinstance(chunk_size, int):
            raise TypeError(f"chunk_size must be an int, it is instead a {type(chunk_size)}.")
        pieces = self._slices(chunk_size) if self._content_consumed else self._pieces(chunk_size)
        return _decoded(pieces, self.encoding) if decode_unicode else pieces

    def _slices(self, size: int | None) -> Iterator[bytes]:
        content = self._content or b""
        size = len(content) if not size or size < 0 else size
        for at in range(0, len(content), size or 1):
            yield content[at : at + size]

    def _pieces(self, size: int | None) -> Iterator[bytes]:
        stream = self._stream
        try:
            if stream is not None:
                while True:
                    piece = stream.read(size, True) if size else stream.read_some(True)
                    if not piece:
                        break
                    yield piece
            elif self.raw is not None:
                # A body that an adapter of somebody else's gave.
                if hasattr(self.raw, "stream"):
                    yield from self.raw.stream(size, decode_content=True)
                else:
                    while piece := self.raw.read(size):
                        yield piece
        except Failure as failure:
            raise _stream_error(failure, self._request_or_none()) from None
        self._content_consumed = True

    def _request_or_none(self) -> Any:
        return self.request

    def iter_lines(
        self, chunk_size: int = ITER_CHUNK_SIZE, decode_unicode: bool = False, delimiter: Any = None
    ) -> Iterator[Any]:
        """The body line by line."""
        pending: Any = None
        for chunk in self.iter_content(chunk_size, decode_unicode):
            if pending is not None:
                chunk = pending + chunk
            lines = chunk.split(delimiter) if delimiter else chunk.splitlines()
            # The last one may go on in the next piece.
            pending = lines.pop() if lines and lines[-1] and chunk and lines[-1][-1:] == chunk[-1:] else None
            yield from lines
        if pending is not None:
            yield pending

    @property
    def links(self) -> dict[str, dict[str, str]]:
        """The Link header (RFC 8288), by relation or URL."""
        header = self.headers.get("link")
        found = {}
        for link in _parse_links(header) if header else []:
            found[link.get("rel") or link["url"]] = link
        return found

    def raise_for_status(self) -> None:
        """:raises HTTPError: the status is 400 or above."""
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
        raise HTTPError(f"{status} {whose} Error: {reason} for url: {self.url}", response=self)

    def close(self) -> None:
        """Gives the connection back, if the body was read to its end; else closes it."""
        if self._stream is not None:
            self.raw.close()
        elif not self._content_consumed:
            raw = self.__dict__.get("raw")
            if raw is not None and hasattr(raw, "close"):
                raw.close()


def _stream_error(failure: Exception, request: Any) -> Exception:
    if failure.args[0] == "Timeout":
        # requests has a ReadTimeout before the head, and a ConnectionError behind it.
        return ConnectionError(failure.args[1], request=request)
    return from_failure(failure, request)


def _encoding_of(content_type: str | None) -> str | None:
    if not content_type:
        return None
    kind, _, parameters = content_type.partition(";")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("'\"")
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
    links = []
    for part in value.strip(" '\"").split(", <"):
        url, _, parameters = part.partition(";")
        link = {"url": url.strip("<> '\"")}
        for parameter in parameters.split(";"):
            key, equals, text = parameter.partition("=")
            if not equals:
                break
            link[key.strip(" '\"")] = text.strip(" '\"")
        links.append(link)
    return links
