"""The source of a Ray dataset whose tasks each fetch all rows of some hosts. Needs Ray and pyarrow.

Ray's own shuffle by a key starts separate processes for each dataset, which cost more CPU time than the fetch of
60,000 small pages. Here, plain tasks split the blocks, and each task of the source takes its pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from operator import itemgetter
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]
import ray  # type: ignore[import-untyped,import-not-found,unused-ignore]
from ray.data import Datasource, ReadTask  # type: ignore[import-untyped,import-not-found,unused-ignore]
from ray.data.block import (  # type: ignore[import-untyped,import-not-found,unused-ignore]
    BlockAccessor,
    BlockMetadata,
)

from ._cluster import KEY_COLUMN, HostClass, host_classes, keyed, split_counts

#: One task splits blocks of this many bytes together, so that many small blocks do not make many pieces.
_SPLIT_BYTES = 32 << 20
#: A task that waits this many seconds for its pieces, and receives none, is started again.
_PIECE_SECONDS = 20.0
#: With more pieces than this, Ray's shuffle divides the rows. Each piece costs some 0.2 ms of CPU time, and memory of
#: the driver; the start of the shuffle's processes costs 6 s.
_MOST_PIECES = 20_000


class HostSource(Datasource):  # type: ignore[misc,unused-ignore]
    """Reads nothing: its tasks fetch the URLs of ``dataset``, each all rows of its hosts."""

    def __init__(
        self, dataset: Any, url: str, tasks: int, split: Mapping[int, int] | int, settings: dict[str, Any]
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self.dataset = dataset
        self.url = url
        self.tasks = tasks
        #: The number of tasks of hosts that are split, or the largest number of rows of a host in a task.
        self.split = split
        self.settings = settings

    def get_name(self) -> str:
        return "HaulFetch"

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """Returns the tasks. Executes ``dataset`` and divides its rows if Ray is about to run the tasks, which it shows
        by passing ``data_context``. Ray's earlier calls only count the tasks."""
        unknown = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
        if data_context is None:
            return [ReadTask(raise_ray_too_old, unknown)] * parallelism
        given = self.dataset.materialize()
        made = [
            (rows, _fetcher(pieces, self.url, one.settings))
            for one in self.classes(given)
            for rows, pieces in _divided(given, self.url, one, one.tasks(self.tasks))
        ]
        # The task with the most rows begins first, so that it is not the last to end.
        made.sort(key=itemgetter(0), reverse=True)
        # A dataset without rows gets one task, whose result has the columns.
        made = [each for each in made if each[0]] or made[:1]
        return [ReadTask(run, unknown, None, per_task_row_limit) for _, run in made]

    def classes(self, given: Any) -> list[HostClass]:
        """Returns the classes of hosts. Counts the rows of each host first, if large hosts are to be split."""
        if not isinstance(self.split, int):
            return host_classes(self.split, self.settings)
        divided = _divided(given, self.url, HostClass(1, (), {}), self.tasks, has_rows=False)
        large = ray.remote(_large)
        counts = ray.get([large.remote(self.split, *pieces) for rows, pieces in divided if rows])
        return host_classes(split_counts(chain.from_iterable(counts), self.split, self.settings), self.settings)


def raise_ray_too_old() -> Iterable[Any]:
    raise RuntimeError("this version of Ray is too old for haul.ray.fetch; version 2.60 works")


def _divided(given: Any, url: str, one: HostClass, tasks: int, has_rows: bool = True) -> list[tuple[int, list[Any]]]:
    """Divides the rows of a class of hosts by host, or only their keys. Returns the number of rows of each task, and
    references to its pieces."""
    groups = _groups(given)
    # Ray's shuffle does not keep the columns of a dataset without rows.
    if len(groups) * tasks > _MOST_PIECES and given.count():
        return _shuffled(given, url, one, tasks, has_rows)
    split = ray.remote(_split).options(num_returns=1 + tasks)
    made = [split.remote(url, one, tasks, has_rows, *blocks) for blocks in groups]
    # Waits here, since a task that waits for its pieces leaves its processor to another process, which Ray would start.
    counts = ray.get([count for count, *_ in made])
    rows_of_tasks = zip(*counts)
    pieces_of_tasks = zip(*(pieces for _, *pieces in made))
    return [
        # The columns of a table without rows are those of its first piece.
        (sum(rows), [piece for piece, length in zip(pieces, rows) if length] or [pieces[0]])
        for rows, pieces in zip(rows_of_tasks, pieces_of_tasks)
    ]


