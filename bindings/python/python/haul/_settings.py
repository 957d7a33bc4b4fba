"""Converts a session's settings, and those of the environment: proxies, certificates, timeouts,
netrc."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from time import monotonic

from ._haul import EngineError, bypasses_proxy, netrc_login, split_url
from .exceptions import InvalidProxyURL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_BUNDLE_NAMES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_NETRC_SECONDS = 1.0


class _EnvironmentVariables:
    """Fast access to the variables of ``os.environ`` that matter to requests.

    ``os.environ`` encodes the name at each access. For the ten names of every request that costs
    more than parsing the response."""

    __slots__ = ("curl", "environ", "get_raw", "home", "keys", "names", "netrc", "proxies", "proxy_settings", "relevant", "requests")

    def __init__(self, environ: Any) -> None:
        #: The object behind ``os.environ``, which a program or a test may replace.
        self.environ = environ
        data = getattr(environ, "_data", None)
        encode = environ.encodekey if isinstance(data, dict) else str
        kept = data if isinstance(data, dict) else environ
        self.get_raw: Callable[[Any], Any] = kept.get
        self.names: Any = kept.keys()
        self.keys: dict[str, Any] = {name: encode(name) for name in _NAMES}
        self.proxy_settings = tuple(self.keys[name] for name in _NAMES[:9])
        self.proxies = frozenset(self.proxy_settings[:6])
        self.requests, self.curl, self.netrc, self.home = (self.keys[name] for name in _NAMES[9:])
        #: The variables that change a request, except ``HOME``.
        self.relevant = self.proxies | {self.requests, self.curl, self.netrc}

    def get(self, name: str) -> str | None:
        """Returns the value of one of these variables, as text."""
        value = self.get_raw(self.keys[name])
        return None if value is None else os.fsdecode(value)


_NAMES = (*_PROXY_NAMES, "no_proxy", "NO_PROXY", "REQUEST_METHOD", *_BUNDLE_NAMES, "NETRC", "HOME")
_variables = _EnvironmentVariables(os.environ)


def _reread_variables() -> _EnvironmentVariables:
    global _variables
    _variables = _EnvironmentVariables(os.environ)
    return _variables


_last_bundle: tuple[Any, str | None] = None, None


def environment_bundle() -> str | None:
    """Returns the file or directory of CA certificates that the environment names."""
    global _last_bundle
    variables = _variables if _variables.environ is os.environ else _reread_variables()
    raw = variables.get_raw(variables.requests) or variables.get_raw(variables.curl)
    last = _last_bundle
    if last[0] is not raw:
        last = _last_bundle = raw, (os.fsdecode(raw) or None) if raw is not None else None
    return last[1]


class ProxyEnvironment:
    """The proxies of the environment, by scheme, and its ``no_proxy`` list."""

    __slots__ = ("no_proxy", "proxies")

    def __init__(self, proxies: dict[str, str], no_proxy: str | None) -> None:
        self.proxies = proxies
        self.no_proxy = no_proxy


_last: tuple[tuple[Any, ...], ProxyEnvironment] = (), ProxyEnvironment({}, None)


def environment() -> ProxyEnvironment | None:
    """Returns the proxy settings of the environment, or ``None``. Reads changed variables again."""
    global _last
    variables = _variables if _variables.environ is os.environ else _reread_variables()
    if variables.names.isdisjoint(variables.proxies):
        return None
    seen = tuple(map(variables.get_raw, variables.proxy_settings))
    last = _last
    if last[0] != seen:
        last = _last = seen, ProxyEnvironment(_proxies(variables), variables.get("no_proxy") or variables.get("NO_PROXY"))
    return last[1]


def _proxies(variables: _EnvironmentVariables) -> dict[str, str]:
    proxies = {}
    for scheme in ("http", "https", "all"):
        upper = variables.get(f"{scheme}_proxy".upper())
        if scheme == "http" and variables.get("REQUEST_METHOD"):
            # In a CGI program HTTP_PROXY contains the Proxy field of a client (CVE-2016-5385).
            upper = None
        value = variables.get(f"{scheme}_proxy") or upper
        if value:
            proxies[scheme] = value
    return proxies


def proxy_for(url: str, proxies: Mapping[str, str | None] | None, ours: ProxyEnvironment | None) -> str | None:
    """Returns the proxy for a URL. The caller's settings take precedence over the environment."""
    asked = {str(name).lower(): value for name, value in (proxies or {}).items()}
    given = {name: value for name, value in asked.items() if value}
    no_proxy = given.pop("no_proxy", None)
    if ours is not None:
        no_proxy = no_proxy or ours.no_proxy
        if ours.proxies and no_proxy != "*" and not (no_proxy and bypasses_proxy(no_proxy, url)):
            for name, value in ours.proxies.items():
                # `{"http": None}` means no proxy for http.
                if name not in asked:
                    given[name] = value
    if not given:
        return None
    scheme, host, _, _ = split_url(url)
    for name in (f"{scheme}://{host}", scheme, f"all://{host}", "all"):
        proxy = given.get(name)
        if proxy:
            return _complete_proxy_url(proxy)
    return None


