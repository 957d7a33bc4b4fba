"""The files of ``python -m haul.fetch``: parts of the input, and the output in several formats."""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from ._arrow_input import pa

import pyarrow.parquet as parquet  # type: ignore[import-untyped,import-not-found,unused-ignore]

__all__ = ["OUTPUT_SUFFIXES", "TableFile", "join"]

#: The largest number of rows of a part.
PART_ROWS = 10_000
_JSON_SUFFIXES = (".jsonl", ".ndjson")
_ARROW_SUFFIXES = (".arrow", ".feather")
OUTPUT_SUFFIXES = (".parquet", ".csv", *_JSON_SUFFIXES, *_ARROW_SUFFIXES)


class TableFile:
    """A file with a table, which is read in parts: pieces of the row groups of Parquet, or a fixed number
    of rows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.suffix = path.suffix.lower()
        #: The number of rows, if the file tells it.
        self.rows: int | None = None
        if self.suffix == ".parquet":
            self.file = parquet.ParquetFile(path)
            self.schema = self.file.schema_arrow
            self.rows = self.file.metadata.num_rows
        elif self.suffix in (".csv", ".tsv"):
            self.schema = self._open_csv({}).schema
        elif self.suffix in _JSON_SUFFIXES:
            from pyarrow import json as lines  # type: ignore[import-untyped,import-not-found,unused-ignore]

            # Versions without `open_json` read the whole file at once.
            self.reader = lines.open_json(path) if hasattr(lines, "open_json") else lines.read_json(path).to_reader()
            self.schema = self.reader.schema
        elif self.suffix in _ARROW_SUFFIXES:
            self.source = pa.memory_map(str(path))
            self.reader = pa.ipc.open_file(self.source)
            self.schema = self.reader.schema
        else:
            raise ValueError(f"{path}: the name has to end in .parquet, .csv, .tsv, .jsonl or .arrow")

    def parts(self, first: int) -> Iterator[list[Any]]:
        """Yields the record batches of each part from number ``first`` on. No part is without rows."""
        if self.suffix == ".parquet":
            for group in range(self.file.num_row_groups):
                count = -(-self.file.metadata.row_group(group).num_rows // PART_ROWS)
                if first >= count:
                    first -= count
                    continue
                batches = self.file.iter_batches(batch_size=PART_ROWS, row_groups=[group])
                yield from _parts_from(_fixed_parts(batches), first)
                first = 0
            return
        yield from _parts_from(_fixed_parts(self._batches()), first)

    def _batches(self) -> Iterable[Any]:
        if self.suffix in (".csv", ".tsv"):
            # All columns are text. A type that depends on the first rows would not suit later ones.
            return self._open_csv(dict.fromkeys(self.schema.names, pa.string()))  # type: ignore[no-any-return,unused-ignore]
        if self.suffix in _ARROW_SUFFIXES:
            return map(self.reader.get_batch, range(self.reader.num_record_batches))
        return self.reader  # type: ignore[no-any-return,unused-ignore]

    def _open_csv(self, types: dict[str, Any]) -> Any:
        from pyarrow import csv  # type: ignore[import-untyped,import-not-found,unused-ignore]

        delimiter = "\t" if self.suffix == ".tsv" else ","
        parsing = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        return csv.open_csv(self.path, parse_options=parsing, convert_options=csv.ConvertOptions(column_types=types))


def _parts_from(parts: Iterator[list[Any]], first: int) -> Iterator[list[Any]]:
    """Yields the parts from number ``first`` on."""
    for number, part in enumerate(parts):
        if number >= first:
            yield part


def _fixed_parts(batches: Iterable[Any]) -> Iterator[list[Any]]:
    part: list[Any] = []
    room = PART_ROWS
    for batch in batches:
        while batch.num_rows > 0:
            piece = batch.slice(0, room)
            part.append(piece)
            room -= piece.num_rows
            batch = batch.slice(piece.num_rows)
            if room == 0:
                yield part
                part, room = [], PART_ROWS
    if part:
        yield part


def sync(file: IO[bytes]) -> None:
    """Writes the content of an open file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def join(parts: Iterable[IO[bytes]], schema: Any, output: IO[bytes], suffix: str) -> None:
    """Makes one file of Parquet files, row group by row group, and closes them. ``suffix`` is the format
    of the output."""
    with _writer(suffix, output, schema) as writer:
        for file in parts:
            with file:
                part = parquet.ParquetFile(file)
                for group in range(part.num_row_groups):
                    for batch in part.read_row_group(group).to_batches():
                        writer.write_batch(batch)
    sync(output)


def _writer(suffix: str, file: IO[bytes], schema: Any) -> Any:
    if suffix == ".parquet":
        return parquet.ParquetWriter(file, schema, compression="zstd")
    if suffix in _ARROW_SUFFIXES:
        return pa.ipc.new_file(file, schema)
    return _TextWriter(file, schema, is_csv=suffix == ".csv")


class _TextWriter:
    """Writes rows as JSON lines, or as CSV whose nested values are JSON texts. Binary values are base64
    texts, in columns with ``_base64`` after their name."""

    def __init__(self, file: IO[bytes], schema: Any, is_csv: bool) -> None:
        self.file = io.TextIOWrapper(file, encoding="utf-8", newline="")
        self.names = [field.name + "_base64" * _is_binary(field.type) for field in schema]
        self.csv: Any = None
        if is_csv:
            import csv

            self.csv = csv.writer(self.file)
            self.csv.writerow(self.names)

    def __enter__(self) -> _TextWriter:
        return self

    def __exit__(self, *failure: object) -> None:
        # The binary file stays open.
        self.file.detach()

    def write_batch(self, batch: Any) -> None:
        columns = [_plain_values(column) for column in batch.columns]
        for row in zip(*columns):
            if self.csv is None:
                self.file.write(_json(dict(zip(self.names, row))) + "\n")
            else:
                self.csv.writerow(_json(value) if isinstance(value, (dict, list)) else value for value in row)


def _is_binary(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))


def _plain_values(column: Any) -> list[Any]:
    if _is_binary(column.type):
        return [None if value is None else base64.b64encode(value).decode() for value in column.to_pylist()]
    if pa.types.is_map(column.type):
        return [None if value is None else dict(value) for value in column.to_pylist()]
    return list(column.to_pylist())


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
