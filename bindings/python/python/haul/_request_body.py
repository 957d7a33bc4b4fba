"""Converts ``data=``, ``json=`` and ``files=`` into a body and its Content-Type."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping

from ._haul import multipart, urlencode
from .exceptions import InvalidJSONError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORM = "application/x-www-form-urlencoded"


def encode_query(params: Any) -> str | None:
    """Encodes ``params=`` as a query."""
    if not params:
        return None
    if isinstance(params, str):
        return params
    if isinstance(params, bytes):
        return params.decode("utf-8")
    return urlencode(params)


def encode_json(value: Any) -> bytes:
    """Encodes a value as JSON (RFC 8259), which has no NaN and no infinity."""
    import json

    try:
        return json.dumps(value, allow_nan=False).encode("utf-8")
    except ValueError as error:
        raise InvalidJSONError(error) from error


def is_stream(data: Any) -> bool:
    """Returns whether a body is sent while it is produced: an iterable, but not text, a form or a
    list."""
    return hasattr(data, "__iter__") and not isinstance(data, (str, bytes, bytearray, list, tuple, Mapping))


def is_awaited(data: Any) -> bool:
    """Returns whether a body is an asynchronous iterable, and not also a plain iterable."""
    return hasattr(data, "__aiter__") and not hasattr(data, "__iter__")


def memory_of(data: Any) -> memoryview | None:
    """Returns a view of an object with the buffer protocol:

    ``bytearray``, ``memoryview``, ``array``."""
    try:
        return memoryview(data)
    except TypeError:
        return None


def _innermost(data: Any) -> Any:
    """Returns the file below the buffers and text wrappers of a file object."""
    while True:
        if isinstance(data, io.TextIOWrapper):
            inner = data.buffer
        elif isinstance(data, (io.BufferedReader, io.BufferedRandom)):
            inner = data.raw
        else:
            # That of tempfile.
            inner = getattr(data, "file", None) if type(data).__module__ == "tempfile" else None
        if inner is None or inner is data:
            return data
        data = inner


def is_plain_file(data: Any) -> bool:
    """Returns whether an object has a descriptor and gives the content of that file or socket.

    Only the announced length is read from it: a log may have grown, and a socket may never end."""
    try:
        data.fileno()
    except Exception:  # noqa: BLE001 - the method is the program's
        return False
    return not _gives_other_content(data)


def _gives_other_content(data: Any) -> bool:
    """Returns whether a file object has the descriptor of a file but gives other content, as those of
    gzip, bz2 and lzma do."""
    inner = _innermost(data)
    return isinstance(inner, io.BufferedIOBase) and not isinstance(inner, io.BytesIO)


def length_of(data: Any) -> int | None:
    """Returns the number of bytes left in a body, if that is known without reading it."""
    total: int | None = None
    position = 0
    if isinstance(data, str):
        return len(data.encode("utf-8"))
    if hasattr(data, "__len__"):
        memory = memory_of(data)
        # The `len` of an array counts its items.
        total = len(data) if memory is None else memory.nbytes
    elif hasattr(data, "len"):
        total = data.len
    elif hasattr(data, "fileno"):
        try:
            number = data.fileno()
        except (OSError, AttributeError):
            pass
        else:
            if _gives_other_content(data):
                return None
            total = os.fstat(number).st_size
            mode = getattr(data, "mode", "b")
            if isinstance(mode, str) and "b" not in mode:
                import warnings

                from .exceptions import FileModeWarning

                warnings.warn(
                    "Requests has determined the content-length for this request using the binary size of the file: however, the "
                    "file has been opened in text mode (i.e. without the 'b' flag in the mode).",
                    FileModeWarning,
                    stacklevel=4,
                )
    if hasattr(data, "tell"):
        try:
            position = data.tell()
            if total is None and hasattr(data, "seek"):
                data.seek(0, 2)
                total = data.tell()
                data.seek(position)
        except (OSError, AttributeError):
            # The file is not seekable, so the number of bytes left is unknown. The stream below a file
            # of tarfile lacks the method `seekable`.
            return total if total else None
    if total is None:
        return None
    return max(0, total - position)


def _pairs(data: Any) -> Iterable[tuple[Any, Any]]:
    return data.items() if isinstance(data, Mapping) else data


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def encode_files(files: Any, data: Any, content_type: Any = None) -> tuple[bytes, str]:
    """Encodes ``data=`` and ``files=`` as multipart/form-data; returns body and Content-Type.

    A file is its content, an object with ``read``, or ``(name, content[, type[, headers]])``.

    :param content_type: the Content-Type that the program has set. The parts are separated by its
        boundary, if it has one."""
    if not files:
        raise ValueError("Files must be provided.")
    if isinstance(data, (str, bytes)):
        raise ValueError("Data must not be a string.")
    parts: list[tuple[str, str | None, str | None, list[tuple[str, str]], bytes | str]] = []
    for name, values in _pairs(data or {}):
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            values = [values]
        for value in values:
            if value is not None:
                text = value if isinstance(value, bytes) else str(value).encode("utf-8")
                parts.append((_text(name), None, None, [], text))
    for name, given in _pairs(files):
        filename, content, kind, headers = _file(name, given)
        if content is None:
            continue
        if hasattr(content, "read"):
            content = content.read()
        elif not isinstance(content, (str, bytes)):
            memory = memory_of(content)
            if memory is None and not isinstance(content, int):
                # `str(path)` would send the name of the file in place of its content.
                raise TypeError(f"a file has to be bytes, text or an object with read, not {type(content).__name__}")
            content = str(content) if memory is None else memory.tobytes()
        own = [(_text(key), _text(value)) for key, value in _pairs(headers or {})]
        parts.append((_text(name), filename, kind or None, own, content))
    body, own_type = multipart(parts)
    boundary = _boundary_of(content_type)
    if boundary is None:
        return body, own_type
    # The random boundary occurs nowhere else.
    return body.replace(own_type.partition("boundary=")[2].encode("ascii"), boundary), own_type


def _boundary_of(content_type: Any) -> bytes | None:
    """Returns the boundary that a Content-Type for forms with files names, or ``None``.

    :raises InvalidHeader: the boundary is not ASCII (RFC 2046 section 5.1.1)."""
    text = content_type.decode("latin-1") if isinstance(content_type, bytes) else str(content_type or "")
    if not text.lower().startswith("multipart/form-data"):
        return None
    from email.message import Message

    header = Message()
    header["Content-Type"] = text
    boundary = header.get_boundary()
    if not boundary:
        return None
    if not boundary.isascii():
        from .exceptions import InvalidHeader

        raise InvalidHeader("the boundary in the header Content-Type has to be ASCII")
    return boundary.encode("ascii")


def _file(name: Any, given: Any) -> tuple[str | None, Any, str | None, Any]:
    kind = headers = None
    if isinstance(given, (tuple, list)):
        if len(given) == 2:
            filename, content = given
        elif len(given) == 3:
            filename, content, kind = given
        else:
            filename, content, kind, headers = given
    else:
        filename, content = _guess_name(given) or name, given
    return (None if filename is None else _text(filename)), content, kind, headers


def _guess_name(given: Any) -> str | None:
    name = getattr(given, "name", None)
    if isinstance(name, (str, bytes)) and name and name[:1] not in ("<", b"<") and name[-1:] not in (">", b">"):
        return os.path.basename(_text(name))
    return None
