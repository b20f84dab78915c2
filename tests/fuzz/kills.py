"""`make kills`: commands are killed at random moments, and what was finished must be there.

Half of the kills come after a random time, half at a random change to the file system, where damage would be done.
After one to three of them the command is called again and must end well. Then

- all that was finished before is there, and verifies;
- tables, models, traces, figures and pages are bitwise those of an undisturbed call;
- after `heedful runs gc` nothing else is left.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.fuzz import forked
from tests.fuzz.forked import Kill
from tests.fuzz.scenes import SCENES, Stage, audits, collect


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenes", nargs="*", help=f"which: {', '.join(SCENES)}; default: all")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args(arguments)
    chosen = {name: SCENES[name] for name in wanted.scenes} or SCENES
    forked.warm(audit=audits(chosen))
    table = Table("scene", "kills", "ended before", "lost", "not as undisturbed", "left after gc", "seconds")
    total, failed = Counter[str](), 0
    whole = sum(scene.share for scene in chosen.values())
    with tempfile.TemporaryDirectory() as folder:
        for name, scene in chosen.items():
            begun, count = time.monotonic(), Counter[str]()
            chance = random.Random(f"{name}/{wanted.seed}")
            with Stage.set(Path(folder) / name.replace(" ", "-"), scene) as stage:
                while count["kills"] < max(1, round(wanted.kills * scene.share / whole)):
                    for said in play(stage, chance, count):
                        print(f"{name}: {said}", file=sys.stderr, flush=True)
            numbers = [count[key] for key in ("kills", "ended", "lost", "differ", "left")]
            table.add_row(name, *map(str, numbers), f"{time.monotonic() - begun:.0f}")
            total.update(count)
            failed += sum(numbers[2:])
    Console().print(table)
    print(f"{total['kills']} kills, {failed} failures")
    return int(failed > 0)


def play(stage: Stage, chance: random.Random, count: Counter[str]) -> list[str]:
    """Kill it a few times, then let it end; a sentence for each thing that is not as it should be."""
    place, said = stage.begin("played"), []
    for _ in range(chance.choice((1, 1, 2, 3))):
        kill = (
            Kill(seconds=chance.uniform(0, 1.05 * stage.seconds)) if chance.random() < 0.5
            else Kill(chance.choice((0.0, 0.0, 0.002)) * chance.random(), chance.randint(1, stage.changes))
        )  # fmt: skip
        done = forked.run(stage.words, place, prepare=stage.prepare, kill=kill)
        count["kills" if done.code == -signal.SIGKILL else "ended"] += 1
        lost = stage.lost(place)
        if done.code not in (0, -signal.SIGKILL):
            lost.append(f"all, with exit code {done.code}: {done.err[-500:]}")
        said += [f"{kill}: lost {one}" for one in lost]
        count["lost"] += len(lost)
    done = forked.run(stage.words, place, prepare=stage.prepare_later)
    if done.code:
        count["differ"] += 1
        return [*said, f"{kill}: exit code {done.code} when it was called again: {done.err[-2000:]}"]
    collect(place)
    differ, left = stage.differences(place)
    said += [f"{kill}: {name} is not as undisturbed" for name in differ] + [f"{kill}: {name} is left" for name in left]
    count.update(differ=len(differ), left=len(left))
    return said


if __name__ == "__main__":
    sys.exit(main())
