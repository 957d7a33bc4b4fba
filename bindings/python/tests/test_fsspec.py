"""The file system of fsspec (haul.fsspec)."""

from __future__ import annotations

import asyncio
import io
import pickle
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.callbacks import Callback

import haul
from conftest import pattern, run_python
from haul.fsspec import HaulFileSystem

CONTENT = pattern(1000)


def send_range(handler: Any, content: bytes = CONTENT) -> None:
    """Answers a request for the content or a part of it."""
    asked = handler.headers.get("Range", "")
    if not asked:
        handler.answer(content, ETag='"1"', Content_Type="application/x-data")
        return
    size = len(content)
    first, _, last = asked.removeprefix("bytes=").partition("-")
    start, end = (int(first), min(int(last or size - 1) + 1, size)) if first else (size - int(last), size)
    if start >= size:
        handler.answer(b"", 416)
        return
    handler.answer(content[start:end], 206, Content_Range=f"bytes {start}-{end - 1}/{size}")


@pytest.fixture
def file_system() -> Iterator[Callable[..., HaulFileSystem]]:
    """Makes file systems, and closes them after the test."""
    made: list[HaulFileSystem] = []

    def make(**options: Any) -> HaulFileSystem:
        made.append(HaulFileSystem(skip_instance_cache=True, **options))
        return made[-1]

    yield make
    for files in made:
        files.close()


@pytest.fixture
def files(pages: Any, file_system: Callable[..., HaulFileSystem]) -> HaulFileSystem:
    pages.routes["/data"] = send_range
    pages.routes["/whole"] = lambda handler: handler.answer(CONTENT)
    pages.routes["/missing"] = lambda handler: handler.answer(b"", 404)
    pages.routes["/closed"] = lambda handler: handler.answer(b"", 403)
    return file_system()


@pytest.mark.parametrize("path", ["/data", "/whole"])
@pytest.mark.parametrize(
    "start, end",
    [(None, None), (0, 10), (5, 10), (5, None), (None, 7), (-10, None), (-10, -2), (None, -990), (3, -3), (990, 2000), (7, 7), (9, 3)],
)
def test_cat_file_returns_a_slice(files: HaulFileSystem, pages: Any, path: str, start: int | None, end: int | None) -> None:
    assert files.cat_file(pages.url + path, start=start, end=end) == CONTENT[start:end]


def test_cat_file_beyond_the_end_is_empty(files: HaulFileSystem, pages: Any) -> None:
    assert files.cat_file(f"{pages.url}/data", start=1000, end=1010) == b""


def test_cat_file_refuses_another_range(files: HaulFileSystem, pages: Any) -> None:
    pages.routes["/other"] = lambda handler: handler.answer(CONTENT[20:30], 206, Content_Range="bytes 20-29/1000")
    with pytest.raises(ValueError, match="another range, which begins at 20"):
        files.cat_file(f"{pages.url}/other", start=10, end=20)


def test_cat_sends_requests_side_by_side(files: HaulFileSystem, pages: Any) -> None:
    all_came = threading.Barrier(5)

    def answer_together(handler: Any) -> None:
        all_came.wait(20)
        handler.answer(handler.path.encode())

    urls = [f"{pages.url}/together?{i}" for i in range(5)]
    pages.routes["/together"] = answer_together
    assert files.cat(urls) == {url: url.removeprefix(pages.url).encode() for url in urls}


def test_file_reads_ranges(files: HaulFileSystem, pages: Any) -> None:
    with files.open(f"{pages.url}/data", block_size=100, cache_type="readahead") as file:
        assert file.size == 1000
        file.seek(500)
        assert file.read(20) == CONTENT[500:520]
        file.seek(-3, 2)
        assert file.read() == CONTENT[-3:]
        file.seek(0)
        assert file.read() == CONTENT
    ranges = [value for _, fields in pages.heads for name, value in fields if name == "Range"]
    assert ranges == ["bytes=500-619", "bytes=997-999"]


def test_file_of_a_server_without_ranges_is_read_from_its_begin(files: HaulFileSystem, pages: Any) -> None:
    with files.open(f"{pages.url}/whole", block_size=100) as file:
        assert file.read(10) == CONTENT[:10]
        file.seek(500)
        with pytest.raises(ValueError, match="block_size=0"):
            file.read(10)
    with files.open(f"{pages.url}/whole", block_size=0) as file:
        assert file.read(10) + file.read() == CONTENT
        with pytest.raises(ValueError, match="rewound"):
            file.seek(0)


