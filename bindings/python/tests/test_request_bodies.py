"""Request bodies: types, forms, files, and their headers."""

from __future__ import annotations

import array
import io
import json
import mmap
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
import requests

import haul
from haul.structures import CaseInsensitiveDict


@pytest.mark.parametrize("data", [bytearray(b"abcd"), memoryview(b"abcd"), memoryview(b"a.b.c.d")[::2], array.array("h", b"abcd"), "mmap"])
def test_bytes_like_objects_are_bodies(pages: Any, tmp_path: Path, data: Any) -> None:
    if data == "mmap":
        (tmp_path / "file").write_bytes(b"..abcd")
        with open(tmp_path / "file", "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        data.seek(2)
    haul.post(f"{pages.url}/whole", data=data)
    assert pages.bodies[-1] == b"abcd" and dict(pages.heads[-1][1])["Content-Length"] == "4"
    if not hasattr(data, "read"):
        haul.post(f"{pages.url}/pieces", data=iter([data, data]))
        assert pages.bodies[-1] == b"abcdabcd"
        haul.post(f"{pages.url}/form", files={"f": data})
        assert b"\r\n\r\nabcd\r\n" in pages.bodies[-1]


def test_body_types_have_their_headers(pages: Any, tmp_path: Path) -> None:
    session = haul.Session()
    url = f"{pages.url}/post"

    def sent(**kwargs: Any) -> tuple[bytes, dict[str, str]]:
        response = session.post(url, **kwargs)
        assert response.status_code == 200
        return pages.bodies[-1], dict(pages.heads[-1][1])

    body, fields = sent(data={"a": "b c", "d": [1, 2]})
    assert (body, fields["Content-Type"]) == (b"a=b+c&d=1&d=2", "application/x-www-form-urlencoded")
    body, fields = sent(data=[("k", "v"), ("k", "w")])
    assert body == b"k=v&k=w"
    body, fields = sent(data="grün")
    assert body == "grün".encode() and "Content-Type" not in fields
    body, fields = sent(json={"a": [1, None]})
    assert json.loads(body) == {"a": [1, None]} and fields["Content-Type"] == "application/json"
    body, fields = sent(json={"a": 1}, headers={"content-type": "application/vnd.x+json"})
    assert fields.get("content-type") == "application/vnd.x+json" and "Content-Type" not in fields
    with pytest.raises(haul.exceptions.InvalidJSONError):
        session.post(url, json=float("nan"))
    with pytest.raises(TypeError, match="data has to be a form.*PosixPath"):
        session.post(url, data=tmp_path)

    body, fields = sent(data=(piece for piece in (b"ab", b"", "cd", b"e" * 100_000)))
    assert body == b"abcd" + b"e" * 100_000
    assert fields["Transfer-Encoding"] == "chunked" and "Content-Length" not in fields
    body, fields = sent(data=iter([b"ab", b"c"]), headers={"content-length": "3"})
    assert (body, fields["content-length"], fields.get("Transfer-Encoding")) == (b"abc", "3", None)
    body, fields = sent(data=io.StringIO("\u00fcber"))
    assert body == "\u00fcber".encode() and fields["Content-Length"] == "5"
    file = tmp_path / "f.bin"
    file.write_bytes(os.urandom(200_000))
    with file.open("rb") as opened:
        body, fields = sent(data=opened)
    assert body == file.read_bytes() and fields["Content-Length"] == "200000"
    body, fields = sent(data=io.BytesIO(b"in memory"))
    assert body == b"in memory" and fields["Content-Length"] == "9"


def test_exception_of_a_generator_is_raised(pages: Any) -> None:
    class Mine(Exception):
        pass

    def pieces() -> Any:
        yield b"one"
        raise Mine("in the middle")

    with pytest.raises(Mine, match="in the middle"):
        haul.post(f"{pages.url}/post", data=pieces())
    with pytest.raises(TypeError):
        haul.post(f"{pages.url}/post", data=iter([1, 2]))


def test_files_are_sent_as_multipart_form(httpbin: Any, tmp_path: Path) -> None:
    path = tmp_path / "named.txt"
    path.write_bytes(b"from a file")
    with path.open("rb") as opened:
        response = haul.post(
            httpbin.url + "/post",
            data={"field": "välue", "many": ["1", "2"]},
            files={"a": opened, "b": ("other.bin", b"\x00\x01", "application/x-b", {"X-Part": "1"}), "c": "text"},
        )
    assert f'filename="{path.name}"'.encode() in response.request.body
    got = response.json()
    assert got["form"] == {"field": "välue", "many": ["1", "2"]}
    assert got["files"]["a"] == "from a file" and got["files"]["c"] == "text"
    assert response.request.headers["Content-Type"].startswith("multipart/form-data; boundary=")
    with pytest.raises(ValueError):
        haul.post(httpbin.url + "/post", data="text", files={"a": b"b"})


@pytest.mark.parametrize(
    "content_type, boundary",
    [
        ("multipart/form-data; boundary=abc", b"abc"),
        (b'Multipart/Form-Data; charset=utf-8; Boundary="abc"', b"abc"),
        ('multipart/form-data; boundary="a;b"; charset=utf-8', b"a;b"),
        (b'multipart/form-data; name="\xe4"; boundary=abc', b"abc"),
    ],
)
def test_form_uses_the_boundary_of_its_header(pages: Any, content_type: Any, boundary: bytes) -> None:
    headers, files = {"content-type": content_type}, {"f": ("name", b"content")}
    part = b'Content-Disposition: form-data; name="f"; filename="name"\r\n'
    with haul.Client() as client:
        for send in (haul.Session().post, client.post):
            send(pages.url, headers=headers, files=files)  # type: ignore[operator]
            body = pages.bodies[-1]
            assert body.startswith(b"--%s\r\n" % boundary + part) and body.endswith(b"\r\n\r\ncontent\r\n--%s--\r\n" % boundary)
            assert len(body) == int(CaseInsensitiveDict(pages.heads[-1][1])["content-length"])
    haul.post(pages.url, headers={"content-type": "multipart/form-data"}, files=files)
    assert part in pages.bodies[-1]


@pytest.mark.parametrize("content_type", ["multipart/form-data; boundary=€", b"multipart/form-data; boundary=\xe4"])
def test_boundary_beyond_ascii_is_refused(pages: Any, content_type: Any) -> None:
    with pytest.raises(haul.exceptions.InvalidHeader, match="boundary"):
        haul.post(pages.url, headers={"Content-Type": content_type}, files={"f": b"content"})
    assert pages.heads == []


@pytest.mark.parametrize("kind", ["", None])
def test_part_without_a_type_has_no_content_type(pages: Any, kind: Any) -> None:
    haul.post(pages.url, files={"f": ("name", b"content", kind)})
    assert b'filename="name"\r\n\r\ncontent' in pages.bodies[-1]


def test_invalid_multipart_parts_are_refused(pages: Any) -> None:
    for part in (("f", b"x", "text/plain\r\nX: 1"), ("f", b"x", "text/plain", {"X": "1\r\nY: 2"}), ("f", b"x", "text/plain", {"X\n": "1"})):
        with pytest.raises(haul.exceptions.InvalidHeader):
            haul.post(pages.url, files={"a": part})
    for part in (Path("name.txt"), ("f", Path("name.txt")), ("f", [b"x"])):
        with pytest.raises(TypeError, match="a file has to be bytes, text or an object with read, not "):
            haul.post(pages.url, files={"a": part})
    haul.post(pages.url, files={'a"\r\nX: 1': ('f"\r\nX: 1', b"x")})
    assert b'name="a%22%0D%0AX: 1"; filename="f%22%0D%0AX: 1"\r\n\r\nx' in pages.bodies[-1]


def test_wrong_content_length_header_is_replaced(pages: Any) -> None:
    session = haul.Session()
    for _ in range(2):
        for kwargs in ({"data": b"abc"}, {"data": {"a": "b"}}, {"json": [1]}, {"files": {"f": b"c"}}):
            session.post(pages.url, headers={"content-length": "1"}, **kwargs)
            fields = CaseInsensitiveDict(pages.heads[-1][1])
            assert fields["content-length"] == str(len(pages.bodies[-1])) and len(pages.bodies[-1]) > 2
        session.headers["Content-Length"] = "1"


def test_replaced_prepared_body_gets_its_own_length(pages: Any) -> None:
    session = haul.Session()
    prepared = haul.Request("POST", pages.url, data={"a": "b"}).prepare()
    for body in ("exactly this, ü", b"or that", ""):
        prepared.body = body
        response = session.send(prepared)
        sent = dict(pages.heads[-1][1])["Content-Length"]
        assert pages.bodies[-1] == (body.encode() if isinstance(body, str) else body)
        assert sent == response.request.headers["Content-Length"] == str(len(pages.bodies[-1]))


@pytest.mark.parametrize("kind", [requests, haul])
def test_body_type_replaces_a_removed_content_type(kind: Any, pages: Any) -> None:
    session = kind.Session()
    session.headers["Content-Type"] = "text/plain"
    for arguments in ({"data": {"a": "b"}}, {"json": {}}, {"data": b"x"}):
        session.post(pages.url, **arguments)
        session.post(pages.url, headers={"content-type": None}, **arguments)
    kinds = [CaseInsensitiveDict(dict(fields)).get("Content-Type") for _, fields in pages.heads]
    assert kinds == ["text/plain", "application/x-www-form-urlencoded", "text/plain", "application/json", "text/plain", None]


def test_file_in_a_tar_stream_is_sent(pages: Any) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        member = tarfile.TarInfo("member")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"data"))
    archive.seek(0)
    with tarfile.open(fileobj=archive, mode="r|") as tar:
        for entry in tar:
            assert haul.post(pages.url, data=tar.extractfile(entry)).status_code == 200
    assert pages.bodies[-1] == b"data"
