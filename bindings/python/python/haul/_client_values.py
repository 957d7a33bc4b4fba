"""Parameters, headers, forms and files of :class:`haul.Client`, with the text and types that httpx gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .structures import CaseInsensitiveDict

__all__ = ["joined_headers", "typed_files", "written_values"]


def joined_headers(headers: Any) -> Any:
    """Returns headers as a dict. Values of pairs with the same name are joined (RFC 9110 section 5.3)."""
    if headers is None or hasattr(headers, "items"):
        return headers
    joined = CaseInsensitiveDict()
    for pair in headers:
        name, value = (part.decode("latin-1") if isinstance(part, bytes) else part for part in pair)
        known = joined.get(name)
        separator = "; " if name.lower() == "cookie" else ", "
        joined[name] = value if known is None else f"{known}{separator}{value}"
    return joined


def written_values(values: Any) -> Any:
    """Returns parameters or a form whose values are written as by httpx: ``true``, ``false``, and nothing
    for None."""
    if isinstance(values, Mapping):
        return {name: _written(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [(name, _written(value)) for name, value in values]
    return values


def _written(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_written(one) for one in value]
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else value


def typed_files(files: Any) -> Any:
    """Returns files with the Content-Type that httpx guesses from their names."""
    pairs = files.items() if isinstance(files, Mapping) else files
    return [(name, _typed(file)) for name, file in pairs]


def _typed(file: Any) -> tuple[Any, ...]:
    import mimetypes
    import os

    if isinstance(file, (tuple, list)):
        filename, content, kind, *rest = (*file, None) if len(file) == 2 else file
    else:
        filename, content, kind, rest = os.path.basename(str(getattr(file, "name", "upload"))), file, None, []
    headers = rest[0] if rest else None
    if kind is None and filename and not any(name.lower() == "content-type" for name in headers or ()):
        kind = mimetypes.guess_type(filename)[0] or "application/octet-stream"
    return filename, content, kind, headers
