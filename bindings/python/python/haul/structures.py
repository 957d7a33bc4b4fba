"""Case-insensitive mappings, and the type of the table of status codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from itertools import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    _Base = MutableMapping[str, Any]
    _Names = dict[str, Any]
else:
    _Base, _Names = MutableMapping, dict

__all__ = ["CaseInsensitiveDict", "LookupDict"]

#: The versions of all dicts, so that no two dicts ever have the same one.
_versions = count()


class CaseInsensitiveDict(_Base):
    """A dict with case-insensitive keys that keep the case they were last set with.

    >>> fields = CaseInsensitiveDict({"Content-Type": "text/plain"})
    >>> fields["content-type"], list(fields)
    ('text/plain', ['Content-Type'])
    """

    __slots__ = ("_store", "_version")

    _store: dict[str, tuple[str, Any]]
    # Changes with the content, so that a session rebuilds values that depend on its headers only
    # after a change. Another thread may exchange the dict of a session at any time, so the version
    # also tells one dict from another.
    _version: int

    def __init__(self, data: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None, **kwargs: Any) -> None:
        self._store = {}
        self._version = next(_versions)
        self.update(() if data is None else data, **kwargs)

    def __setitem__(self, key: str, value: Any) -> None:
        self._store[key.lower()] = (key, value)
        # Taken after the change: another thread may cache what it reads in between.
        self._version = next(_versions)

    def __getitem__(self, key: str) -> Any:
        return self._store[key.lower()][1]

    def __delitem__(self, key: str) -> None:
        del self._store[key.lower()]
        self._version = next(_versions)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.lower() in self._store

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._store.values())

    def __len__(self) -> int:
        return len(self._store)

    def lower_items(self) -> Iterator[tuple[str, Any]]:
        """Iterates like ``items()``, with all names in lower case."""
        return ((name, pair[1]) for name, pair in self._store.items())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return dict(self.lower_items()) == dict(CaseInsensitiveDict(other).lower_items())

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> CaseInsensitiveDict:
        """Returns a copy."""
        return CaseInsensitiveDict(self._store.values())

    def __repr__(self) -> str:
        return str(dict(self.items()))

    def __getstate__(self) -> dict[str, tuple[str, Any]]:
        return dict(self._store)

    def __setstate__(self, state: dict[str, tuple[str, Any]]) -> None:
        self._store = state
        self._version = next(_versions)


class LookupDict(_Names):
    """Attributes that can also be looked up as items; missing ones are ``None``."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        super().__init__()

    def __repr__(self) -> str:
        return f"<lookup '{self.name}'>"

    def __getitem__(self, key: str) -> Any:
        return self.__dict__.get(key)

    def __getattr__(self, key: str) -> Any:
        raise AttributeError(f"{self.name} has no {key}")

    def get(self, key: str, default: Any = None) -> Any:
        return self.__dict__.get(key, default)
