"""The command line in this process or in one of its own, and small corpora as files, for tests that kill or race it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heedful
from heedful.text.synthetic import words

COMMAND = [sys.executable, "-m", "heedful"]

# A shell that runs its jobs in the background lets them ignore interrupts, and they would hand that on.
HEEDING_INTERRUPTS = [
    sys.executable,
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])",
]


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as strict JSON: NaN is none."""
        return json.loads(self.out, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))

    @property
    def words(self) -> str:
        """Standard output without line breaks."""
        return " ".join(self.out.split())

    @property
    def notes(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("note: ")]


Call = Callable[..., Outcome]


def environment() -> dict[str, str]:
    """Of this process, with the package that is being tested on the search path."""
    return {**os.environ, "PYTHONPATH": str(Path(heedful.__file__).parents[1])}


def call(*arguments: object, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run `heedful` with these arguments to its end."""
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment(), **options)


def start(*arguments: object, **options: Any) -> "subprocess.Popen[str]":
    """Start `heedful` as the leader of a process group of its own."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "text": True}
    command = [*HEEDING_INTERRUPTS, *COMMAND, *map(str, arguments)]
    return subprocess.Popen(command, start_new_session=True, env=environment(), **{**quiet, **options})


def write_corpus(path: Path, *, texts: int = 300, length: int = 12, seed: int = 0) -> Path:
    """A CSV of texts with planted polarity words, with splits."""
    rng = np.random.default_rng(seed)
    plain, polar = np.array(words("neutral")[:100]), {name: words(name)[:10] for name in ("negative", "positive")}
    lines = ["text,label,split"]
    for row in range(texts):
        label = ("negative", "positive")[row % 2]
        chosen = [*rng.choice(plain, length), *rng.choice(polar[label], 2)]
        lines.append(f"{' '.join(chosen)},{label},{('train', 'train', 'dev', 'test')[row // 2 % 4]}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_plan(path: Path, source: Path, *, scales: int = 3, seeds: int = 2, epochs: int = 3, size: int = 16) -> Path:
    """A sweep file with a grid over the scale of the scores."""
    path.write_text(
        f"seeds = {seeds}\n"
        f"[base]\ndata.source = '{source}'\ntraining.epochs = {epochs}\ntraining.batch_size = 20\n"
        f"model.embedding_size = {size}\n"
        f"[grid]\nmodel.score_scale = {[10 * (number + 1) for number in range(scales)]}\n",
        encoding="utf-8",
    )
    return path
