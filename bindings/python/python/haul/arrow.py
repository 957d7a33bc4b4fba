"""``haul.arrow.fetch``: fetches the URLs of Arrow record batches, and yields batches with the results.

Needs pyarrow: ``pip install httphaul[arrow]``. The engines that keep their data in Arrow's format (Ray,
Spark, Dask, Polars, DuckDB, pandas) call it for a part of the rows each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ._arrow_input import BatchError, Input, InputBatch, pa, record_batches
from ._session_parts import everywhere
from .exceptions import InvalidSchema, InvalidURL, MissingSchema, RequestException
from .many import _CallBuilder, check_limits
from .selection import query as compiled
from .sessions import Session

try:
    from ._haul import ArrowTableBuilder, Batch, EngineError
except ImportError as error:
    raise ImportError("this build of httphaul has no haul.arrow: its feature arrow is off", name="haul._haul") from error

__all__ = ["BatchError", "fetch", "schema"]

#: The smallest number of rows that are submitted ahead of the row whose result comes next. A host that
#: does not answer then delays no other, since the rows behind its rows are in progress.
_MIN_AHEAD = 8192


def fetch(
    batches: Iterable[Any],
    *,
    url: str = "url",
    method: str | None = None,
    headers: str | None = None,
    body: str | None = None,
    max_parallel: int = 64,
    per_host: int | None = None,
    rate: float | None = None,
    rate_host: float | None = None,
    limit_rate_total: int | None = None,
    stall_time: float | None = None,
    max_memory: int = 64 << 20,
    body_column: str | None = "body",
    text: bool = False,
    select: str | Iterable[str] | Mapping[str, str] = (),
    select_json: str | Iterable[str] | Mapping[str, str] = (),
    session: Session | None = None,
    timeout: Any = None,
    allow_redirects: bool = True,
    only_idempotent: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Fetches the URLs of record batches, and yields record batches with the results.

    A row of the output is a row of the input with its result. The order is that of the input. A batch of
    the input is one batch of the output, or several if its bodies need more memory than a quarter of
    ``max_memory``.

    >>> table = pa.table({"url": ["http://127.0.0.1/"]})                             # doctest: +SKIP
    >>> for batch in fetch(table.to_batches()):                                      # doctest: +SKIP
    ...     print(batch.column("status"))

    :param batches: record batches: an iterable of objects of pyarrow or of any library that offers the
        Arrow PyCapsule interface, or one table or stream of such a library.
    :param url: name of the column with the URLs. A null is a row with an error.
    :param method: name of the column with the methods; a null, or no column, is GET.
    :param headers: name of the column with header fields: maps, structs, or lists of pairs. They are added
        to those of ``session``.
    :param body: name of the column with the content of requests: text or binary. Requests wait with at most
        a quarter of ``max_memory`` of content.
    :param max_parallel: maximum number of requests at once.
    :param per_host: the same to one host; default: from 6 to 50, as many as help.
    :param rate: maximum number of requests that start in a second.
    :param rate_host: the same for each host.
    :param limit_rate_total: maximum number of body bytes a second in each direction, over all requests.
    :param stall_time: number of seconds for which no byte of a request may move.
    :param max_memory: maximum number of bytes of bodies, both those in progress and those in the batch that
        is being made. One body may exceed it.
    :param body_column: name of the column with the bodies of responses; ``None`` leaves them out.
    :param text: whether bodies are text, in the charset of the response. A body that is not valid text is
        null. Default: binary.
    :param select: CSS selectors as in :func:`haul.select`. Their values are the column ``values``: lists of text,
        or for a dict of selectors, maps from their names to such lists. A page is searched also if
        ``body_column`` is ``None``.
    :param select_json: JSONPath queries as in :func:`haul.select_json`, instead of ``select``. The values are JSON
        texts. A page that is not JSON is a row with an error.
    :param session: the session whose headers, cookies, proxies and certificates are used.
    :param timeout: as in :meth:`haul.Session.request`.
    :param allow_redirects: whether redirects are followed.
    :param only_idempotent: whether a batch with a method that may not be repeated, such as POST, is an error.
        The adapters for clusters set it, because their tasks may run twice.
    :raises BatchError: a batch has no such column, or a column or value of another type.
    :raises ValueError: a limit is not positive.

    A failed request is a row whose column ``error`` is not null. A response with the status 404 or 500 is not
    a failure.
    """
    if max_parallel < 1 or (per_host is not None and per_host < 1) or max_memory < 1:
        raise ValueError("max_parallel, per_host and max_memory have to be at least 1")
    check_limits(rate, rate_host, limit_rate_total, stall_time)
    names = {"url": url, "method": method, "headers": headers, "body": body}
    settings: dict[str, Any] = {
        "max_parallel": max_parallel, "per_host": per_host, "ordered": True, "memory": max(max_memory // 2, 1),
        "rate": rate, "rate_host": rate_host, "limit_rate_total": limit_rate_total, "stall_time": stall_time,
    }  # fmt: skip
    session = session or Session()
    results = _results(body_column, text, select, select_json)
    if body_column in results.names()[:-1]:
        raise ValueError(f"body_column: {body_column!r} is the name of another column of the results")
    given = Input(record_batches(batches), names, results.names(), only_idempotent)
    return _Fetch(given, session, timeout, allow_redirects, settings, results, max_memory // 4).run()


def schema(
    body_column: str | None = "body",
    text: bool = False,
    select: str | Iterable[str] | Mapping[str, str] = (),
    select_json: str | Iterable[str] | Mapping[str, str] = (),
) -> pa.Schema:
    """Returns the columns that :func:`fetch` adds with these arguments."""
    return pa.record_batch(_Capsules(_results(body_column, text, select, select_json))).schema


def _results(
    body_column: str | None,
    text: bool,
    select: str | Iterable[str] | Mapping[str, str],
    select_json: str | Iterable[str] | Mapping[str, str],
) -> ArrowTableBuilder:
    if not select and not select_json:
        return ArrowTableBuilder(body_column, text)
    query = compiled(select, select_json, ())
    return ArrowTableBuilder(body_column, text, query.compiled, query.names)


class _Capsules:
    """Results as two capsules of the Arrow PyCapsule interface."""

    def __init__(self, results: ArrowTableBuilder) -> None:
        self.pair = results.finish()

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self.pair


class _Fetch:
    """The state of one call of :func:`fetch`."""

    def __init__(
        self,
        given: Input,
        session: Session,
        timeout: Any,
        allow_redirects: bool,
        settings: dict[str, Any],
        results: ArrowTableBuilder,
        most_bytes: int,
    ) -> None:
        self.input = given
        self.calls = _CallBuilder(session, timeout, allow_redirects)
        self.engine = Batch(session._client, **settings)
        self.results = results
        self.most_bytes = max(most_bytes, 1)
        self.ahead = max(settings["max_parallel"] * 2 + 8, _MIN_AHEAD)
        #: The batches with rows that have not been yielded. Rows of all but the last are submitted.
        self.open: deque[InputBatch] = deque()
        #: The rows whose results have not been collected, in order: a number of submitted requests, or
        #: the method and error of one that cannot be sent.
        self.order: deque[int | tuple[str, int, str, str]] = deque()
        self.waiting = 0
        #: The lengths of the content of the rows in `order`, and their sum.
        self.contents: deque[int] = deque()
        self.content_bytes = 0
        self.exhausted = False
        self.failure: Exception | None = None

    def run(self) -> Iterator[pa.RecordBatch]:
        while True:
            self.submit()
            if not self.open:
                if self.failure is not None:
                    raise self.failure
                return
            current = self.open[0]
            rows, is_full = self.results.rows_and_is_full()
            left = current.batch.num_rows - current.yielded - rows
            if left == 0 or is_full:
                if rows or not current.batch.num_rows:
                    yield self.output(current, rows)
                if left == 0:
                    self.open.popleft()
                continue
            if not self.collect(left) and not self.results.rows_and_is_full()[1]:
                # In a forked child, the requests of the parent never finish.
                return

    def collect(self, most: int) -> int:
        """Collects results of the current batch. Returns their number."""
        head = self.order[0]
        if isinstance(head, tuple):
            self.results.push_failure(*head, self.most_bytes)
            collected = 1
        else:
            # Returns early for further requests, unless there are none or their content has no room.
            low = 0 if self.exhausted or not self.has_room() else self.ahead // 2
            most = most if self.has_room() else min(most, self.waiting // 2 + 1)
            collected = self.results.collect(self.engine, min(head, most), self.most_bytes, low)
        if isinstance(head, tuple) or collected == head:
            self.order.popleft()
        else:
            self.order[0] = head - collected
        self.waiting -= collected
        if "body" in self.input.names:
            self.content_bytes -= sum(self.contents.popleft() for _ in range(collected))
        return collected

    def has_room(self) -> bool:
        """Returns whether the content of another request may wait."""
        return self.content_bytes < self.most_bytes

    def output(self, current: InputBatch, rows: int) -> pa.RecordBatch:
        """Returns the next rows of a batch with their results."""
        given = current.batch.slice(current.yielded, rows)
        current.yielded += rows
        made = pa.record_batch(_Capsules(self.results))
        fields = pa.schema([*given.schema, *made.schema], metadata=given.schema.metadata)
        return pa.RecordBatch.from_arrays([*given.columns, *made.columns], schema=fields)

    def submit(self) -> None:
        """Submits rows until enough of them wait. The error of a bad batch, or of the iterator of
        batches, is raised once the rows before it have been yielded."""
        if self.waiting > self.ahead // 2 or not self.has_room() or self.exhausted and (not self.open or self.open[-1].is_submitted()):
            return
        try:
            self.submit_rows()
        except Exception as error:
            self.failure, self.exhausted = error, True
            if self.open and not self.open[-1].is_submitted():
                # The rows before the bad one have been requested, so they are yielded.
                self.open[-1].cut()
                if not self.open[-1].submitted:
                    self.open.pop()

    def submit_rows(self) -> None:
        self.calls.reset()
        while self.waiting < self.ahead and self.has_room():
            last = self.open[-1] if self.open else None
            if last is None or last.is_submitted():
                try:
                    opened = self.input.next()
                except StopIteration:
                    self.exhausted = True
                    return
                self.open.append(opened)
                if opened.batch.num_rows == 0:
                    # Yields it before further input is waited for.
                    return
                continue
            length = self.submit_row(last)
            last.submitted += 1
            self.waiting += 1
            if "body" in self.input.names:
                self.contents.append(length)
                self.content_bytes += length

    def submit_row(self, current: InputBatch) -> int:
        """Submits the next row of a batch. Returns the length of its content."""
        row = current.submitted
        item = current.item(row)
        order = self.order
        try:
            if item is None:
                raise InvalidURL("the URL is null")
            if self.calls.session.adapters or everywhere:
                self.calls.refuse_mount(self.calls.prepared(item)[0].url or "")
            call = self.calls.call_for(item)
            self.engine.submit(*call)
        except (EngineError, RequestException) as error:
            name = item["method"] if isinstance(item, dict) else "GET"
            order.append((name, *_failure(error)))
            return 0
        except (TypeError, ValueError) as error:
            what = "body" if "body" in current.columns else "url"
            raise current.error(what, row, str(error)) from error
        if order and isinstance(order[-1], int):
            order[-1] += 1
        else:
            order.append(1)
        return len(item["data"] or b"") if isinstance(item, dict) and "data" in item else 0


def _failure(error: Exception) -> tuple[int, str, str]:
    """Returns the exit code, the name and the message of a request that cannot be sent."""
    if isinstance(error, EngineError):
        message, code, name = error.args[1], error.args[4], error.args[5]
        return (3, "url", message) if message.startswith("Invalid URL") else (code, name, message)
    if isinstance(error, InvalidSchema):
        return 1, "unsupported_scheme", str(error)
    if isinstance(error, (InvalidURL, MissingSchema)):
        return 3, "url", str(error)
    return 2, "setup", str(error)
