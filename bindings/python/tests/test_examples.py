"""The programs in bindings/python/examples, run against local servers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from conftest import pattern, start_python

EXAMPLES = Path(__file__).parents[1] / "examples"
GUIDE = Path(__file__).parents[3] / "docs" / "python.md"

_RUN = """
import os, runpy, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def start(name: str, *args: str, **kwargs: Any) -> subprocess.Popen[str]:
    return start_python(_RUN, str(EXAMPLES / name), *args, **kwargs)


def run(name: str, *args: str, code: int = 0, **kwargs: Any) -> tuple[list[str], str]:
    """Runs an example. Returns the lines of its output, and its errors."""
    child = start(name, *args, **kwargs)
    try:
        out, err = child.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        child.kill()
        raise
    assert child.returncode == code, (child.returncode, out, err)
    return out.splitlines(), err


def html(*links: str) -> Any:
    body = "".join(f"<a href='{link}'>x</a>" for link in links).encode()
    return lambda handler: handler.answer(body, Content_Type="text/html")


def test_guide_names_each_example() -> None:
    names = sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb"))
    guide = GUIDE.read_text()
    assert len(names) == 10 and [name for name in names if f"examples/{name}" not in guide] == []


def test_crawler_fetches_each_page_once(pages: Any) -> None:
    pages.routes["/"] = html("/a", "/b#part", "http://elsewhere.invalid/")
    pages.routes["/a"] = html("/", "/b", "missing")
    pages.routes["/missing"] = lambda handler: handler.answer(b"", 404)
    lines, _ = run("crawler.py", f"{pages.url}/")
    found = ["200 " + pages.url + path for path in ("/", "/a", "/b")]
    assert sorted(lines[:-1]) == [*found, f"404 {pages.url}/missing"] and lines[-1] == "4 pages"
    assert len(pages.heads) == 4


def test_crawler_cancels_requests_at_a_number_of_pages(pages: Any) -> None:
    pages.routes["/"] = html("/never")
    assert run("crawler.py", f"{pages.url}/", "1")[0] == [f"200 {pages.url}/", "1 pages"]


def test_crawler_cancels_requests_at_ctrl_c(pages: Any) -> None:
    pages.routes["/"] = html("/never")
    child = start("crawler.py", f"{pages.url}/")
    assert child.stdout is not None and child.stdout.readline() == f"200 {pages.url}/\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=15)
    assert (child.returncode, out) == (130, "1 pages\n"), err


def test_downloader_writes_complete_files(pages: Any, tmp_path: Path) -> None:
    pages.routes["/missing"] = lambda handler: handler.answer(b"no", 404)
    urls = [f"{pages.url}/bytes/300000", f"{pages.url}/missing", f"{pages.url}/bytes/5"]
    lines, errors = run("downloader.py", str(tmp_path), *urls, code=1)
    assert lines == [str(tmp_path / "300000"), str(tmp_path / "5")] and "404 Client Error" in errors
    assert (tmp_path / "300000").read_bytes() == pattern(300000) and (tmp_path / "5").read_bytes() == pattern(5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["300000", "5"]


def test_api_client_retries_and_reads_all_pages(pages: Any) -> None:
    answers = [
        lambda handler: handler.answer(b'{"id": 9}', 201),
        lambda handler: handler.answer(b"", 503, Retry_After="0"),
        lambda handler: handler.answer(b'[{"id": 1, "name": "a"}]', Link=f'<{pages.url}/items?page=2>; rel="next"'),
        lambda handler: handler.answer(b'[{"id": 2, "name": "b"}]'),
    ]
    pages.routes["/items"] = lambda handler: answers.pop(0)(handler)
    lines, _ = run("api_client.py", pages.url, "secret")
    assert lines == ["added {'id': 9}", "1 a", "2 b"] and answers == []
    assert all(dict(fields)["Authorization"] == "Bearer secret" for _, fields in pages.heads)


def test_api_client_runs_without_a_server() -> None:
    assert run("api_client.py", "--offline")[0] == ["added {'id': 2, 'name': 'new'}", "1 first"]


def test_tests_of_the_api_client_pass() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(EXAMPLES), "test_api_client.py"]
    done = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("...."), done.stdout


