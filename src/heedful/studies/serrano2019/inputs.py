"""Both notions of erasure on some test texts of every run: weights set to zero, and words taken out and read again.

Reading again costs what tracing costs, many times over, so a run is measured once and its table stays in the store: one
row per level (attention, delete, mask), ranking and text (`flips_by_level`).
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import torch

from heedful.analysis.flips import in_front
from heedful.files import explained
from heedful.pipeline import Run, read_corpus
from heedful.probes.reading import MODES, flips_by_level
from heedful.store import INPUTS, PREFIX, Store
from heedful.text.corpus import Corpus
from heedful.training.loop import limited_threads

TEXTS = 100
"""Test texts of a run that are read again, drawn without replacement."""

LOOKS = 20
"""At most so many times for each ranking, after sizes that grow by a factor from one unit on."""

FORMAT = 2
"""Raised when what is kept changes; part of its name."""

Watch = Callable[[int, int], None]
"""Is told how many of how many are measured."""


def input_flips_of(runs: Iterable[tuple[Mapping[str, object], Run]], *, watch: Watch | None = None) -> pd.DataFrame:
    """The flips of every run at each level, with what is said of the run (dataset, model, seed) in front."""
    wanted = list(runs)
    parts = []
    for done, (said, table) in enumerate(_measured(wanted), start=1):
        parts.append(in_front(said, table))
        if watch is not None:
            watch(done, len(wanted))
    return pd.concat(parts, ignore_index=True)


def _measured(runs: Iterable[tuple[Mapping[str, object], Run]]) -> Iterator[tuple[Mapping[str, object], pd.DataFrame]]:
    """Table after table; a corpus is read when a run needs it, and kept while the runs that follow share it."""
    corpora: dict[str, Corpus] = {}
    for said, run in runs:
        path, _ = Store(run.path.parent).keep(INPUTS, _key(run), partial(_write, run, corpora))
        yield said, pd.read_parquet(path)


def _write(run: Run, corpora: dict[str, Corpus], path: Path) -> None:
    fingerprint = run.manifest["fingerprint"]
    if fingerprint not in corpora:
        corpora.clear()  # one at a time
        corpora[fingerprint] = read_corpus(run.settings)
    table = read_changed_texts(run, corpora[fingerprint])
    with explained(path):
        table.to_parquet(path, index=False, compression="zstd")


def read_changed_texts(
    run: Run, corpus: Corpus, modes: Sequence[str] = MODES, *, watch: Watch | None = None
) -> pd.DataFrame:
    """The drawn texts of one run at every level, with the number of threads that it was trained with."""
    seed = run.settings.training.seed
    drawn = torch.randperm(len(corpus.test), generator=torch.Generator().manual_seed(seed))[:TEXTS]
    rows = drawn.sort().values.tolist()
    with limited_threads(run.settings.training.threads):
        return flips_by_level(
            run.model(), corpus.test, modes=modes, steps=LOOKS, spacing="geometric", rows=rows, watch=watch
        )


def _key(run: Run) -> str:
    digest = run.manifest["digest"]
    content = json.dumps([digest, FORMAT, TEXTS, LOOKS])
    return f"{digest[:PREFIX]}-{hashlib.sha256(content.encode()).hexdigest()[:PREFIX]}"
