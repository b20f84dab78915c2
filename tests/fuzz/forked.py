"""Commands in processes that are forked from this one: what `heedful` imports is there already, so thousands are cheap.

Each is the leader of a process group of its own, with its output in files.
"""

import io
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.studies.conftest import Here

CHANGING = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "shutil.rmtree"}
"""What changes a file system, by the names of Python's audit events; besides it, files opened to be written."""

Prepare = Callable[[], None]


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, or the negative number of the signal."""

    code: int
    out: str
    err: str
    seconds: float


@dataclass(frozen=True)
class Kill:
    """When a process is killed: after so many seconds, or so many seconds after it began its n-th change to the file
    system (0: before it, which is then not made)."""

    seconds: float = 0.0
    change: int | None = None


def warm(*, audit: bool = True) -> None:
    """An audit in this process, or a training: imports what commands import, and loads compiled loops."""
    import torch

    from heedful.cli import app

    torch.set_num_threads(1)  # a process with threads cannot be forked
    quiet = redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), suppress(SystemExit)
    with tempfile.TemporaryDirectory() as folder, quiet[0], quiet[1], quiet[2]:
        words = ("audit", "--no-advice") if audit else ("train",)
        app([*words, "synthetic:size=60", "--epochs", "1", "--store", folder])


def run(words: Sequence[object], folder: Path, *, prepare: Prepare = lambda: None, kill: Kill | None = None) -> Ended:
    """A `heedful` command in this folder, to its end or until it is killed, its process group with it."""
    begun, said = time.monotonic(), [folder.parent / f".{folder.name}.{name}" for name in ("out", "err")]
    for path in said:  # it may be killed before it makes them
        path.touch()
    number = os.fork()
    if not number:
        _become(list(map(str, words)), folder, said, prepare, kill)
    if kill and kill.change is None:
        _, status = _wait(number, begun + kill.seconds)
    else:
        _, status = os.waitpid(number, 0)
    _end_group(number)
    out, err = (path.read_text(errors="replace") for path in said)
    for path in said:
        path.unlink()
    return Ended(os.waitstatus_to_exitcode(status), out, err, time.monotonic() - begun)


def changes(words: Sequence[object], folder: Path, *, prepare: Prepare = lambda: None) -> int:
    """How many changes to the file system an undisturbed command makes."""
    reader, writer = os.pipe()

    def told() -> None:
        prepare()
        count = [0]
        sys.addaudithook(lambda event, given: count.__setitem__(0, count[0] + _changes(event, given)))
        _at_the_end.append(lambda: os.write(writer, str(count[0]).encode()))

    done = run(words, folder, prepare=told)
    os.close(writer)
    with os.fdopen(reader) as answer:
        found = answer.read()
    assert done.code == 0, done.err
    return int(found)


_at_the_end: list[Callable[[], object]] = []


def _become(words: list[str], folder: Path, said: list[Path], prepare: Prepare, kill: Kill | None) -> None:
    """Never returns."""
    code = 99
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, path in enumerate(said, 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.chdir(folder)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        sys.argv = ["heedful", *words]
        prepare()
        if kill and kill.change is not None:
            _die_at(kill)
        code = _main()
    except BaseException:  # to be seen, and not to reach what the parent does
        sys.excepthook(*sys.exc_info())
    finally:
        for action in _at_the_end:
            action()
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)


def _main() -> int:
    from heedful.cli import main

    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _die_at(kill: Kill) -> None:
    left = [kill.change or 0]

    def watch(event: str, given: tuple[object, ...]) -> None:
        left[0] -= _changes(event, given)
        if left[0] == 0:
            left[0] = -1
            if kill.seconds:
                threading.Timer(kill.seconds, os.killpg, (0, signal.SIGKILL)).start()
            else:
                os.killpg(0, signal.SIGKILL)

    sys.addaudithook(watch)


def _changes(event: str, given: tuple[object, ...]) -> bool:
    if event == "open":
        flags = given[2]
        return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    return event in CHANGING


def _wait(number: int, until: float) -> tuple[int, int]:
    """Until it ends, or it is killed because that is the time."""
    while True:
        found = os.waitpid(number, os.WNOHANG)
        if found[0]:
            return found
        left = until - time.monotonic()
        if left <= 0:
            os.killpg(number, signal.SIGKILL)
            return os.waitpid(number, 0)
        time.sleep(min(left, 0.005))


def _end_group(number: int) -> None:
    """Whoever is left of the group: it must not hold files that are looked at next."""
    try:
        os.killpg(number, signal.SIGKILL)
    except ProcessLookupError:
        return
    time.sleep(0.05)


def workers_here() -> None:
    """Sweeps on local processes start none: starting takes seconds."""
    from heedful.sweep import engines

    vars(engines).update(LocalEngine=Here)


def checkpoints_always() -> None:
    """After every epoch instead of every ten seconds."""
    from heedful.training import loop

    loop.CHECKPOINT_SECONDS = 0.0
