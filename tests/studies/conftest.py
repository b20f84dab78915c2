"""What the tests of all studies share."""

from collections.abc import Iterator, Sequence

import pytest

from heedful.sweep import engines
from heedful.sweep.engines import Ended, Event, Job, Outcome, Started, perform


class Here(engines.LocalEngine):
    """Does jobs in this process: workers take seconds to begin, and tests of sweeps hold that results are the same."""

    workers = 1

    def __init__(self, *_asked: object) -> None: ...

    def __enter__(self) -> "Here":
        return self

    def __exit__(self, *_error: object) -> None: ...

    def resize(self, workers: int) -> None: ...

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        for job in jobs:
            yield Started(job=job)
            yield Ended(job=job, outcome=Outcome.model_validate_json(perform(job.model_dump_json())))


@pytest.fixture(scope="module", autouse=True)
def runs_here() -> Iterator[None]:
    """Sweeps on local processes start none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "LocalEngine", Here)
        yield
