"""What an engine is given and what it gives back: plain values that cross processes and machines as JSON."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from heedful.config import RunSettings

Action = Literal["corpus", "run"]
Status = Literal["done", "busy", "failed"]

ENVIRONMENT = ("HEEDFUL_DATA",)
"""What decides where named corpora lie; a worker on another machine has its own environment."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One thing to do: cache the corpus of some settings, or compute their run."""

    action: Action
    settings: RunSettings
    store: str
    digest: str = ""
    corpus: str = ""
    """The key of the cached corpus, for a run."""
    folder: str = field(default_factory=os.getcwd)
    environment: Mapping[str, str] = field(default_factory=lambda: _environment())

    def payload(self) -> dict[str, Any]:
        return {**vars(self), "settings": self.settings.model_dump(mode="json")}

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> "Job":
        return cls(**{**payload, "settings": RunSettings.of(payload["settings"])})


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a job ended: done, busy (another process computes this very run), or failed, with its error."""

    status: Status
    kind: str = ""
    """The class of the error."""
    message: str = ""
    details: str = ""
    """Where the error came from, for its maker."""
    facts: Mapping[str, Any] | None = None
    """The facts of a corpus that was cached."""
    found: bool = False
    """Whether another process had finished the run in the meantime."""
    worker: str = ""
    """The process or node that did it."""

    def payload(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Planned:
    """It is known what there is to do."""

    total: int
    found: int
    """Runs that were finished before."""
    workers: int
    seconds: float | None
    """How long the rest may take, by the runs in the store; None when they say nothing of it."""


@dataclass(frozen=True, kw_only=True)
class Started:
    """A job was taken up by a worker."""

    job: Job


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A job came to its end; a busy one will be tried again."""

    job: Job
    outcome: Outcome


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Nothing is left but runs that other processes compute."""

    runs: int


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """The runs are there, and something is measured on them."""

    what: str
    done: int
    total: int


Event = Started | Ended
SweepEvent = Planned | Event | Waiting | Measuring


def _environment() -> dict[str, str]:
    return {name: str(Path(os.environ[name]).absolute()) for name in ENVIRONMENT if name in os.environ}
