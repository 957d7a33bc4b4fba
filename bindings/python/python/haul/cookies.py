"""The cookies of a session: the API of requests' jar, with the rules of RFC 6265bis.

A cookie that a response sets is sent to the hosts that it names. A cookie that the program sets
without a domain is sent to every host that the program requests, but not to other hosts that
redirects lead to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping

from ._haul import EngineError, Jar, prepare_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

    _Base = MutableMapping[str, Any]
else:
    _Base = MutableMapping

__all__ = ["Cookie", "CookieConflictError", "CookieJar", "RequestsCookieJar", "cookiejar_from_dict", "create_cookie"]


class CookieConflictError(RuntimeError):
    """Several cookies match the name; also pass a domain or path."""


class Cookie:
    """One cookie, with the attributes of ``http.cookiejar.Cookie``, so that its jars accept it.

    Obsolete attributes have a fixed value."""

    __slots__ = ("name", "value", "domain", "path", "host_only", "secure", "http_only", "expires")

    version = 0
    port = port_specified = comment = comment_url = None
    path_specified = True
    rfc2109 = False

    def __init__(
        self,
        name: str,
        value: str | None,
        domain: str = "",
        path: str = "/",
        host_only: bool = True,
        secure: bool = False,
        http_only: bool = False,
        expires: int | None = None,
    ) -> None:
        self.name = name
        self.value = value
        self.domain = domain
        self.path = path
        self.host_only = host_only
        self.secure = secure
        self.http_only = http_only
        self.expires = expires

    @property
    def discard(self) -> bool:
        """True if the cookie is a session cookie."""
        return self.expires is None

    @property
    def domain_specified(self) -> bool:
        """True if the cookie is sent to subdomains, too."""
        return not self.host_only

    @property
    def domain_initial_dot(self) -> bool:
        """True if the domain begins with a dot."""
        return self.domain.startswith(".")

    def has_nonstandard_attr(self, name: str) -> bool:
        """Returns whether the cookie has this attribute. Only ``HttpOnly`` is stored."""
        return self.http_only and name.lower() == "httponly"

    def get_nonstandard_attr(self, name: str, default: Any = None) -> Any:
        """Returns the value of this attribute.

        That of ``HttpOnly`` is ``None``, as in the standard library."""
        return None if self.has_nonstandard_attr(name) else default

    def is_expired(self, now: float | None = None) -> bool:
        """Returns whether the cookie has expired."""
        if self.expires is None:
            return False
        import time

        return self.expires <= (time.time() if now is None else now)

    def _parts(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cookie) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        where = f"{self.domain}{self.path}" if self.domain else self.path
        return f"<Cookie {self.name}={self.value} for {where}>"


def create_cookie(name: str, value: str | None, **kwargs: Any) -> Cookie:
    """Creates a cookie from a name, a value and attributes, which are named as in
    ``http.cookiejar``."""
    rest = kwargs.pop("rest", None) or {}
    domain = kwargs.pop("domain", "") or ""
    expires = kwargs.pop("expires", None)
    cookie = Cookie(
        name,
        value,
        domain,
        kwargs.pop("path", "/") or "/",
        not domain.startswith("."),
        bool(kwargs.pop("secure", False)),
        "HttpOnly" in rest or "httponly" in rest or bool(kwargs.pop("http_only", False)),
        None if expires is None else int(expires),
    )
    for name_ in ("version", "port", "discard", "comment", "comment_url", "rfc2109", "host_only"):
        kwargs.pop(name_, None)
    if kwargs:
        raise TypeError(f"create_cookie() got unexpected keyword arguments: {sorted(kwargs)}")
    return cookie


class CookieJar(_Base):
    """Cookies, accessible by name like a dict, or with all their attributes through :meth:`cookies`.

    Iteration yields :class:`Cookie` objects, as in requests; ``keys()``, ``values()`` and
    ``items()`` return names and values.
    """

    def __init__(self, data: Mapping[str, Any] | Iterable[Any] | None = None) -> None:
        self._jar = Jar()
        #: The cookies without a domain, by name and path. They go to every host.
        self._domainless: dict[tuple[str, str], Cookie] = {}
        if data is not None:
            self.update(data)

    # The methods of requests' jar beyond those of a dict.

    def set(self, name: str, value: Any, **kwargs: Any) -> Cookie | None:
        """Sets a cookie. The value ``None`` removes it.

        Keyword arguments: ``domain`` (with a leading dot, its subdomains, too), ``path``, ``secure``,
        ``expires`` (seconds since 1970)."""
        if value is None:
            self._remove(name, kwargs.get("domain"), kwargs.get("path"))
            return None
        if hasattr(value, "key") and hasattr(value, "value"):
            # http.cookies.Morsel
            kwargs.setdefault("path", value["path"] or "/")
            kwargs.setdefault("domain", value["domain"] or "")
            kwargs.setdefault("secure", bool(value["secure"]))
            value = value.value
        cookie = create_cookie(name, str(value), **kwargs)
        self.set_cookie(cookie)
        return cookie

    def set_cookie(self, cookie: Any) -> None:
        """Sets a :class:`Cookie`, or a cookie of ``http.cookiejar``."""
        value = "" if cookie.value is None else str(cookie.value)
        http_only = getattr(cookie, "http_only", False) or bool(
            getattr(cookie, "has_nonstandard_attr", lambda _: False)("HttpOnly")
        )
        # A time before 1970 is as long past as 1970.
        expires = None if cookie.expires is None else max(int(cookie.expires), 0)
        path, secure = cookie.path or "/", bool(cookie.secure)
        if not cookie.domain:
            self._domainless[cookie.name, path] = Cookie(
                cookie.name, value, path=path, secure=secure, http_only=http_only, expires=expires
            )
            return
        self._jar.set(cookie.name, value, cookie.domain, path, secure, http_only, expires)

    def get(self, name: str, default: Any = None, domain: str | None = None, path: str | None = None) -> Any:
        """Returns the value of a cookie.

        :raises CookieConflictError: several cookies match."""
        found = self._find(name, domain, path)
        return default if found is None else found

    def cookies(self) -> list[Cookie]:
        """Returns all cookies."""
        return list(self._domainless.values()) + [Cookie(*parts) for parts in self._jar.all()]

    def get_dict(self, domain: str | None = None, path: str | None = None) -> dict[str, str | None]:
        """Returns names and values as a dict, optionally only those of a domain and path."""
        return {
            cookie.name: cookie.value
            for cookie in self.cookies()
            if (domain is None or cookie.domain == domain) and (path is None or cookie.path == path)
        }

    def list_domains(self) -> list[str]:
        """Returns all domains, each once."""
        return list(dict.fromkeys(cookie.domain for cookie in self.cookies()))

    def list_paths(self) -> list[str]:
        """Returns all paths, each once."""
        return list(dict.fromkeys(cookie.path for cookie in self.cookies()))

    def multiple_domains(self) -> bool:
        """Returns whether a domain has more than one cookie."""
        domains = [cookie.domain for cookie in self.cookies() if cookie.domain]
        return len(domains) != len(set(domains))

    def iterkeys(self) -> Iterator[str]:
        """Returns an iterator over the names."""
        return iter(self.keys())

    def itervalues(self) -> Iterator[str | None]:
        """Returns an iterator over the values."""
        return iter(self.values())

    def iteritems(self) -> Iterator[tuple[str, str | None]]:
        """Returns an iterator over names and values."""
        return iter(self.items())

    def keys(self) -> list[str]:  # type: ignore[override]
        """Returns the names."""
        return [cookie.name for cookie in self.cookies()]

    def values(self) -> list[str | None]:  # type: ignore[override]
        """Returns the values."""
        return [cookie.value for cookie in self.cookies()]

    def items(self) -> list[tuple[str, str | None]]:  # type: ignore[override]
        """Returns names and values."""
        return [(cookie.name, cookie.value) for cookie in self.cookies()]

    def clear(self, domain: str | None = None, path: str | None = None, name: str | None = None) -> None:
        """Removes all cookies, or those of a domain, path and name.

        :raises KeyError: no cookie matches."""
        if domain is None:
            self._domainless.clear()
            self._jar.remove()
        elif not self._remove(name, domain, path):
            raise KeyError(domain if name is None else name)

    def load(self, file: str | os.PathLike[str]) -> None:
        """Adds the cookies of a file in Netscape format, as curl writes it. A missing file is empty.

        :raises OSError: the file cannot be read."""
        self._jar.load(file)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the cookies with a domain to a Netscape file, readable only by its owner.

        Only changes since the last load or save are written, so that the changes of other processes
        are kept.

        :raises OSError: the file cannot be written."""
        self._jar.save(file)

    def clear_session_cookies(self) -> None:
        """Removes session cookies."""
        self._domainless = {key: cookie for key, cookie in self._domainless.items() if not cookie.discard}
        self._jar.remove_session()

    def update(self, other: Any = (), /, **kwargs: Any) -> None:
        """Sets the cookies of another jar (of haul, requests or the standard library), a dict or
        pairs."""
        if isinstance(other, CookieJar) or (hasattr(other, "set_cookie") and not isinstance(other, dict)):
            for cookie in list(other):
                self.set_cookie(cookie)
        else:
            super().update(other, **kwargs)

    def copy(self) -> CookieJar:
        """Returns a copy of the jar."""
        return type(self)(self)

    # The methods of a dict.

    def __getitem__(self, name: str) -> Any:
        found = self._find(name, None, None)
        if found is None:
            raise KeyError(f"name={name!r}, domain=None, path=None")
        return found

    def __setitem__(self, name: str, value: Any) -> None:
        self.set(name, value)

    def __delitem__(self, name: str) -> None:
        if not self._remove(name, None, None):
            raise KeyError(name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.cookies())

    def __contains__(self, name: object) -> bool:
        return any(cookie.name == name for cookie in self.cookies())

    def __len__(self) -> int:
        return len(self._domainless) + len(self._jar)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CookieJar):
            return self.cookies() == other.cookies()
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{self.cookies()}>"

    def __getstate__(self) -> list[tuple[Any, ...]]:
        return [cookie._parts() for cookie in self.cookies()]

    def __setstate__(self, state: list[tuple[Any, ...]]) -> None:
        self._jar = Jar()
        self._domainless = {}
        for parts in state:
            self.set_cookie(Cookie(*parts))

    # The methods that a session uses.

    def domainless_header(self, url: str) -> str | None:
        """Returns the Cookie field of a request to a URL for the cookies without a domain. Those with
        longer paths come first."""
        fitting = [cookie for cookie in self._domainless.values() if _is_for(cookie, url)]
        fitting.sort(key=lambda cookie: len(cookie.path), reverse=True)
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in fitting) or None

    def get_cookie_header(self, url: str) -> str | None:
        """Returns the Cookie field of a request to a URL."""
        parts = [part for part in (self.domain_header(url), self.domainless_header(url)) if part]
        return "; ".join(parts) or None

    def domain_header(self, url: str) -> str | None:
        """Returns the Cookie field for the cookies that have a domain."""
        try:
            return self._jar.header(url)
        except EngineError:
            pass
        # A URL of another scheme (`http+unix:`, `mock:`), which may have a host, too.
        try:
            return self._jar.header("http" + url[url.index(":") :])
        except (EngineError, ValueError):
            return None

    def _find(self, name: str, domain: str | None, path: str | None) -> str | None:
        found = [
            cookie.value
            for cookie in self.cookies()
            if cookie.name == name
            and (domain is None or cookie.domain == domain)
            and (path is None or cookie.path == path)
        ]
        if len(found) > 1:
            raise CookieConflictError(f"There are multiple cookies with name, {name!r}")
        return found[0] if found else None

    def _remove(self, name: str | None, domain: str | None, path: str | None) -> bool:
        is_found = False
        if not domain:
            found = [key for key in self._domainless if name in (None, key[0]) and path in (None, key[1])]
            is_found = bool(found)
            for key in found:
                self._domainless.pop(key, None)
            if domain == "":
                return is_found
        return bool(self._jar.remove(name, domain, path)) or is_found


