"""The input of ``haul.arrow.fetch``: record batches, and the requests that their rows describe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

try:
    import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]
except ImportError as error:
    raise ImportError("haul.arrow needs pyarrow 16 or newer: pip install 'httphaul[arrow]'", name="pyarrow") from error

__all__ = ["BatchError", "Input", "InputBatch", "pa", "record_batches"]

#: The methods whose requests may be repeated (RFC 9110 section 9.2.2).
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
#: The largest numbers of rows and bytes whose values become Python objects at a time.
_MOST_ROWS = 1024
_MOST_BYTES = 1 << 20


class BatchError(ValueError):
    """A batch that cannot be used: a column is missing or has another type, or a row has a value that
    cannot be part of a request. The message names the batch, the column and the row."""


def record_batches(batches: Any) -> Iterator[pa.RecordBatch]:
    """Iterates over the batches of an iterable, or of a table or stream of any library."""
    if isinstance(batches, pa.RecordBatch):
        raise TypeError("fetch takes an iterable of record batches, not one batch: use [batch]")
    if hasattr(batches, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(batches)
        return
    for batch in batches:
        if isinstance(batch, pa.RecordBatch):
            yield batch
        elif hasattr(batch, "__arrow_c_array__"):
            yield pa.record_batch(batch)
        elif hasattr(batch, "__arrow_c_stream__"):
            yield from pa.RecordBatchReader.from_stream(batch)
        else:
            raise TypeError(f"fetch takes record batches, not {type(batch).__name__}")


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind))


def _is_content(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)) or _is_text(kind)


def _are_fields(kind: pa.DataType) -> bool:
    types = pa.types
    is_list = types.is_list(kind) or types.is_large_list(kind)
    return bool(types.is_map(kind) or types.is_struct(kind) or is_list or types.is_null(kind))


#: For each column: the function that checks its type, and the names of the accepted types for messages.
_TYPES = {
    "url": (_is_text, "text"),
    "method": (_is_text, "text"),
    "headers": (_are_fields, "a map, a struct or a list of pairs"),
    "body": (_is_content, "binary or text"),
}


class Input:
    """The batches of the input, and the names of their columns."""

    def __init__(
        self, batches: Iterator[pa.RecordBatch], names: dict[str, str | None], results: list[str], only_idempotent: bool
    ) -> None:
        self.batches = batches
        self.names = {what: name for what, name in names.items() if name is not None}
        self.results = results
        self.only_idempotent = only_idempotent
        self.taken = 0

    def next(self) -> InputBatch:
        """Returns the next batch.

        :raises StopIteration: there is none."""
        batch = next(self.batches)
        self.taken += 1
        return InputBatch(batch, self.taken - 1, self)


class InputBatch:
    """A batch of the input whose rows have not all been yielded."""

    def __init__(self, batch: pa.RecordBatch, number: int, given: Input) -> None:
        self.batch = batch
        self.number = number
        self.names = given.names
        self.only_idempotent = given.only_idempotent
        self.yielded = 0
        self.submitted = 0
        for name in given.results:
            if name in batch.schema.names:
                reason = "would occur twice, since it is one of the results: rename it"
                raise BatchError(f"batch {number}: column {name!r} {reason}")
        self.columns = {what: _InputColumn(self, what) for what in self.names}

    def is_submitted(self) -> bool:
        return bool(self.submitted == self.batch.num_rows)

    def cut(self) -> None:
        """Leaves out the rows that have not been submitted."""
        self.batch = self.batch.slice(0, self.submitted)

    def error(self, what: str, row: int, reason: str) -> BatchError:
        return BatchError(f"batch {self.number}, row {row}, column {self.names[what]!r}: {reason}")

    def item(self, row: int) -> Any:
        """Returns the request of a row, in the form of the items of ``fetch_many``."""
        columns = self.columns
        address = columns["url"].value(row)
        if len(columns) == 1 or address is None:
            return address
        request: dict[str, Any] = {"method": "GET", "url": address}
        if "method" in columns:
            method = columns["method"].value(row) or "GET"
            if self.only_idempotent and method.upper() not in _IDEMPOTENT:
                reason = f"{method} is not idempotent, and a task may run twice; pass only_idempotent=False if that is harmless"
                raise self.error("method", row, reason)
            request["method"] = method
        if "body" in columns:
            content = columns["body"].value(row)
            request["data"] = content.encode() if isinstance(content, str) else content
        if "headers" in columns:
            request["headers"] = self._fields(row)
        return request

    def _fields(self, row: int) -> dict[str, str | bytes]:
        value = self.columns["headers"].value(row)
        if value is None:
            return {}
        fields: dict[str, str | bytes] = {}
        for pair in value.items() if isinstance(value, dict) else value:
            if isinstance(pair, dict):
                pair = tuple(pair.values())
            if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
                raise self.error("headers", row, f"a field has to be a name and a value, not {type(pair).__name__}")
            name, text = pair
            if isinstance(text, (list, tuple)):
                text = ", ".join(map(str, text))
            if text is None:
                continue
            if not isinstance(text, (str, bytes, int)):
                raise self.error("headers", row, f"the value of {name!r} has to be text, not {type(text).__name__}")
            if name in fields:
                raise self.error("headers", row, f"the field {name!r} occurs twice: give it one value, with commas")
            fields[name] = text if isinstance(text, (str, bytes)) else str(text)
        return fields


class _InputColumn:
    """A column of a batch. Its values become Python objects as they are needed."""

    def __init__(self, of: InputBatch, what: str) -> None:
        name = of.names[what]
        found = of.batch.schema.get_all_field_indices(name)
        if len(found) != 1:
            has = ", ".join(map(repr, of.batch.schema.names)) or "none"
            count = "there is no such column" if not found else "there are several such columns"
            raise BatchError(f"batch {of.number}: column {name!r}: {count}; the columns are {has}")
        self.array = of.batch.column(found[0])
        is_usable, wanted = _TYPES[what]
        if not is_usable(self.array.type):
            raise BatchError(f"batch {of.number}: column {name!r} has the type {self.array.type}, but it has to be {wanted}")
        self.of = of
        self.what = what
        self.rows = min(max(_MOST_BYTES * len(self.array) // max(self.array.nbytes, 1), 1), _MOST_ROWS)
        self.first = 0
        self.values: list[Any] = []

    def value(self, row: int) -> Any:
        at = row - self.first
        if not 0 <= at < len(self.values):
            self.first, at = row, 0
            self.values = self._convert(row)
        return self.values[at]

    def _convert(self, first: int) -> list[Any]:
        rows = self.array.slice(first, self.rows)
        try:
            values: list[Any] = rows.to_pylist()
        except (ValueError, OverflowError):
            # Such as text that is not UTF-8, which no library checks.
            values = []
            for row in rows:
                try:
                    values.append(row.as_py())
                except (ValueError, OverflowError) as error:
                    if not values:
                        raise self.of.error(self.what, first, str(error)) from error
                    break
        return values
