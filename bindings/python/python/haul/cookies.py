"""A session's cookies. The API is that of requests' jar; what is accepted and sent follows RFC 6265bis.

A cookie set by a response goes to the hosts that it names. One that the program sets without a domain goes to every host that it requests
itself, but not along a redirect to another host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping

from ._haul import Failure, Jar

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

    _Base = MutableMapping[str, Any]
else:
    _Base = MutableMapping

__all__ = ["Cookie", "CookieConflictError", "CookieJar", "RequestsCookieJar", "cookiejar_from_dict", "create_cookie"]


class CookieConflictError(RuntimeError):
    """Several cookies match: give a domain or path as well."""


class Cookie:
    """One cookie, with the attributes of ``http.cookiejar.Cookie``, so that its jars take it; what no longer exists in HTTP has one value."""

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
        """Whether it is a session cookie."""
        return self.expires is None

    @property
    def domain_specified(self) -> bool:
        """Whether it goes to the hosts below its domain as well."""
        return not self.host_only

    @property
    def domain_initial_dot(self) -> bool:
        """Whether the domain begins with a dot."""
        return self.domain.startswith(".")

    def has_nonstandard_attr(self, name: str) -> bool:
        """Whether it has this attribute, of which ``HttpOnly`` is kept."""
        return self.http_only and name.lower() == "httponly"

    def get_nonstandard_attr(self, name: str, default: Any = None) -> Any:
        """The value of this attribute; as in the standard library, that of ``HttpOnly`` is ``None``."""
        return None if self.has_nonstandard_attr(name) else default

    def is_expired(self, now: float | None = None) -> bool:
        """Whether it has expired."""
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
    """Creates a cookie from a name, a value and other attributes, which are named as in ``http.cookiejar``."""
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

    Iteration gives :class:`Cookie` objects, as requests' jar does; ``keys()``, ``values()`` and ``items()`` give names and values.
    """

    def __init__(self, data: Mapping[str, Any] | Iterable[Any] | None = None) -> None:
        self._jar = Jar()
        self._loose: dict[str, str] = {}
        if data is not None:
            self.update(data)

    # What requests has beyond a dict.

    def set(self, name: str, value: Any, **kwargs: Any) -> Cookie | None:
        """Sets a cookie; ``None`` removes it. ``domain`` (with a dot before it: and all hosts below), ``path``, ``secure``,
        ``expires`` (seconds since 1970) are taken."""
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
        """Sets a :class:`Cookie`, or one of ``http.cookiejar``."""
        value = "" if cookie.value is None else str(cookie.value)
        if not cookie.domain:
            self._loose[cookie.name] = value
            return
        http_only = getattr(cookie, "http_only", False) or bool(
            getattr(cookie, "has_nonstandard_attr", lambda _: False)("HttpOnly")
        )
        self._jar.set(cookie.name, value, cookie.domain, cookie.path or "/", bool(cookie.secure), http_only, cookie.expires)

    def get(self, name: str, default: Any = None, domain: str | None = None, path: str | None = None) -> Any:
        """The value of a cookie.

        :raises CookieConflictError: several cookies match."""
        found = self._find(name, domain, path)
        return default if found is None else found

    def cookies(self) -> list[Cookie]:
        """All cookies."""
        loose = [Cookie(name, value) for name, value in self._loose.items()]
        return loose + [Cookie(*parts) for parts in self._jar.all()]

    def get_dict(self, domain: str | None = None, path: str | None = None) -> dict[str, str | None]:
        """Names and values, optionally only for a domain and path."""
        return {
            cookie.name: cookie.value
            for cookie in self.cookies()
            if (domain is None or cookie.domain == domain) and (path is None or cookie.path == path)
        }

    def list_domains(self) -> list[str]:
        """All domains, each once."""
        return list(dict.fromkeys(cookie.domain for cookie in self.cookies()))

    def list_paths(self) -> list[str]:
        """All paths, each once."""
        return list(dict.fromkeys(cookie.path for cookie in self.cookies()))

    def multiple_domains(self) -> bool:
        """Whether a domain has more than one cookie."""
        domains = [cookie.domain for cookie in self.cookies() if cookie.domain]
        return len(domains) != len(set(domains))

    def iterkeys(self) -> Iterator[str]:
        """Names."""
        return iter(self.keys())

    def itervalues(self) -> Iterator[str | None]:
        """Values."""
        return iter(self.values())

    def iteritems(self) -> Iterator[tuple[str, str | None]]:
        """Names and values."""
        return iter(self.items())

    def keys(self) -> list[str]:  # type: ignore[override]
        """Names."""
        return [cookie.name for cookie in self.cookies()]

    def values(self) -> list[str | None]:  # type: ignore[override]
        """Values."""
        return [cookie.value for cookie in self.cookies()]

    def items(self) -> list[tuple[str, str | None]]:  # type: ignore[override]
        """Names and values."""
        return [(cookie.name, cookie.value) for cookie in self.cookies()]

    def clear(self, domain: str | None = None, path: str | None = None, name: str | None = None) -> None:
        """Removes all cookies, or those of a domain, path and name.

        :raises KeyError: there are none with that domain, path and name."""
        if domain is None:
            self._loose.clear()
            self._jar.remove()
        elif not self._remove(name, domain, path):
            raise KeyError(domain if name is None else name)

    def load(self, file: str | os.PathLike[str]) -> None:
        """Adds the cookies of a file in Netscape's format (of curl, wget, browsers' extensions); one that does not exist is empty.

        :raises OSError: it cannot be read."""
        self._jar.load(file)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the cookies that have a domain to such a file, readable only by its owner: what has changed since it was loaded or saved, so
        that what other processes have written meanwhile stays.

        :raises OSError: it cannot be written."""
        self._jar.save(file)

    def clear_session_cookies(self) -> None:
        """Removes session cookies."""
        self._loose.clear()
        self._jar.remove_session()

    def update(self, other: Any = (), /, **kwargs: Any) -> None:
        """Sets the cookies of another jar (haul's, requests' or the standard library's), of a dict or of pairs."""
        if isinstance(other, CookieJar) or (hasattr(other, "set_cookie") and not isinstance(other, dict)):
            for cookie in list(other):
                self.set_cookie(cookie)
        else:
            super().update(other, **kwargs)

    def copy(self) -> CookieJar:
        """Returns a copy of the jar."""
        return type(self)(self)

    # A dict.

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
        return len(self._loose) + len(self._jar)

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
        self._loose = {}
        for parts in state:
            self.set_cookie(Cookie(*parts))

    # What a session asks.

    def loose_header(self) -> str | None:
        """The cookies without a domain, as a Cookie field."""
        if not self._loose:
            return None
        return "; ".join(f"{name}={value}" for name, value in self._loose.items())

    def get_cookie_header(self, url: str) -> str | None:
        """The Cookie field of a request to this URL."""
        parts = [part for part in (self.header_of_hosts(url), self.loose_header()) if part]
        return "; ".join(parts) or None

    def header_of_hosts(self, url: str) -> str | None:
        """The same, of the cookies that have a domain."""
        try:
            return self._jar.header(url)
        except Failure:
            pass
        # An adapter's URL (`http+unix:`, a test's `mock:`). What stands in the host's place may be one.
        try:
            return self._jar.header("http" + url[url.index(":") :])
        except (Failure, ValueError):
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
        loose = False
        if not domain:
            loose = self._loose.pop(name, None) is not None if name is not None else bool(self._loose)
            if domain == "":
                return loose
        return bool(self._jar.remove(name, domain, path)) or loose


RequestsCookieJar = CookieJar
"""requests' name for it."""


def cookiejar_from_dict(
    cookie_dict: Mapping[str, Any] | None, cookiejar: Any = None, overwrite: bool = True
) -> Any:
    """Returns a jar with the cookies of a dict, added to ``cookiejar`` if that is given."""
    jar: Any = CookieJar() if cookiejar is None else cookiejar
    known = {cookie.name for cookie in jar}
    for name, value in (cookie_dict or {}).items():
        if not overwrite and name in known:
            continue
        if isinstance(jar, CookieJar):
            jar.set(name, value)
        else:
            jar.set_cookie(_standard(name, value))
    return jar


def _standard(name: str, value: Any) -> Any:
    """A ``http.cookiejar.Cookie`` for every host."""
    from http.cookiejar import Cookie as StandardCookie

    return StandardCookie(
        0, name, value, None, False, "", False, False, "/", True, False, None, True, None, None, {}
    )
