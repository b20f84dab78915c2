"""`make long`: many audits in one process, and many requests to the page: what they hold does not grow.

Printed is what the process holds after a fifth of each, when caches are full, and at the end.
"""

import argparse
import fcntl
import gc
import io
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import astuple, dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from heedful.errors import HeedfulError
from tests.fuzz import requests

GROWTH = 0.03
"""The share by which memory may be larger in the end: allocators do not give back every page."""


@dataclass(frozen=True)
class Held:
    """What a process holds."""

    megabytes: float
    threads: int
    files: int
    children: int
    figures: int

    @classmethod
    def now(cls) -> "Held":
        from matplotlib import pyplot

        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return cls(
            megabytes=round(pages * os.sysconf("SC_PAGESIZE") / 2**20, 1),
            threads=threading.active_count(),
            files=sum(1 for _ in Path("/proc/self/fd").iterdir()),
            children=len(children),
            figures=len(pyplot.get_fignums()),
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=200)
    parser.add_argument("--requests", type=int, default=20_000)
    wanted = parser.parse_args(arguments)
    torch.set_num_threads(1)
    table = Table("what", "of", "after", "MB", "threads", "files", "children", "figures", "seconds")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for what, count, one in (
            ("audits", wanted.audits, lambda number: audit(Path(folder), number)),
            ("requests", wanted.requests, request),
        ):
            if count:
                rows = watched(count, one)
                for after, held, seconds in rows:
                    table.add_row(what, f"{count:,}", f"{after:,}", *map(str, astuple(held)), f"{seconds:.0f}")
                failed += grown(what, rows[0][1], rows[-1][1])
        locks = [path for path in Path(folder).rglob("*.lock") if not free(path)]
        left = [*Path(folder).rglob("*.part"), *Path(folder).rglob("*.lock")]
    Console().print(table)
    print(f"locks held: {len(locks)}, files left: {len(left)}")
    return int(failed > 0 or bool(left))


def watched(count: int, one: Callable[[int], object]) -> list[tuple[int, Held, float]]:
    """What is held after each fifth."""
    begun, rows = time.monotonic(), []
    for number in range(1, count + 1):
        one(number)
        if number % max(1, count // 5) == 0:
            rows.append((number, Held.now(), time.monotonic() - begun))
            print(f"{number:,} of {count:,}: {rows[-1][1]}", file=sys.stderr, flush=True)
    return rows


def grown(what: str, first: Held, last: Held) -> bool:
    more = last.megabytes > first.megabytes * (1 + GROWTH)
    others = astuple(last)[1:] > astuple(first)[1:] or last.figures > 0
    if more or others:
        print(f"{what} leave something behind: {first} became {last}", file=sys.stderr)
    return more or others


def audit(folder: Path, number: int) -> None:
    """Of other data every time, so that nothing is found; in one store."""
    from heedful.cli import app

    words = ["audit", f"synthetic:size=60,seed={number}", "--epochs", "1", "--no-advice", "--store", str(folder)]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), suppress(SystemExit):
        app(words)


def request(number: int) -> None:
    """One that somebody may send, broken or not."""
    chance = random.Random(f"requests/{number}")
    with suppress(HeedfulError):
        requests.requests(chance, Path())


def free(lock: Path) -> bool:
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
