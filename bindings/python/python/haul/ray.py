"""``haul.ray.fetch``: fetches the URLs of a Ray dataset on its cluster. Needs Ray and pyarrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._cluster import FetchSettings, checked_settings, split_counts, split_numbers

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
    :param task_options: further arguments of ``ray.data.read_datasource``, such as ``{"num_cpus": 0.5}``.
    :param settings: the other arguments of :func:`haul.arrow.fetch`, without ``session``. They hold for each
        task.
    :raises ValueError: a host cannot be split, or ``tasks`` or ``split`` is less than 1.
    """
    arguments = checked_settings(settings, tasks)
    if isinstance(split, int):
        # Raises the errors of ``split`` before rows are counted.
        split_counts((), split, arguments)
    hosts = split if isinstance(split, int) else split_numbers(split, arguments) if split is not None else {}
    import ray  # type: ignore[import-untyped,import-not-found,unused-ignore]

    from ._ray_source import HostSource

    source = HostSource(dataset, url, tasks, hosts, arguments)
    return ray.data.read_datasource(source, override_num_blocks=tasks, **(task_options or {}))
