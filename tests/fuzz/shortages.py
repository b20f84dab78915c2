"""`make shortages`: commands on full disks, in folders that cannot be written, with limits on files and on memory.

Each must end in a sentence and an exit code of 1, or as if nothing were short. What is there then is whole, what was
finished before is sound, and when there is enough again, a further call ends as an undisturbed one.
"""

import argparse
import ctypes
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.commands import environment
from tests.fuzz import forked
from tests.fuzz.scenes import SCENES, Stage, audits, collect, content

NAMES = ("run", "audit", "audit again", "audit --fresh", "sweep", "data fetch", "report", "explain --out")
CLONE_NEWNS, CLONE_NEWUSER, PRIVATE = 0x00020000, 0x10000000, 1 << 18
MEMORY = (200, 300, 500, 700, 1000, 1500, 2000)
"""Megabytes of addresses of a fresh process. With less, libraries end it themselves while they are loaded."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenes", nargs="*", help=f"which: {', '.join(NAMES)}; default: all")
    parser.add_argument("--sizes", type=int, default=40, help="of disks, and of files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="append", help="only this: disk, files, permission, user, memory, start")
    wanted = parser.parse_args(arguments)
    forked.warm(audit=audits(wanted.scenes or NAMES))
    table = Table("what is short", "tried", "enough", "a sentence", "other", "seconds")
    chance, failed = random.Random(wanted.seed), 0
    chosen = wanted.scenes or NAMES
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        mounting = own_mounts()
        stages = {name: Stage.set(Path(folder) / name.replace(" ", "-"), SCENES[name]) for name in chosen}
        for short, (what, tries) in {
            "disk": ("disk", partial(full_disks, stages, wanted.sizes if mounting else 0, chance)),
            "files": ("size of files", partial(small_files, stages, wanted.sizes, chance)),
            "permission": ("permission to write", partial(unwritable, stages)),
            "user": ("permission of another user", partial(another_user, stages)),
            "memory": ("memory, later", partial(little_more_memory, Path(folder), wanted.sizes, chance)),
            "start": ("memory, from the start", partial(little_memory, Path(folder))),
        }.items():
            if short not in (wanted.short or [short]):
                continue
            begun, count = time.monotonic(), Counter[str]()
            for kind, said in tries():
                count[kind] += 1
                if kind == "other":
                    print(f"{what}: {said}", file=sys.stderr, flush=True)
            failed += count["other"]
            numbers = (count["enough"], count["a sentence"], count["other"])
            table.add_row(what, str(sum(numbers)), *map(str, numbers), f"{time.monotonic() - begun:.0f}")
        for stage in stages.values():
            stage.__exit__()
    Console().print(table)
    return int(failed > 0)


Tries = Iterator[tuple[str, str]]


def full_disks(stages: dict[str, Stage], sizes: int, chance: random.Random) -> Tries:
    """Of sizes between nothing and what is needed, less where little is left over."""
    for number in range(sizes):
        name = list(stages)[number % len(stages)]
        stage = stages[name]
        spare = round(max(stage.bytes, 200_000) * chance.random() ** 2 * 1.5) // 4096 * 4
        with disk(stage, spare) as (place, enlarge):
            yield judged(stage, place, lambda: None, enlarge, f"{name}, {spare} kB")


def small_files(stages: dict[str, Stage], sizes: int, chance: random.Random) -> Tries:
    """Files may grow to so many bytes."""
    for number in range(sizes):
        name = list(stages)[number % len(stages)]
        most = round(2 ** chance.uniform(5, 20))
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most))
        place = stages[name].begin("limited")
        yield judged(stages[name], place, limit, lambda: None, f"{name}, files of {most:,} bytes")


def unwritable(stages: dict[str, Stage]) -> Tries:
    """All folders, and all files too."""
    for name, stage in stages.items():
        for modes in ((0o555, 0o644), (0o555, 0o444)):
            place = stage.begin("sealed")
            paths = [place, *place.rglob("*")]
            for path in paths:
                path.chmod(modes[path.is_file()])

            def open_again(paths: Sequence[Path] = paths) -> None:
                for path in paths:
                    path.chmod(0o644 if path.is_file() else 0o755)

            yield judged(stage, place, without_privileges, open_again, f"{name}, not to be written")


def another_user(stages: dict[str, Stage]) -> Tries:
    """Who may read what root has made, and write nothing; and who may write to the store, where what root made lies."""
    if os.geteuid():
        return
    for name, stage in stages.items():
        for mode in (0o755, 0o777, 0o1777):
            place = stage.begin("shared")
            for path in [place, *place.iterdir()]:
                path.chmod(mode if path.is_dir() else 0o644)
            yield judged(stage, place, nobody, lambda: None, f"{name}, as another user, folders {mode:o}")


def nobody() -> None:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def little_more_memory(folder: Path, tries: int, chance: random.Random) -> Tries:
    """So much more than a process has that has imported everything, for a model that is not small."""
    for _ in range(tries):
        more = round(2 ** chance.uniform(18, 28))
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = partial(resource.setrlimit, resource.RLIMIT_AS, (held + more, held + more))
        place = Path(tempfile.mkdtemp(dir=folder))
        wide = ("--set", "model.embedding_size=8000")
        words = (*SCENES["run"].words[:2], "--epochs", "1", *wide, "--store", "runs")
        done = forked.run(words, place, prepare=limit)
        kind, said = _kind(done.code, done.err), f"{more >> 10:,} kB more: {done.code} {done.err[-1500:]}"
        left = content(place)
        finished = [name for name in left if name.endswith("manifest.json")]
        halves = [name for name in left if name.endswith((".part", ".made"))]
        yield ("other", f"{said} {left}") if halves or len(finished) != (kind == "enough") else (kind, said)


def little_memory(folder: Path) -> Tries:
    """Libraries do not load, or what they do does not succeed."""
    for megabytes in MEMORY:
        for words in (("--version",), ("train", "synthetic:size=120", "--epochs", "1", "--store", str(folder / "m"))):
            limit = partial(resource.setrlimit, resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
            done = subprocess.run(
                [sys.executable, "-m", "heedful", *words], capture_output=True, text=True, preexec_fn=limit,
                env={**environment(), "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
            yield _kind(done.returncode, done.stderr), f"{words[0]} in {megabytes} MB: {done.stderr[-1500:]}"


def judged(stage: Stage, place: Path, begin: Callable[[], None], end: Callable[[], None], what: str) -> tuple[str, str]:
    """What came of the command while something was short, and afterwards."""

    def prepare() -> None:
        stage.prepare()
        begin()

    def prepare_later() -> None:
        stage.prepare_later()

    done = forked.run(stage.words, place, prepare=prepare)
    kind, said = _kind(done.code, done.err), f"{what}: exit code {done.code}: {done.err[-2500:]}"
    differ, left = stage.differences(place)
    if done.code == 0:
        collect(place)
        differ, left = stage.differences(place)
        return ("other", f"{what}: {differ} {left}") if differ or left else (kind, said)
    halves = [name for name in left if name.endswith((".part", ".made"))]
    wrong = [name for name in differ if (place / name).exists() and not (stage.start / name).exists()]
    lost = stage.lost(place)
    end()
    if wrong or lost or (halves and kind == "a sentence"):
        return "other", f"{what}: {wrong=} {lost=} {halves=}"
    again = forked.run(stage.words, place, prepare=prepare_later)
    collect(place)
    differ, left = stage.differences(place)
    if again.code or differ or left:
        return "other", f"{what}, called again: {again.code} {differ=} {left=} {again.err[-1500:]}"
    return kind, said


def _kind(code: int, said: str) -> str:
    if code == 0:
        return "enough"
    whole = [line for line in said.splitlines() if line.startswith("heedful: ")]
    return "a sentence" if code == 1 and len(whole) == 1 and "Traceback" not in said else "other"


def without_privileges() -> None:
    """Root may write anywhere; without these capabilities it is refused like everybody else."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, in this process at once
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        data = (ctypes.c_uint32 * 6)()
        libc = ctypes.CDLL(None)
        libc.capget(header, data)
        data[0] &= ~(1 << capability)
        data[1] &= ~(1 << capability)
        libc.capset(header, data)


def own_mounts() -> bool:
    """Mounts of this process are nobody else's and end with it; whether there can be some."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, (1 << 14) | PRIVATE, None):
        print("no file system can be mounted here, so that no disk is full: call it as root", file=sys.stderr)
        return False
    return True


@contextmanager
def disk(stage: Stage, spare: int) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A file system of its own that holds the stage and so many kilobytes more; and what enlarges it."""
    place = stage.folder / "disk"
    place.mkdir()

    def mount(how: str) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", how, "tmpfs", str(place)], check=True)

    mount("size=64m")
    try:
        shutil.copytree(stage.start, place, dirs_exist_ok=True)
        held = sum(-(-path.stat().st_size // 4096) * 4 for path in place.rglob("*") if path.is_file())
        mount(f"remount,size={held + max(spare, 4)}k")
        yield place, partial(mount, "remount,size=64m")
    finally:
        subprocess.run(["umount", str(place)], check=True)
        place.rmdir()


if __name__ == "__main__":
    sys.exit(main())