def is_proxied(url: str, ours: ProxyEnvironment) -> bool:
    """Returns whether the environment names a proxy for a URL. One of another scheme has none."""
    try:
        return proxy_for(url, None, ours) is not None
    except EngineError:
        return False


def proxies_by_scheme(proxies: Mapping[str, str | None], ours: ProxyEnvironment | None) -> tuple[str | None, str | None, str | None] | None:
    """Returns the proxy for http URLs, the one for https URLs, and the ``no_proxy`` list.

    Returns ``None`` if one proxy serves all URLs, or if the three values cannot express the
    settings: a proxy for one host, or the caller's proxies beside a ``no_proxy`` of the
    environment, which applies to the environment's proxies only."""
    given = {str(name).lower(): value for name, value in proxies.items() if value}
    no_proxy = given.pop("no_proxy", None) or (ours.no_proxy if ours is not None else None)
    theirs = ours.proxies if ours is not None and no_proxy != "*" else {}
    if any("://" in name for name in given) or (given and theirs and no_proxy):
        return None
    both = {**theirs, **given}
    http, https = (both.get(scheme) or both.get("all") for scheme in ("http", "https"))
    exceptions = None if given else no_proxy
    if http == https and not (http and exceptions):
        return None
    try:
        return (_complete_proxy_url(http) if http else None), (_complete_proxy_url(https) if https else None), exceptions
    except InvalidProxyURL:
        return None


def _complete_proxy_url(proxy: str) -> str:
    """Adds scheme and port to the URL of a proxy. The default scheme is http, as in requests."""
    if "://" not in proxy:
        if ":/" in proxy:
            raise InvalidProxyURL("Please check proxy URL. It is malformed and could be missing the host.")
        proxy = "http://" + proxy.lstrip("/")
    scheme, _, rest = proxy.partition("://")
    authority = rest.partition("/")[0]
    userinfo, at, host = authority.rpartition("@")
    # As in requests, the last @ precedes the host.
    encoded = userinfo.replace("@", "%40") + at + host
    authority, rest = encoded, encoded + rest[len(authority) :]
    if not host or host.startswith(":"):
        raise InvalidProxyURL(
            "Please check proxy URL. It is malformed and could be missing the host."
        )
    has_port = host.rpartition("]")[2].find(":") >= 0 if host.startswith("[") else ":" in host
    if scheme.lower() in ("http", "https") and not has_port:
        port = 443 if scheme.lower() == "https" else 80
        rest = f"{authority}:{port}" + rest[len(authority) :]
    return f"{scheme}://{rest}"


def time_limits(timeout: Any) -> dict[str, Any]:
    """Converts ``timeout=`` into keyword arguments of ``SharedOptions``."""
    if timeout is not None and not isinstance(timeout, (int, float, tuple)):
        from ._client_timeout import ClientTimeout

        if isinstance(timeout, ClientTimeout):
            return {
                "connect_timeout": timeout.connect, "read_timeout": timeout.read, "write_timeout": timeout.write,
                "total_timeout": timeout.total, "pool_timeout": timeout.pool,
            }  # fmt: skip
    connect, read = timeouts(timeout)
    return {"connect_timeout": connect, "read_timeout": read}


def timeouts(timeout: Any) -> tuple[float | None, float | None]:
    """Converts ``timeout=`` into the limits for connecting and for each read."""
    if timeout is None:
        return None, None
    connect: Any
    read: Any
    if isinstance(timeout, (int, float)):
        connect = read = timeout
    elif isinstance(timeout, tuple) or isinstance(timeout, list):
        try:
            connect, read = timeout
        except ValueError:
            raise ValueError(
                f"Invalid timeout {timeout}. Pass a (connect, read) timeout tuple, or a single float to set both timeouts to the same value."
            ) from None
    elif hasattr(timeout, "connect_timeout"):
        # A Timeout of urllib3. With a total, the limit for reading is known once its clock runs.
        started = timeout.clone()
        started.start_connect()
        connect, read = started.connect_timeout, started.read_timeout
        connect = connect if isinstance(connect, (int, float)) else None
        read = read if isinstance(read, (int, float)) else None
    else:
        connect = read = timeout
    connect, read = (None if _is_urllib3_default(value) else value for value in (connect, read))
    for name, value in (("connect", connect), ("read", read)):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"Timeout value {name} was {value!r}, but it must be an int, float or None.")
        if value <= 0:
            raise ValueError(
                f"Attempted to set {name} timeout to {value}, but the timeout cannot be set to a value less than or equal to 0."
            )
    return connect, read


def _is_urllib3_default(value: Any) -> bool:
    """Returns whether a value is ``urllib3.Timeout.DEFAULT_TIMEOUT``, which some clients pass to
    requests."""
    urllib3 = sys.modules.get("urllib3")
    return urllib3 is not None and value is urllib3.Timeout.DEFAULT_TIMEOUT


