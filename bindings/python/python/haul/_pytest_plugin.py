"""The plugin of pytest: the fixture ``haul_mock``. pytest finds it by an entry point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .testing import Mock


@pytest.fixture
def haul_mock() -> Iterator[Mock]:
    """Answers the requests of all sessions of haul; see :class:`haul.testing.Mock`."""
    # haul is not imported by programs whose tests do not use it.
    from .testing import Mock

    with Mock() as mock:
        yield mock
