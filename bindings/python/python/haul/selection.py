"""``select`` and ``select_json``: values of pages, by CSS selectors and JSONPath queries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ._haul import PageQuery
from .models import Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, overload

__all__ = ["select", "select_json"]

if TYPE_CHECKING:

    @overload
    def select(
        page: Response | str | bytes,
        css: Mapping[str, str],
        *,
        url: str | None = None,
        extract: str | Iterable[str] = (),
    ) -> dict[str, list[str]]: ...
    @overload
    def select(
        page: Response | str | bytes,
        css: str | Sequence[str],
        *,
        url: str | None = None,
        extract: str | Iterable[str] = (),
    ) -> list[str]: ...


def select(
    page: Response | str | bytes,
    css: str | Iterable[str] | Mapping[str, str],
    *,
    url: str | None = None,
    extract: str | Iterable[str] = (),
) -> list[Any] | dict[str, list[Any]]:
    """Returns values of the HTML elements that a CSS selector matches, in the order of the page.

    >>> select("<h1>One</h1><a href='x?a&amp;b'>two</a>", "h1")
    ['One']
    >>> select("<h1>One</h1><a href='x?a&amp;b'>two</a>", "a@href", url="http://h/dir/")
    ['http://h/dir/x?a&b']
    >>> select("<h1>One</h1><a href='x?a&amp;b'>two</a>", {"name": "h1", "link": "a@href"})
    {'name': ['One'], 'link': ['x?a&b']}

    :param page: a response, or HTML.
    :param css: a selector, for the text of elements; with ``@name`` at its end, for that attribute.
        Several selectors give their values together. A dict gives a name to each selector, and the
        result is a dict of lists.
    :param url: the URL against which links are resolved; by default that of the response.
    :param extract: regular expressions (of Rust) that are searched for in each value; their
        matches are returned instead.
    :raises ValueError: a selector or an expression is malformed.
    """
    return query(css, (), extract).values(page, url)


if TYPE_CHECKING:

    @overload
    def select_json(
        page: Response | str | bytes, path: Mapping[str, str], *, extract: str | Iterable[str] = ()
    ) -> dict[str, list[Any]]: ...
    @overload
    def select_json(
        page: Response | str | bytes, path: str | Sequence[str], *, extract: str | Iterable[str] = ()
    ) -> list[Any]: ...


def select_json(
    page: Response | str | bytes, path: str | Iterable[str] | Mapping[str, str], *, extract: str | Iterable[str] = ()
) -> list[Any] | dict[str, list[Any]]:
    """Returns the values that a JSONPath query (RFC 9535) selects in JSON, or in lines of JSON.

    >>> select_json('{"items": [{"id": 1}, {"id": "b"}]}', "$.items[*].id")
    [1, 'b']

    :param page: a response, or JSON: one document, or several one after the other.
    :param path: a query. Several queries are searched for in turn for each document. A dict gives a
        name to each query, and the result is a dict of lists.
    :param extract: regular expressions that are searched for in each value; their matches are
        returned instead, as strings.
    :raises ValueError: a query is malformed, or the page is not JSON.
    """
    return query((), path, extract).values(page, None)


class ValueQuery:
    """A compiled query. If its parts have names, its values are a dict."""

    __slots__ = ("compiled", "is_json", "names")

    def __init__(self, compiled: PageQuery, is_json: bool, names: list[str] | None) -> None:
        self.compiled = compiled
        #: True if values are JSON texts.
        self.is_json = is_json
        self.names = names

    def values(self, page: Response | str | bytes, url: str | None) -> list[Any] | dict[str, list[Any]]:
        """Returns the values in a page.

        :raises ValueError: the page is not JSON."""
        arguments: tuple[bytes, str | None, str | None]
        if isinstance(page, str):
            arguments = page.encode(), url, "text/html; charset=utf-8"
        elif isinstance(page, (bytes, bytearray, memoryview)):
            arguments = bytes(page), url, None
        else:
            arguments = page.content or b"", url or page.url, page.headers.get("content-type")
        found = self.compiled.values(*arguments)
        if self.names is None:
            return [json.loads(value) for _, value in found] if self.is_json else [value for _, value in found]
        named: dict[str, list[Any]] = {name: [] for name in self.names}
        lists = list(named.values())
        for number, value in found:
            lists[number].append(json.loads(value) if self.is_json else value)
        return named


def query(
    css: str | Iterable[str] | Mapping[str, str], path: str | Iterable[str] | Mapping[str, str], extract: str | Iterable[str]
) -> ValueQuery:
    """Compiles a query.

    :raises ValueError: it is malformed."""
    given = css or path
    names = list(given) if isinstance(given, Mapping) else None
    selectors, paths, expressions = (_texts(texts) for texts in (css, path, extract))
    if not selectors and not paths:
        raise ValueError("a selector or a JSONPath is missing")
    if selectors and paths:
        raise ValueError("a page is searched for selectors or JSONPath queries, not both")
    is_json = not selectors and not expressions
    return ValueQuery(PageQuery(selectors, paths, expressions, is_json), is_json, names)


def _texts(given: str | Iterable[str] | Mapping[str, str]) -> list[str]:
    if isinstance(given, str):
        return [given]
    return list(given.values()) if isinstance(given, Mapping) else list(given)
