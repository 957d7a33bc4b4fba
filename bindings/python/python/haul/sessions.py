"""Sessions: shared settings, and the preparation, sending and redirecting of requests.

There are two ways through a session. Most requests take the direct one: one call passes their
arguments to the engine, with ``SharedOptions`` that are built once from the session's settings.
Requests that need a :class:`PreparedRequest` (because of hooks, an ``auth`` that reads it, files,
streams or redirects) are prepared, sent and followed as in requests.
"""

from __future__ import annotations

from . import _settings
from ._request_objects import PreparedRequest, Request, _HooksMixin, default_hooks, dispatch_hook
from ._engine_calls import EngineCallsMixin
from ._haul import Client, EngineError, SharedOptions
from ._redirects import SessionRedirectMixin, rewind
from ._session_parts import RequestMethodsMixin, ResponseConnection, default_headers, merge_setting
from .cookies import CookieJar, cookiejar_from_dict
from .exceptions import UnrewindableBodyError, from_engine_error
from .models import Response, response_from
from .structures import CaseInsensitiveDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from ._request_objects import Hooks

__all__ = ["DEFAULT_REDIRECT_LIMIT", "Session", "session"]

DEFAULT_REDIRECT_LIMIT = 30


class Session(RequestMethodsMixin, EngineCallsMixin, SessionRedirectMixin, _HooksMixin):
    """Settings, cookies and open connections for requests, from any number of threads.

    >>> with Session() as session:                                    # doctest: +SKIP
    ...     session.headers["Authorization"] = "Bearer abc"
    ...     session.get("https://example.com/").status_code
    200
    """

    __attrs__ = ["headers", "cookies", "auth", "proxies", "hooks", "params", "verify", "cert", "adapters", "stream",
                 "trust_env", "max_redirects", "http2", "http3"]  # fmt: skip

    def __init__(self) -> None:
        self._client = Client()
        self._options_cache: dict[Any, SharedOptions] = {}
        self._netrc = _settings.Netrc()
        self._headers = default_headers()
        #: The credentials: a pair of user and password for Basic, or see :mod:`haul.auth`.
        self.auth: Any = None
        #: The proxies by scheme (``http``, ``https``, ``all``), or by scheme and host
        #: (``http://example.com``).
        self.proxies: dict[str, Any] = {}
        #: The functions that are called with each response.
        self.hooks: Hooks = default_hooks()
        #: The parameters that are appended to the query of each URL.
        self.params: Any = {}
        #: True if bodies are read piece by piece.
        self.stream = False
        #: ``True`` to verify certificates; or a file or directory of trusted CA certificates.
        self.verify: Any = True
        #: The client certificate: a PEM file, or a pair of PEM files with certificate and key.
        self.cert: Any = None
        #: The maximum number of redirects of a request.
        self.max_redirects: int = DEFAULT_REDIRECT_LIMIT
        #: True if the proxies, certificates and netrc file of the environment are used.
        self.trust_env = True
        #: True if HTTP/2 is offered to https servers. requests has no such setting.
        self.http2 = False
        #: The use of HTTP/3: ``True`` tries it first, and TCP where it fails; ``"learned"`` uses it
        #: where a server has offered it; ``"only"`` uses nothing else. requests has no such setting.
        self.http3: bool | str = False
        self._cookies = CookieJar()
        #: Transport adapters, by URL prefix.
        self.adapters: dict[str, Any] = {}

    @property
    def _is_overridden(self) -> bool:
        """True if ``send`` or ``prepare_request`` is overridden, in a subclass or by a mock.

        Then every request has to call it."""
        # Reading `__dict__` would make later attribute accesses slower.
        return getattr(self.send, "__func__", None) is not _send or type(self).prepare_request is not _prepare_request

    @property
    def headers(self) -> Any:
        """The headers of all requests."""
        return self._headers

    @headers.setter
    def headers(self, headers: Any) -> None:
        self._headers = headers if isinstance(headers, CaseInsensitiveDict) else CaseInsensitiveDict(headers or {})
        self._options_cache.clear()

    @property
    def cookies(self) -> Any:
        """The cookies of the session.

        Assigning a dict or another kind of jar copies its cookies."""
        return self._cookies

    @cookies.setter
    def cookies(self, cookies: Any) -> None:
        self._cookies = cookies if isinstance(cookies, CookieJar) else CookieJar(cookies)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name, None) for name in self.__attrs__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Session.__init__(self)
        for name, value in state.items():
            setattr(self, name, value)

    def close(self) -> None:
        """Closes idle connections."""
        self._client.close()
        for adapter in self.adapters.values():
            adapter.close()

    def request(
        self,
        method: Any,
        url: Any,
        params: Any = None,
        data: Any = None,
        headers: Any = None,
        cookies: Any = None,
        files: Any = None,
        auth: Any = None,
        timeout: Any = None,
        allow_redirects: bool = True,
        proxies: Any = None,
        hooks: Any = None,
        stream: bool | None = None,
        verify: Any = None,
        cert: Any = None,
        json: Any = None,
    ) -> Response:
        """Sends a request and waits for its response.

        :param params: appended to the query of the URL: a dict, pairs or text.
        :param data: the body: a dict or pairs (a form), text, bytes, a file, or an iterable.
        :param json: the body as JSON, if there is no ``data``.
        :param files: a form with files: ``{name: file}``, or ``(filename, content[, type[, headers]])``
            instead of a file.
        :param auth: a pair of user and password, or see :mod:`haul.auth`.
        :param timeout: limit in seconds for connecting and for each wait for the server, or a pair of
            two limits. Default: 300 s for connecting, no limit for the server.
        :param allow_redirects: whether redirects are followed.
        :param proxies: proxies for this request, which take precedence over :attr:`proxies`.
        :param stream: whether the body is read later, piece by piece; default :attr:`stream`.
        :param verify: like :attr:`verify`.
        :param cert: like :attr:`cert`.
        :raises RequestException: for any failure; see :mod:`haul.exceptions`.
        """
        call = None
        if (
            method == "GET" and params is None and data is None and headers is None and cookies is None and files is None
            and auth is None and proxies is None and hooks is None and stream is None and verify is None and cert is None
            and json is None
        ):  # fmt: skip
            call = self._cached_call(url, timeout)
        if call is None and not (files or hooks or stream or (stream is None and self.stream)):
            call = self._direct_call(method, url, params, data, headers, cookies, auth, timeout, proxies, verify, cert, json)
        if call is None:
            return self._request_prepared(
                method, url, params, data, headers, cookies, files, auth, timeout, allow_redirects, proxies, hooks,
                stream, verify, cert, json,
            )  # fmt: skip
        options, verb, _, query, fields, body, jar, cookie = call
        try:
            reply = self._client.send(options, verb, url, query, fields, body, jar, cookie)
        except EngineError as failure:
            raise from_engine_error(failure, Request(method, url, headers=headers), options.proxied) from None
        response = response_from(Response, reply, call)
        if 300 < (response.status_code or 0) < 400 and reply.location() is not None:
            settings = {"timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies}
            return self._follow(response, allow_redirects, cookies, settings)
        return response

    # Calls with a prepared request, as in requests.

    def _request_prepared(
        self, method: Any, url: Any, params: Any, data: Any, headers: Any, cookies: Any, files: Any, auth: Any, timeout: Any,
        allow_redirects: bool, proxies: Any, hooks: Any, stream: bool | None, verify: Any, cert: Any, json: Any,
    ) -> Response:  # fmt: skip
        request = Request(
            method.upper() if isinstance(method, str) else method,
            url, headers, files, data or {}, params or {}, auth, cookies, hooks, json,
        )  # fmt: skip
        prepared = self.prepare_request(request)
        # Not an argument, because the `send` of a subclass may not accept it.
        prepared._first_cookies = cookies
        return self.send(
            prepared,
            timeout=timeout,
            allow_redirects=allow_redirects,
            proxies=proxies,
            stream=stream,
            verify=verify,
            cert=cert,
        )

    def prepare_request(self, request: Request) -> PreparedRequest:
        """Prepares a request with this session's settings."""
        cookies = request.cookies or {}
        if not hasattr(cookies, "set_cookie"):
            cookies = cookiejar_from_dict(cookies)
        merged = CookieJar(self.cookies)
        merged.update(cookies)
        auth = request.auth or self.auth
        if not auth and request.url is not None:
            auth = self._environment_auth(request.url if isinstance(request.url, str) else str(request.url))
        prepared = PreparedRequest()
        prepared.prepare(
            method=request.method.upper() if request.method else None,
            url=request.url,
            files=request.files,
            data=request.data,
            json=request.json,
            headers=merge_setting(request.headers, self._headers, CaseInsensitiveDict),
            params=merge_setting(request.params, self.params),
            auth=auth,
            cookies=merged,
            hooks=self.hooks if not (request.hooks or {}).get("response") else {**self.hooks, **request.hooks},
        )
        return prepared

    def send(self, request: PreparedRequest, **kwargs: Any) -> Response:
        """Sends a prepared request. Keyword arguments are those of :meth:`request`.

        :raises ValueError: the request is not prepared."""
        if not isinstance(request, PreparedRequest):
            raise ValueError("You can only send PreparedRequests.")
        allow_redirects = kwargs.pop("allow_redirects", True)
        first_cookies = request._first_cookies
        response = self._send_once(request, kwargs)
        if response.is_redirect:
            return self._follow(response, allow_redirects, first_cookies, kwargs)
        return response

    def _send_once(self, request: PreparedRequest, settings: dict[str, Any]) -> Response:
        """Sends one request without following redirects, reads its body, calls hooks and stores
        cookies."""
        stream = settings.get("stream")
        stream = self.stream if stream is None else stream
        url = request.url or ""
        adapter = self._adapter_for(url)
        hooks = request.hooks
        if adapter is not None:
            response = adapter.send(
                request,
                stream=stream,
                timeout=settings.get("timeout"),
                verify=self.verify if settings.get("verify") is None else settings["verify"],
                cert=self.cert if settings.get("cert") is None else settings["cert"],
                proxies=merge_setting(settings.get("proxies"), self.proxies),
            )
        else:
            response = self._transmit(request, stream, settings)
        self._store_cookies(response)
        changed = dispatch_hook(hooks, response, **{**settings, "stream": stream})
        if changed is not response:
            response = changed
            self._store_cookies(response)
        if not stream:
            response.content  # noqa: B018 - reading the body frees the connection
        return response  # type: ignore[no-any-return]

    def _store_cookies(self, response: Any) -> None:
        reply = getattr(response, "_reply", None)
        if reply is not None:
            reply.cookies_into(self.cookies._jar)
        elif getattr(response, "cookies", None):
            # The response is from an adapter. The jar may refuse its host
            # (`http+unix://%2Frun%2Fsocket`).
            for cookie in response.cookies:
                try:
                    self.cookies.set_cookie(cookie)
                except ValueError:
                    continue

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> dict[str, Any]:
        """Returns the settings of the session and the environment as keyword arguments for
        :meth:`send`."""
        verify = self.verify if verify is None else verify
        proxies = dict(proxies or {})
        if self.trust_env:
            ours = _settings.environment()
            if ours is not None and _settings.proxy_for(url, None, ours):
                for name, value in ours.proxies.items():
                    proxies.setdefault(name, value)
            if verify is True:
                verify = _settings.environment_bundle() or True
        return {
            "proxies": merge_setting(proxies, self.proxies),
            "stream": merge_setting(stream, self.stream),
            "verify": verify,
            "cert": merge_setting(cert, self.cert),
        }

    def _transmit(self, request: PreparedRequest, stream: bool, settings: dict[str, Any]) -> Response:
        call = self._prepared_call(request, settings)
        try:
            if stream:
                options, method, url, _, fields, body, _, _ = call
                reply, source = self._client.open(options, method, url, fields, body, None, True)
                response = response_from(Response, reply, None, source)
            else:
                response = response_from(Response, self._client.send(*call, None, True), None)
        except EngineError as failure:
            if _is_unanswerable(failure, request):
                return self._transmit(request, stream, settings)
            raise from_engine_error(failure, request, call[0].proxied) from None
        response.request = request
        response.connection = ResponseConnection(self)
        return response

    def _follow(
        self, response: Response, follow: bool, first_cookies: Any, settings: dict[str, Any]
    ) -> Response:
        hops = self.resolve_redirects(
            response, response.request, yield_requests=not follow, _first_cookies=first_cookies, **settings
        )
        if not follow:
            try:
                response._next = next(hops, None)  # type: ignore[assignment]
            except UnrewindableBodyError as error:
                # The request is not sent unless the program does so.
                response._next_error = error
            return response
        history = [response]
        for hop in hops:
            history.append(hop)  # type: ignore[arg-type]
        last = history.pop()
        last.history = history
        return last

    # Adapters.

    def mount(self, prefix: str, adapter: Any) -> None:
        """Uses a transport adapter for URLs with this prefix: an object with requests' method
        ``send``."""
        self.adapters[prefix] = adapter
        for name in [name for name in self.adapters if len(name) < len(prefix)]:
            self.adapters[name] = self.adapters.pop(name)

    def _adapter_for(self, url: str) -> Any:
        for prefix, adapter in self.adapters.items():
            if url.lower().startswith(prefix.lower()):
                return adapter
        return None


_send, _prepare_request = Session.send, Session.prepare_request


def _is_unanswerable(failure: EngineError, request: PreparedRequest) -> bool:
    """Returns whether the server's challenge cannot be answered.

    Then the request is sent again without credentials, and the program gets the 401."""
    if failure.args[0] != "Auth" or request.digest is None:
        return False
    try:
        rewind(request)
    except UnrewindableBodyError:
        return False
    request.digest = None
    return True


def session() -> Session:
    """Returns a new :class:`Session`."""
    return Session()
