"""Functions about URLs for :class:`haul.fsspec.HaulFileSystem`: their usual form, their wildcards, and whether they are
safe as file names."""

from __future__ import annotations

import re
from urllib.parse import unquote

from ._haul import EngineError, join

__all__ = ["leads_up", "normalized", "wildcard_of"]

_WILDCARD = re.compile(r"[*\[]")


def normalized(url: str) -> str:
    """Returns an absolute URL without dot segments, or the same text if it is no valid URL."""
    try:
        return str(join(url, url))
    except EngineError:
        return url


def leads_up(url: str) -> bool:
    """Returns whether a part of a URL would lead out of a directory if the URL became a file name, also
    after its decoding. Programs join such names to local paths."""
    return ".." in re.split(r"[/\\]", unquote(url.partition("://")[2]))


def wildcard_of(url: str) -> int:
    """Returns the position of the first wildcard in the path of a URL; -1 if there is none.

    The brackets of an IPv6 address are no wildcards."""
    host_end = url.find("/", url.find("://") + 3)
    found = _WILDCARD.search(url, host_end) if host_end >= 0 else None
    return -1 if found is None else found.start()
