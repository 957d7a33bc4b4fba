"""python -m haul.fetch."""

from __future__ import annotations

import base64
import csv
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import haul

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

from haul._table_files import TableFile  # noqa: E402
from haul.fetch import main  # noqa: E402


def written(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


@pytest.fixture
def table(pages: Any, tmp_path: Path) -> Path:
    urls = [f"{pages.url}/{n}" for n in range(95)] + ["no url"]
    path = tmp_path / "urls.parquet"
    parquet.write_table(pa.table({"id": list(range(96)), "url": urls}), path, row_group_size=10)
    return path


def test_rows_of_a_table_are_fetched(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert main([str(table), str(out)]) == 0
    rows = written(out)
    assert [row["id"] for row in rows] == list(range(96))
    assert all(row["body"] == f"page /{row['id']}".encode() for row in rows[:95])
    assert rows[95]["error"]["name"] == "url"
    assert {path.name for path in tmp_path.iterdir()} == {"urls.parquet", "out.parquet"}


def test_command_of_the_guide_fetches_a_table(pages: Any, tmp_path: Path) -> None:
    guide = Path(__file__).parents[3] / "docs" / "python.md"
    if not guide.exists():
        pytest.skip("the guide is in the source tree of haul only")
    line = re.search("^python (-m haul.fetch .*)$", guide.read_text(), re.M)
    assert line
    parquet.write_table(pa.table({"url": [f"{pages.url}/{n}" for n in range(3)]}), tmp_path / "urls.parquet")
    subprocess.run([sys.executable, *shlex.split(line[1])], cwd=tmp_path, check=True)
    assert [row["body"] for row in written(tmp_path / "pages.parquet")] == [b"page /0", b"page /1", b"page /2"]


def parts_of(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "out.parquet.parts").glob("*.parquet"))


def test_interrupted_run_continues_after_complete_parts(pages: Any, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    fetch, count = haul.arrow.fetch, 0

    def interrupted(*given: Any, **settings: Any) -> Any:
        nonlocal count
        for batch in fetch(*given, **settings):
            count += 1
            if count == 4:
                raise KeyboardInterrupt
            yield batch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(haul.arrow, "fetch", interrupted)
        assert main([str(table), str(out)]) == 130
    assert not out.exists()
    assert parts_of(tmp_path) == ["00000000.parquet", "00000001.parquet", "00000002.parquet"]
    pages.heads.clear()
    assert main([str(table), str(out), "--url", "id"]) == 2
    assert main([str(table), str(out)]) == 0
    # Requests that were on their way when the first run ended may arrive late.
    assert {int(path[1:]) for path, _ in pages.heads} == set(range(30, 95))
    assert [row["id"] for row in written(out)] == list(range(96))


def test_killed_run_continues(pages: Any, tmp_path: Path) -> None:
    path, out = tmp_path / "urls.parquet", tmp_path / "out.parquet"
    urls = [f"{pages.url}/{n}" for n in range(50)]
    urls[30] = f"{pages.url}/never"
    parquet.write_table(pa.table({"url": urls}), path, row_group_size=10)
    command = [sys.executable, "-m", "haul.fetch", str(path), str(out), "--max-parallel", "1"]
    child = subprocess.Popen(command)
    while not pages.heads or pages.heads[-1][0] != "/never":
        assert child.poll() is None
        time.sleep(0.01)
    assert main([str(path), str(out)]) == 2  # another run writes to the same parts
    while len(parts_of(tmp_path)) < 3:
        time.sleep(0.01)
    child.kill()
    child.wait()
    pages.released.set()
    # Without a reply, the second run would wait for its stall time.
    pages.routes["/never"] = lambda handler: handler.answer(b"late")
    pages.heads.clear()
    assert main([str(path), str(out)]) == 0
    assert len(pages.heads) == 20 and [row["url"] for row in written(out)] == urls


def test_large_row_groups_are_several_parts(pages: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("haul._table_files.PART_ROWS", 10)
    path, out = tmp_path / "urls.parquet", tmp_path / "out.parquet"
    urls = [f"{pages.url}/{n}" for n in range(70)]
    parquet.write_table(pa.table({"url": urls}), path, row_group_size=35)
    tables = [list(TableFile(path).parts(first)) for first in range(9)]
    assert [[batch.num_rows for batch in part] for part in tables[0]] == [[10], [10], [10], [5]] * 2
    for first, parts in enumerate(tables):
        left = [url.as_py() for part in parts for batch in part for url in batch.column("url")]
        assert left == urls[35 * (first // 4) + 10 * (first % 4) :]
    assert main([str(path), str(out)]) == 0 and [row["url"] for row in written(out)] == urls


def test_other_formats_are_read_and_written(pages: Any, tmp_path: Path) -> None:
    urls = [f"{pages.url}/{n}" for n in range(5)]
    # A first column that looks like numbers for a while.
    names = ["001", "002", "x, y", '"', ""]
    with open(tmp_path / "urls.csv", "w", newline="") as file:
        csv.writer(file).writerows([("name", "url"), *zip(names, urls)])
    (tmp_path / "urls.jsonl").write_text("".join(json.dumps({"name": n, "url": u}) + "\n" for n, u in zip(names, urls)))
    with pa.ipc.new_file(str(tmp_path / "urls.arrow"), pa.schema({"name": pa.string(), "url": pa.string()})) as file:
        file.write(pa.table({"name": names, "url": urls}))
    for given in ("urls.csv", "urls.jsonl", "urls.arrow"):
        for made in ("out.parquet", "out.arrow", "out.jsonl", "out.csv"):
            out = tmp_path / made
            assert main([str(tmp_path / given), str(out), "--quiet"]) == 0
            rows: list[dict[str, Any]]
            if made == "out.csv":
                rows = list(csv.DictReader(out.open(newline="")))
            elif made == "out.jsonl":
                rows = [json.loads(line) for line in out.read_text().splitlines()]
            else:
                rows = written(out) if made == "out.parquet" else pa.ipc.open_file(str(out)).read_all().to_pylist()
            assert [(row["name"], row["url"]) for row in rows] == list(zip(names, urls))
            assert [int(row["status"]) for row in rows] == [200] * 5
            if made in ("out.jsonl", "out.csv"):
                assert base64.b64decode(rows[4]["body_base64"]) == b"page /4"
                fields = rows[4]["headers"]
                assert (json.loads(fields) if made == "out.csv" else fields)["content-length"] == ["7"]
            out.unlink()
    assert main([str(tmp_path / "urls.csv"), str(tmp_path / "out.csv"), "--text", "--select", "h1"]) == 0
    (first, *_) = csv.DictReader((tmp_path / "out.csv").open(newline=""))
    assert first["body"] == "page /0" and first["values"] == "[]"


def test_progress_is_shown_on_a_terminal(table: Path, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert main([str(table), str(tmp_path / "out.parquet")]) == 0
    shown = capsys.readouterr().err
    assert shown.startswith("\r[") and "100% of 96 96 rows, 1 failed, " in shown and shown.endswith("\x1b[K\n")


def test_empty_table_has_all_columns(tmp_path: Path) -> None:
    path, out = tmp_path / "urls.parquet", tmp_path / "out.parquet"
    parquet.write_table(pa.table({"id": pa.array([], pa.int64()), "url": pa.array([], pa.string())}), path)
    assert main([str(path), str(out)]) == 0
    assert parquet.read_schema(out).names == ["id", "url", *haul.arrow.schema().names]


def test_shards_of_a_table_are_the_whole(tmp_path: Path) -> None:
    urls = [f"http://127.0.0.{n}:1/" for n in range(1, 9)]
    path = tmp_path / "urls.parquet"
    parquet.write_table(pa.table({"url": urls}), path, row_group_size=3)
    found = []
    for shard in ("0/3", "1/3", "2/3"):
        assert main([str(path), str(tmp_path / "out.parquet"), "--shard", shard, "--no-body"]) == 0
        rows = written(tmp_path / "out.parquet")
        assert all(haul.shard(row["url"], 3) == int(shard[0]) for row in rows)
        found += [row["url"] for row in rows]
    assert sorted(found) == sorted(urls)
    for wrong in ("3/3", "0/0", "a/b", "1"):
        assert main([str(path), str(tmp_path / "out.parquet"), "--shard", wrong]) == 2


def test_unusable_input_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "urls.parquet"
    parquet.write_table(pa.table({"address": ["http://h/"]}), path)
    assert main([str(path), str(tmp_path / "out.parquet")]) == 2
    assert "column 'url': there is no such column" in capsys.readouterr().err
    for given, out, message in [
        (tmp_path / "none.parquet", tmp_path / "out.parquet", "none.parquet"),
        (path, tmp_path / "out.txt", "the name has to end in .parquet, .csv"),
        (path, tmp_path / "none" / "out.parquet", "none/out.parquet.parts"),
        (tmp_path / "urls.txt", tmp_path / "out.parquet", "urls.txt: the name has to end in .parquet, .csv"),
    ]:
        assert main([str(given), str(out)]) == 2
        assert message in capsys.readouterr().err
    assert {one.name for one in tmp_path.iterdir()} == {"urls.parquet"}


def is_refused(table: Path, out: Path, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(table), str(out)]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_parts_directory_is_private(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, modes = tmp_path / "out.parquet", []
    fetch = haul.arrow.fetch

    def noting(*given: Any, **settings: Any) -> Any:
        modes.append((tmp_path / "out.parquet.parts").stat().st_mode & 0o777)
        return fetch(*given, **settings)

    monkeypatch.setattr(haul.arrow, "fetch", noting)
    assert main([str(table), str(out)]) == 0
    assert modes == [0o700]


def test_parts_directory_open_to_others_is_refused(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, parts = tmp_path / "out.parquet", tmp_path / "out.parquet.parts"
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    parts.symlink_to("elsewhere")
    is_refused(table, out, "is a link", capsys)
    parts.unlink()
    for mode in (0o770, 0o707, 0o1777):
        parts.mkdir()
        parts.chmod(mode)
        is_refused(table, out, "is writable for other users", capsys)
        parts.rmdir()
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of another user")
def test_parts_directory_of_another_user_is_refused(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = tmp_path / "out.parquet.parts"
    parts.mkdir(mode=0o700)
    os.chown(parts, 65534, 65534)
    is_refused(table, tmp_path / "out.parquet", "belongs to another user (65534)", capsys)


@pytest.mark.parametrize("name", ["lock", "state.json", "incomplete", "joined", "00000000.parquet"])
def test_link_in_parts_directory_is_not_followed(
    name: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    victim, parts = tmp_path / "victim", tmp_path / "out.parquet.parts"
    victim.write_text("mine")
    parts.mkdir(mode=0o700)
    (parts / name).symlink_to(victim)
    code = main([str(table), str(tmp_path / "out.parquet")])
    # A link at the name of a complete part is replaced, not followed.
    assert code == (0 if name == "00000000.parquet" else 2)
    assert code == 0 or f"out.parquet.parts/{name}" in capsys.readouterr().err
    assert victim.read_text() == "mine"
