"""The import of the package."""

from __future__ import annotations

import importlib.metadata

import pytest

import haul
from conftest import run_python, start_python


def test_import_loads_few_modules() -> None:
    out, err = start_python(
        """
        import sys
        before = set(sys.modules)
        import haul
        print(*sorted(set(sys.modules) - before))
        """
    ).communicate(timeout=20)
    modules = set(out.split())
    assert "haul._haul" in modules, err
    # What a plain request needs no part of is imported at its first use.
    unneeded = {"haul._client_timeout", "haul._events", "haul._line_splitter", "haul._mounts", "haul.aio", "haul.many"}
    heavy = {"asyncio", "email", "http.client", "http.cookiejar", "requests", "ssl", "socket", "urllib.parse", "datetime", "logging", "typing", "re", "json"}
    assert not modules & (heavy | unneeded)


@pytest.mark.parametrize(
    "module, needed", [("adapters", "requests"), ("httpx", "httpx"), ("fsspec", "fsspec")]
)
def test_missing_package_is_named_with_its_remedy(module: str, needed: str) -> None:
    out = run_python(
        """
        import sys
        module, needed = sys.argv[1:]
        sys.modules[needed] = None
        try:
            __import__("haul." + module)
        except ImportError as error:
            print(error)
        """,
        module, needed,
    )  # fmt: skip
    assert out == f"haul.{module} needs {needed}: pip install 'httphaul[{needed}]'\n"


def test_engines_are_imported_when_used() -> None:
    out, err = start_python(
        """
        import sys
        import haul
        haul.ray, haul.spark, haul.shard("http://h/", 2)
        print(*{"pyarrow", "ray", "pyspark", "pandas", "numpy"} & set(sys.modules), "-")
        sys.modules["pyarrow"] = None
        try:
            haul.arrow
        except ImportError as error:
            print(error)
        """
    ).communicate(timeout=20)
    assert out == "-\nhaul.arrow needs pyarrow 16 or newer: pip install 'httphaul[arrow]'\n", err


def test_version_is_that_of_the_distribution() -> None:
    # docs/python.md: a program sees by this that the module is not that of the distribution `haul`.
    assert haul.__version__ == importlib.metadata.version("httphaul")
