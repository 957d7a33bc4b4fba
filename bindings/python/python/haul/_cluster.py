"""The rules by which ``haul.ray`` and ``haul.spark`` partition rows.

A host (scheme, name and port) belongs to one task, so that its limits hold for the cluster. A host in ``split``
belongs to K tasks, each with a K-th of its limits. Rows with the same K are a class; each class is
partitioned separately, since a task has one set of limits.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from . import shard

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class FetchSettings(TypedDict, total=False):
        """The arguments of ``haul.arrow.fetch`` that a cluster adapter passes on."""

        method: str | None
        headers: str | None
        body: str | None
        max_parallel: int
        per_host: int | None
        rate: float | None
        rate_host: float | None
        limit_rate_total: int | None
        stall_time: float | None
        max_memory: int
        body_column: str | None
        text: bool
        select: str | Iterable[str] | Mapping[str, str]
        select_json: str | Iterable[str] | Mapping[str, str]
        timeout: Any
        allow_redirects: bool
        only_idempotent: bool

else:
    FetchSettings = dict

#: The name of the column by which rows are partitioned. It is not in the results.
KEY_COLUMN = "__haul_key"
#: The number of shards that stand for hosts in this column. It is so large that two hosts rarely share a
#: shard.
HOSTS = (1 << 31) - 1


class HostClass(NamedTuple):
    """Hosts that are split over the same number of tasks."""

    #: The number of tasks to which each host belongs.
    parts: int
    #: The numbers of the hosts in this class. If ``parts`` is 1, the numbers of all hosts that are not
    #: in this class.
    hosts: tuple[int, ...]
    #: The arguments of ``haul.arrow.fetch``.
    settings: dict[str, Any]

    def tasks(self, others: int) -> int:
        """Returns the number of tasks of the class, if hosts that are not split belong to ``others`` tasks."""
        return others if self.parts == 1 else self.parts * len(self.hosts)


def host_number(url: str | None) -> int:
    """Returns the number of a URL's host, by the hash of ``--shard``."""
    return shard(url or "", HOSTS)


def checked_settings(settings: FetchSettings, tasks: int) -> dict[str, Any]:
    """Returns the arguments with the check of each row's method turned on, since a task may run twice.

    :raises ValueError: the number of tasks is less than 1.
    """
    if tasks < 1:
        raise ValueError(f"tasks is {tasks}, but must be at least 1")
    if "session" in settings:
        raise TypeError("a session cannot be sent to tasks: put header fields in a column, and name it by headers=")
    return {"only_idempotent": True, **settings}


def split_numbers(split: Mapping[str, int], settings: Mapping[str, Any]) -> dict[int, int]:
    """Returns the number of tasks of each host in ``split``, by the number of the host."""
    most = _most_parts(settings)
    for url, parts in split.items():
        if not 1 <= parts <= most:
            raise ValueError(f"split: {url} cannot be split over {parts} tasks: per_host={most} permits from 1 to {most}")
    return {host_number(url): parts for url, parts in split.items()}


def split_counts(counts: Iterable[tuple[int, int]], rows: int, settings: Mapping[str, Any]) -> dict[int, int]:
    """Returns the number of tasks of each host that has more than ``rows`` rows, by the number of the host."""
    if rows < 1:
        raise ValueError(f"split is {rows}, but the largest number of rows of a host in a task must be at least 1")
    most = _most_parts(settings)
    return {host: min(-(-count // rows), most) for host, count in counts if count > rows}


def _most_parts(settings: Mapping[str, Any]) -> int:
    per_host = settings.get("per_host")
    if per_host is None:
        raise ValueError("split needs per_host, of which each of K tasks gets a K-th part")
    return int(per_host)


def host_classes(split: Mapping[int, int], settings: dict[str, Any]) -> list[HostClass]:
    """Returns the classes of hosts. The first class contains the hosts that are not split."""
    split = {host: parts for host, parts in split.items() if parts > 1}
    classes = [HostClass(1, tuple(split), settings)]
    for parts in sorted(set(split.values())):
        hosts = tuple(sorted(host for host in split if split[host] == parts))
        limits = {"per_host": settings["per_host"] // parts}
        if settings.get("rate_host") is not None:
            limits["rate_host"] = settings["rate_host"] / parts
        classes.append(HostClass(parts, hosts, {**settings, **limits}))
    return classes


def keyed(rows: Any, url: str, parts: int, hosts: tuple[int, ...]) -> Any:
    """Returns the rows of a table or batch whose hosts are in the class, with the column of keys."""
    import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]

    from ._arrow_input import BatchError

    if url not in rows.schema.names:
        has = ", ".join(map(repr, rows.schema.names))
        raise BatchError(f"column {url!r}: there is no such column; the columns are {has}")
    urls = [text if isinstance(text, str) else None for text in rows.column(url).to_pylist()]
    numbers = list(map(host_number, urls))
    if parts == 1:
        keys = [None if number in hosts else number for number in numbers]
    else:
        # Which part a row belongs to depends on its URL alone, so a task that runs again has the same rows.
        place = {host: at * parts for at, host in enumerate(hosts)}
        keys = [
            place[number] + zlib.crc32((text or "").encode()) % parts if number in place else None
            for number, text in zip(numbers, urls)
        ]
    column = pa.array(keys, pa.int64())
    return rows.append_column(KEY_COLUMN, column).filter(column.is_valid())
