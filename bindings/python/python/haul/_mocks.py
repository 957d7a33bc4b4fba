"""Detects mocks in the place of the code by which another library sends.

No request may bypass such a mock: :class:`~haul.adapters.HaulAdapter` leaves it to requests' own
adapter then, and :class:`~haul.httpx.HaulTransport` to httpx' own transport.
"""

from __future__ import annotations

from typing import Any

__all__ = ["MockDetector"]


class MockDetector:
    """Finds out whether parts of libraries are replaced.

    :param packages: the package of each part."""

    def __init__(self, *packages: str) -> None:
        self._packages = packages
        #: The parts that were last found to be originals.
        self._originals: tuple[Any, ...] = ()

    def finds_mock(self, *parts: Any) -> bool:
        """Returns whether a part is replaced; runs for each request.

        A wrapper that traces or counts requests has the module name of the original and does not
        count."""
        if parts == self._originals:
            return False
        if not all(map(_is_original, parts, self._packages)):
            return True
        self._originals = parts
        return False


def _is_original(part: Any, package: str) -> bool:
    if part is None:
        return True
    # A mock made from the original has its module name, too, and an attribute `mock`.
    if str(part.__module__).partition(".")[0] != package or hasattr(part, "mock"):
        return False
    # So has the wrapper by which VCR.py plays recorded responses.
    return str(getattr(part, "__globals__", {}).get("__name__")).partition(".")[0] != "vcr"
