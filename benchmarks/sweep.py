"""Sweeps: two workers against one, ten thousand runs listed, and the memory of two workers on one corpus."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from heedful.config import DataSettings, RunSettings
from heedful.store import CORPUS, Store
from heedful.sweep.loop import sweep
from heedful.sweep.plan import Plan
from heedful.text.datasets import cache_corpus
from heedful.text.recipes import DATASETS, data_folder

RUNS = 16
EPOCHS = 20
LISTED = 10_000

HOLD = """
import sys
from pathlib import Path
from heedful.text.cached import open_corpus
corpus = open_corpus(Path(sys.argv[1]))
sum(map(len, corpus.train.texts)) + int(corpus.train.tokens.numbers.sum() + corpus.train.tokens.spans.sum())
print("read", flush=True)
sys.stdin.read()
"""


def seconds_of_sweep(source: str, workers: int, folder: Path) -> float:
    """Sixteen runs of the dot-product model, from the command to the table; the corpus is tokenised beforehand."""
    base = RunSettings().change({"data.source": source, "training.epochs": EPOCHS})
    store = Store(folder / f"runs-{workers}")
    cache_corpus(base.data, store)
    begun = time.perf_counter()
    done = sweep(Plan.of(base, seeds=RUNS), store, workers=workers)
    assert len(done.computed) == RUNS
    return time.perf_counter() - begun


def throughput(folder: Path) -> list[dict[str, str]]:
    source = "sst" if DATASETS["sst"].available else "synthetic-1"
    one, two = (seconds_of_sweep(source, workers, folder) for workers in (1, 2))
    what = f"{RUNS} DP runs on {source}, {EPOCHS} epochs"
    return [{"what": what, "one": f"{one:.1f} s", "two": f"{two:.1f} s", "ratio": f"{one / two:.2f}"}]


def make_runs(store: Store) -> None:
    metrics = {"test_accuracy": 0.9, "dev_accuracy": 0.9, "best_epoch": 3, "epochs": 40, "alignment": [0.1]}
    for seed in range(LISTED):
        settings = RunSettings().change({"training.seed": seed})
        digest = settings.digest("made")
        manifest = {"digest": digest, "corpus": "made", "settings": settings.model_dump(mode="json")}
        folder = store.root / f"{digest[:12]}_dot-none-10_made_{seed}"
        folder.mkdir(parents=True)
        content = {"format": 1, **manifest, "metrics": metrics, "seconds": 1.0, "version": "0"}
        (folder / "manifest.json").write_text(json.dumps(content, indent=2))


def listing(folder: Path) -> list[dict[str, str]]:
    """The wall time of a fresh process."""
    store = Store(folder / "listed")
    make_runs(store)
    command = [sys.executable, "-m", "heedful", "runs", "list", "--json", "--store", str(store.root)]
    begun = time.perf_counter()
    answer = subprocess.run(command, capture_output=True, check=True)
    seconds = time.perf_counter() - begun
    assert len(json.loads(answer.stdout)) == LISTED
    return [{"what": f"runs list --json, {LISTED:,} runs", "one": f"{seconds:.2f} s", "two": "", "ratio": ""}]


def held_megabytes(place: Path, count: int) -> float:
    """Memory of so many processes that have read a corpus, each shared page counted once."""
    command = [sys.executable, "-c", HOLD, str(place)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        assert all(process.stdout and process.stdout.readline() for process in processes)
        return sum(_corpus_kilobytes(process.pid, place) for process in processes) / 1024
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _corpus_kilobytes(process: int, place: Path) -> int:
    inside, total = False, 0
    for line in Path(f"/proc/{process}/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            inside = str(place) in line
        elif inside and line.startswith("Pss:"):
            total += int(line.split()[1])
    return total


def memory(folder: Path) -> list[dict[str, str]]:
    imdb = data_folder() / "imdb_train.jsonl.gz"
    if not imdb.is_file() or not Path("/proc/self/smaps").exists():
        return []
    store = Store(folder / "runs")
    facts = cache_corpus(DataSettings(source=str(imdb), label_column="label"), store)
    one, two = (held_megabytes(store.place(CORPUS, facts.key), count) for count in (1, 2))
    what = f"IMDB texts and {facts.units:,} tokens in memory"
    return [{"what": what, "one": f"{one:.0f} MB", "two": f"{two:.0f} MB", "ratio": f"{two / one:.2f}"}]


def rows() -> list[dict[str, str]]:
    """`one` and `two` are workers."""
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1] / "src"))
    with tempfile.TemporaryDirectory() as folder:
        return [*throughput(Path(folder)), *listing(Path(folder)), *memory(Path(folder))]
