"""The archives of `haul --warc`, read by warcio."""

from __future__ import annotations

import gzip
import os
import subprocess
import types
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker
from warcio.recordloader import ArcWarcRecord

PAGES = {
    "/plain": (b"plain " * 1000, {}),
    "/gzip": (gzip.compress(b"text " * 5000), {"Content-Encoding": "gzip"}),
    "/empty": (b"", {}),
    "/large": (bytes(i % 251 for i in range(1_000_000)), {}),
    "/again": (b"plain " * 1000, {}),
}


def haul() -> str:
    """Returns the path of the command: `HAUL`, or the build for the tests of the command."""
    root = Path(__file__).parents[3]
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    path = os.environ.get("HAUL", str(target / "debug" / "haul"))
    if not os.access(path, os.X_OK):
        pytest.skip(f"there is no {path}: cargo build --workspace, or set HAUL")
    return path


def answer(handler: Any) -> None:
    body, fields = PAGES[handler.path]
    handler.send_response(200)
    for name, value in fields.items():
        handler.send_header(name, value)
    if handler.path == "/gzip":
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for start in range(0, len(body), 50):
            piece = body[start : start + 50]
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        handler.wfile.write(b"0\r\n\r\n")
    else:
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
    handler.wfile.flush()


def read(path: Path) -> list[tuple[ArcWarcRecord, bytes]]:
    """Returns the records of an archive with their decoded content."""
    with path.open("rb") as file:
        return [(record, record.content_stream().read()) for record in ArchiveIterator(file, check_digests="raise")]


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
@pytest.mark.parametrize("options", [["--no-parallel"], ["--compressed"], ["--warc-max-size", "20K"]])
def test_archive_is_valid_by_warcio(pages: Any, tmp_path: Path, name: str, options: list[str]) -> None:
    pages.routes.update(dict.fromkeys(PAGES, answer))
    urls = [f"{pages.url}{path}" for path in PAGES]
    args = [haul(), "-sS", "--warc", name, "-o", "/dev/null", *options, *urls]
    subprocess.run(args, cwd=tmp_path, check=True, timeout=60)
    files = sorted(tmp_path.glob("a*.warc*"))
    assert Checker(types.SimpleNamespace(inputs=[str(file) for file in files], verbose=False)).process_all() == 0
    found = {}
    again = {}
    kinds = []
    for file in files:
        for record, content in read(file):
            kinds.append(record.rec_type)
            url = record.rec_headers.get_header("WARC-Target-URI")
            assert record.rec_headers.protocol == "WARC/1.1"
            if record.rec_type == "response":
                assert record.http_headers.get_statuscode() == "200"
                found[url] = content
            elif record.rec_type == "revisit":
                again[url] = record.rec_headers.get_header("WARC-Refers-To-Target-URI")
            elif record.rec_type == "request":
                assert record.http_headers.protocol == "GET"
    assert kinds.count("request") == kinds.count("response") + kinds.count("revisit") == len(urls)
    assert kinds.count("warcinfo") == len(files)
    found.update({url: found[first] for url, first in again.items()})
    for url, (path, (body, fields)) in zip(urls, PAGES.items()):
        assert found[url] == (gzip.decompress(body) if fields else body), path
