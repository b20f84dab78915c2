"""Two small runs, and a server of theirs on a free port."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from heedful.config import DataSettings, ModelSettings, RunSettings, TrainingSettings
from heedful.pipeline import Run, run
from heedful.store import Store
from heedful.web.limits import Hosts, Limits
from heedful.web.opening import serve_run
from heedful.web.served import Served, ServedRun
from heedful.web.serving import address, listen, make_server
from tests.commands import write_corpus

WORDS = 2_000


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Strict JSON: NaN is none."""
        return json.loads(self.body, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))

    @property
    def error(self) -> str:
        """The sentence of a refusal, which holds nothing else."""
        assert self.headers["content-type"] == "application/json"
        assert list(self.json) == ["error"]
        return str(self.json["error"])


@dataclass(frozen=True)
class Site:
    """A server that runs."""

    port: int
    guard: Any = field(repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """A request as it is; headers are named with _ for -."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            told = connection.getresponse()
            return Answer(told.status, {name.lower(): value for name, value in told.getheaders()}, told.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, None, **headers)

    def post(self, path: str, **body: object) -> Answer:
        return self.send("POST", f"/api/v1/{path}", json.dumps(body).encode(), content_type="application/json")


@contextmanager
def running(served: list[Served], limits: Limits | None = None) -> Iterator[Site]:
    """A server in a thread of this process, on a free port."""
    own = limits or Limits(words=WORDS, rate=1e5)
    server, taken = make_server(served, hosts=Hosts.of("127.0.0.1"), limits=own), listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield Site(int(address(taken).rpartition(":")[2]), server.config.app)
    finally:
        server.should_exit = True
        thread.join()


def train(folder: Path, source: Path, **model: Any) -> Run:
    settings = RunSettings(
        data=DataSettings(source=str(source)),
        model=ModelSettings(embedding_size=8, **model),
        training=TrainingSettings(epochs=8, batch_size=10),
    )
    return run(settings, Store(folder))


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """Dot-product attention, and additive attention, on the same corpus."""
    folder = tmp_path_factory.mktemp("serving")
    source = write_corpus(folder / "corpus.csv")
    return train(folder, source), train(folder, source, attention="additive")


@pytest.fixture(scope="session")
def models(two_runs: tuple[Run, Run]) -> list[ServedRun]:
    return [serve_run(one, words=WORDS) for one in two_runs]


@pytest.fixture(scope="session")
def site(models: list[ServedRun]) -> Iterator[Site]:
    with running(list(models)) as found:
        yield found


@pytest.fixture(scope="session")
def text(models: list[ServedRun]) -> str:
    """A text of the corpus that the first model decides rightly, and whose decision can be flipped."""
    return str(models[0].examples[-1]["text"])