def test_file_of_unknown_size_is_a_stream(files: HaulFileSystem, pages: Any) -> None:
    def send_chunks(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n")

    pages.routes["/chunks"] = send_chunks
    with files.open(f"{pages.url}/chunks") as file:
        assert file.size is None
        assert file.read(4) + file.read(4) == b"abcdef"


def test_files_and_file_systems_can_be_pickled(
    files: HaulFileSystem, pages: Any, file_system: Callable[..., HaulFileSystem]
) -> None:
    with files.open(f"{pages.url}/data", block_size=100) as file:
        file.seek(10)
        with pickle.loads(pickle.dumps(file)) as other:
            assert other.read(5) == CONTENT[10:15]
    own = file_system(headers={"X-Mine": "1"}, client_kwargs={"headers": {"X-All": "2"}})
    copy = pickle.loads(pickle.dumps(own))
    copy.cat_file(pages.url)
    copy.close()
    assert {("X-Mine", "1"), ("X-All", "2")} <= set(pages.heads[-1][1])


def test_info_asks_again_where_head_is_refused(files: HaulFileSystem, pages: Any) -> None:
    assert files.info(f"haul+{pages.url}/data") == {
        "name": f"{pages.url}/data", "size": 1000, "type": "file", "mimetype": "application/x-data", "ETag": '"1"', "url": f"{pages.url}/data",
    }  # fmt: skip
    pages.routes["/get"] = lambda handler: handler.answer(CONTENT, 405 if handler.command == "HEAD" else 200)
    assert files.info(f"{pages.url}/get")["size"] == 1000
    assert files.exists(f"{pages.url}/get") and files.isfile(f"{pages.url}/get")


def test_time_of_a_change_is_that_of_the_server(files: HaulFileSystem, pages: Any) -> None:
    pages.routes["/old"] = lambda handler: handler.answer(b"x", Last_Modified="Sun, 06 Nov 1994 08:49:37 GMT")
    assert files.modified(f"{pages.url}/old") == datetime(1994, 11, 6, 8, 49, 37, tzinfo=timezone.utc)
    before = datetime.now(timezone.utc)
    assert files.modified(f"{pages.url}/data") >= before


def test_failures_are_those_of_files(files: HaulFileSystem, pages: Any) -> None:
    for read in (files.info, files.cat_file, files.open, files.ls):
        with pytest.raises(FileNotFoundError):
            read(f"{pages.url}/missing")
        with pytest.raises(haul.HTTPError):
            read(f"{pages.url}/closed")
    assert not files.exists(f"{pages.url}/missing", strict=True)
    assert not files.exists(f"{pages.url}/closed")
    with pytest.raises(haul.HTTPError):
        files.exists(f"{pages.url}/closed", strict=True)
    with pytest.raises(NotImplementedError):
        files.open(f"{pages.url}/data", "wb")
    with pytest.raises(TypeError, match="'use_foobar'"):
        HaulFileSystem(use_foobar=True)
    with pytest.raises(TypeError, match="'user_agent'"):
        HaulFileSystem(client_kwargs={"user_agent": "me"})


LISTING = """<title>/dir/</title><a href="../">up</a> <a href="?C=N;O=D">Name</a> <a href="/dir/">here</a>
<A HREF="a.csv">a</A> <a href='/dir/b%20b.csv#top'>b</a> <a href="sub/">sub</a> <a href="x?a=1&amp;b=2">x</a>
<a href="https://localhost:{port}/dir/secure">s</a> <a href="http://elsewhere.example/dir/c">c</a> {url}/dir/text.csv <a>none</a>"""


def serve_listing(pages: Any) -> None:
    page = LISTING.format(url=pages.url, port=pages.server_port).encode()
    pages.routes["/dir/"] = lambda handler: handler.answer(page, Content_Type="text/html; charset=utf-8")
    pages.routes["/dir/sub/"] = lambda handler: handler.answer(b"<a href=d.csv>", Content_Type="text/html")
    pages.routes["/dir/sub"] = lambda handler: handler.answer(b"", 301, Location="/dir/sub/")
    pages.routes["/dir/binary"] = lambda handler: handler.answer(b"<a href=e>\0")
    pages.routes["/dir/json"] = lambda handler: handler.answer(b'"<a href=e>"', Content_Type="application/json")


def test_ls_returns_links_below_the_page(
    files: HaulFileSystem, pages: Any, file_system: Callable[..., HaulFileSystem]
) -> None:
    serve_listing(pages)
    base = f"{pages.url}/dir"
    names = ["a.csv", "b%20b.csv", "sub/", "text.csv", "x?a=1&b=2"]
    assert files.ls(f"{base}/", detail=False) == [f"{base}/{name}" for name in names]
    assert {"name": f"{base}/sub/", "size": None, "type": "directory"} in files.ls(f"{base}/")
    plain = file_system(simple_links=False, same_scheme=False)
    links = plain.ls(f"{base}/", detail=False)
    assert f"{base}/text.csv" not in links and f"{base.replace('http', 'https', 1)}/secure" in links
    assert files.isdir(f"{base}/") and not files.isdir(f"{base}/a.csv")
    assert not files.isdir(f"{base}/binary") and not files.isdir(f"{base}/json")


def test_ls_returns_no_names_that_lead_up(files: HaulFileSystem, pages: Any, tmp_path: Path) -> None:
    base = f"{pages.url}/dir"
    wrong = ["../../pwned", "a/../../../pwned", "%2e%2e/pwned", ".%2E/.%2e/pwned", "..%2fpwned", "a%2f..%5c..%2fpwned"]
    wrong += ["a?b=/../../../pwned", "a?%2f..%2fpwned"]
    text = " ".join(f'{base}/{name} <a href="{name}"></a><a href="{base}/{name}"></a>' for name in wrong)
    page = f"{text} {base}/x/../inner.csv {base}/a..b {base}/..c".encode()
    pages.routes["/dir/"] = lambda handler: handler.answer(page, Content_Type="text/html")
    pages.routes["/dir/inner.csv"] = lambda handler: handler.answer(b"inner")
    for name in ("a..b", "..c"):
        pages.routes[f"/dir/{name}"] = lambda handler: handler.answer(b"text")
    assert files.ls(f"{base}/", detail=False) == [f"{base}/..c", f"{base}/a..b", f"{base}/inner.csv"]
    (tmp_path / "in").mkdir()
    files.get(f"{base}/", str(tmp_path / "in" / "out"), recursive=True)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert sorted(path.name for path in (tmp_path / "in" / "out").iterdir()) == ["..c", "a..b", "inner.csv"]


def test_recursive_get_stores_all_files(files: HaulFileSystem, pages: Any, tmp_path: Path) -> None:
    pages.routes["/top/"] = lambda handler: handler.answer(b"<a href=a><a href=sub/>", Content_Type="text/html")
    pages.routes["/top/sub"] = lambda handler: handler.answer(b"", 301, Location="/top/sub/")
    pages.routes["/top/sub/"] = lambda handler: handler.answer(b"<a href=b>", Content_Type="text/html")
    pages.routes["/top/a"] = pages.routes["/top/sub/b"] = lambda handler: handler.answer(handler.path.encode())
    into = tmp_path / "into"
    files.get(f"{pages.url}/top/", str(into), recursive=True)
    assert (into / "a").read_bytes() == b"/top/a" and (into / "sub" / "b").read_bytes() == b"/top/sub/b"


def test_glob_takes_a_question_mark_for_a_query(files: HaulFileSystem, pages: Any) -> None:
    serve_listing(pages)
    base = f"{pages.url}/dir"
    assert files.glob(f"{base}/*.csv") == [f"{base}/a.csv", f"{base}/b%20b.csv", f"{base}/text.csv"]
    assert files.glob(f"{base}/x?a=*") == [f"{base}/x?a=1&b=2"]
    assert files.glob(f"{base}/**/*.csv")[-1] == f"{base}/text.csv" and f"{base}/sub/d.csv" in files.glob(f"{base}/**")
    assert files.glob(f"{base}/sub*") == [f"{base}/sub"] and f"{base}/sub/" in files.glob(f"{base}/*")
    assert files.glob(f"{base}/a.csv") == [f"{base}/a.csv"] and files.glob(f"{pages.url}/missing") == []
    assert [name for _, _, names in files.walk(f"{base}/") for name in names if name.endswith("d.csv")] == ["d.csv"]


def test_listings_are_kept_until_a_file_is_written(pages: Any, file_system: Callable[..., HaulFileSystem]) -> None:
    serve_listing(pages)
    files = file_system(use_listings_cache=True)
    base = f"{pages.url}/dir"
    for _ in range(2):
        files.ls(f"{base}/")
    assert len(pages.heads) == 1
    files.pipe_file(f"{base}/new", b"x")
    files.ls(f"{base}/", detail=False)
    assert len(pages.heads) == 3


def test_get_file_and_put_file_tell_their_progress(files: HaulFileSystem, pages: Any, tmp_path: Path) -> None:
    into, progress = tmp_path / "data", Callback()
    files.get_file(f"{pages.url}/data", into, chunk_size=300, callback=progress)
    assert into.read_bytes() == CONTENT and (progress.size, progress.value) == (1000, 1000)
    for local in (into, io.BytesIO(CONTENT)):
        progress = Callback()
        files.put_file(local, f"{pages.url}/new", method="PUT", callback=progress)
        assert pages.bodies[-1] == CONTENT and (progress.size, progress.value) == (1000, 1000)
        assert ("Content-Length", "1000") in pages.heads[-1][1]


def test_create_does_not_overwrite(files: HaulFileSystem, pages: Any) -> None:
    pages.routes["/there"] = lambda handler: handler.answer(b"", 412 if "If-None-Match" in handler.headers else 200)
    files.pipe_file(f"{pages.url}/there", b"x")
    with pytest.raises(FileExistsError):
        files.pipe_file(f"{pages.url}/there", b"x", mode="create")
    assert pages.bodies == [b"x", b"x"]


def test_encoded_urls_are_checked(pages: Any, file_system: Callable[..., HaulFileSystem]) -> None:
    file_system().cat_file(f"{pages.url}/a b")
    assert pages.heads[-1][0] == "/a%20b"
    with pytest.raises(haul.exceptions.InvalidURL):
        file_system(encoded=True).cat_file(f"{pages.url}/a b")


def test_asynchronous_file_system_reads_in_the_loop(pages: Any) -> None:
    pages.routes["/data"] = send_range

    async def main() -> None:
        files = HaulFileSystem(asynchronous=True, skip_instance_cache=True)
        async with await files.set_session():
            assert await files._cat_file(f"{pages.url}/data", start=1, end=5) == CONTENT[1:5]
            async with await files.open_async(f"{pages.url}/data") as file:
                assert file.size == 1000 and await file.read(10) + await file.read() == CONTENT

    asyncio.run(main())


def test_protocols_of_haul_need_no_registration(pages: Any) -> None:
    pages.routes["/data"] = send_range
    code = """
        import sys, fsspec
        with fsspec.open("haul+" + sys.argv[1], block_size=10) as file:
            print(type(file.fs).__name__, file.read(2))
        import haul.fsspec
        haul.fsspec.register()
        print(type(fsspec.filesystem("https")).__name__)
        """
    assert run_python(code, f"{pages.url}/data") == "HaulFileSystem b'\\x00\\x01'\nHaulFileSystem\n"


def test_pyarrow_reads_parquet_by_ranges(files: HaulFileSystem, pages: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2, 3]}), buffer)
    pages.routes["/table.parquet"] = lambda handler: send_range(handler, buffer.getvalue())
    assert pq.read_table(f"{pages.url}/table.parquet", filesystem=files).to_pydict() == {"a": [1, 2, 3]}


