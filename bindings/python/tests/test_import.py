"""The import of the package."""

from __future__ import annotations

from conftest import start_python


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
    heavy = {"asyncio", "email", "http.client", "http.cookiejar", "requests", "ssl", "socket", "urllib.parse", "datetime", "logging", "typing", "re", "json"}
    assert not modules & heavy
