"""Sessions: shared settings, and the preparation, sending and redirecting of requests.

There are two ways through a session. Most requests take the direct one: one call passes their
arguments to the engine, with ``SharedOptions`` that are built once from the session's settings.
Requests that need a :class:`PreparedRequest` (because of hooks, an ``auth`` that reads it, files,
streams or redirects) are prepared, sent and followed as in requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import sleep

from . import _settings
from ._request_objects import PreparedRequest, Request, _HooksMixin, default_hooks, dispatch_hook, hooks_of
from ._engine_calls import EngineCallsMixin
from ._haul import Client, EngineError, SharedOptions
from ._redirects import UNREACHABLE_TARGET, SessionRedirectMixin, rewind
from ._session_parts import (
    RequestMethodsMixin, ResponseConnection, StreamSetting, default_headers, everywhere, merge_setting, wanted_logger,
)  # fmt: skip
from .cookies import CookieJar, cookiejar_from_dict
from .exceptions import UnrewindableBodyError, from_engine_error
from .models import Response, failed_request, response_from
from .structures import CaseInsensitiveDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from ._connect_options import ConnectOptions
    from ._events import Event, EventHooks
    from ._haul import ReceivedResponse
    from ._request_objects import Hooks
    from ._retry_policy import HostHolds, Retry, RetryState
    from ._types import Auth, Body, Cert, Cookies, Files, Headers, HookFunctions, Params, Proxies, TimeLimits, Url, Verify
    from .models import Call

__all__ = ["DEFAULT_REDIRECT_LIMIT", "Session", "session"]

DEFAULT_REDIRECT_LIMIT = 30
_SEND_ARGUMENTS = frozenset({"timeout", "allow_redirects", "proxies", "stream", "verify", "cert"})


class Session(RequestMethodsMixin, EngineCallsMixin, SessionRedirectMixin, _HooksMixin):
    """Settings, cookies and open connections for requests, from any number of threads.

    >>> with Session() as session:                                    # doctest: +SKIP
    ...     session.headers["Authorization"] = "Bearer abc"
    ...     session.get("https://example.com/").status_code
    200
    """

    __attrs__ = ["headers", "cookies", "auth", "proxies", "hooks", "params", "verify", "cert", "adapters", "stream",
                 "trust_env", "max_redirects", "http2", "http3", "timeout", "retries", "max_size", "event_hooks",
                 "connect_options"]  # fmt: skip

    def __init__(self, *, timeout: TimeLimits = None, retries: Retry | int | None = None) -> None:
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
        self._streams = False
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
        #: The ``timeout=`` of requests that have none.
        self.timeout: Any = timeout
        #: The most bytes of a body, as it is sent; a larger one is a :class:`ResponseTooLarge`.
        self.max_size: int | None = None
        self._connect_options: ConnectOptions | None = None
        self._retries: Retry | None = None
        self._holds: HostHolds | None = None
        if retries is not None:
            self.retries = retries
        self._event_hooks: EventHooks | None = None
        self._cookies = CookieJar()
        #: Transport adapters, by URL prefix.
        self.adapters: dict[str, Any] = {}

    def _is_overridden(self) -> bool:
        """Returns whether ``send`` or ``prepare_request`` is overridden, in a subclass or by a mock.

        Then every request has to call it."""
        # Reading `__dict__` would make later attribute accesses slower.
        return getattr(self.send, "__func__", None) is not _send or type(self).prepare_request is not _prepare_request

    @property
    def retries(self) -> Retry | None:
        """The failures and statuses after which a request is sent again; ``None`` for none.

        >>> session = Session(retries=3)
        >>> session.retries = haul.Retry(5, status_forcelist={429})
        """
        return self._retries

    @retries.setter
    def retries(self, retries: Retry | int | None) -> None:
        from ._retry_policy import HostHolds, retry_of

        self._retries = retry_of(retries)
        if self._holds is None:
            self._holds = HostHolds()

    def _retry_state(self) -> RetryState | None:
        """Returns the retries of a request that begins now."""
        if self._retries is None or self._holds is None:
            return None
        from ._retry_policy import RetryState

        return RetryState(self._retries, self._holds)

    @property
    def connect_options(self) -> ConnectOptions | None:
        """The settings for the connections of the session; ``None`` for the defaults.

        >>> session = Session()
        >>> session.connect_options = haul.ConnectOptions(unix_socket="/run/docker.sock")
        """
        return self._connect_options

    @connect_options.setter
    def connect_options(self, options: ConnectOptions | None) -> None:
        if options is not None or self._connect_options is not None:
            self._client.use_dns_servers(",".join(options.dns_servers) if options is not None else "")
        self._connect_options = options

    @property
    def stream(self) -> StreamSetting:
        """True if bodies are read piece by piece. Called with a method and a URL, it sends a request
        whose body is read so."""
        return StreamSetting(self)

    @stream.setter
    def stream(self, streams: bool) -> None:
        self._streams = bool(streams)

    @property
    def event_hooks(self) -> EventHooks:
        """The functions that are called with the :class:`haul.Event` of each step of a call, by the
        step: ``request``, ``connect``, ``tls``, ``head``, ``retry``, ``redirect``, ``done``.

        >>> session = Session()
        >>> session.event_hooks["done"].append(lambda event: print(event.response, event.seconds))

        A hook for ``request`` may change the request. An exception of a hook ends the call."""
        if self._event_hooks is None:
            from ._events import hooks_from

            self._event_hooks = hooks_from(None)
        return self._event_hooks

    @event_hooks.setter
    def event_hooks(self, hooks: Mapping[str, Iterable[Callable[[Event], object]]]) -> None:
        from ._events import hooks_from

        self._event_hooks = hooks_from(hooks)

    def _is_observed(self) -> bool:
        """Returns whether hooks or the logger want to know the steps of a call."""
        hooks = self._event_hooks
        return wanted_logger() is not None or (hooks is not None and any(hooks.values()))

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
        return {**{name: getattr(self, name, None) for name in self.__attrs__}, "stream": self._streams}

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
        method: str,
        url: Url,
        params: Params = None,
        data: Body = None,
        headers: Headers = None,
        cookies: Cookies = None,
        files: Files = None,
        auth: Auth = None,
        timeout: TimeLimits = None,
        allow_redirects: bool = True,
        proxies: Proxies = None,
        hooks: HookFunctions = None,
        stream: bool | None = None,
        verify: Verify = None,
        cert: Cert = None,
        json: object = None,
    ) -> Response:
        """Sends a request and waits for its response.

        >>> session.request("GET", "https://example.com/", timeout=5)       # doctest: +SKIP
        <Response [200]>

        :param params: appended to the query of the URL: a dict, pairs or text.
        :param data: the body: a dict or pairs (a form), text, bytes, a file, or an iterable.
        :param json: the body as JSON, if there is no ``data``.
        :param files: a form with files: ``{name: file}``, or ``(filename, content[, type[, headers]])``
            instead of a file.
        :param auth: a pair of user and password, or see :mod:`haul.auth`.
        :param timeout: limit in seconds for connecting and for each wait for the server, a pair of two
            limits, or a :class:`haul.ClientTimeout`. Default: :attr:`timeout`, otherwise 300 s for
            connecting and no limit for the server.
        :param allow_redirects: whether redirects are followed.
        :param proxies: proxies for this request, which take precedence over :attr:`proxies`.
        :param stream: whether the body is read later, piece by piece; default :attr:`stream`.
        :param verify: like :attr:`verify`.
        :param cert: like :attr:`cert`.
        :raises RequestException: for any failure; see :mod:`haul.exceptions`.
        """
        call = self._cached_call(
            method, url, params, data, headers, cookies, files, auth, timeout, proxies, hooks, stream, verify, cert, json
        )
        if call is None and not (files or hooks or stream or (stream is None and self._streams)):
            call = self._direct_call(method, url, params, data, headers, cookies, auth, timeout, proxies, verify, cert, json)
        if call is None:
            return self._request_prepared(
                method, url, params, data, headers, cookies, files, auth, timeout, allow_redirects, proxies, hooks,
                stream, verify, cert, json,
            )  # fmt: skip
        options, verb, where, query, fields, body, jar, cookie = call
        try:
            if self._retries is None:
                reply = self._client.send(options, verb, where, query, fields, body, jar, cookie)
            else:
                reply = self._send_repeatedly(call)
        except EngineError as failure:
            raise from_engine_error(failure, failed_request(call), options.proxied) from None
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
        """Sends a prepared request. The keyword arguments are ``timeout``, ``allow_redirects``, ``proxies``,
        ``stream``, ``verify`` and ``cert``, as in :meth:`request`.

        :raises TypeError: there is another argument.
        :raises ValueError: the request is not prepared."""
        if not isinstance(request, PreparedRequest):
            raise ValueError("You can only send PreparedRequests.")
        if not kwargs.keys() <= _SEND_ARGUMENTS:
            unknown = ", ".join(sorted(kwargs.keys() - _SEND_ARGUMENTS))
            raise TypeError(f"Session.send() got unexpected keyword arguments: {unknown}")
        if not self._is_observed():
            request._observation = None
            return self._send_and_follow(request, kwargs)
        from ._events import Observation

        observation = request._observation = Observation(self._event_hooks)
        try:
            response = self._send_and_follow(request, kwargs)
        except BaseException as error:
            failed = getattr(error, "request", None)
            observation.tell("done", failed if isinstance(failed, PreparedRequest) else request, None, error)
            raise
        if getattr(response, "_stream", None) is not None and not response._content_consumed:
            response._observation = observation
        else:
            observation.tell("done", response.request, response)
        return response

    def _send_and_follow(self, request: PreparedRequest, settings: dict[str, Any]) -> Response:
        allow_redirects = settings.pop("allow_redirects", True)
        first_cookies = request._first_cookies
        response = self._send_once(request, settings)
        if response.is_redirect:
            return self._follow(response, allow_redirects, first_cookies, settings)
        return response

    def _send_once(self, request: PreparedRequest, settings: dict[str, Any]) -> Response:
        """Sends one request without following redirects, reads its body, calls hooks and stores
        cookies."""
        stream = settings.get("stream")
        stream = self._streams if stream is None else stream
        observation = request._observation
        if observation is not None:
            # A hook may change the URL, on which the adapter depends.
            observation.tell("request", request)
        adapter = self._adapter_for(request.url or "")
        hooks = request.hooks
        if adapter is not None:
            response = adapter.send(request, **self._complete_settings(request.url, stream, settings))
            if observation is not None:
                observation.tell("head", request, response)
        else:
            response = self._transmit(request, stream, settings, is_told=True)
        self._store_cookies(response)
        if hooks_of(hooks):
            changed = dispatch_hook(hooks, response, **self._complete_settings(request.url, stream, settings))
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

    def _complete_settings(self, url: Any, stream: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings for an adapter or a hook: those of a request, else those of the session
        and the environment."""
        timeout, proxies, verify, cert = (settings.get(name) for name in ("timeout", "proxies", "verify", "cert"))
        merged = self.merge_environment_settings(url, proxies, stream, verify, cert)
        return {"timeout": self.timeout if timeout is None else timeout, **merged}

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> dict[str, Any]:
        """Returns the settings of the session and the environment as keyword arguments for
        :meth:`send`."""
        verify = self.verify if verify is None else verify
        proxies = dict(proxies or {})
        if self.trust_env:
            ours = _settings.environment()
            if ours is not None and _settings.is_proxied(url, ours):
                for name, value in ours.proxies.items():
                    proxies.setdefault(name, value)
            if verify is True:
                verify = _settings.environment_bundle() or True
        return {
            "proxies": merge_setting(proxies, self.proxies),
            "stream": merge_setting(stream, self._streams),
            "verify": verify,
            "cert": merge_setting(cert, self.cert),
        }

    def _send_repeatedly(self, call: Call) -> ReceivedResponse:
        """Sends a direct call until it succeeds, or no retry is left."""
        options, method, url, query, fields, body, jar, cookie = call
        state, holds = self._retry_state(), self._holds
        assert state is not None and holds is not None
        while True:
            sleep(holds.wait(url))
            try:
                reply = self._client.send(options, method, url, query, fields, body, jar, cookie)
            except EngineError as failure:
                wait = state.after_failure(failure, method)
                if wait is None:
                    raise
            else:
                wait = state.after_response(reply, method)
                if wait is None:
                    return reply
            sleep(wait)

    def _transmit(
        self, request: PreparedRequest, stream: bool, settings: dict[str, Any], is_told: bool = False
    ) -> Response:
        """Sends a prepared request by the engine, until it succeeds or no retry is left.

        :param is_told: whether the hooks know already that the request is sent."""
        state, observation = self._retry_state(), request._observation
        while True:
            if state is not None and self._holds is not None:
                sleep(self._holds.wait(request.url or ""))
            if observation is not None and not is_told:
                observation.tell("request", request)
            is_told = False
            call = self._prepared_call(request, settings)
            try:
                response, error = self._exchange(call, request, stream), None
            except EngineError as failure:
                if _is_unanswerable(failure, request):
                    continue
                error = from_engine_error(failure, request, call[0].proxied)
                wait = state.after_failure(failure, request.method or "") if state is not None else None
                if wait is None or not _can_be_repeated(request, failure.args[3] == "connect"):
                    raise error from None
            else:
                if observation is not None:
                    observation.tell("head", request, response)
                wait = state.after_response(response._reply, request.method or "") if state is not None else None
                if wait is None or not _can_be_repeated(request):
                    return response
                response.close()
            if observation is not None:
                observation.tell("retry", request, None if error is not None else response, error, wait)
            sleep(wait)

    def _exchange(self, call: Call, request: PreparedRequest, stream: bool) -> Response:
        if stream:
            options, method, url, _, fields, body, _, _ = call
            reply, source = self._client.open(options, method, url, fields, body, None, True)
            response = response_from(Response, reply, None, source)
        else:
            response = response_from(Response, self._client.send(*call, None, True), None)
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
            except UNREACHABLE_TARGET as error:
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
        """Answers requests to URLs with this prefix by a function, or sends them by a transport adapter.

        >>> session.mount("https://api.example/", lambda request: haul.testing.response(json={"id": 1}))
        >>> session.get("https://api.example/items").json()
        {'id': 1}

        :param adapter: a function from a :class:`PreparedRequest` to a :class:`Response`, or an object
            with requests' method ``send``."""
        if not hasattr(adapter, "send"):
            from ._mounts import FunctionAdapter

            adapter = FunctionAdapter(adapter)
        self.adapters[prefix] = adapter
        for name in [name for name in self.adapters if len(name) < len(prefix)]:
            self.adapters[name] = self.adapters.pop(name)

    def _adapter_for(self, url: str) -> Any:
        for adapters in (everywhere, self.adapters) if everywhere else (self.adapters,):
            for prefix, adapter in adapters.items():
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


def _can_be_repeated(request: PreparedRequest, is_unsent: bool = False) -> bool:
    """Rewinds the body for another try. Returns whether that is possible.

    A body of a request that was not sent was not read either."""
    if is_unsent:
        return True
    try:
        rewind(request)
    except UnrewindableBodyError:
        return False
    return True


def session() -> Session:
    """Returns a new :class:`Session`."""
    return Session()
