"""Attributes of AsyncSession that are settings of the session below."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
from typing import Any

import pytest

import haul


def test_stream_of_a_session_can_be_set(pages: Any) -> None:
    async def main() -> None:
        async with haul.AsyncSession() as session:
            session.stream = True  # type: ignore[method-assign, assignment]
            assert session._session._streams
            async with session.stream("GET", pages.url) as response:
                assert await response.aread() == b"page /"

    asyncio.run(main())


def test_settings_before_the_constructor_are_kept(pages: Any) -> None:
    class Api(haul.AsyncSession):
        def __init__(self) -> None:
            self.headers = {"X": "1"}
            self.region = "north"
            super().__init__()

    async def main() -> None:
        async with Api() as api:
            api.headers["Y"] = "2"
            await api.get(pages.url)
            assert api.region == "north"

    asyncio.run(main())
    fields = dict(pages.heads[-1][1])
    assert (fields["X"], fields["Y"]) == ("1", "2")


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickle.dumps])
def test_session_refuses_to_be_copied_without_warnings(duplicate: Any) -> None:
    for its in (haul.AsyncSession(), haul.AsyncClient()):
        with pytest.raises(TypeError):
            duplicate(its)
        gc.collect()
