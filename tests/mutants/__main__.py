"""`make mutants`: plant a sample of small bugs, one at a time, and print which ones the nearest tests let pass."""

import argparse
import hashlib
import json
import os
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.mutants import nearest, running
from tests.mutants.planting import Mutant, as_module, compiles, mutants

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".cache" / "mutants"
RESULT, REACH = KEPT / "result.json", KEPT / "reach"
EQUIVALENT = Path(__file__).with_name("equivalent.json")
PLANTED_IN = ("analysis", "claims", "training", "text/splits.py")
TESTS = (
    "tests/analysis/test_*.py",
    "tests/training/test_*.py",
    "tests/test_claims*.py",
    "tests/test_answer.py",
    "tests/text/test_split*.py",
    "tests/text/test_corpus.py",
    "tests/figures/test_erasure.py",
    "tests/studies/test_serrano_measures.py",
)
WANTED = 0.95
T = TypeVar("T")
Saved = dict[str, dict[str, Any]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=200, help="how many bugs")
    parser.add_argument("--seed", type=int, default=0, help="of the choice among them")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="those of the last run that passed, and new ones, alone")
    parser.add_argument("--only", default="", help="bugs whose name has this in it")
    wanted = parser.parse_args()
    running.prepare()
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / "src").rglob("*.py"))}
    sample = [one for one in drawn(sources, wanted.seed, wanted.sample) if wanted.only in one.name]
    earlier: Saved = json.loads(RESULT.read_text()) if wanted.again and RESULT.is_file() else {}
    todo = [one for one in sample if not earlier.get(one.name, {}).get("caught")]
    tests = reaches(sources)
    found = earlier | dict(judged(todo, sources, tests, wanted.processes))
    RESULT.write_text(json.dumps({one.name: found[one.name] for one in sample}, indent=1, ensure_ascii=False))
    return told([one for one in sample if one.name in found], found, json.loads(EQUIVALENT.read_text()))


def drawn(sources: Mapping[str, str], seed: int, size: int) -> list[Mutant]:
    """A sample that stays the same, but for the bugs in lines that are changed, when the sources change."""
    where = tuple(f"src/heedful/{place}" for place in PLANTED_IN)
    possible = [one for path, source in sources.items() if path.startswith(where) for one in mutants(path, source)]
    ordered = sorted(possible, key=lambda one: one.digest(seed))
    sample: list[Mutant] = []
    for one in ordered:
        if len(sample) < size and compiles(one, sources[one.path]):
            sample.append(one)
    return sample


def reaches(sources: Mapping[str, str]) -> list[nearest.Timed]:
    """The lines that each test comes to; of the files of tests that have changed they are found anew."""
    REACH.mkdir(parents=True, exist_ok=True)
    shared = [path for path in sorted((ROOT / "tests").rglob("*.py")) if not path.name.startswith("test_")]
    base = "".join(sources.values()) + "".join(path.read_text() for path in shared if "mutants" not in path.parts)
    files = {
        path: REACH / f"{path.stem}-{hashlib.sha256((base + path.read_text()).encode()).hexdigest()[:16]}.json"
        for pattern in TESTS
        for path in sorted(ROOT.glob(pattern))
    }
    stale = [path for path, written in files.items() if not written.is_file()]
    for path in progress(stale, "what the tests come to", len(stale)):
        tree = own_tree()
        running.note_reach(tree, str(path.relative_to(ROOT)), files[path])
    return [test for written in files.values() for test in nearest.read(written)]


def own_tree() -> Path:
    """A copy of the tree that this process alone plants bugs in."""
    place = KEPT / f"tree-{os.environ.get('HEEDFUL_MUTANTS_TREE', '0')}"
    running.copy_tree(ROOT, place)
    return place


def judged(
    todo: Sequence[Mutant], sources: Mapping[str, str], tests: list[nearest.Timed], processes: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    context = get_context("fork")
    places = context.SimpleQueue()
    for number in range(processes):
        places.put(str(number))
    order = random.Random(0).sample(list(todo), len(todo))
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_begin, initargs=(places, sources)) as pool:
        jobs = [pool.submit(_judge, one, sources, *nearest.nearest(one, sources, tests)) for one in order]
        for job in progress(as_completed(jobs), "bugs", len(jobs)):
            verdict = job.result()
            shown = {"path": verdict.mutant.path, "line": verdict.mutant.line}
            rest = {"caught": verdict.caught, "by": verdict.by, "tests": verdict.tests, "seconds": verdict.seconds}
            yield verdict.mutant.name, shown | rest


def _begin(places: Any, sources: Mapping[str, str]) -> None:
    os.environ["HEEDFUL_MUTANTS_TREE"] = places.get()
    running.preload(own_tree(), sources, [as_module(f"src/heedful/{place}") for place in PLANTED_IN])


def _judge(mutant: Mutant, sources: Mapping[str, str], names: list[str], seconds: float) -> running.Verdict:
    tree = KEPT / f"tree-{os.environ['HEEDFUL_MUTANTS_TREE']}"
    if not names:
        return running.Verdict(mutant=mutant, caught=False, by="", tests=0, seconds=0.0)
    return running.judge(mutant, tree, sources, names, seconds, KEPT / f"{tree.name}.log")


def progress(some: Iterable[T], what: str, total: int) -> Iterator[T]:
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield from bar.track(some, total=total, description=what)


def told(sample: Sequence[Mutant], found: Saved, equivalent: Mapping[str, str]) -> int:
    """Print what passed; 0 where enough was caught."""
    caught = [one for one in sample if found[one.name]["caught"]]
    same = [one for one in sample if one.name in equivalent and one not in caught]
    passed = [one for one in sample if one not in caught and one not in same]
    table = Table("room", "bugs", "caught", "the same program", "passed")
    for room in sorted({room_of(one) for one in sample}):
        counts = [str(sum(room_of(one) == room for one in some)) for some in (sample, caught, same, passed)]
        table.add_row(room, *counts)
    console = Console(soft_wrap=True, highlight=False, markup=False)
    for one in passed:
        console.print(f"passed: {one.path}:{one.line} {one.name.partition('::')[2]}")
    console.print(table)
    rate = len(caught) / max(1, len(sample) - len(same))
    seconds = sum(found[one.name]["seconds"] for one in sample) / max(1, len(sample))
    console.print(f"caught {len(caught)} of {len(sample) - len(same)} that change what is computed: {rate:.1%}")
    console.print(f"{seconds:.1f} s each; {KEPT.relative_to(ROOT)}/{RESULT.name}")
    return int(rate < WANTED)


def room_of(mutant: Mutant) -> str:
    return mutant.path.removeprefix("src/heedful/").partition("/")[0]


if __name__ == "__main__":
    sys.exit(main())
