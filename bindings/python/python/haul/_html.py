"""Responses and results as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_TEXT = 2000
_MAX_ROWS = 100


def response_html(response: Any) -> str:
    """Returns the status, the header fields and the beginning of the body of a response."""
    fields = [(escape(str(name)), escape(str(value))) for name, value in response.headers.items()]
    rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in fields)
    title = f"{response.status_code} {response.reason or ''} {response.url or ''}"
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table><pre>{escape(_begin_of(response))}</pre></div>"


def _begin_of(response: Any) -> str:
    content = response._content
    if not isinstance(content, bytes):
        return "(the body is not read yet)" if content is False else ""
    if b"\0" in content[:_MAX_TEXT]:
        return f"({len(content)} bytes)"
    text = content[:_MAX_TEXT].decode(response.encoding or "utf-8", "replace")
    return text if len(content) <= _MAX_TEXT else f"{text}… ({len(content)} bytes)"


def results_html(results: Iterable[Any]) -> str:
    """Returns a table of results: a row for each of the first hundred."""
    listed = list(results)
    rows = "".join(_row(result) for result in listed[:_MAX_ROWS])
    more = f"<p>{len(listed) - _MAX_ROWS} more</p>" if len(listed) > _MAX_ROWS else ""
    head = "<tr><th>index</th><th>URL</th><th>status</th><th>bytes</th><th>seconds</th></tr>"
    return f"<table>{head}{rows}</table>{more}"


def _row(result: Any) -> str:
    if result.error is not None:
        name = result.request if isinstance(result.request, str) else getattr(result.request, "url", "")
        cells: tuple[Any, ...] = (name, type(result.error).__name__, "", "")
    else:
        response = result.response
        seconds = f"{response.elapsed.total_seconds():.3f}"
        cells = (response.url, response.status_code, len(response.content or b""), seconds)
    return "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in (result.index, *cells)) + "</tr>"
