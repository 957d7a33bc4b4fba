"""``haul.spark.fetch``: fetches the URLs of a Spark data frame on its cluster. Needs Spark 4 and pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ._cluster import KEY_COLUMN, FetchSettings, checked_settings, host_classes, keyed, split_counts, split_numbers

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["fetch"]


def fetch(
    frame: Any,
    *,
    url: str = "url",
    tasks: int = 16,
    split: Mapping[str, int] | int | None = None,
    **settings: Unpack[FetchSettings],
) -> Any:
    """Returns a data frame with the rows of ``frame`` and the results of their URLs.

    >>> pages = haul.spark.fetch(spark.read.parquet("urls/"), rate_host=1)  # doctest: +SKIP

    The rows are partitioned by host, so that limits for a host hold for the cluster. They lose their order. The
    call itself partitions them and stores the partitions, without results, on disk: each on two machines, or in
    the directory of ``SparkContext.setCheckpointDir`` if it was set. The URLs are fetched when the results are
    used.
    A task may run twice, so requests that may not be repeated, such as POST, are refused unless
    ``only_idempotent=False``.

    :param frame: a ``pyspark.sql.DataFrame``.
    :param url: name of the column with the URLs.
    :param tasks: number of partitions. Each is the work of one task.
    :param split: hosts whose rows belong to several tasks, each with an equal part of ``per_host`` and
        ``rate_host``: a mapping such as ``{"https://example.com": 4}``, or the largest number of rows of a
        host in a task, for which the rows are counted first.
    :param settings: the other arguments of :func:`haul.arrow.fetch`, without ``session``. They hold for each
        task.
    :raises ValueError: a host cannot be split, or ``tasks`` or ``split`` is less than 1.
    """
    arguments = checked_settings(settings, tasks)
    from pyspark.sql import types  # type: ignore[import-untyped,import-not-found,unused-ignore]
    from pyspark.sql.pandas.types import from_arrow_schema  # type: ignore[import-untyped,import-not-found,unused-ignore]

    from .arrow import schema

    of_columns = ("body_column", "text", "select", "select_json")
    made = from_arrow_schema(schema(**{name: arguments[name] for name in of_columns if name in arguments}))
    columns = types.StructType([*frame.schema.fields, *made.fields])
    parts: list[Any] = []
    for one in host_classes(_numbers(frame, url, split, arguments), arguments):
        rows = _keyed(frame, url, one.parts, one.hosts)
        # Spark places keys by their hash. With more places than keys, few parts of hosts share one.
        places = tasks if one.parts == 1 else 4 * one.parts * len(one.hosts)
        rows = _stored(rows.repartition(places, KEY_COLUMN).drop(KEY_COLUMN))
        parts.append(rows.mapInArrow(_fetcher(url, one.settings), columns))
    pages = parts[0]
    for other in parts[1:]:
        pages = pages.union(other)
    return pages


def _stored(rows: Any) -> Any:
    """Computes the partitions of ``rows`` and stores each on two machines, or in the checkpoint directory if there is one.

    If Spark lost a part of a shuffle during the fetch, it would start all unfinished tasks again beside those
    that still run, and a host would get twice its rate.
    """
    from pyspark import StorageLevel  # type: ignore[import-untyped,import-not-found,unused-ignore]

    # Spark Connect has no context.
    context = getattr(rows.sparkSession, "sparkContext", None)
    if context is not None and context.getCheckpointDir() is not None:
        return rows.checkpoint()
    return rows.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY_2)


def _keyed(frame: Any, url: str, parts: int, hosts: tuple[int, ...]) -> Any:
    from pyspark.sql import types  # type: ignore[import-untyped,import-not-found,unused-ignore]

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield keyed(batch, url, parts, hosts)

    columns = types.StructType([*frame.schema.fields, types.StructField(KEY_COLUMN, types.LongType())])
    return frame.mapInArrow(run, columns)


def _numbers(frame: Any, url: str, split: Mapping[str, int] | int | None, settings: dict[str, Any]) -> dict[int, int]:
    if split is None:
        return {}
    if isinstance(split, Mapping):
        return split_numbers(split, settings)
    split_counts((), split, settings)
    counts = _keyed(frame.select(url), url, 1, ()).groupBy(KEY_COLUMN).count()
    large = counts.filter(counts["count"] > split).collect()
    return split_counts(((row[KEY_COLUMN], row["count"]) for row in large), split, settings)


def _fetcher(url: str, settings: dict[str, Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from haul import arrow

        return arrow.fetch(batches, url=url, **settings)

    return run
