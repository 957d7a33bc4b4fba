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
    async with haul.AsyncSession(timeout=haul.ClientTimeout(total=9), retries=haul.Retry(2)) as session:
        session.mount("https://api/", lambda request: haul.testing.response(json={"method": request.method}))
        async with session.get(urls[0], stream=True) as response:
            async for piece in response.aiter_content():
                print(len(piece))
        async with session.stream("POST", urls[0], json=[1]) as response:
            await response.aread()
        async with haul.AsyncClient() as client, client.stream("GET", urls[0]) as streamed:
            print([line.upper() async for line in streamed.aiter_lines()], (await client.get(urls[0])).http_version)
        task = asyncio.create_task(session.get(urls[0], params=[("a", 1), ("b", None)]))
        print((await task).ok)
        return [response.text for response in await asyncio.gather(*(session.get(url) for url in urls))]

def observed(session: haul.Session) -> float:
    def done(event: haul.Event) -> None:
        print(event.name, event.request.url, event.state.get("span"), event.seconds)

    session.event_hooks["done"].append(done)
    session.event_hooks = {"head": [done]}
    session.retries, session.timeout, session.max_size = 3, (3, None), 1 << 20
    with session.stream("GET", "http://h/", headers={"X": None, "Y": b"y"}, cookies={"a": "b"}) as response:
        info, times = response.connection_info, response.timings
        if info is not None and info.tls_version == "TLSv1.3" and times is not None:
            return times.first_byte + len(info.certificates[0])
    session.post("http://h/", {"a": ["b", 1]}, files={"f": ("name", b"content", "text/plain")}, auth=("u", "p"), verify="ca.pem")
    with haul.Client(base_url="http://h/v1", timeout=None, retries=2) as client:
        got = client.get("/items", params={"a": 1}, follow_redirects=True).raise_for_status()
        print(got.headers.get_list("set-cookie"), got.is_success, [line.upper() for line in got.iter_lines()])
        client.post("/items", content=b"x").read()
    session.put("http://h/", data=open("f", "rb"), proxies={"http": None}, cert=("a", "b"), hooks={"response": print})
    return len(haul.ResultList(haul.fetch_many(["http://h/"], retries=2, progress=True)))
"""
    )
    program = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "program.py"]
    result = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_examples_pass_mypy_strict(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    pytest.importorskip("opentelemetry.sdk")
    # The others import packages without types.
    names = ("api_client", "crawler", "opentelemetry_spans", "sse_reader", "test_api_client", "uploader")
    for name in names:
        shutil.copy(Path(__file__).parents[1] / "examples" / f"{name}.py", tmp_path)
    program = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, *(f"{name}.py" for name in names)]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mistakes_in_calls_are_found_by_mypy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    code = """
import haul

session = haul.Session()
session.get("http://h/", timout=5)  # wrong
session.get("http://h/", headers=3)  # wrong
session.get(3)  # wrong
session.post("http://h/", files="name")  # wrong
session.request("GET", "http://h/", parms={})  # wrong
session.stream("GET", "http://h/", timeout="5")  # wrong
haul.get("http://h/", allow_redirects="no")  # wrong
haul.post("http://h/", jsn={})  # wrong
haul.Session(retries="3")  # wrong
haul.Retry(3, back_off=1)  # wrong
haul.ClientTimeout(sock_read=1)  # wrong
haul.fetch_many(["http://h/"], retrys=3)  # wrong
haul.Client(base_urls="http://h/")  # wrong
haul.Client().get("http://h/", content=b"x")  # wrong
haul.Client().post("http://h/", content=3)  # wrong
session.get("http://h/", timeout=5, headers={"X": "y"})

async def of_asyncio(session: haul.AsyncSession) -> None:
    await session.get("http://h/", timout=5)  # wrong
    async with session.get("http://h/", headers=3):  # wrong
        pass
    await session.put("http://h/", data=3)  # wrong
    await session.get("http://h/", auth=("user", "password"))
"""
    (tmp_path / "program.py").write_text(code)
    program = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "program.py"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    found = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    assert found == {number for number, line in enumerate(code.splitlines(), 1) if line.endswith("# wrong")}, done.stdout


def test_stub_matches_the_compiled_module() -> None:
    pytest.importorskip("mypy")
    program = [sys.executable, "-m", "mypy.stubtest", "haul._haul"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