def test_engines_read_by_haul(pages: Any) -> None:
    pages.routes["/table.csv"] = lambda handler: send_range(handler, b"a,b\n1,2\n3,4\n")
    url = f"haul+{pages.url}/table.csv"
    pandas = pytest.importorskip("pandas")
    assert pandas.read_csv(url)["b"].sum() == 6
    assert pytest.importorskip("dask.dataframe").read_csv(url)["a"].sum().compute() == 4
    duckdb = pytest.importorskip("duckdb")
    read_by_all = fsspec.filesystem("haul+http")
    duckdb.register_filesystem(read_by_all)
    assert duckdb.sql(f"select sum(b) from read_csv('{url}')").fetchall() == [(6,)]
    read_by_all.close()


def test_stream_gives_its_lines(files: HaulFileSystem, pages: Any) -> None:
    lines = [b"one\n", b"two\n", b"\n", b"x" * 100_000 + b"\n", b"last"]
    pages.routes["/lines"] = lambda handler: handler.answer(b"".join(lines))
    url = f"{pages.url}/lines"
    with files.open(url, block_size=0) as file:
        assert list(file) == lines
    with files.open(url, block_size=0) as file:
        assert (file.readline(), file.tell(), file.read(2), file.tell()) == (b"one\n", 4, b"tw", 6)
        assert file.readuntil(b"\n\n") == b"o\n\n"
        assert file.read() == lines[3] + lines[4] and file.readline() == b""
    with files.open(url, block_size=0) as file:
        file.readline()
        assert file.read(90_000) == b"".join(lines)[4:90_004], "as many bytes as before a line was read"


def test_glob_with_final_slash_gives_directories(files: HaulFileSystem, pages: Any) -> None:
    page = b'<a href="a.csv">a</a><a href="sub/">s</a>'
    pages.routes["/dir/"] = lambda handler: handler.answer(page, Content_Type="text/html")
    pages.routes["/dir/sub/"] = lambda handler: handler.answer(b"", Content_Type="text/html")
    assert files.glob(f"{pages.url}/dir/*/") == [f"{pages.url}/dir/sub/"]