def _is_for(cookie: Cookie, url: str) -> bool:
    """Returns whether a cookie without a domain goes to a URL: its path, Secure and expiry (RFC 6265
    section 5.4)."""
    if cookie.is_expired() or (cookie.secure and not url.lstrip()[:6].lower() == "https:"):
        return False
    path = cookie.path
    if path == "/":
        return True
    from urllib.parse import urlsplit

    try:
        # The path that is sent: without dot segments and needless escapes.
        asked = urlsplit(prepare_url(url)).path
    except EngineError:
        asked = urlsplit(url).path
    return asked == path or asked.startswith(path if path.endswith("/") else path + "/")


RequestsCookieJar = CookieJar
"""The name of :class:`CookieJar` in requests."""


def cookiejar_from_dict(
    cookie_dict: Mapping[str, Any] | None, cookiejar: Any = None, overwrite: bool = True
) -> Any:
    """Returns a jar with the cookies of a dict. ``cookiejar`` is a jar to add them to."""
    jar: Any = CookieJar() if cookiejar is None else cookiejar
    known = {cookie.name for cookie in jar}
    for name, value in (cookie_dict or {}).items():
        if not overwrite and name in known:
            continue
        if isinstance(jar, CookieJar):
            jar.set(name, value)
        else:
            jar.set_cookie(_standard_cookie(name, value))
    return jar


def _standard_cookie(name: str, value: Any) -> Any:
    """Returns an ``http.cookiejar.Cookie`` that is sent to every host."""
    from http.cookiejar import Cookie as StandardCookie

    return StandardCookie(
        0, name, value, None, False, "", False, False, "/", True, False, None, True, None, None, {}
    )
