"""The same plan on a real cluster of two nodes, one of which is killed on the way."""

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import InputError
from heedful.store import Store
from heedful.sweep import engines
from heedful.sweep.engines import Ended
from heedful.sweep.loop import SweepEvent, sweep
from heedful.sweep.plan import Plan
from tests.commands import environment, write_corpus, write_plan

# Ray itself warns of its own future defaults and leaves sockets and log files to the garbage collector.
RAY_WARNINGS = ("ignore::FutureWarning:ray", "ignore::DeprecationWarning:ray", "ignore::ResourceWarning")


@dataclass
class Nodes:
    """A head and a second node, with one core each."""

    cluster: Any
    second: Any

    def kill_second(self) -> None:
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = None


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    ray: Any = pytest.importorskip("ray", reason="Ray is not installed: pip install 'heedful[ray]'")
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80_000_000}
    cluster_utils: Any = importlib.import_module("ray.cluster_utils")
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    second = cluster.add_node(**node)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield Nodes(cluster, second)
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.filterwarnings(*RAY_WARNINGS)
def test_a_cluster_that_loses_a_node_gives_the_table_of_local_processes(tmp_path: Path, nodes: Nodes) -> None:
    source = write_corpus(tmp_path / "small.csv", texts=1200)
    plan = Plan.read(write_plan(tmp_path / "plan.toml", source, scales=4, seeds=2, epochs=20))
    done: set[str] = set()

    def kill_a_node_when_both_have_worked(event: SweepEvent) -> None:
        if isinstance(event, Ended) and event.outcome.status == "done":
            done.add(event.outcome.worker)
            if len(done) == 2 and nodes.second is not None:
                nodes.kill_second()

    far = sweep(plan, Store(tmp_path / "far"), on="ray", watch=kill_a_node_when_both_have_worked)
    assert nodes.second is None
    assert len(set(far.computed.values())) == 2
    assert (len(far.runs), far.failures) == (8, ())
    near = sweep(plan, Store(tmp_path / "near"))
    assert far.runs.equals(near.runs)
    assert far.summary.equals(near.summary)


def test_without_ray_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"Sweeps on Ray need Ray: `pip install 'heedful\[ray\]'`"):
        engines.make_engine("ray", 1)
