"""``haul.ray.fetch``: fetches the URLs of a Ray dataset on its cluster. Needs Ray and pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ._cluster import KEY_COLUMN, FetchSettings, checked_settings, host_classes, keyed, split_counts, split_numbers

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["fetch"]


def fetch(
    dataset: Any,
    *,
    url: str = "url",
    tasks: int = 16,
    split: Mapping[str, int] | int | None = None,
    task_options: Mapping[str, Any] | None = None,
    **settings: Unpack[FetchSettings],
) -> Any:
    """Returns a dataset with the rows of ``dataset`` and the results of their URLs.

    >>> pages = haul.ray.fetch(ray.data.read_parquet("s3://bucket/urls/"), rate_host=1)  # doctest: +SKIP

    The rows are partitioned by host, so that limits for a host hold for the cluster. They lose their order.
    A task may run twice, so requests that may not be repeated, such as POST, are refused unless
    ``only_idempotent=False``.

    :param dataset: a ``ray.data.Dataset``.
    :param url: name of the column with the URLs.
    :param tasks: number of partitions. Each is the work of one task, and a task uses one processor by
        default.
    :param split: hosts whose rows belong to several tasks, each with an equal part of ``per_host`` and
        ``rate_host``: a mapping such as ``{"https://example.com": 4}``, or the largest number of rows of a
        host in a task, for which the rows are counted first.
    :param task_options: further arguments of ``Dataset.map_batches``, such as ``{"num_cpus": 0.5}``.
    :param settings: the other arguments of :func:`haul.arrow.fetch`, without ``session``. They hold for each
        task.
    :raises ValueError: a host cannot be split.
    """
    arguments = checked_settings(settings)
    parts: list[Any] = []
    for one in host_classes(_numbers(dataset, url, split, arguments), arguments):
        rows = dataset.map_batches(keyed, **_BLOCKS, fn_kwargs={"url": url, "parts": one.parts, "hosts": one.hosts})
        # Ray places keys by their hash. With more places than keys, few parts of hosts share one.
        places = tasks if one.parts == 1 else 4 * one.parts * len(one.hosts)
        rows = rows.repartition(places, keys=[KEY_COLUMN])
        given = {"url": url, "settings": one.settings}
        parts.append(rows.map_batches(_fetch, **_BLOCKS, fn_kwargs=given, **(task_options or {})))
    return parts[0].union(*parts[1:]) if len(parts) > 1 else parts[0]


#: The whole block is one batch, without a copy.
_BLOCKS: dict[str, Any] = {"batch_format": "pyarrow", "batch_size": None, "zero_copy_batch": True}


def _numbers(dataset: Any, url: str, split: Mapping[str, int] | int | None, settings: dict[str, Any]) -> dict[int, int]:
    if split is None:
        return {}
    if isinstance(split, Mapping):
        return split_numbers(split, settings)
    split_counts((), split, settings)
    hosts = dataset.map_batches(keyed, **_BLOCKS, fn_kwargs={"url": url, "parts": 1, "hosts": ()})
    counts = hosts.select_columns([KEY_COLUMN]).groupby(KEY_COLUMN).count()
    large = counts.map_batches(_large, **_BLOCKS, fn_kwargs={"rows": split})
    return split_counts(((row[KEY_COLUMN], row["count()"]) for row in large.iter_rows()), split, settings)


def _large(table: Any, rows: int) -> Any:
    import pyarrow.compute as pc  # type: ignore[import-untyped,import-not-found,unused-ignore]

    return table.filter(pc.greater(table.column("count()"), rows))


def _fetch(table: Any, url: str, settings: dict[str, Any]) -> Iterator[Any]:
    import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]

    from .arrow import fetch

    if KEY_COLUMN in table.column_names:
        table = table.drop_columns([KEY_COLUMN])
    # The result of an empty batch has the columns that the other tasks have.
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    for batch in fetch(batches, url=url, **settings):
        yield pa.Table.from_batches([batch])
