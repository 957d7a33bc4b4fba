"""Sessions: what requests share, and how a request is prepared, sent and redirected.

There are two ways through a session. Most requests take the short one: their arguments are passed to the engine in one call, with a
plan of the session's settings that is built once. What needs a :class:`PreparedRequest` in between (hooks, an ``auth`` that looks at
it, files, streams, redirects) takes the long one, which works as in requests: prepare, send, follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from . import _settings
from ._asked import PreparedRequest, Request, _HooksMixin, default_hooks, dispatch_hook
from ._bodies import FORM, encode_json, encode_query, length_of
from ._haul import ACCEPT_ENCODING, Client, Failure, Plan, __version__, urlencode
from ._redirects import SessionRedirectMixin, rewind
from .cookies import CookieJar, cookiejar_from_dict
from .exceptions import UnrewindableBodyError, from_failure
from .models import Response, answer
from .structures import CaseInsensitiveDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from ._asked import Hooks
    from .models import Call

__all__ = ["DEFAULT_REDIRECT_LIMIT", "Session", "session"]

DEFAULT_REDIRECT_LIMIT = 30
_MOST_PLANS = 64


def default_headers() -> CaseInsensitiveDict:
    """The headers that a session sends by default."""
    return CaseInsensitiveDict(
        {
            "User-Agent": f"haul/{__version__}",
            "Accept-Encoding": ACCEPT_ENCODING,
            "Accept": "*/*",
            "Connection": "keep-alive",
        }
    )


def merge_setting(own: Any, of_session: Any, dict_class: Callable[..., Any] = dict) -> Any:
    """Combines a request's setting with the session's: dicts are merged, and ``None`` in the request's removes a key."""
    if of_session is None:
        return own
    if own is None:
        return of_session
    if not (isinstance(of_session, Mapping) and isinstance(own, Mapping)):
        return own
    merged = dict_class(of_session)
    merged.update(own)
    for key in [key for key, value in merged.items() if value is None]:
        del merged[key]
    return merged


