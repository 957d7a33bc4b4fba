"""What a session's settings and the environment mean for a request: proxies, certificates, limits, netrc."""

from __future__ import annotations

import os
from collections.abc import Mapping
from time import monotonic
from typing import Any

from ._haul import bypasses_proxy, netrc_login, split_url
from .exceptions import InvalidProxyURL

_PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_BUNDLE_NAMES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_NETRC_SECONDS = 1.0


def _environment() -> Mapping[Any, Any]:
    """The environment as ``os.environ`` keeps it. Asked itself, it encodes a name anew each time, which for the ten names of every
    request costs more than parsing the response."""
    data = getattr(os.environ, "_data", None)
    return data if isinstance(data, dict) else os.environ


_environ = _environment()


def _encoded(name: str) -> Any:
    return name if _environ is os.environ else os.environ.encodekey(name)


_KEYS = {name: _encoded(name) for name in (*_PROXY_NAMES, *_BUNDLE_NAMES, "NETRC", "HOME")}
_SAYS = frozenset(_KEYS[name] for name in (*_PROXY_NAMES, *_BUNDLE_NAMES))
_NETRC, _HOME = _KEYS["NETRC"], _KEYS["HOME"]


def _get(name: str) -> str | None:
    value = _environ.get(_KEYS[name])
    return None if value is None else os.fsdecode(value)


def has_environment() -> bool:
    """Whether any variable may say something about how requests go."""
    return not _environ.keys().isdisjoint(_SAYS)


def environment_bundle() -> str | None:
    """The file or directory of certificates that the environment names."""
    return _get("REQUESTS_CA_BUNDLE") or _get("CURL_CA_BUNDLE") or None


def environment_proxies() -> dict[str, str]:
    """Proxies by scheme, as ``urllib.request.getproxies_environment`` reads them."""
    proxies = {}
    for scheme in ("http", "https", "all"):
        upper = _get(f"{scheme}_proxy".upper())
        if scheme == "http" and os.environ.get("REQUEST_METHOD"):
            # In a CGI program HTTP_PROXY is what a client's Proxy field says (CVE-2016-5385).
            upper = None
        value = _get(f"{scheme}_proxy") or upper
        if value:
            proxies[scheme] = value
    return proxies


def proxy_for(url: str, proxies: Mapping[str, str | None] | None, trust_env: bool) -> str | None:
    """The proxy of a request to this URL: what the caller says before what the environment says."""
    given = {str(name).lower(): value for name, value in (proxies or {}).items() if value}
    no_proxy = given.pop("no_proxy", None)
    if trust_env:
        no_proxy = no_proxy or os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
        if no_proxy != "*":
            ours = environment_proxies()
            if ours and not (no_proxy and bypasses_proxy(no_proxy, url)):
                for name, value in ours.items():
                    given.setdefault(name, value)
    if not given:
        return None
    scheme, host, _, _ = split_url(url)
    for name in (f"{scheme}://{host}", scheme, f"all://{host}", "all"):
        proxy = given.get(name)
        if proxy:
            return _complete(proxy)
    return None


def _complete(proxy: str) -> str:
    """With its scheme and port: where none is written, they are those of HTTP, as by requests."""
    if "://" not in proxy:
        proxy = "http://" + proxy.lstrip("/")
    scheme, _, rest = proxy.partition("://")
    authority = rest.partition("/")[0]
    host = authority.rpartition("@")[2]
    if not host or host.startswith(":"):
        raise InvalidProxyURL(
            "Please check proxy URL. It is malformed and could be missing the host."
        )
    has_port = host.rpartition("]")[2].find(":") >= 0 if host.startswith("[") else ":" in host
    if scheme.lower() in ("http", "https") and not has_port:
        port = 443 if scheme.lower() == "https" else 80
        rest = f"{authority}:{port}" + rest[len(authority) :]
    return f"{scheme}://{rest}"


def limits(timeout: Any) -> tuple[float | None, float | None]:
    """The limits for the connection and for each wait, of ``timeout=``."""
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
        # urllib3's Timeout; its default is an object of its own.
        connect, read = timeout.connect_timeout, timeout.read_timeout
        connect = connect if isinstance(connect, (int, float)) else None
        read = read if isinstance(read, (int, float)) else None
    else:
        raise ValueError(f"Timeout value connect was {timeout!r}, but it must be an int, float or None.")
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


def trust(verify: Any, cert: Any) -> dict[str, Any]:
    """``verify=`` and ``cert=`` as a plan's keyword arguments.

    :raises OSError: a file that is named is not there."""
    settings: dict[str, Any] = {}
    if isinstance(verify, (str, os.PathLike)):
        path = os.fspath(verify)
        if not os.path.exists(path):
            raise OSError(f"Could not find a suitable TLS CA certificate bundle, invalid path: {path}")
        settings["ca_path" if os.path.isdir(path) else "ca_file"] = path
    elif verify is not None and not verify:
        settings["verify"] = False
    if cert:
        certificate, key = (cert, None) if isinstance(cert, (str, os.PathLike)) else cert
        for path, what in ((certificate, "certificate file"), (key, "key file")):
            if path is not None and not os.path.exists(path):
                raise OSError(f"Could not find the TLS {what}, invalid path: {path}")
        settings["cert"] = os.fspath(certificate)
        if key is not None:
            settings["key"] = os.fspath(key)
    return settings


class Netrc:
    """The user's netrc file. Whether there is one, and another than before, is looked at once a second at most: two paths for each
    request are more than all else that is done for it. Another ``NETRC`` or ``HOME`` is seen at once."""

    __slots__ = ("_named", "_path", "_stamp", "_text", "_until")

    def __init__(self) -> None:
        self._named: tuple[Any, Any] = None, None
        self._path: str | None = None
        self._stamp: float | None = None
        self._text: bytes | None = None
        self._until = 0.0

    def login(self, url: str) -> tuple[str, str] | None:
        """What it says for the host of this URL."""
        now = monotonic()
        named = _environ.get(_NETRC), _environ.get(_HOME)
        if now >= self._until or named != self._named:
            self._look()
            self._named, self._until = named, now + _NETRC_SECONDS
        if self._text is None:
            return None
        found = netrc_login(self._text, url)
        return None if found is None else (found[0].decode("utf-8"), found[1].decode("utf-8"))

    def _look(self) -> None:
        """Reads the file, if it is another one."""
        named = _get("NETRC")
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
