"""The bar of ``fetch_many(progress=True)``, made by tqdm."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, TypeVar

__all__ = ["shown"]

_Item = TypeVar("_Item")


def shown(results: Iterator[_Item], total: int | None) -> Iterator[_Item]:
    """Returns an iterator over the results that shows how many there were so far.

    The bar suits a terminal or a notebook.

    :raises ImportError: tqdm is not installed."""
    try:
        bars: Any = import_module("tqdm.auto")
    except ImportError as error:
        raise ImportError("fetch_many(progress=True) needs tqdm: pip install tqdm") from error
    return _counted(results, bars.tqdm(total=total, unit="URL"))


def _counted(results: Iterator[_Item], bar: Any) -> Iterator[_Item]:
    with bar:
        for result in results:
            bar.update()
            yield result
