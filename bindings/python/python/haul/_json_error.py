"""The error for invalid JSON.

It has its own module because its standard base class imports ``json``, which few programs need.
"""

from __future__ import annotations

from json import JSONDecodeError as _Standard

from .exceptions import InvalidJSONError, _rebuild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class JSONDecodeError(InvalidJSONError, _Standard):
    """The response is not valid JSON."""

    __module__ = "haul.exceptions"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _Standard.__init__(self, *args)
        plain = self.args
        InvalidJSONError.__init__(self, *plain, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)