def verify_key(verify: Any) -> Any:
    """Returns what of ``verify=`` distinguishes cached options: the value, and of an ``SSLContext`` also
    its settings, which the program may change at any time."""
    if not hasattr(verify, "get_ca_certs"):
        return verify
    from ._ssl_context import state_of

    return verify, state_of(verify)


def tls_options(verify: Any, cert: Any, url: str) -> dict[str, Any]:
    """Converts ``verify=`` and ``cert=`` into keyword arguments of ``SharedOptions``.

    :raises OSError: a file that this URL needs does not exist.
    :raises TypeError: a value is neither a file name nor, for ``verify``, a bool."""
    settings: dict[str, Any] = {}
    if isinstance(verify, (str, bytes, os.PathLike)):
        path = os.fsdecode(verify)
        # An http URL needs no certificates. For a later https URL the engine reports the missing
        # file.
        if not os.path.exists(path) and url.lstrip()[:5].lower() == "https":
            raise OSError(f"Could not find a suitable TLS CA certificate bundle, invalid path: {path}")
        settings["ca_path" if os.path.isdir(path) else "ca_file"] = path
    elif hasattr(verify, "get_ca_certs"):
        from ._ssl_context import options_of

        settings = options_of(verify)
    elif verify is not None and not isinstance(verify, int):
        # Such a value must not be taken for True: the caller wants to trust particular
        # certificates.
        raise TypeError(f"verify has to be a bool, the path of certificates or an SSLContext, not {type(verify).__name__}")
    elif verify is not None and not verify:
        settings["verify"] = False
    if cert:
        certificate, key = cert if isinstance(cert, (tuple, list)) else (cert, None)
        for name, path, what in (("cert", certificate, "certificate file"), ("key", key, "key file")):
            if path is None and name == "key":
                continue
            if not isinstance(path, (str, bytes, os.PathLike)):
                raise TypeError(f"cert has to be a path or a pair of paths, not {type(path).__name__}")
            settings[name] = os.fsdecode(path)
            if not os.path.exists(settings[name]):
                raise OSError(f"Could not find the TLS {what}, invalid path: {settings[name]}")
    return settings


def environment_is_empty(netrc: Netrc) -> bool:
    """Returns whether the environment does not affect requests.

    It names no proxy, no certificates and no netrc file, and the home directory had no netrc file a
    moment ago. One check for all of these, since most requests need no more."""
    variables = _variables if _variables.environ is os.environ else _reread_variables()
    return (
        variables.names.isdisjoint(variables.relevant)
        and netrc._text is None
        and variables.get_raw(variables.home) is netrc._named[1]
        and monotonic() < netrc._until
    )


class Netrc:
    """The user's netrc file.

    At most once a second the file is checked for changes: checking two paths for each request would
    cost more than the rest of the request. A change of ``NETRC`` or ``HOME`` is noticed at once."""

    __slots__ = ("_named", "_path", "_stamp", "_text", "_until")

    def __init__(self) -> None:
        self._named: tuple[Any, Any] = None, None
        self._path: str | None = None
        self._stamp: float | None = None
        self._text: bytes | None = None
        self._until = 0.0

    def login(self, url: str) -> tuple[str, str] | None:
        """Returns the user and password for the host of a URL."""
        if self.is_due():
            self.refresh()
        if self._text is None:
            return None
        try:
            found = netrc_login(self._text, url)
        except EngineError:
            # The request fails, too, unless an adapter sends it.
            return None
        return None if found is None else (found[0].decode("utf-8"), found[1].decode("utf-8"))

    def is_due(self) -> bool:
        """Returns whether the file has to be checked again."""
        variables = _variables if _variables.environ is os.environ else _reread_variables()
        named = variables.get_raw(variables.netrc), variables.get_raw(variables.home)
        return monotonic() >= self._until or named != self._named

    def refresh(self) -> None:
        """Checks the file, and reads it if it has changed."""
        variables = _variables if _variables.environ is os.environ else _reread_variables()
        named = variables.get_raw(variables.netrc), variables.get_raw(variables.home)
        self._reload(variables.get("NETRC"))
        self._named, self._until = named, monotonic() + _NETRC_SECONDS

    def is_empty(self) -> bool:
        """Returns whether there was no netrc file when it was last checked."""
        return self._text is None

    def _reload(self, named: str | None) -> None:
        """Reads the file if it has changed."""
        for name in (named,) if named else ("~/.netrc", "~/_netrc"):
            path = os.path.expanduser(name)
            try:
                stamp = os.stat(path).st_mtime
            except OSError:
                continue
            if (path, stamp) != (self._path, self._stamp):
                try:
                    with open(path, "rb") as file:
                        self._text = file.read()
                except OSError:
                    self._text = None
                self._path, self._stamp = path, stamp
            return
        self._path = self._stamp = self._text = None
