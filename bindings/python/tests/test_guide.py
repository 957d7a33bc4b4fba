"""The Python blocks of docs/python.md as printed, with a local server for https://example.com."""

from __future__ import annotations

import asyncio
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import trustme

import haul
import haul.adapters
import haul.testing

GUIDE = Path(__file__).parents[3] / "docs" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.S | re.M) if GUIDE.exists() else []
#: Modules that a block uses and that need not be installed.
OPTIONAL = {
    "opentelemetry": "opentelemetry.trace",
    "pyarrow": "pyarrow.parquet",
    "pandas": "pandas",
    "haul.fsspec": "fsspec",
    "CacheControlAdapter": "cachecontrol",
    "httpx": "httpx",
    "requests": "requests",
}
PAGE = '{"items": [{"name": "<h1>One</h1> <a class=title href=x>two</a>", "id": 1}], "id": 1}'


def serve(pages: Any, path: str, body: bytes, kind: str) -> None:
    """Answers requests for a path, also those for a range of its content."""

    def answer(handler: Any) -> None:
        ranged = re.fullmatch(r"bytes=(\d*)-(\d*)", handler.headers.get("range") or "")
        begin, end = 0, len(body)
        if ranged and (ranged[1] or ranged[2]):
            begin = int(ranged[1]) if ranged[1] else max(len(body) - int(ranged[2]), 0)
            end = min(int(ranged[2]) + 1, len(body)) if ranged[1] and ranged[2] else len(body)
        handler.send_response(206 if ranged else 200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Accept-Ranges", "bytes")
        handler.send_header("Content-Length", str(end - begin))
        if ranged:
            handler.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(body)}")
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body[begin:end])

    pages.routes[path] = answer


def site(pages: Any) -> None:
    """Adds the paths of the guide to the server."""
    for path in ("/", "/1", "/2", "/page"):
        serve(pages, path, PAGE.encode(), "application/json")
    for path in ("/items", "/v1/items", "/done"):
        serve(pages, path, b'[{"id": 1}, {"id": 2}]', "application/json")
    for path in ("/big", "/v1/big"):
        serve(pages, path, bytes(5000), "application/octet-stream")
    serve(pages, "/table.csv", b"id,name\n1,Ada\n", "text/csv")


def names_of(pages: Any) -> dict[str, Any]:
    """Returns the names that the guide has explained before."""
    urls = [f"{pages.url}/{number}" for number in (1, 2)]
    session = haul.Session()
    names = {"haul": haul, "json": json, "asyncio": asyncio, "session": session, "urls": urls}
    names["big"], names["response"] = f"{pages.url}/big", session.get(f"{pages.url}/page")
    return names


def exec_block(code: str, names: dict[str, Any]) -> None:
    """Runs a block. One with `async with` becomes the body of a coroutine."""
    if "async with" in code:
        exec("async def block():\n" + textwrap.indent(code, "    "), names)  # noqa: S102 - the code of the guide
        asyncio.run(names["block"]())
    else:
        exec(code, names)  # noqa: S102 - the code of the guide


@pytest.mark.parametrize("number", [at for at, block in enumerate(BLOCKS) if "haul_mock" not in block])
def test_block_of_the_guide_runs(
    number: int, pages: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = BLOCKS[number]
    needed = [module for word, module in OPTIONAL.items() if word in code]
    site(pages)
    names = names_of(pages)
    for module in needed:
        names[module.partition(".")[0]] = pytest.importorskip(module.partition(".")[0])
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    if "table.parquet" in code:
        names["pyarrow"].parquet.write_table(names["pyarrow"].table({"id": [1]}), "table.parquet")
        serve(pages, "/table.parquet", Path("table.parquet").read_bytes(), "application/octet-stream")
    if "CacheControlAdapter" in code:
        from cachecontrol import CacheControlAdapter
        from requests.adapters import HTTPAdapter

        names |= {"CacheControlAdapter": CacheControlAdapter, "HTTPAdapter": HTTPAdapter}
        names["HaulAdapter"] = haul.adapters.HaulAdapter
    if "ca.pem" in code:
        trustme.CA().cert_pem.write_to_path("ca.pem")
    exec_block(re.sub(r"https://(api\.)?example\.com", pages.url, code), names)


def test_mocked_block_of_the_guide_passes(haul_mock: Any) -> None:
    """The block is a test, whose function runs here."""
    names: dict[str, Any] = {"haul": haul}
    code = next(block for block in BLOCKS if "def test_items(haul_mock)" in block)

    def items() -> Any:
        first = haul.get("https://api.example/items")
        return (first if first.ok else haul.get("https://api.example/items")).json()

    names["my_program"] = type("Program", (), {"items": staticmethod(items)})
    exec_block(code, names)
    names["test_items"](haul_mock)


def test_guide_has_blocks() -> None:
    if not GUIDE.exists():
        pytest.skip("the guide is in the source tree of haul only")
    assert len(BLOCKS) >= 18
