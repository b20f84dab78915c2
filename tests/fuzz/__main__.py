"""`make fuzz`: knock at every door many times and print what came of it."""

import argparse
import contextlib
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.fuzz.doors import DOORS, knock

SECONDS, WAITED = 20, 300
"""What takes the processor for longer is a defect too, or lets us wait for so long on a machine that is busy."""


def _late(*_: object) -> None:
    raise TimeoutError(f"no answer in {SECONDS} s of the processor, or {WAITED} on the clock")


def _watch(factor: int) -> None:
    """Begin to measure one input (1), or end it (0)."""
    signal.setitimer(signal.ITIMER_PROF, factor * SECONDS)
    signal.alarm(factor * WAITED)


def _warm() -> None:
    """Loops are compiled at their first use, which takes long and is not looked at."""
    for seed in range(20):
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Exception):
            knock("arrays", seed, Path(folder))


def _place(error: BaseException) -> str:
    """Its kind, and the last line of heedful's own that it came through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/heedful/" in f.filename]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "outside"
    return f"{type(error).__name__} in {where}: {str(error)[:100]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("doors", nargs="*", help=f"which: {', '.join(DOORS)}; default: all")
    parser.add_argument("--each", type=int, default=3000, help="inputs per door")
    parser.add_argument("--first", type=int, default=1_000_000, help="the first seed; tests take those from 0 on")
    wanted = parser.parse_args()
    warnings.simplefilter("error")
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, _late)
    _warm()
    table = Table("where", "tried", "taken", "refused", "defects", "silent ones", "seconds")
    failed = 0
    for door in wanted.doors or DOORS:
        counts: Counter[str] = Counter()
        defects: dict[str, list[int]] = {}
        begun = time.monotonic()
        for seed in range(wanted.first, wanted.first + wanted.each):
            with tempfile.TemporaryDirectory() as folder:
                _watch(1)
                try:
                    counts[knock(door, seed, Path(folder))] += 1
                except Exception as error:
                    defects.setdefault(_place(error), []).append(seed)
                finally:
                    _watch(0)
        for place, seeds in sorted(defects.items(), key=lambda one: -len(one[1])):
            print(f"{door}: {len(seeds)} × {place} (seed {seeds[0]})", file=sys.stderr)
        found = sum(map(len, defects.values()))
        failed += found
        silent = sum(len(seeds) for place, seeds in defects.items() if "SILENT" in place)
        row = (f"{wanted.each:,}", *map(str, (counts["taken"], counts["refused"], found, silent)))
        table.add_row(door, *row, f"{time.monotonic() - begun:.0f}")
    Console().print(table)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
