"""Fetches the URLs of a table: ``python -m haul.fetch urls.parquet pages.parquet``.

The input is a file with a column of URLs, the output a file with the same rows and their results; the end of
each name is its format: .parquet, .csv, .jsonl or .arrow. A run that was interrupted continues after the last
10,000 rows that were complete when it is started again. A failed URL is a row.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from . import arrow, shard
from ._arrow_input import pa
from ._parts_directory import PartsDirectory
from ._table_files import OUTPUT_SUFFIXES, TableFile, join, sync

import pyarrow.parquet as parquet  # type: ignore[import-untyped,import-not-found,unused-ignore]

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Runs the program. Returns its exit code: 0 if all rows are in the output, 2 if the input cannot be used."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        chosen = _shard(given.shard)
        return _Run(given, chosen).run()
    except (ValueError, OSError, pa.ArrowException) as error:
        print(f"haul.fetch: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"haul.fetch: interrupted; the same command continues with {given.output}.parts", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m haul.fetch", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("input", type=Path, help="file with the URLs: .parquet, .csv, .tsv, .jsonl or .arrow")
    parser.add_argument("output", type=Path, help="file to write: .parquet, .csv, .jsonl or .arrow")
    parser.add_argument("--url", default="url", metavar="COLUMN", help="column with the URLs (default: url)")
    for name, what in (("method", "methods"), ("headers", "header fields"), ("body", "content of the requests")):
        parser.add_argument(f"--{name}", metavar="COLUMN", help=f"column with the {what}")
    parser.add_argument("--body-column", default="body", metavar="NAME", help="column for the bodies (default: body)")
    parser.add_argument("--no-body", action="store_true", help="leave the bodies out")
    parser.add_argument("--text", action="store_true", help="store bodies as text, in the charset of the response")
    for name, what in (("select", "CSS selector"), ("select-json", "JSONPath query")):
        parser.add_argument(f"--{name}", action="append", default=[], help=f"{what} whose values are the column values")
    parser.add_argument("--max-parallel", type=int, default=64, metavar="N", help="requests at a time (default: 64)")
    parser.add_argument("--per-host", type=int, metavar="N", help="requests at a time to one host")
    parser.add_argument("--rate", type=float, metavar="N", help="requests that start in a second")
    parser.add_argument("--rate-host", type=float, metavar="N", help="requests that start in a second on one host")
    parser.add_argument("--stall-time", type=float, default=60, metavar="SECONDS", help="time without a byte (default: 60)")
    parser.add_argument("--max-memory", type=int, default=256, metavar="MIB", help="memory for bodies in MiB (default: 256)")
    parser.add_argument("--shard", metavar="K/N", help="fetch only the URLs whose host is in shard K of N")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    return parser


def _shard(text: str | None) -> tuple[int, int] | None:
    """Parses ``K/N``."""
    if text is None:
        return None
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and int(number) < int(count)):
        raise ValueError("--shard: expected K/N with K from 0 to N-1, such as 0/4")
    return int(number), int(count)


class _Run:
    """One run: fetches the parts that are not complete, and joins all of them."""

    def __init__(self, given: argparse.Namespace, chosen: tuple[int, int] | None) -> None:
        if given.output.suffix.lower() not in OUTPUT_SUFFIXES:
            raise ValueError(f"{given.output}: the name has to end in {', '.join(OUTPUT_SUFFIXES)}")
        self.input = TableFile(given.input)
        self.output: Path = given.output
        self.parts_path: Path = given.output.with_name(given.output.name + ".parts")
        self.url: str = given.url
        self.shard = chosen
        self.body_column = None if given.no_body else given.body_column
        self.text: bool = given.text
        self.settings: dict[str, Any] = {
            "url": given.url, "method": given.method, "headers": given.headers, "body": given.body,
            "body_column": self.body_column, "text": given.text,
            "select": given.select, "select_json": given.select_json, "max_parallel": given.max_parallel,
            "per_host": given.per_host, "rate": given.rate, "rate_host": given.rate_host, "stall_time": given.stall_time,
            "max_memory": given.max_memory << 20,
        }  # fmt: skip
        self.progress = _Progress(None if chosen else self.input.rows, not given.quiet and sys.stderr.isatty())
        self.is_joined = False
        #: The parts whose batches have been taken by the fetch, each with its number of rows.
        self.taken: deque[int] = deque()

    def run(self) -> int:
        self.parts = PartsDirectory(self.parts_path)
        try:
            with self.parts.open("lock", "ab") as lock:
                self._run_locked(lock)
        finally:
            self.parts.close()
        return 0

    def _run_locked(self, lock: IO[bytes]) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"another run writes to {self.parts.path}") from None
        done = self._resume()
        self.progress.start(sum(map(self._rows, range(done))))
        try:
            self._fetch(done)
            self._join()
        finally:
            self.progress.end()
            if not self.is_joined and not self.parts.exists(_part(0)):
                with suppress(OSError):
                    self.parts.remove()

    def _rows(self, number: int) -> int:
        """Returns the number of rows of a complete part."""
        with self.parts.open(_part(number)) as file:
            return int(parquet.read_metadata(file).num_rows)

    def _resume(self) -> int:
        """Returns the number of complete parts of an earlier run with the same input and settings."""
        status = self.input.path.stat()
        columns = ("url", "method", "headers", "body", "body_column", "text", "select", "select_json")
        state = {
            "input": os.fspath(self.input.path.absolute()), "size": status.st_size, "mtime": status.st_mtime_ns,
            "shard": self.shard, **{name: self.settings[name] for name in columns},
        }  # fmt: skip
        text = json.dumps(state)
        if not self.parts.exists(_part(0)):
            with self.parts.open("state.json", "w", encoding="utf-8") as file:
                file.write(text)
            return 0
        with self.parts.open("state.json", "r", encoding="utf-8") as file:
            if file.read() != text:
                message = "belongs to a run with another input or other columns: remove it to begin anew"
                raise ValueError(f"{self.parts.path} {message}")
        done = 1
        while self.parts.exists(_part(done)):
            done += 1
        return done

    def _batches(self, first: int) -> Iterator[Any]:
        for part in self.input.parts(first):
            batches = [batch for batch in map(self._chosen, part) if batch.num_rows > 0]
            # One empty batch, whose result completes the part.
            batches = batches or [part[0].slice(0, 0)]
            self.taken.append(sum(batch.num_rows for batch in batches))
            yield from batches

    def _chosen(self, batch: Any) -> Any:
        """Returns the rows whose host is in the shard."""
        if self.shard is None or self.url not in batch.schema.names:
            return batch
        number, count = self.shard
        urls = batch.column(batch.schema.get_field_index(self.url)).to_pylist()
        return batch.filter(pa.array([shard(str(url or ""), count) == number for url in urls], pa.bool_()))

    def _fetch(self, first: int) -> None:
        number, rows = first, 0
        with ExitStack() as stack:
            file: Any = None
            writer: Any = None
            for batch in arrow.fetch(self._batches(first), **self.settings):
                if file is None:
                    file = stack.enter_context(self.parts.open("incomplete", "wb"))
                    writer = stack.enter_context(parquet.ParquetWriter(file, batch.schema, compression="zstd"))
                writer.write_batch(batch)
                rows += batch.num_rows
                self.progress.add(batch.num_rows, batch.num_rows - batch.column("error").null_count)
                if rows == self.taken[0]:
                    self.taken.popleft()
                    writer.close()
                    sync(file)
                    stack.close()
                    self.parts.rename("incomplete", _part(number))
                    number, file, writer, rows = number + 1, None, None, 0

    def _join(self) -> None:
        """Makes one file of all parts."""
        count = 0
        while self.parts.exists(_part(count)):
            count += 1
        if count:
            with self.parts.open(_part(0)) as file:
                schema = parquet.read_schema(file)
        else:
            names = ("body_column", "text", "select", "select_json")
            schema = pa.schema([*self.input.schema, *arrow.schema(**{name: self.settings[name] for name in names})])
        with self.parts.open("joined", "wb") as joined:
            join((self.parts.open(_part(number)) for number in range(count)), schema, joined, self.output.suffix.lower())
        self.parts.move_out("joined", self.output)
        self.is_joined = True
        self.parts.remove()


def _part(number: int) -> str:
    """Returns the name of a complete part."""
    return f"{number:08}.parquet"


class _Progress:
    """A line on the terminal: rows, failures, rows a second."""

    def __init__(self, rows: int | None, is_shown: bool) -> None:
        self.rows = rows
        self.is_shown = is_shown
        self.done = self.failed = self.before = 0
        self.began = self.drawn = 0.0

    def start(self, before: int) -> None:
        """Begins, with the number of rows of an earlier run."""
        self.done = self.before = before
        self.began = time.monotonic()

    def add(self, rows: int, failed: int) -> None:
        """Counts rows that are complete."""
        self.done += rows
        self.failed += failed
        if self.is_shown and time.monotonic() - self.drawn > 0.2:
            self.draw()

    def draw(self) -> None:
        self.drawn = time.monotonic()
        rate = (self.done - self.before) / max(self.drawn - self.began, 0.001)
        share = min(self.done / self.rows, 1) if self.rows else 0
        bar = f"[{'#' * int(share * 30):30}] {share:4.0%} of {self.rows:,} " if self.rows else ""
        print(f"\r{bar}{self.done:,} rows, {self.failed:,} failed, {rate:,.0f}/s\x1b[K", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.is_shown:
            self.draw()
            print(file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