def _groups(given: Any) -> list[list[Any]]:
    """Returns references to the blocks of a dataset, in groups of at most ``_SPLIT_BYTES``, or of one block. A dataset
    without blocks has one group, which is empty."""
    groups: list[list[Any]] = []
    size = 0
    for bundle in given.iter_internal_ref_bundles():
        for block, metadata in zip(bundle.block_refs, bundle.metadata):
            length = _SPLIT_BYTES if metadata.size_bytes is None else metadata.size_bytes
            if not groups or size + length > _SPLIT_BYTES:
                groups.append([])
                size = 0
            groups[-1].append(block)
            size += length
    return groups or [[]]


def _split(url: str, one: HostClass, tasks: int, has_rows: bool, *blocks: Any) -> list[Any]:
    """Returns the number of rows of each task, and a table for each task with the rows of its hosts. The result depends
    on the blocks alone, so a table that is lost with its machine is made again."""
    rows = _keyed([BlockAccessor.for_block(block).to_arrow() for block in blocks], url, one, has_rows)
    rows_of_task: list[list[int]] = [[] for _ in range(tasks)]
    for row, key in enumerate(rows.column(KEY_COLUMN).to_pylist()):
        rows_of_task[key % tasks].append(row)
    return [list(map(len, rows_of_task)), *(rows.take(pa.array(each, pa.int64())) for each in rows_of_task)]


def _keyed(tables: list[Any], url: str, one: HostClass, has_rows: bool) -> Any:
    """Returns the rows of a class of hosts with the column of keys, or only that column."""
    # A block without rows may lack the columns of the others, such as one of which Ray's `filter` kept no row.
    tables = [table for table in tables if table.num_rows or table.column_names]
    rows = keyed(_joined(tables or [pa.table({url: pa.array([], pa.string())})]), url, one.parts, one.hosts)
    return rows if has_rows else rows.select([KEY_COLUMN])


def _large(rows: int, *tables: Any) -> list[tuple[int, int]]:
    """Returns the hosts that have more than ``rows`` rows, and their numbers of rows."""
    counts = _joined(tables).column(KEY_COLUMN).value_counts().to_pylist()
    return [(each["values"], each["counts"]) for each in counts if each["counts"] > rows]


def _shuffled(given: Any, url: str, one: HostClass, tasks: int, has_rows: bool) -> list[tuple[int, list[Any]]]:
    """Divides the rows as `_divided` does, with Ray's shuffle: each of its blocks is the work of one task."""

    def add_keys(table: Any) -> Any:
        return _keyed([table], url, one, has_rows)

    rows = given.map_batches(add_keys, batch_format="pyarrow", batch_size=None)
    # Ray places keys by their hash. With more partitions than keys, few parts of hosts share one.
    rows = rows.repartition(tasks if one.parts == 1 else 4 * tasks, keys=[KEY_COLUMN])
    return [
        (metadata.num_rows, [block])
        for bundle in rows.iter_internal_ref_bundles()
        for block, metadata in zip(bundle.block_refs, bundle.metadata)
    ]


def _fetcher(pieces: list[Any], url: str, settings: dict[str, Any]) -> Callable[[], Iterator[Any]]:
    # Ray needs a function with a name, which `functools.partial` has not.
    def fetch() -> Iterator[Any]:
        return _fetch(pieces, url, settings)

    return fetch


def _fetch(pieces: list[Any], url: str, settings: dict[str, Any]) -> Iterator[Any]:
    from .arrow import fetch

    _wait_for(pieces)
    table = _joined(ray.get(pieces)).drop_columns([KEY_COLUMN])
    # The result of an empty batch has the columns that the other tasks have.
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    for batch in fetch(batches, url=url, **settings):
        yield pa.Table.from_batches([batch])


def _wait_for(pieces: list[Any]) -> None:
    """Waits until all pieces are on this machine.

    A task that waits for a lost piece keeps its processor (Ray 2.60). If all processors were kept so, the task that
    makes the piece again could never start. So a task without progress ends with an error for which Ray starts it
    again later.
    """
    late = len(pieces) + 1
    while pieces:
        _, missing = ray.wait(pieces, num_returns=len(pieces), timeout=_PIECE_SECONDS)
        if not missing:
            return
        if len(missing) >= late:
            reason = f"{len(missing)} of {len(pieces)} pieces did not arrive in {_PIECE_SECONDS:g} s"
            raise ray.exceptions.RaySystemError(TimeoutError(reason))
        late = len(missing)


def _joined(tables: Iterable[Any]) -> Any:
    return pa.concat_tables(tables, promote_options="default").combine_chunks()
