"""``Request`` (the arguments of a program), ``PreparedRequest`` (the request to send), and their
hooks."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

from ._request_body import FORM, encode_files, encode_json, encode_query, is_awaited, is_stream, length_of
from ._haul import EngineError, prepare_url, split_url
from .cookies import CookieJar, cookiejar_from_dict
from .exceptions import InvalidURL, MissingSchema, from_engine_error
from .structures import CaseInsensitiveDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._events import Observation

    Hooks = dict[str, list[Callable[..., Any]]]


def default_hooks() -> Hooks:
    """Returns a mapping without hooks."""
    return {"response": []}


def dispatch_hook(hooks: Mapping[str, Any] | None, data: Any, **kwargs: Any) -> Any:
    """Calls the hooks for an event. A value that a hook returns replaces the data."""
    for hook in hooks_of(hooks):
        changed = hook(data, **kwargs)
        if changed is not None:
            data = changed
    return data


def hooks_of(hooks: Mapping[str, Any] | None) -> Any:
    """Returns the hooks for a response."""
    found = (hooks or {}).get("response") or ()
    return [found] if callable(found) else found


class _HooksMixin:
    hooks: Hooks

    def register_hook(self, event: str, hook: Any) -> None:
        """Adds one or several hooks for an event. The only event is ``response``.

        :raises ValueError: the event is unknown."""
        if event not in self.hooks:
            raise ValueError(f'Unsupported event specified, with event name "{event}"')
        if callable(hook):
            self.hooks[event].append(hook)
        elif hasattr(hook, "__iter__"):
            self.hooks[event].extend(one for one in hook if callable(one))

    def deregister_hook(self, event: str, hook: Any) -> bool:
        """Removes a hook. Returns whether it was registered."""
        try:
            self.hooks[event].remove(hook)
        except ValueError:
            return False
        return True


class Request(_HooksMixin):
    """The arguments of a request, before a session adds its settings."""

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
        """Prepares the request without the settings of a session."""
        prepared = PreparedRequest()
        prepared.prepare(
            self.method, self.url, self.headers, self.files, self.data, self.params, self.auth, self.cookies, self.hooks, self.json
        )
        return prepared


class PreparedRequest(_HooksMixin):
    """A request with the exact method, URL, headers and body that are sent."""

    def __init__(self) -> None:
        self.method: str | None = None
        self.url: str | None = None
        self.headers: Any = None
        self.body: Any = None
        self.hooks = default_hooks()
        self.digest: Any = None
        self._cookies: CookieJar | None = None
        self._body_position: Any = None
        #: The ``cookies=`` of the request, which are sent to its first origin only.
        self._first_cookies: Any = None
        #: The arguments with which :meth:`haul.Client.build_request` was called and that apply to sending.
        self._send_settings: dict[str, Any] | None = None
        #: True if ``fetch_many`` has prepared the request, so that its cookies are those of the session.
        self._stores_cookies = False
        #: The Cookie field that the jar of the session gave the request.
        self._jar_header: str | None = None
        #: The observation of the call; ``None`` if its events are not reported.
        self._observation: Observation | None = None

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
        """Prepares all parts of the request."""
        self.prepare_method(method)
        self.prepare_url(url, params)
        self.prepare_headers(headers)
        self.prepare_cookies(cookies)
        self.prepare_body(data, files, json)
        self.prepare_auth(auth, url)
        self.prepare_hooks(hooks)

    def __repr__(self) -> str:
        return f"<PreparedRequest [{self.method}]>"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_observation": None}

    def copy(self) -> PreparedRequest:
        """Returns a copy."""
        other = PreparedRequest()
        other.__dict__.update(self.__dict__)
        other.headers = None if self.headers is None else self.headers.copy()
        other._cookies = None if self._cookies is None else self._cookies.copy()
        return other

    def prepare_method(self, method: str | None) -> None:
        """Sets the method, in upper case."""
        self.method = None if method is None else (method.decode("ascii") if isinstance(method, bytes) else method).upper()

    def prepare_url(self, url: Any, params: Any) -> None:
        """Sets the URL, encoded, with ``params`` appended to its query.

        :raises MissingSchema: the URL has no scheme.
        :raises InvalidURL: the URL is malformed."""
        text = url.decode("utf-8") if isinstance(url, bytes) else str(url)
        text = text.lstrip()
        if ":" in text and not text.lower().startswith("http"):
            # URLs of other schemes are left unchanged.
            self.url = text
            return
        try:
            self.url = prepare_url(text, encode_query(params))
        except EngineError as failure:
            if failure.args[0] == "UnsupportedScheme":
                # An adapter may be mounted for the scheme, such as `http+unix://`.
                query = encode_query(params)
                self.url = text if not query else f"{text}{'&' if '?' in text else '?'}{query}"
                return
            error = from_engine_error(failure)
            raise error if isinstance(error, (MissingSchema, InvalidURL)) else InvalidURL(*failure.args[1:2]) from None

    def prepare_headers(self, headers: Any) -> None:
        """Sets the headers, as a case-insensitive dict."""
        self.headers = CaseInsensitiveDict()
        for name, value in (headers or {}).items():
            self.headers[name.decode("ascii") if isinstance(name, bytes) else name] = value

    def prepare_body(self, data: Any, files: Any, json: Any = None) -> None:
        """Sets the body: a form, a file, JSON, or an iterable whose pieces are sent as it produces
        them."""
        body: Any = None
        kind: str | None = None
        if not data and json is not None:
            kind, body = "application/json", encode_json(json)
        if isinstance(data, io.StringIO):
            # StringIO counts characters; the body would be cut off at that number of bytes.
            data = data.read()
        if is_awaited(data):
            raise TypeError(f"a body that is an asynchronous iterable ({type(data).__name__}) is for AsyncSession.request")
        if is_stream(data):
            if files:
                raise NotImplementedError("Streamed bodies and files are mutually exclusive.")
            length = length_of(data)
            self._body_position = _position_of(data)
            body = data
            if length:
                self.headers["Content-Length"] = str(length)
            elif "Content-Length" not in self.headers:
                self.headers["Transfer-Encoding"] = "chunked"
        else:
            if files:
                try:
                    body, kind = encode_files(files, data, self.headers.get("Content-Type"))
                except EngineError as failure:
                    raise from_engine_error(failure) from None
            elif data:
                if isinstance(data, (str, bytes, bytearray)):
                    body = data
                elif hasattr(data, "read"):
                    self._body_position = _position_of(data)
                    body = data
                elif hasattr(data, "__iter__"):
                    from ._haul import urlencode

                    body, kind = urlencode(data), FORM
                else:
                    raise TypeError(f"data has to be a form, bytes, text, a file or an iterable of bytes, not {type(data).__name__}")
            self.prepare_content_length(body)
        if kind and "content-type" not in self.headers:
            self.headers["Content-Type"] = kind
        self.body = body

    def prepare_content_length(self, body: Any) -> None:
        """Sets Content-Length if the length is known. Methods without a body get none."""
        if body is not None:
            length = length_of(body)
            if length:
                self.headers["Content-Length"] = str(length)
        elif self.method not in ("GET", "HEAD") and self.headers.get("Content-Length") is None:
            self.headers["Content-Length"] = "0"

    def prepare_auth(self, auth: Any, url: Any = "") -> None:
        """Applies ``auth``, or else the user and password in the URL."""
        if auth is None and self.url is not None and "@" in self.url:
            try:
                found = split_url(self.url)[3]
            except EngineError:
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
        """Sets the Cookie header, unless the request already has one."""
        jar = cookies if hasattr(cookies, "set_cookie") else cookiejar_from_dict(cookies)
        if not isinstance(jar, CookieJar):
            jar = CookieJar(jar)
        self._cookies = jar
        if len(jar) and self.url is not None and "cookie" not in self.headers:
            header = jar.get_cookie_header(self.url)
            if header is not None:
                self.headers["Cookie"] = header

    def prepare_hooks(self, hooks: Any) -> None:
        """Registers the hooks of a mapping."""
        for event, hook in (hooks or {}).items():
            self.register_hook(event, hook)

    @property
    def path_url(self) -> str:
        """The path and query of the URL."""
        rest = (self.url or "").partition("://")[2].partition("#")[0]
        at = min((index for index in (rest.find("/"), rest.find("?")) if index >= 0), default=len(rest))
        path = rest[at:]
        return path if path.startswith("/") else "/" + path


def _position_of(data: Any) -> Any:
    """Returns the position of a body, to rewind to.

    ``False`` if ``tell`` fails, and ``None`` if there is no ``tell``."""
    if not hasattr(data, "tell"):
        return None
    try:
        return data.tell()
    except OSError:
        return False
