"""haul.arrow.fetch and haul.shard."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from many_hosts import ManyHosts

import haul

pa = pytest.importorskip("pyarrow")

from haul import arrow  # noqa: E402
from haul.testing import Mock, response  # noqa: E402


def rows(batches: Any) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def batch(**columns: list[Any]) -> Any:
    return pa.record_batch({name: pa.array(values) for name, values in columns.items()})


def test_shard_is_the_documented_hash() -> None:
    for text, origin in [("HTTP://Example.com:80/a?b", "http://example.com"), ("https://h:8443/", "https://h:8443")]:
        number = int(hashlib.sha256(origin.encode()).hexdigest()[:8], 16)
        assert [haul.shard(text, n) for n in (1, 3, 1000)] == [number % n for n in (1, 3, 1000)]
    assert haul.shard("no scheme: at all", 7) == haul.shard("ftp://h/", 7) == 0
    for count in (0, -1, 1 << 32):
        with pytest.raises(ValueError, match="number of shards"):
            haul.shard("http://h/", count)


def test_rows_keep_order_and_input_columns(pages: Any) -> None:
    given = [batch(id=list(range(start, start + 70)), url=[f"{pages.url}/{n}" for n in range(start, start + 70)])
             for start in (0, 70, 140)]  # fmt: skip
    given[0] = given[0].replace_schema_metadata({"a": "b"})
    made = list(arrow.fetch(given, max_parallel=8))
    assert [one.num_rows for one in made] == [70, 70, 70] and made[0].schema.metadata == {b"a": b"b"}
    for one in made:
        one.validate(full=True)
        assert one.schema.names[:2] == ["id", "url"]
        assert pa.schema(list(one.schema)[2:]) == arrow.schema()
    found = rows(made)
    assert [row["id"] for row in found] == list(range(210))
    assert all(row["body"] == f"page /{row['id']}".encode() and row["status"] == 200 for row in found)
    assert pages.most_open <= 8


def test_columns_are_those_of_records(pages: Any) -> None:
    pages.routes["/away"] = lambda handler: handler.answer(b"", 302, Location="/end")
    pages.routes["/end"] = lambda handler: handler.answer("caf\xe9".encode("latin-1"), 404, X_A="1", Content_Type="text/plain")
    (row,) = rows(arrow.fetch([batch(url=[f"{pages.url}/away"])], text=True))
    schema = json.loads((Path(__file__).parents[3] / "docs/records.schema.json").read_text())
    assert set(arrow.schema().names) <= set(schema["properties"])
    for name in ("times", "addresses", "bytes", "tls", "attempts"):
        known = schema["properties"][name]
        properties = known.get("properties") or known["anyOf"][1]["properties"]
        assert {field.name for field in arrow.schema().field(name).type} == set(properties)
    assert row["body"] == "café" and row["status"] == 404 and row["error"] is None and row["method"] == "GET"
    assert row["effective_url"] == f"{pages.url}/end" and row["http_version"] == "1.1"
    assert dict(row["headers"])["x-a"] == ["1"]
    assert row["redirects"] == [{"url": f"{pages.url}/away", "status": 302, "location": "/end"}]
    assert row["attempts"] == {"count": 1, "failed": []} and row["bytes"]["body"] == 4 and row["tls"] is None
    assert row["times"]["total"] > 0 and row["addresses"]["remote_port"] == pages.server_port


def test_failed_urls_are_rows(pages: Any) -> None:
    urls = [f"{pages.url}/a", "no url", None, "http://127.0.0.1:1/", "ftp://h/", f"{pages.url}/b"]
    found = rows(arrow.fetch([batch(url=urls)]))
    assert [row["url"] for row in found] == urls
    assert [(row["error"] or {}).get("name") for row in found] == [
        None, "url", "url", "connect", "unsupported_scheme", None,
    ]  # fmt: skip
    assert [row["attempts"]["count"] for row in found] == [1, 0, 0, 1, 0, 1]
    assert found[3]["error"]["code"] == 7 and found[3]["body"] is None and found[5]["body"] == b"page /b"


def test_methods_headers_and_bodies_come_from_columns(pages: Any) -> None:
    one = pa.record_batch({
        "address": pa.array([f"{pages.url}/1", f"{pages.url}/2"]),
        "how": pa.array(["PUT", None]),
        "fields": pa.array([[("X-A", "1")], None], pa.map_(pa.string(), pa.string())),
        "content": pa.array([b"\x00x", None], pa.binary()),
    })
    found = rows(arrow.fetch([one], url="address", method="how", headers="fields", body="content"))
    assert [row["method"] for row in found] == ["PUT", "GET"]
    by_path = dict(zip([path for path, _ in pages.heads], pages.bodies))
    assert by_path == {"/1": b"\x00x", "/2": b""}
    assert ("X-A", "1") in dict(pages.heads)["/1"] and ("X-A", "1") not in dict(pages.heads)["/2"]


def test_large_contents_wait_for_room(pages: Any) -> None:
    contents = [bytes([65 + n]) * (300_000 + n) for n in range(24)]
    given = batch(url=[f"{pages.url}/{n}" for n in range(24)], how=["PUT"] * 24, content=contents)
    found = arrow.fetch([given], method="how", body="content", max_memory=4 << 20)
    assert sum(one.num_rows for one in found) == 24
    by_path = dict(zip([path for path, _ in pages.heads], pages.bodies))
    assert by_path == {f"/{n}": content for n, content in enumerate(contents)}


def test_values_of_pages_are_a_column(pages: Any) -> None:
    html = "<h1>One</h1><a href='x'>two</a><a href='y'>three</a>"
    pages.routes["/page"] = lambda handler: handler.answer(html.encode(), Content_Type="text/html")
    pages.routes["/json"] = lambda handler: handler.answer(b'{"a": [1, "b"]}', Content_Type="application/json")
    given = [batch(url=[f"{pages.url}/page", "http://127.0.0.1:1/", f"{pages.url}/page"])]
    found = rows(arrow.fetch(given, select="a@href", body_column=None))
    assert [row["values"] for row in found] == [[f"{pages.url}/x", f"{pages.url}/y"], None, [f"{pages.url}/x", f"{pages.url}/y"]]
    named = rows(arrow.fetch(given, select={"title": "h1", "none": "h2"}))
    assert dict(named[0]["values"]) == {"title": ["One"], "none": []} and named[0]["body"] == html.encode()
    values = rows(arrow.fetch([batch(url=[f"{pages.url}/json", f"{pages.url}/page"])], select_json="$.a[*]"))
    assert values[0]["values"] == ["1", '"b"']
    assert values[1]["values"] is None and values[1]["error"] is not None
    with pytest.raises(ValueError):
        arrow.fetch(given, select="a[")


def test_bad_batch_names_column_and_row(pages: Any) -> None:
    good = batch(url=[f"{pages.url}/a"])
    bad: list[tuple[Any, str, dict[str, Any]]] = [
        (batch(address=["http://h/"]), "batch 1: column 'url': there is no such column; the columns are 'address'", {}),
        (batch(url=[1]), "batch 1: column 'url' has the type int64, but it has to be text", {}),
        (batch(url=["http://h/"], status=[1]), "batch 1: column 'status' would occur twice", {}),
        (batch(url=["http://h/"], h=[["a"]]), "batch 1, row 0, column 'h': a field has to be a name and a value", {"headers": "h"}),
        (batch(url=["http://h/"], h=[[{"k": "a", "v": "1"}] * 2]), "the field 'a' occurs twice", {"headers": "h"}),
    ]
    for given, message, names in bad:
        first = pa.record_batch({**good.to_pydict(), "h": pa.array([None], given.schema.field("h").type)}) if names else good
        found = arrow.fetch([first, given], **names)
        assert next(found).num_rows == 1
        with pytest.raises(arrow.BatchError, match=message):
            next(found)
    for wrong in ([1], good, [object()]):
        with pytest.raises(TypeError):
            list(arrow.fetch(wrong))
    with pytest.raises(ValueError):
        arrow.fetch([good], max_parallel=0)
    with pytest.raises(ValueError, match="'status' is the name of another column"):
        arrow.fetch([good], body_column="status")


def test_rows_before_a_bad_one_are_yielded(pages: Any) -> None:
    # Text that is not UTF-8, which no library checks.
    texts = [f"{pages.url}/{n}".encode() for n in range(5)]
    texts[3] = b"http://h/\xff"
    ends = pa.array([0, *[sum(map(len, texts[: n + 1])) for n in range(5)]], pa.int32())
    column = pa.Array.from_buffers(pa.string(), 5, [None, ends.buffers()[1], pa.py_buffer(b"".join(texts))])
    found = arrow.fetch([pa.record_batch({"url": column})])
    assert next(found).column("body").to_pylist() == [f"page /{n}".encode() for n in range(3)]
    with pytest.raises(arrow.BatchError, match="batch 0, row 3, column 'url': 'utf-?8' codec"):
        next(found)


def test_error_of_the_input_comes_after_its_rows(pages: Any) -> None:
    def broken() -> Any:
        yield batch(url=[f"{pages.url}/{n}" for n in range(3)])
        raise OSError("the disk is gone")

    found = arrow.fetch(broken())
    assert next(found).column("body").to_pylist() == [b"page /0", b"page /1", b"page /2"]
    with pytest.raises(OSError, match="the disk is gone"):
        next(found)


def test_unusable_requests_are_rows(pages: Any) -> None:
    given = pa.record_batch({
        "url": pa.array([f"{pages.url}/{n}" for n in range(4)]),
        "how": pa.array(["G T", "GET", "GET\r\nX: 1", "DELETE"]),
        "fields": pa.array([None, [("X\r\nA", "1")], None, [("X-A", "1\r\nX: 2")]], pa.map_(pa.string(), pa.string())),
    })
    found = rows(arrow.fetch([given], method="how", headers="fields"))
    assert [row["error"] is not None for row in found] == [True] * 4 and pages.heads == []
    assert [row["attempts"]["count"] for row in found] == [0] * 4


def test_empty_batches_and_tables_are_accepted(pages: Any) -> None:
    assert list(arrow.fetch([])) == []
    (empty,) = arrow.fetch([batch(url=pa.array([], pa.string()))])
    assert empty.num_rows == 0 and "status" in empty.schema.names
    table = pa.table({"url": [f"{pages.url}/a"]})
    assert rows(arrow.fetch(table, body_column=None)) and "body" not in arrow.schema(None).names
    dictionary = pa.record_batch({"url": pa.array([f"{pages.url}/a"] * 3).dictionary_encode()})
    assert [row["status"] for row in rows(arrow.fetch([dictionary]))] == [200] * 3


def test_batches_are_taken_as_they_are_needed(pages: Any) -> None:
    taken = []

    def endless() -> Any:
        number = 0
        while True:
            taken.append(number)
            yield batch(url=[f"{pages.url}/{number}"] * 1000)
            number += 1

    found = arrow.fetch(endless())
    assert next(found).num_rows == 1000 and len(taken) < 20
    found.close()


def test_large_bodies_divide_a_batch(pages: Any) -> None:
    size, count, memory = 1 << 20, 24, 16 << 20
    given = batch(n=list(range(count)), url=[f"{pages.url}/bytes/{size}"] * count)
    numbers = []
    for one in arrow.fetch([given], max_memory=memory):
        assert one.num_rows * size <= memory // 4
        numbers += one.column("n").to_pylist()
    assert numbers == list(range(count))


MEASURED = """
import sys
import pyarrow as pa
import pyarrow.compute as pc
from haul import arrow

