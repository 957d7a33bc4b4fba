"""The calls of the engine that a session makes: their arguments, and the options that they share."""

from __future__ import annotations

from collections.abc import Mapping

from . import _settings
from ._request_objects import PreparedRequest
from ._request_body import FORM, encode_json, encode_query, length_of
from ._haul import EngineError, SharedOptions, urlencode
from ._session_parts import everywhere, merge_setting, wanted_logger
from .cookies import CookieJar
from .exceptions import from_engine_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._connect_options import ConnectOptions
    from ._events import EventHooks
    from ._request_objects import Hooks
    from .cookies import Cookie
    from .models import Call

_MAX_CACHED_OPTIONS = 64


class EngineCallsMixin:
    """The methods of :class:`haul.Session` that convert a request to a call of the engine."""

    if TYPE_CHECKING:
        auth: Any
        proxies: dict[str, Any]
        hooks: Hooks
        params: Any
        _streams: bool
        verify: Any
        cert: Any
        trust_env: bool
        http2: bool
        http3: bool | str
        timeout: Any
        max_size: int | None
        _connect_options: ConnectOptions | None
        adapters: dict[str, Any]
        cookies: Any
        _event_hooks: EventHooks | None
        _cookies: CookieJar
        _headers: Any
        _netrc: _settings.Netrc
        _options_cache: dict[Any, SharedOptions]

        def _is_overridden(self) -> bool: ...
        def _is_observed(self) -> bool: ...

    def _cached_call(
        self, method: Any, url: Any, params: Any, data: Any, headers: Any, cookies: Any, files: Any, auth: Any, timeout: Any,
        proxies: Any, hooks: Any, stream: Any, verify: Any, cert: Any, json: Any,
    ) -> Call | None:  # fmt: skip
        """Returns the arguments of the engine's call for a plain GET with cached options.

        A fast path of :meth:`_direct_call`. Returns None for any other request, if the session has
        settings that need more work, or if the cache has no options for it."""
        if not (
            method == "GET" and params is None and data is None and headers is None and cookies is None and files is None
            and auth is None and proxies is None and hooks is None and stream is None and verify is None and cert is None
            and json is None
        ):  # fmt: skip
            return None
        jar = self._cookies
        if timeout is None:
            timeout = self.timeout
        if (
            wanted_logger() is not None
            or self._event_hooks is not None
            or self.auth
            or self.params
            or self.proxies
            or self.cert is not None
            or self._streams
            or self.adapters
            or everywhere
            or self.hooks.get("response")
            or self._is_overridden()
            or jar._domainless
            or type(url) is not str
            or (timeout is not None and type(timeout) is list)
            or (self.trust_env and not _settings.environment_is_empty(self._netrc))
        ):
            return None
        options = self._cached_plain_options(timeout)
        if options is None:
            return None
        return options, "GET", url, None, None, None, jar._jar, None

    def _cached_plain_options(self, timeout: Any) -> SharedOptions | None:
        """Returns the cached options of a request without settings besides those of the session and
        a timeout; None if there are none. The key is that of :meth:`_shared_options`."""
        verify = self.verify
        if verify is not True:
            verify = _settings.verify_key(verify)
        try:
            return self._options_cache.get(
                (
                    self._headers._version, timeout, verify, None, None, None, self.http2, self.http3, self.max_size,
                    self._connect_options,
                )
            )  # fmt: skip
        except TypeError:
            # A setting cannot be hashed, such as a timeout that is a dict.
            _settings.time_limits(timeout)
            raise

    def _direct_call(
        self, method: Any, url: Any, params: Any, data: Any, headers: Any, cookies: Any, auth: Any, timeout: Any, proxies: Any,
        verify: Any, cert: Any, json: Any,
    ) -> Call | None:  # fmt: skip
        """Returns the arguments of the engine's call; None if a :class:`PreparedRequest` is needed.
        """
        auth = auth or self.auth
        if (
            self._is_observed()
            or self.adapters
            or everywhere
            or self.hooks.get("response")
            or self._is_overridden()
            or type(url) is not str
            or type(method) is not str
            or not (auth is None or (type(auth) is tuple and len(auth) == 2))
            or not (data is None or type(data) in (dict, str, bytes, list, tuple))
            # The cookies of a jar may belong to other hosts.
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
        use_environment = self.trust_env and not _settings.environment_is_empty(self._netrc)
        if use_environment and auth is None:
            auth = self._netrc.login(url)
        if auth is not None:
            from .auth import basic_value

            fields = [*(fields or ()), ("Authorization", basic_value(*auth))]
        if kind is not None:
            fields = self._with_type(fields, kind)
        jar = self._cookies
        cookie = self._own_cookies(url, cookies, fields) if cookies or jar._domainless else None
        options = None
        if not (
            use_environment
            or proxies
            or self.proxies
            or verify is not None
            or cert is not None
            or self.cert is not None
            or timeout is not None
            or type(self.timeout) is list
        ):
            options = self._cached_plain_options(self.timeout)
        if options is None:
            options = self._shared_options(url, timeout, verify, cert, proxies, use_environment)
        return options, method, url, query, fields, body, jar._jar, cookie

    def _without_length(self, fields: Any) -> Any:
        """Removes a Content-Length that the program has set: the engine adds the length of the
        body."""
        if fields is not None:
            fields = [field for field in fields if not _has_name("content-length", field[0])]
        if "content-length" in self._headers._store:
            fields = [*(fields or ()), ("Content-Length", None)]
        return fields

    def _with_type(self, fields: Any, kind: str) -> Any:
        """Adds the Content-Type of a body, unless the request or the session has one.

        A ``None`` of the request removes the session's type only."""
        if not fields and "content-type" not in self._headers._store:
            return [("Content-Type", kind)]
        given = [value for name, value in fields or () if _has_name("content-type", name)]
        if any(value is not None for value in given) or (not given and "content-type" in self._headers._store):
            return fields
        return [("Content-Type", kind), *(field for field in fields or () if not _has_name("content-type", field[0]))]

    def _suits_all_urls(self) -> bool:
        """Returns whether no proxy, no login and no cookie without a domain depends on the URL, so that all URLs can share
        arguments."""
        if self.proxies or any(map(_depends_on_url, self._cookies._domainless.values())):
            return False
        return not self.trust_env or (_settings.environment() is None and (self.auth is not None or self._netrc.is_empty()))

    def _prepared_call(
        self, request: PreparedRequest, settings: Mapping[str, Any]
    ) -> Call:
        """Returns the arguments of the engine's call for a prepared request."""
        url, method, body = request.url or "", request.method or "GET", request.body
        options = self._shared_options(
            url, settings.get("timeout"), settings.get("verify"), settings.get("cert"), settings.get("proxies"),
            self.trust_env, bare=True, digest=request.digest,
        )  # fmt: skip
        headers = request.headers or {}
        if body is None and method not in ("GET", "HEAD") and headers.get("Content-Length") == "0":
            body = b""
        if isinstance(body, (str, bytes)) and "Content-Length" in headers:
            # The program may have replaced the prepared body, as the guide of requests shows.
            headers["Content-Length"] = str(length_of(body))
        return options, method, url, None, list(headers.items()), body, None, None

    def _environment_auth(self, url: str) -> tuple[str, str] | None:
        return self._netrc.login(url) if self.trust_env else None

    def _own_cookies(self, url: str, cookies: Any, fields: Any) -> str | None:
        """Returns the Cookie field for cookies without a domain, of the session and of the request.

        A Cookie field that the program has set replaces it. A ``None`` of the request removes that of
        the session."""
        given = [value for name, value in fields or () if _has_name("cookie", name)]
        if any(value is not None for value in given) or (not given and "cookie" in self._headers._store):
            return None
        jar = CookieJar()
        jar._domainless.update(self.cookies._domainless)
        if cookies:
            jar.update(cookies)
        return jar.domainless_header(url)

    def _shared_options(
        self, url: str, timeout: Any, verify: Any, cert: Any, proxies: Any, use_environment: bool, bare: bool = False, digest: Any = None
    ) -> SharedOptions:  # fmt: skip
        """Returns the options for these settings and, if ``use_environment``, the environment's.

        Options are cached until a setting changes."""
        if verify is None:
            verify = self.verify
        ours = proxy = None
        if use_environment:
            ours = _settings.environment()
            if verify is True:
                verify = _settings.environment_bundle() or True
        if proxies or self.proxies or ours is not None:
            # Only `None` in the request's own proxies overrides the environment, as in requests.
            given = {name: value for name, value in self.proxies.items() if value}
            try:
                proxy = _settings.proxy_for(url, {**given, **(proxies or {})}, ours)
            except EngineError as failure:
                raise from_engine_error(failure) from None
        if cert is None:
            cert = self.cert
        if type(cert) is list:
            cert = tuple(cert)
        if timeout is None:
            timeout = self.timeout
        if type(timeout) is list:
            timeout = tuple(timeout)
        credentials = None if digest is None else digest.credentials()
        # Each setting has its own place in the key, since True == 1.
        headers = self._headers
        version = -1 if bare else headers._version
        key = (
            version, timeout, verify if verify is True else _settings.verify_key(verify), cert, proxy, credentials, self.http2, self.http3, self.max_size, self._connect_options,
        )  # fmt: skip
        try:
            options = self._options_cache.get(key)
        except TypeError:
            # A setting cannot be hashed, such as a timeout that is a dict.
            _settings.time_limits(timeout)
            raise
        if options is None:
            settings = _settings.tls_options(verify, cert, url)
            if self._connect_options is not None:
                settings.update(self._connect_options.settings())
            if credentials is not None:
                settings["digest"] = credentials
            try:
                options = SharedOptions(
                    # A copy, since another thread may change the headers meanwhile.
                    () if bare else list(headers._store.values()),
                    proxy=proxy,
                    max_size=self.max_size,
                    http2=self.http2,
                    http3=self.http3,
                    **_settings.time_limits(timeout),
                    **settings,
                )
            except EngineError as failure:
                raise from_engine_error(failure) from None
            self._cache_options(key, options)
        return options

    def _following_options(self, options: SharedOptions, redirects: int | None, jar: Any, proxies: Any = None) -> SharedOptions:
        """Returns options with which the engine follows redirects and stores cookies itself."""
        key = (options, redirects, jar, proxies)
        following = self._options_cache.get(key)
        if following is None:
            following = options.with_redirects_jar_and_proxies(redirects, jar, proxies)
            self._cache_options(key, following)
        return following

    def _proxies_by_scheme(self) -> Any:
        """Returns the proxies for redirects that the engine follows, if they differ by scheme."""
        ours = _settings.environment() if self.trust_env else None
        return None if ours is None and not self.proxies else _settings.proxies_by_scheme(self.proxies, ours)

    def _cache_options(self, key: Any, options: SharedOptions) -> None:
        if len(self._options_cache) >= _MAX_CACHED_OPTIONS:
            self._options_cache.clear()
        self._options_cache[key] = options


def _depends_on_url(cookie: Cookie) -> bool:
    """Returns whether a cookie without a domain goes to some URLs only, or expires."""
    return cookie.secure or cookie.path != "/" or cookie.expires is not None


def _has_name(wanted: str, name: Any) -> bool:
    return (name.decode("latin-1") if isinstance(name, bytes) else name).lower() == wanted
