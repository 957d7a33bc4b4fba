"""The adapters for data engines, with those engines that are installed (``make engines-test`` installs all)."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from many_hosts import ManyHosts

import haul

pa = pytest.importorskip("pyarrow")

from haul import arrow  # noqa: E402
from haul._cluster import host_classes, keyed, split_counts, split_numbers  # noqa: E402

#: The number of URLs, and of hosts, each with a separate loopback address.
URLS = int(os.environ.get("HAUL_ENGINE_URLS", "600"))
HOSTS = int(os.environ.get("HAUL_ENGINE_HOSTS", "20"))
PER_HOST = 2
#: The permitted requests a second to a host. `make engines-test` sets 5, so that a host's requests take 10 s, which is
#: ten times the second of delay that `check` allows. The default is quick, and its check is weaker.
RATE_HOST = float(os.environ.get("HAUL_ENGINE_RATE", "25"))
LIMITS: dict[str, Any] = {"per_host": PER_HOST, "rate_host": RATE_HOST}


GUIDE = Path(__file__).parents[3] / "docs" / "scale-out.md"


def run_guide(beginning: str, names: dict[str, Any], *others: tuple[str, str]) -> dict[str, Any]:
    """Runs lines of the guide: from the one that begins so to the next empty line or end of the block, with ``others``
    in place of its addresses. Returns ``names`` with the names that they set."""
    if not GUIDE.exists():
        pytest.skip("the guide is in the source tree of haul only")
    text = GUIDE.read_text()
    begin = text.index(f"\n{beginning}") + 1
    end = min(text.index(mark, begin) for mark in ("\n\n", "\n```"))
    code = text[begin:end]
    for printed, local in others:
        code = code.replace(printed, local)
    exec(code, names)  # noqa: S102 - the code of the guide
    return names


@pytest.fixture
def many() -> Iterator[ManyHosts]:
    server = ManyHosts(HOSTS, URLS, notice=URLS // 3)
    yield server
    server.kill()


def check(many: ManyHosts, ids: list[int], urls: list[str], bodies: list[bytes]) -> int:
    """Checks that each row is there once, with its own body, and that no host was over its limits.
    Returns the number of requests."""
    assert sorted(ids) == list(range(URLS))
    assert all(url == many.urls[number] for number, url in zip(ids, urls, strict=True))
    assert all(body == url.removeprefix("http://").encode() for url, body in zip(urls, bodies, strict=True))
    seen = many.end()
    assert len(seen) == HOSTS
    for host, record in seen.items():
        assert record.most_connections <= PER_HOST, host
        # A second for the time in which this machine does not run the server.
        assert record.requests <= RATE_HOST * (record.seconds + 1) + 1, host
    return sum(record.requests for record in seen.values())


class KillAtNotice:
    """A thread that calls ``kill`` when a third of the URLs have been requested."""

    def __init__(self, many: ManyHosts, kill: Callable[[], None]) -> None:
        self.many, self.kill = many, kill
        self.is_done = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        if self.many.wait_for_notice():
            self.kill()
            self.is_done = True

    def check(self) -> None:
        """Checks that ``kill`` was called and raised nothing."""
        self.thread.join()
        assert self.is_done


@contextlib.contextmanager
def ray_cluster(monkeypatch: pytest.MonkeyPatch, *cpus: int) -> Iterator[Any]:
    """Ray Data on a cluster of nodes with so many processors each, of which the first is the head."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    # Ray's workers have niceness 15 by default. On a busy machine they would hardly run.
    monkeypatch.setenv("RAY_worker_niceness", "0")

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": cpus[0], "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=each) for each in cpus[1:]]
    ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
    try:
        import ray.data

        ray.data.DataContext.get_current().enable_progress_bars = False
        yield ray, cluster, nodes
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture
def ray_data(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Ray Data on a cluster of three nodes."""
    with ray_cluster(monkeypatch, 2, 2, 2) as made:
        yield made


def test_ray_rows_survive_a_killed_node(many: ManyHosts, ray_data: Any) -> None:
    ray, cluster, nodes = ray_data
    given = ray.data.from_arrow(pa.table({"id": list(range(URLS)), "url": many.urls}))
    made = haul.ray.fetch(given, tasks=12, **LIMITS)
    killer = KillAtNotice(many, lambda: cluster.remove_node(nodes[1], allow_graceful=False))
    rows = pa.concat_tables(ray.get(made.to_arrow_refs()))
    killer.check()
    assert sum(node["Alive"] for node in ray.nodes()) == 2
    assert "__haul_key" not in rows.column_names and rows["error"].null_count == URLS
    requests = check(many, rows["id"].to_pylist(), rows["url"].to_pylist(), rows["body"].to_pylist())
    print(f"Ray: {requests} requests for {URLS} rows")


def test_ray_rows_survive_the_loss_of_their_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    few = ManyHosts(20, 600, notice=1)
    with contextlib.ExitStack() as stack:
        stack.callback(few.kill)
        ray, cluster, nodes = stack.enter_context(ray_cluster(monkeypatch, 0, 2))
        # The last page of each host comes after the node is removed, so no task ends before.
        urls = [*few.urls[:580], *(f"{url}?held" for url in few.urls[580:])]
        # Rows of 10 KB, so that pieces are in the store of the only node with processors.
        table = pa.table({"id": list(range(600)), "url": urls, "pad": ["x" * 10_000] * 600})
        given = ray.data.from_arrow(table).map_batches(lambda rows: rows, batch_format="pyarrow", batch_size=None)
        made = haul.ray.fetch(given, tasks=6, per_host=PER_HOST)
        found: list[Any] = []

        def run() -> None:
            try:
                found.extend(made.select_columns(["id", "status"]).take_all())
            except BaseException:
                few.kill()  # ends the wait for the notice
                raise

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        assert few.wait_for_notice()
        cluster.add_node(num_cpus=2)
        cluster.remove_node(nodes[0], allow_graceful=False)
        assert thread.is_alive(), "the rows were fetched before the node was removed"
        few.release()
        thread.join(300)
        assert not thread.is_alive()
        assert sorted(row["id"] for row in found) == list(range(600)) and all(row["status"] == 200 for row in found)


def test_ray_task_ends_when_its_pieces_are_late(ray_data: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ray = ray_data[0]
    from haul import _ray_source

    made = tmp_path / "made"

    def piece() -> int:
        while not made.exists():
            time.sleep(0.1)
        return 1

    pieces = [ray.put(0), ray.remote(piece).remote()]
    monkeypatch.setattr(_ray_source, "_PIECE_SECONDS", 0.5)
    # Ray starts a task again that ends with this error.
    with pytest.raises(ray.exceptions.RaySystemError, match="1 of 2 pieces did not arrive in 0.5 s"):
        _ray_source._wait_for(pieces)
    made.touch()
    monkeypatch.setattr(_ray_source, "_PIECE_SECONDS", 300)
    _ray_source._wait_for(pieces)
    assert ray.get(pieces) == [0, 1]


def test_ray_splits_a_large_host(ray_data: Any) -> None:
    ray = ray_data[0]
    with_one = ManyHosts(1, 60)
    try:
        given = ray.data.from_arrow(pa.table({"id": list(range(60)), "url": with_one.urls}))
        limits: dict[str, Any] = {"per_host": 4, "rate_host": 100.0}
        for split in (20, {with_one.urls[0]: 2}):
            made = haul.ray.fetch(given, tasks=2, split=split, task_options={"num_cpus": 0.5}, **limits)
            rows = made.take_all()
            assert sorted(row["id"] for row in rows) == list(range(60))
            assert all(row["status"] == 200 for row in rows)
        (record,) = with_one.end().values()
        assert record.most_connections <= 4 and record.requests == 120
    finally:
        with_one.kill()


def test_ray_task_with_most_rows_is_first(ray_data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = ray_data[0]
    from haul import _ray_source

    few = ManyHosts(3, 120)
    try:
        hosts = [[url for url in few.urls if url.startswith(f"http://{host}/")] for host in few.hosts]
        given = ray.data.from_arrow(pa.table({"url": [*hosts[0], *hosts[1][:3], *hosts[2][:1]]}))
        for most_pieces in (_ray_source._MOST_PIECES, 0):  # plain tasks, and Ray's shuffle
            monkeypatch.setattr(_ray_source, "_MOST_PIECES", most_pieces)
            source = _ray_source.HostSource(given, "url", 2, 10, {"per_host": 4})
            tasks = source.get_read_tasks(2, data_context=ray.data.DataContext.get_current())
            rows = [sum(table.num_rows for table in task()) for task in tasks]
            assert rows == sorted(rows, reverse=True) and all(rows)
            # The first host has 40 rows in 4 parts.
            assert sum(rows) == 44 and rows[0] >= 10
            # Ray warns of a large task by the name of its function.
            assert {task.read_fn.__name__ for task in [*tasks, *ray.get(list(map(ray.put, tasks)))]} == {"fetch"}
    finally:
        few.kill()


def test_ray_counts_hosts_by_keys_alone(ray_data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = ray_data[0]
    from haul import _ray_source

    given = ray.data.from_arrow(pa.table({"url": ["http://127.0.0.1:1/"] * 5, "pad": ["x"] * 5})).materialize()
    whole = host_classes({}, {})[0]
    for most_pieces in (_ray_source._MOST_PIECES, 0):  # plain tasks, and Ray's shuffle
        monkeypatch.setattr(_ray_source, "_MOST_PIECES", most_pieces)
        made = _ray_source._divided(given, "url", whole, 2, has_rows=False)
        ((rows, pieces),) = [each for each in made if each[0]]
        assert rows == 5 and [table.column_names for table in ray.get(pieces)] == [["__haul_key"]]


def test_ray_fetches_datasets_without_rows(many: ManyHosts, ray_data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = ray_data[0].data
    from haul import _ray_source

    items = [{"id": number, "url": url} for number, url in enumerate(many.urls[:20])]
    # Ray's `filter` returns blocks without columns if it keeps no row of them.
    one = data.from_items(items, override_num_blocks=4).filter(lambda row: row["id"] == 7)
    for most_pieces in (_ray_source._MOST_PIECES, 0):  # plain tasks, and Ray's shuffle
        monkeypatch.setattr(_ray_source, "_MOST_PIECES", most_pieces)
        assert [row["id"] for row in haul.ray.fetch(one, tasks=2).take_all()] == [7]
        for empty in (data.from_items(items).filter(lambda row: False), data.from_items([])):
            none = haul.ray.fetch(empty, tasks=2, per_host=2, split=5).materialize()
            assert none.count() == 0 and none.schema().names == ["url", *arrow.schema().names]


def test_ray_divides_the_rows_of_any_dataset(many: ManyHosts, ray_data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = ray_data[0]
    from haul import _ray_source

    table = pa.table({"id": list(range(40)), "url": many.urls[:40]})
    given = ray.data.from_arrow([table.slice(0, 30), table.slice(30, 5), table.slice(35)])
    for most_pieces in (_ray_source._MOST_PIECES, 0):  # plain tasks, and Ray's shuffle
        monkeypatch.setattr(_ray_source, "_MOST_PIECES", most_pieces)
        made = haul.ray.fetch(given, tasks=3, per_host=PER_HOST)
        rows = pa.concat_tables(ray.get(made.to_arrow_refs()))
        assert sorted(rows["id"].to_pylist()) == list(range(40)) and set(rows["status"].to_pylist()) == {200}
        assert rows.column_names[:2] == ["id", "url"] and "__haul_key" not in rows.column_names
    monkeypatch.undo()

    pages = haul.ray.fetch(ray.data.from_pandas(table.to_pandas()), tasks=1)
    assert sorted(row["id"] for row in pages.take_all()) == list(range(40)) and pages.limit(3).count() == 3
    none = haul.ray.fetch(ray.data.from_arrow(table.slice(0, 0)), tasks=2).materialize()
    assert none.count() == 0 and none.schema().names == rows.column_names
    with pytest.raises(Exception, match="column 'address': there is no such column"):
        haul.ray.fetch(given, url="address").materialize()


def test_ray_reads_nothing_before_results_are_used(ray_data: Any) -> None:
    def fail(table: Any) -> Any:
        raise RuntimeError("the rows were read")

    given = ray_data[0].data.from_arrow(pa.table({"url": ["http://127.0.0.1:1/"]}))
    made = haul.ray.fetch(given.map_batches(fail, batch_format="pyarrow"))
    with pytest.raises(Exception, match="the rows were read"):
        made.materialize()


def test_ray_lines_of_the_guide_fetch_a_table(many: ManyHosts, ray_data: Any, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "urls").mkdir()
    parquet.write_table(pa.table({"id": list(range(20)), "url": many.urls[:20]}), tmp_path / "urls" / "1.parquet")
    names = {"haul": haul, "ray": ray_data[0]}
    run_guide("pages = haul.ray.fetch(", names, ("s3://bucket/", f"{tmp_path}/"))
    rows = parquet.read_table(tmp_path / "pages").to_pylist()
    assert sorted(row["id"] for row in rows) == list(range(20)) and all(row["status"] == 200 for row in rows)


def executors(spark: Any) -> list[int]:
    """Returns the processes of the executors that Spark's process has started."""
    java = spark.sparkContext._gateway.proc.pid
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if b"CoarseGrainedExecutorBackend" in (path / "cmdline").read_bytes() and parent == java:
                found.append(int(path.name))
        except OSError:
            pass
    return found


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Spark with two executors, each in a separate process."""
    pyspark = pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    monkeypatch.setenv("SPARK_HOME", str(Path(pyspark.__file__).parent))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()
        # The next session starts a process with its own settings.
        session.sparkContext._gateway.shutdown()
        session.sparkContext._gateway.proc.stdin.close()
        pyspark.SparkContext._gateway = pyspark.SparkContext._jvm = None


def test_spark_rows_survive_a_killed_executor(many: ManyHosts, spark: Any) -> None:
    given = spark.createDataFrame(list(enumerate(many.urls)), "id long, url string")
    deadline = time.monotonic() + 60
    while len(before := executors(spark)) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(before) == 2
    killer = KillAtNotice(many, lambda: os.kill(before[0], signal.SIGKILL))
    made = haul.spark.fetch(given, tasks=12, **LIMITS)
    rows = made.select("id", "url", "body", "headers", "error").collect()
    killer.check()
    assert before[0] not in executors(spark)
    assert all(row.error is None and row.headers["content-length"] for row in rows)
    requests = check(many, [row.id for row in rows], [row.url for row in rows], [bytes(row.body) for row in rows])
    print(f"Spark: {requests} requests for {URLS} rows")


def test_spark_splits_a_large_host(spark: Any) -> None:
    with_one = ManyHosts(1, 60)
    try:
        given = spark.createDataFrame(list(enumerate(with_one.urls)), "id long, url string")
        for split in (20, {with_one.urls[0]: 2}):
            rows = haul.spark.fetch(given, tasks=2, split=split, per_host=4, rate_host=100.0).select("id", "status").collect()
            assert sorted(row.id for row in rows) == list(range(60)) and all(row.status == 200 for row in rows)
        (record,) = with_one.end().values()
        assert record.most_connections <= 4 and record.requests == 120
    finally:
        with_one.kill()


def test_spark_lines_of_the_guide_fetch_a_table(many: ManyHosts, spark: Any, tmp_path: Path) -> None:
    given = spark.createDataFrame(list(enumerate(many.urls[:20])), "id long, url string")
    given.write.parquet(f"{tmp_path}/urls/")
    names = {"haul": haul, "spark": spark}
    run_guide("pages = haul.spark.fetch(", names, ('"urls/', f'"{tmp_path}/urls/'), ('"pages/', f'"{tmp_path}/pages/'))
    rows = spark.read.parquet(f"{tmp_path}/pages/").select("id", "status").collect()
    assert sorted(row.id for row in rows) == list(range(20)) and all(row.status == 200 for row in rows)


def test_split_hosts_get_parts_of_limits() -> None:
    settings = {"per_host": 6, "rate_host": 3.0}
    split = split_numbers({"https://a.example": 3, "http://B.example:80/x": 3, "https://c.example": 1}, settings)
    whole, thirds = host_classes(split, settings)
    assert whole.settings is settings and thirds.settings == {"per_host": 2, "rate_host": 1.0}
    urls = [f"{host}/{n}" for host in ("https://a.example", "http://b.example", "https://c.example") for n in range(300)]
    table = pa.table({"url": [*urls, None]})
    kept = keyed(table, "url", 1, whole.hosts)
    assert kept["url"].to_pylist() == [*urls[600:], None] and len(set(kept["__haul_key"].to_pylist())) == 2
    parts = keyed(table, "url", 3, thirds.hosts)
    assert parts["url"].to_pylist() == urls[:600]
    places = [set(parts["__haul_key"].to_pylist()[at : at + 300]) for at in (0, 300)]
    assert places[0] | places[1] == set(range(6)) and not places[0] & places[1]
    assert split_counts([(1, 100), (2, 101), (3, 9999)], 100, settings) == {2: 2, 3: 6}
    with pytest.raises(ValueError, match="split needs per_host"):
        split_numbers({}, {})
    for parts_of_host in (0, 7):
        with pytest.raises(ValueError, match="cannot be split over"):
            split_numbers({"https://a.example": parts_of_host}, settings)
    with pytest.raises(arrow.BatchError, match="column 'address': there is no such column"):
        keyed(table, "address", 1, ())


def test_split_blocks_keep_hosts_together() -> None:
    pytest.importorskip("ray")
    from haul import _ray_source

    urls = [f"http://127.0.0.{host}/{number}" for number in range(20) for host in range(9)]
    blocks = [pa.table({"url": urls[:50]}), pa.table({"url": urls[50:50]}), pa.table({"url": urls[50:]})]
    whole = host_classes({}, {})[0]
    counts, *tables = _ray_source._split("url", whole, 4, True, *blocks)
    assert counts == [table.num_rows for table in tables] and len(tables) == 4
    assert sorted(url for table in tables for url in table["url"].to_pylist()) == sorted(urls)
    hosts = [{url.split("/")[2] for url in table["url"].to_pylist()} for table in tables]
    assert sum(map(len, hosts)) == 9
    # The order of a host's rows is kept, and a second run gives the same.
    for table in tables:
        found = table["url"].to_pylist()
        assert found == sorted(found, key=urls.index)
    assert [counts, *tables] == _ray_source._split("url", whole, 4, True, *blocks)
    assert sorted(_ray_source._large(19, *tables)) == sorted((haul.shard(url, 2**31 - 1), 20) for url in urls[:9])
    assert _ray_source._large(20, *tables) == []


def test_clusters_refuse_numbers_below_one() -> None:
    for number in (0, -1):
        for fetch in (haul.ray.fetch, haul.spark.fetch):
            with pytest.raises(ValueError, match=f"tasks is {number}, but must be at least 1"):
                fetch(None, tasks=number)
        with pytest.raises(ValueError, match=f"split is {number}, but the largest number of rows"):
            haul.ray.fetch(None, split=number, per_host=4)
        with pytest.raises(ValueError, match=f"split is {number}, but the largest number of rows"):
            split_counts((), number, {"per_host": 4})


def test_clusters_refuse_what_tasks_cannot_repeat() -> None:
    with pytest.raises(TypeError, match="session"):
        haul.ray.fetch(None, session=haul.Session())  # type: ignore[call-arg]
    given = pa.record_batch({"url": pa.array(["http://127.0.0.1:1/"] * 2), "how": pa.array(["PUT", "POST"])})
    found = arrow.fetch([given], method="how", only_idempotent=True)
    assert next(found).num_rows == 1
    with pytest.raises(arrow.BatchError, match="row 1, column 'how': POST is not idempotent"):
        next(found)


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_frames_of_other_libraries_are_fetched(many: ManyHosts, name: str) -> None:
    module = pytest.importorskip(name)
    frame = module.DataFrame({"id": list(range(20)), "url": many.urls[:20]})
    beginning = "frame = pl.from_arrow" if name == "polars" else "frame = pa.Table"
    names = {"pa": pa, "pl": module, "arrow": arrow, "frame": frame}
    assert list(run_guide(beginning, names)["frame"]["status"]) == [200] * 20


def test_duckdb_lines_of_the_guide_fetch_a_table(
    many: ManyHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb, parquet = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    parquet.write_table(pa.table({"id": list(range(20)), "url": many.urls[:20]}), "urls.parquet")
    run_guide("urls = duckdb.connect()", {"pa": pa, "duckdb": duckdb, "arrow": arrow})
    assert parquet.read_table("pages.parquet")["status"].to_pylist() == [200] * 20


def test_dask_lines_of_the_guide_map_partitions(many: ManyHosts) -> None:
    dask, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    given = pandas.DataFrame({"id": range(40), "url": many.urls[:40]})
    names = {"pa": pa, "haul": haul, "arrow": arrow, "frame": dask.from_pandas(given, npartitions=3)}
    made = run_guide("def fetched(part)", names)["frame"].compute(scheduler="threads")
    assert sorted(made["id"]) == list(range(40)) and list(made["status"]) == [200] * 40
