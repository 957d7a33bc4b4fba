"""Type annotations."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import haul

PACKAGE = Path(haul.__file__).parent


def test_package_passes_mypy_strict(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    # A copy, because in site-packages mypy would check the other packages, too.
    shutil.copytree(PACKAGE, tmp_path / "haul", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    program = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "-p", "haul"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_program_passes_mypy_strict(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(
        """
import asyncio
import haul
import haul.ray
import haul.spark
from haul.adapters import HaulAdapter

class Token(haul.auth.AuthBase):
    def __call__(self, r: haul.PreparedRequest) -> haul.PreparedRequest:
        r.headers["Authorization"] = "token"
        return r

def one(session: haul.Session) -> dict[str, int]:
    response = session.get("http://host.example/", params={"page": 1}, timeout=(3, 10), auth=Token())
    if response.status_code >= 500 or response.status_code == haul.codes.not_found:
        raise haul.HTTPError(response.text, response=response)
    for line in response.iter_lines():
        print(line, response.elapsed.total_seconds(), response.history[0].url)
    parsed: dict[str, int] = response.json()
    return parsed

def many(urls: list[str]) -> int:
    haul.Session().mount("http://", HaulAdapter(max_retries=3))
    return sum(result.status_code < 300 for result in haul.fetch_many(urls) if result.error is None)

def pages(urls: list[str]) -> list[str]:
    found: list[str] = haul.select(haul.get(urls[0]), ["h1", "a@href"])
    named: dict[str, list[str]] = haul.select("<p>", {"text": "p"})
    for result in haul.fetch_many(urls, select={"text": "p"}, paginate=haul.Pagination(css="a@href", max_pages=3)):
        record: dict[str, object] = result.record(body=False)
        if isinstance(result.values, dict):
            found += result.values["text"]
        print(result.page, record["status"])
    return found + named["text"] + [str(value) for value in haul.select_json("{}", "$")]

def tables(batches: list[object], dataset: object, frame: object) -> int:
    haul.ray.fetch(dataset, tasks=4, split={"https://h": 2}, per_host=4, rate_host=0.5, select={"title": "h1"})
    haul.spark.fetch(frame, tasks=4, split=1000, per_host=4, body_column=None)
    rows = 0
    for batch in haul.arrow.fetch(batches, url="address", per_host=2, select=["h1"], body_column=None):
        rows += int(batch.num_rows)
    return rows + haul.shard("http://h/", 3)

async def awaited(urls: list[str]) -> list[str]:
    async with haul.AsyncSession() as session:
        return [response.text for response in await asyncio.gather(*(session.get(url) for url in urls))]
"""
    )
    program = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "program.py"]
    result = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_stub_matches_the_compiled_module() -> None:
    pytest.importorskip("mypy")
    program = [sys.executable, "-m", "mypy.stubtest", "haul._haul"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