class _Connection:
    """``Response.connection``, with which an ``auth`` that looks at responses sends again. In requests it is the adapter."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def send(self, request: PreparedRequest, stream: bool = False, **settings: Any) -> Response:
        """Sends one request: follows no redirects and calls no hooks."""
        if "Cookie" not in request.headers:
            # The response before it may have set some that this one is to bring.
            header = self._session.cookies.get_cookie_header(request.url)
            if header:
                request.headers["Cookie"] = header
        return self._session._transmit(request, stream, settings)


class Session(SessionRedirectMixin, _HooksMixin):
    """Settings, cookies and warm connections for any number of requests, from any number of threads.

    >>> with Session() as session:                                    # doctest: +SKIP
    ...     session.headers["Authorization"] = "Bearer abc"
    ...     session.get("https://example.com/").status_code
    200
    """

    __attrs__ = ["headers", "cookies", "auth", "proxies", "hooks", "params", "verify", "cert", "adapters", "stream",
                 "trust_env", "max_redirects", "http2"]  # fmt: skip

    def __init__(self) -> None:
        self._client = Client()
        self._plans: dict[Any, Plan] = {}
        self._netrc = _settings.Netrc()
        self._headers = default_headers()
        #: Who asks: a pair is Basic; see :mod:`haul.auth`.
        self.auth: Any = None
        #: Proxies by scheme (``http``, ``https``, ``all``) or by scheme and host (``http://example.com``).
        self.proxies: dict[str, Any] = {}
        #: What is called with each response.
        self.hooks: Hooks = default_hooks()
        #: What goes behind each URL's query.
        self.params: Any = {}
        #: Whether bodies are read piece by piece.
        self.stream = False
        #: Whether certificates are checked; or a file or directory of those that are trusted.
        self.verify: Any = True
        #: The client's certificate: a PEM file, or a pair of it and its key.
        self.cert: Any = None
        #: Most redirects of a request.
        self.max_redirects: int = DEFAULT_REDIRECT_LIMIT
        #: Whether the environment's proxies, certificates and netrc file count.
        self.trust_env = True
        #: Whether HTTP/2 is offered to https servers. requests has no such thing.
        self.http2 = False
        self._cookies = CookieJar()
        #: Other transports, by the beginning of the URLs that go to them.
        self.adapters: dict[str, Any] = {}

    @property
    def _is_overridden(self) -> bool:
        """Whether there is another ``send`` or ``prepare_request``, which then each request goes by: a subclass has one, or a program (a
        test, most often) has put it into the place of ours."""
        # A look into `__dict__` would make each look at an attribute slower from then on.
        return getattr(self.send, "__func__", None) is not _send or type(self).prepare_request is not _prepare_request

    @property
    def headers(self) -> Any:
        """The headers of every request."""
        return self._headers

    @headers.setter
    def headers(self, headers: Any) -> None:
        self._headers = headers if isinstance(headers, CaseInsensitiveDict) else CaseInsensitiveDict(headers or {})
        self._plans.clear()

    @property
    def cookies(self) -> Any:
        """The cookies of all requests. Assigning a dict or another kind of jar copies its cookies."""
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

    # The verbs.

    def get(self, url: Any, **kwargs: Any) -> Response:
        """GET; see :meth:`request`."""
        # Most have none: then no dict of them is taken apart again.
        return self.request("GET", url, **kwargs) if kwargs else self.request("GET", url)

    def options(self, url: Any, **kwargs: Any) -> Response:
        """OPTIONS; see :meth:`request`."""
        return self.request("OPTIONS", url, **kwargs)

    def head(self, url: Any, **kwargs: Any) -> Response:
        """HEAD; see :meth:`request`, but redirects are not followed unless asked for."""
        kwargs.setdefault("allow_redirects", False)
        return self.request("HEAD", url, **kwargs)

    def post(self, url: Any, data: Any = None, json: Any = None, **kwargs: Any) -> Response:
        """POST; see :meth:`request`."""
        if kwargs:
            return self.request("POST", url, data=data, json=json, **kwargs)
        return self.request("POST", url, data=data, json=json)

    def put(self, url: Any, data: Any = None, **kwargs: Any) -> Response:
        """PUT; see :meth:`request`."""
        return self.request("PUT", url, data=data, **kwargs)

    def patch(self, url: Any, data: Any = None, **kwargs: Any) -> Response:
        """PATCH; see :meth:`request`."""
        return self.request("PATCH", url, data=data, **kwargs)

    def delete(self, url: Any, **kwargs: Any) -> Response:
        """DELETE; see :meth:`request`."""
        return self.request("DELETE", url, **kwargs)

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
        :param data: the body: a dict or pairs (a form), text, bytes, a file, or an iterable that is sent while it produces.
        :param json: the body as JSON, if there is no ``data``.
        :param files: a form with files: ``{name: file}``, or ``(filename, content[, type[, headers]])`` instead of a file.
        :param auth: a pair of user and password, or see :mod:`haul.auth`.
        :param timeout: limit in seconds for connecting and for each wait for the server, or a pair of two limits. Default: 300 s for
            connecting, no limit for the server.
        :param allow_redirects: whether redirects are followed.
        :param proxies: added to :attr:`proxies`, and taking precedence.
        :param stream: do not read the body at once, so that it can be read piece by piece; default :attr:`stream`.
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
            call = self._plain(url, timeout)
        if call is None and not (files or hooks or stream or (stream is None and self.stream)):
            call = self._short(method, url, params, data, headers, cookies, auth, timeout, proxies, verify, cert, json)
        if call is None:
            return self._request_long(
                method, url, params, data, headers, cookies, files, auth, timeout, allow_redirects, proxies, hooks,
                stream, verify, cert, json,
            )  # fmt: skip
        plan, verb, _, query, fields, body, jar, cookie = call
        try:
            reply = self._client.send(plan, verb, url, query, fields, body, jar, cookie)
        except Failure as failure:
            raise from_failure(failure, Request(method, url, headers=headers), plan.proxied) from None
        response = answer(Response, reply, call)
        if 300 < (response.status_code or 0) < 400 and reply.location() is not None:
            settings = {"timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies}
            return self._follow(response, allow_redirects, cookies, settings)
        return response

    # The short way.

    def _plain(self, url: Any, timeout: Any) -> Call | None:
        """What :meth:`_short` makes of a GET with no settings of its own but a limit of time, in a session that has few. Most are that, and
        need no more than a look at the session's. None if there is more to it, or no plan yet."""
        jar = self._cookies
        if (
            self.auth
            or self.params
            or self.proxies
            or self.cert
            or self.stream
            or self.adapters
            or self.hooks["response"]
            or self._is_overridden
            or jar._loose
            or type(url) is not str
            or (timeout is not None and type(timeout) is list)
            or (self.trust_env and not _settings.is_silent(self._netrc))
        ):
            return None
        plan = self._plans.get((self._headers._version, timeout, self.verify, self.cert, None, None, self.http2))
        if plan is None:
            return None
        return plan, "GET", url, None, None, None, jar._jar, None

    def _short(
        self, method: Any, url: Any, params: Any, data: Any, headers: Any, cookies: Any, auth: Any, timeout: Any, proxies: Any,
        verify: Any, cert: Any, json: Any,
    ) -> Call | None:  # fmt: skip
        """The arguments of the engine's call; none if the request needs a :class:`PreparedRequest`."""
        auth = auth or self.auth
        if (
            self.adapters
            or self.hooks["response"]
            or self._is_overridden
            or type(url) is not str
            or type(method) is not str
            or not (auth is None or (type(auth) is tuple and len(auth) == 2))
            or not (data is None or type(data) in (dict, str, bytes, list, tuple))
            # A jar's cookies may belong to other hosts.
            or not (cookies is None or type(cookies) is dict)
        ):
            return None
        method = method.upper()
        if self.params:
            params = merge_setting(params, self.params)
        query = encode_query(params) if params else None
        fields: Any = None
        body: Any = None
        kind = None
        if data:
            if type(data) is str or type(data) is bytes:
                body = data
            else:
                body, kind = urlencode(data), FORM
        elif json is not None:
            body, kind = encode_json(json), "application/json"
        elif method != "GET" and method != "HEAD":
            body = b""
        if headers:
            fields = list(headers.items())
        if body:
            fields = self._without_length(fields)
        is_told = self.trust_env and not _settings.is_silent(self._netrc)
        if is_told and auth is None:
            auth = self._netrc.login(url)
        if auth is not None:
            from .auth import basic_value

            fields = [*(fields or ()), ("Authorization", basic_value(*auth))]
        if kind is not None:
            fields = self._with_type(fields, kind)
        jar = self._cookies
        cookie = self._own_cookies(cookies, fields) if cookies or jar._loose else None
        plan = self._plan(url, timeout, verify, cert, proxies, is_told)
        return plan, method, url, query, fields, body, jar._jar, cookie

    def _without_length(self, fields: Any) -> Any:
        """Without a length that the program gives: it is known, and two cannot be sent."""
        if fields is not None:
            fields = [field for field in fields if not _is_named("content-length", field[0])]
        if "content-length" in self._headers._store:
            fields = [*(fields or ()), ("Content-Length", None)]
        return fields

    def _with_type(self, fields: Any, kind: str) -> Any:
        """With the type of a body, unless the program says one; its `None` takes away the session's, and not that of this body."""
        given = [value for name, value in fields or () if _is_named("content-type", name)]
        if any(value is not None for value in given) or (not given and "content-type" in self._headers._store):
            return fields
        return [("Content-Type", kind), *(field for field in fields or () if not _is_named("content-type", field[0]))]

    def _suits_all_urls(self) -> bool:
        """Whether what the short way makes of one URL is the same for all: no proxy and no login depends on which it is."""
        if self.proxies:
            return False
        return not self.trust_env or (_settings.environment() is None and (self.auth is not None or self._netrc.is_empty()))

    # The long way.

    def _request_long(
        self, method: Any, url: Any, params: Any, data: Any, headers: Any, cookies: Any, files: Any, auth: Any, timeout: Any,
        allow_redirects: bool, proxies: Any, hooks: Any, stream: bool | None, verify: Any, cert: Any, json: Any,
    ) -> Response:  # fmt: skip
        request = Request(
            method.upper() if isinstance(method, str) else method,
            url, headers, files, data or {}, params or {}, auth, cookies, hooks, json,
        )  # fmt: skip
        prepared = self.prepare_request(request)
        # Not an argument: a `send` of a subclass' need not know of it.
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
        """Sends a prepared request; the keyword arguments are those of :meth:`request` about sending.

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
        """One hop: the body read unless it is to be streamed, hooks called, cookies kept."""
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
        self._keep_cookies(response)
        changed = dispatch_hook(hooks, response, **{**settings, "stream": stream})
        if changed is not response:
            response = changed
            self._keep_cookies(response)
        if not stream:
            response.content  # noqa: B018 - read now, so that the connection is free
        return response  # type: ignore[no-any-return]

    def _keep_cookies(self, response: Any) -> None:
        reply = getattr(response, "_reply", None)
        if reply is not None:
            reply.cookies_into(self.cookies._jar)
        elif getattr(response, "cookies", None):
            # An adapter gave it. Its hosts need be none for the jar (`http+unix://%2Frun%2Fsocket`), and that is no reason to fail.
            for cookie in response.cookies:
                try:
                    self.cookies.set_cookie(cookie)
                except ValueError:
                    continue

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> dict[str, Any]:
        """The settings of the session and the environment for a request, as keyword arguments for :meth:`send`."""
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
        call = self._long(request, settings)
        try:
            if stream:
                plan, method, url, _, fields, body, _, _ = call
                reply, source = self._client.open(plan, method, url, fields, body, None, True)
                response = answer(Response, reply, None, source)
            else:
                response = answer(Response, self._client.send(*call, None, True), None)
        except Failure as failure:
            if _is_unanswerable(failure, request):
                return self._transmit(request, stream, settings)
            raise from_failure(failure, request, call[0].proxied) from None
        response.request = request
        response.connection = _Connection(self)
        return response

    def _long(
        self, request: PreparedRequest, settings: Mapping[str, Any]
    ) -> Call:
        """The arguments of the engine's call for a request that is prepared."""
        url, method, body = request.url or "", request.method or "GET", request.body
        plan = self._plan(
            url, settings.get("timeout"), settings.get("verify"), settings.get("cert"), settings.get("proxies"),
            self.trust_env, bare=True, digest=request.digest,
        )  # fmt: skip
        headers = request.headers or {}
        if body is None and method not in ("GET", "HEAD") and headers.get("Content-Length") == "0":
            body = b""
        if isinstance(body, (str, bytes)) and "Content-Length" in headers:
            # The program may have put another body into the place of the one that was prepared, as requests' guide does.
            headers["Content-Length"] = str(length_of(body))
        return plan, method, url, None, list(headers.items()), body, None, None

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
                # Nobody has asked to send it.
                response._not_next = error
            return response
        history = [response]
        for answer in hops:
            history.append(answer)  # type: ignore[arg-type]
        last = history.pop()
        last.history = history
        return last

    # What requests share.

    def mount(self, prefix: str, adapter: Any) -> None:
        """Uses another transport for URLs with this prefix: any object with the ``send`` method of requests' adapters."""
        self.adapters[prefix] = adapter
        for name in [name for name in self.adapters if len(name) < len(prefix)]:
            self.adapters[name] = self.adapters.pop(name)

    def _adapter_for(self, url: str) -> Any:
        for prefix, adapter in self.adapters.items():
            if url.lower().startswith(prefix.lower()):
                return adapter
        return None

    def _environment_auth(self, url: str) -> tuple[str, str] | None:
        return self._netrc.login(url) if self.trust_env else None

    def _own_cookies(self, cookies: Any, fields: Any) -> str | None:
        """The cookies that belong to no host: the session's, and over them the request's own."""
        if fields is not None and any(str(name).lower() == "cookie" for name, _ in fields):
            return None
        jar = CookieJar()
        jar._loose.update(self.cookies._loose)
        if cookies:
            jar.update(cookies)
        return jar.loose_header()

    def _plan(
        self, url: str, timeout: Any, verify: Any, cert: Any, proxies: Any, is_told: bool, bare: bool = False, digest: Any = None
    ) -> Plan:  # fmt: skip
        """The plan for these settings, and for the environment's if that has a say: made once, and again when any of them has changed."""
        if verify is None:
            verify = self.verify
        ours = proxy = None
        if is_told:
            ours = _settings.environment()
            if verify is True:
                verify = _settings.environment_bundle() or True
        if proxies or self.proxies or ours is not None:
            # Only a request's own `None` keeps the environment's away, as by requests.
            given = {name: value for name, value in self.proxies.items() if value}
            proxy = _settings.proxy_for(url, {**given, **(proxies or {})}, ours)
        if cert is None:
            cert = self.cert
        if type(cert) is list:
            cert = tuple(cert)
        if type(timeout) is list:
            timeout = tuple(timeout)
        who = None if digest is None else digest.credentials()
        # A bool is an int to a dict, and 1 second is no certificate.
        version = -1 if bare else self._headers._version
        key = (version, timeout, verify, cert, proxy, who, self.http2)
        plan = self._plans.get(key)
        if plan is None:
            connect, read = _settings.limits(timeout)
            settings = _settings.trust(verify, cert, url)
            if who is not None:
                settings["digest"] = who
            try:
                plan = Plan(
                    () if bare else self._headers,
                    proxy=proxy,
                    connect_timeout=connect,
                    read_timeout=read,
                    http2=self.http2,
                    **settings,
                )
            except Failure as failure:
                raise from_failure(failure) from None
            self._keep(key, plan)
        return plan

    def _following(self, plan: Plan, redirects: int | None, jar: Any, proxies: Any = None) -> Plan:
        """The plan with which the engine follows redirects and keeps cookies by itself."""
        key = (plan, redirects, jar, proxies)
        following = self._plans.get(key)
        if following is None:
            following = plan.following(redirects, jar, proxies)
            self._keep(key, following)
        return following

    def _proxies_by_scheme(self) -> Any:
        """Those that redirects go by which the engine follows, where not all go the same way."""
        ours = _settings.environment() if self.trust_env else None
        return None if ours is None and not self.proxies else _settings.proxies_by_scheme(self.proxies, ours)

    def _keep(self, key: Any, plan: Plan) -> None:
        if len(self._plans) >= _MOST_PLANS:
            self._plans.clear()
        self._plans[key] = plan


_send, _prepare_request = Session.send, Session.prepare_request


def _is_named(wanted: str, name: Any) -> bool:
    return (name.decode("latin-1") if isinstance(name, bytes) else name).lower() == wanted


def _is_unanswerable(failure: Failure, request: PreparedRequest) -> bool:
    """Whether the server's challenge cannot be answered. Then the program gets its 401, for which the request goes out without
    credentials."""
    if failure.args[0] != "Auth" or request.digest is None:
        return False
    try:
        rewind(request)
    except UnrewindableBodyError:
        return False
    request.digest = None
    return True


def session() -> Session:
    """A :class:`Session`."""
    return Session()