def test_uploader_sends_files(pages: Any, tmp_path: Path) -> None:
    (tmp_path / "a b.bin").write_bytes(pattern(200000))
    (tmp_path / "c.bin").write_bytes(b"c")
    paths = [str(tmp_path / "a b.bin"), str(tmp_path / "c.bin")]
    assert run("uploader.py", f"{pages.url}/store/", *paths)[0] == [f"200 {pages.url}/store/a%20b.bin", f"200 {pages.url}/store/c.bin"]
    assert pages.bodies == [pattern(200000), b"c"] and dict(pages.heads[0][1])["Content-Length"] == "200000"
    assert run("uploader.py", "--form", f"{pages.url}/upload", *paths)[0] == [f"200 {pages.url}/upload"]
    assert pattern(200000) in pages.bodies[2] and b'filename="c.bin"' in pages.bodies[2] and b"\r\n\r\n2\r\n" in pages.bodies[2]


def test_sse_reader_continues_after_a_break(pages: Any) -> None:
    def send(handler: Any) -> None:
        last = handler.headers.get("Last-Event-ID")
        if last == "2":
            handler.answer(b"", 204)
            return
        events = b"retry: 1\n\nid: 1\ndata: a\ndata: b\n\ndata: lost" if last is None else b": note\r\nevent: end\r\nid: 2\r\ndata: c\r\n\r\n"
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(events)
        handler.close_connection = True

    pages.routes["/events"] = send
    assert run("sse_reader.py", f"{pages.url}/events")[0] == ["1 message: a", "b", "2 end: c"]


TABLE = b"city,amount\n" + b"".join(b"%s,%d\n" % (city, i) for i in range(500) for city in (b"Bern", b"Rome"))


def test_pandas_reads_over_https(secure_pages: Any, bundle: str) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("fsspec")
    secure_pages.routes["/table.csv"] = lambda handler: handler.answer(TABLE)
    lines, _ = run("pandas_https.py", f"{secure_pages.url}/table.csv", bundle)
    assert lines[0] == "1000 rows" and [line.split() for line in lines[2:4]] == [["Bern", "124750"], ["Rome", "124750"]]


def test_dask_reads_blocks_of_files(pages: Any) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("dask")
    from test_fsspec import send_range

    pages.routes["/part-0.csv"] = pages.routes["/part-1.csv"] = lambda handler: send_range(handler, TABLE)
    lines, _ = run("dask_fsspec.py", f"{pages.url}/part-0.csv", f"{pages.url}/part-1.csv")
    assert lines[0] == f"{2 * (len(TABLE) // 4096)} partitions, 2000 rows"
    assert [line.split() for line in lines[2:4]] == [["Bern", "249500"], ["Rome", "249500"]]
    ranges = {dict(fields).get("Range", "").partition("-")[0] for _, fields in pages.heads}
    assert len(ranges - {"", "bytes=0"}) >= 1, "blocks are read by ranges"


def test_opentelemetry_spans_are_printed(pages: Any) -> None:
    pytest.importorskip("opentelemetry.sdk")
    pages.routes["/from"] = lambda handler: handler.answer(b"", 302, Location="/to")
    lines, _ = run("opentelemetry_spans.py", f"{pages.url}/from?key=secret")
    span = json.loads("\n".join(lines))
    assert span["name"] == "GET" and span["attributes"]["url.full"] == f"{pages.url}/from"
    assert span["attributes"]["http.response.status_code"] == 200 and span["attributes"]["network.protocol.version"] == "1.1"
    assert [event["name"] for event in span["events"]] == ["request", "head", "redirect", "request", "head"]
    trace = span["context"]["trace_id"][2:]
    assert [trace in dict(fields)["traceparent"] for _, fields in pages.heads] == [True, True]


def test_notebook_runs(pages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    from jupyter_client.manager import AsyncKernelManager

    monkeypatch.setenv("HAUL_EXAMPLE_URL", pages.url)
    # The paths of Unix sockets are short. TCP ports could be taken by another program.
    with tempfile.TemporaryDirectory(prefix="nb") as short:
        monkeypatch.setenv("JUPYTER_RUNTIME_DIR", short)
        notebook = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
        assert all(not cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
        kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", connection_file=os.path.join(short, "k.json"))
        nbclient.NotebookClient(notebook, km=kernel, timeout=60).execute()
    first, many, awaited = (cell.outputs for cell in notebook.cells if cell.cell_type == "code")
    assert "<strong>200 OK" in first[-1]["data"]["text/html"] and many[-1]["data"]["text/html"].count("<tr>") == 6
    assert awaited[-1]["text"] == "200 page /awaited\n"