size, count, memory = map(int, sys.argv[2:])
def rows(count):
    return pa.record_batch({"url": pa.array([f"http://{sys.argv[1]}/bytes/{size}?{n}" for n in range(count)])})
def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name))
list(arrow.fetch([pa.record_batch({"url": pa.array([f"http://{sys.argv[1]}/"])})]))
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = status("VmRSS")
fetched = 0
for batch in arrow.fetch([rows(count)], max_memory=memory):
    assert pc.unique(pc.binary_length(batch.column("body"))).to_pylist() == [size]
    fetched += batch.num_rows
assert fetched == count
print(status("VmHWM") - before >> 10)
"""


@pytest.mark.parametrize("size, count, memory", [
    (1_000, 20_000, 8), (100_000, 1_000, 32), (10_000_000, 20, 64), (100_000_000, 8, 512),
])  # fmt: skip
def test_memory_of_a_task_is_bounded(size: int, count: int, memory: int) -> None:
    server = ManyHosts(1, 0)
    try:
        program = [sys.executable, "-c", MEASURED, server.hosts[0], str(size), str(count), str(memory << 20)]
        done = subprocess.run(program, capture_output=True, text=True, check=True)
    finally:
        server.kill()
    print(f"{count} bodies of {size} bytes, max_memory {memory} MiB: {done.stdout.strip()} MiB")
    assert int(done.stdout) <= memory + 64


def test_results_outlive_the_fetch(pages: Any) -> None:
    made = list(arrow.fetch([batch(url=[f"{pages.url}/{n}" for n in range(50)])]))
    kept = made[0].slice(10, 5)
    del made
    assert [row["body"] for row in kept.to_pylist()] == [f"page /{n}".encode() for n in range(10, 15)]


def test_forked_child_ends_without_results(pages: Any) -> None:
    found = arrow.fetch([batch(url=[f"{pages.url}/a"] * 9000), batch(url=[f"{pages.url}/a"])])
    next(found)
    if threading.active_count() and (child := os.fork()) == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert next(found).num_rows == 1


def test_url_with_a_mock_is_not_requested(pages: Any) -> None:
    with Mock() as mock:
        mock.get(f"{pages.url}/1", response(b"1"))
        [row] = rows(arrow.fetch([batch(url=[f"{pages.url}/1"])]))
    assert row["error"]["code"] == 2 and "unmount" in row["error"]["message"]
    assert pages.heads == []
