"""Millions of reviews in little memory: `python -m benchmarks.large --reviews 300000 1000000 3000000`.

Reviews are generated with the length statistics of Amazon's (73 tokens in the mean, log-normal), words from a Zipf
distribution, and planted polarity words. Every stage is a process of its own, whose seconds and largest resident memory
are measured (CPU seconds hold the loading of libraries): the corpus, one epoch of the plain model (dot-product
attention, no encoder), the trace of the test texts in shards, and four rankings with the exact minimum. With `--ray` a
run is traced and erased here and on two Ray nodes, one of which is killed on the way, and the tables compared. A table
is printed, and all numbers written as JSON.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

MEAN_LENGTH, SPREAD = 73, 0.75
"""Tokens of a review in the mean, and the standard deviation of their logarithm."""

WORDS, POLAR, SHARE, TRUE = 150_000, 200, 0.05, 0.8
"""Different words; polarity words of each class; their share of all tokens; how many of them tell the truth."""

TEST, DEV = 650 / 3000, 0.05
CHUNK = 10_000
RANKINGS = ("attention", "gradient", "product", "random")
LETTERS = "etaoinsrhldcumfpgwybvkxjqz"

Facts = dict[str, Any]


def words_of(count: int) -> list[str]:
    """Different words, the first the shortest."""
    found = []
    for number in range(count):
        word, rest = "", number
        while not word or rest:
            rest, letter = divmod(rest, len(LETTERS))
            word += LETTERS[letter]
        found.append(f"{word}{len(word)}" if word in {"nan", "none", "null"} else word)
    return found


def generate(path: Path, reviews: int, *, seed: int = 0, words: int = WORDS) -> int:
    """Write so many reviews as CSV with splits; returns the number of tokens."""
    rng, vocabulary = np.random.default_rng(seed), np.array(words_of(words + 2 * POLAR), dtype=object)
    chances = np.cumsum(1 / (np.arange(words) + 2.7))
    tokens = 0
    with path.open("w", encoding="ascii") as file:
        file.write("text,label,split\n")
        for start in range(0, reviews, CHUNK):
            count = min(CHUNK, reviews - start)
            drawn = rng.lognormal(np.log(MEAN_LENGTH) - SPREAD**2 / 2, SPREAD, count)
            lengths = np.maximum(1, drawn.round().astype(np.int64))
            labels, parts = rng.integers(0, 2, count), rng.random(count)
            owners = np.repeat(labels, lengths)
            numbers = np.searchsorted(chances, rng.random(len(owners)) * chances[-1])
            polar = rng.random(len(owners)) < SHARE
            of_class = np.where(rng.random(len(owners)) < TRUE, owners, 1 - owners)
            own = words + of_class * POLAR + rng.integers(0, POLAR, len(owners))
            said = vocabulary[np.where(polar, own, numbers)].tolist()
            ends = np.cumsum(lengths).tolist()
            for row, (end, length) in enumerate(zip(ends, lengths.tolist(), strict=True)):
                split = "test" if parts[row] < TEST else "dev" if parts[row] < TEST + DEV else "train"
                label = ("negative", "positive")[labels[row]]
                file.write(f"{' '.join(said[end - length : end])},{label},{split}\n")
            tokens += len(owners)
    return tokens


def make_corpus(folder: Path) -> Facts:
    from heedful.config import DataSettings
    from heedful.store import Store
    from heedful.text.datasets import cache_corpus

    facts = cache_corpus(DataSettings(source=str(folder / "reviews.csv")), Store(folder / "store"))
    (folder / "key").write_text(facts.key)
    return {"tokens": facts.units, "vocabulary": facts.vocabulary}


def _corpus(folder: Path) -> Any:
    from heedful.store import CORPUS, Store
    from heedful.text.cached import open_corpus

    return open_corpus(Store(folder / "store").place(CORPUS, (folder / "key").read_text()))


def train_epoch(folder: Path) -> Facts:
    import heedful

    corpus = _corpus(folder)
    model = heedful.fit(corpus, epochs=1, learning_rate=0.1)
    heedful.save_model(model, folder / "model")
    return {"texts": len(corpus.train), "dev_accuracy": float(model.history["dev_accuracy"].iloc[0])}


def trace_test(folder: Path) -> Facts:
    import heedful

    test = _corpus(folder).test
    found = heedful.trace(heedful.load_model(folder / "model"), test, out=folder / "trace")
    return {"texts": len(found), "shards": found.count}


def erase(folder: Path) -> Facts:
    from functools import partial

    import heedful

    found = heedful.TraceFolder(folder / "trace")
    tables = {name: heedful.in_shards(found, partial(heedful.first_flips, by=name)) for name in RANKINGS}
    tables["minimum"] = heedful.in_shards(found, heedful.minimum_flips)
    medians = {name: float((table["erased"] / table["units"]).median()) for name, table in tables.items()}
    return {"texts": len(found), **medians}


def on_two_nodes(folder: Path) -> Facts:
    """Trace and erasure of a run on a Ray cluster of two nodes of which one is killed, beside this process."""
    import importlib
    import os

    from heedful.config import RunSettings
    from heedful.pipeline import run as compute
    from heedful.store import Store
    from heedful.sweep.shards import erase_shards, trace_run

    changes = {"data.source": str(folder / "reviews.csv"), "training.epochs": 1, "record.scores": False}
    done = compute(RunSettings().change(changes), Store(folder / "store"), corpus=_corpus(folder))
    near = trace_run(done, "test", folder / "near", shard_size=2_000)
    expected = erase_shards(near, seed=0, rankings=RANKINGS)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(importlib.import_module("heedful").__file__ or "").parents[1])]
    )
    ray: Any = importlib.import_module("ray")
    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80_000_000}
    utilities: Any = importlib.import_module("ray.cluster_utils")
    cluster = utilities.Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    second = [cluster.add_node(**node)]
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")

    def kill_half_way(finished: int, count: int) -> None:
        if second and 2 * finished >= count:
            cluster.remove_node(second.pop(), allow_graceful=False)

    far = trace_run(done, "test", folder / "far", shard_size=2_000, on="ray", watch=kill_half_way)
    found = erase_shards(far, seed=0, rankings=RANKINGS, on="ray")
    ray.shutdown()
    cluster.shutdown()
    same = far.manifest == near.manifest and all(found[name].equals(table) for name, table in expected.items())
    return {"texts": len(far), "shards": far.count, "killed": not second, "same": same}


STAGES: Mapping[str, Callable[[Path], Facts]] = {
    "corpus": make_corpus,
    "epoch": train_epoch,
    "trace": trace_test,
    "erasure": erase,
    "ray": on_two_nodes,
}


@contextmanager
def watching_memory() -> Iterator[Callable[[], float]]:
    """The most memory of its own, in MB, that this process had at any time: without pages of mapped files."""
    done, most = threading.Event(), [0.0]

    def watch() -> None:
        while not done.wait(0.1):
            lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
            most[0] = max(most[0], int(lines["RssAnon"].split()[0]) / 1024)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield lambda: most[0]
    finally:
        done.set()
        thread.join()


def measured(stage: str, folder: Path) -> Facts:
    """A stage in this process, with its seconds and its memory."""
    with watching_memory() as own:
        started = time.perf_counter()
        facts = STAGES[stage](folder)
        seconds = {"seconds": round(time.perf_counter() - started, 1), "cpu_seconds": round(time.process_time(), 1)}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {"stage": stage, **seconds, "peak_mb": round(peak), "own_mb": round(own()), **facts}


def run(reviews: int, place: Path, *, ray: bool = False, words: int = WORDS) -> list[Facts]:
    """All stages for so many reviews, in a folder that is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f"large-{reviews}-", dir=place))
    try:
        started = time.perf_counter()
        tokens = generate(folder / "reviews.csv", reviews, words=words)
        size = round((folder / "reviews.csv").stat().st_size / 2**20)
        seconds = round(time.perf_counter() - started, 1)
        found = [{"reviews": reviews, "stage": "generated", "seconds": seconds, "tokens": tokens, "file_mb": size}]
        print(found[-1], file=sys.stderr, flush=True)
        for stage in [name for name in STAGES if ray or name != "ray"]:
            command = [sys.executable, "-m", "benchmarks.large", "--stage", stage, "--place", str(folder)]
            said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            found.append({"reviews": reviews, **json.loads(said.splitlines()[-1])})
            print(found[-1], file=sys.stderr, flush=True)
        return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def rows(found: Sequence[Facts]) -> list[dict[str, str]]:
    """The numbers as a table."""
    return [
        {
            "what": f"{one['reviews']:,} reviews: {one['stage']}",
            "seconds": f"{one['seconds']:,.0f}",
            "CPU seconds": f"{one['cpu_seconds']:,.0f}" if "cpu_seconds" in one else "–",
            "µs a review": f"{1e6 * one['seconds'] / one['reviews']:,.0f}",
            "peak MB": f"{one['peak_mb']:,}" if "peak_mb" in one else "–",
            "of its own MB": f"{one['own_mb']:,}" if "own_mb" in one else "–",
        }
        for one in found
    ]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reviews", type=int, nargs="+", default=[300_000])
    parser.add_argument("--words", type=int, default=WORDS)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--place", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.stage:
        print(json.dumps(measured(given.stage, given.place)))
        return
    found: list[Facts] = []
    for reviews in given.reviews:
        found += run(reviews, given.place, ray=given.ray, words=given.words)
        if given.out:
            given.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    from benchmarks.__main__ import show

    show("large", rows(found))


if __name__ == "__main__":
    main(sys.argv[1:])
