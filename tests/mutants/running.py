"""One bug: planted in a copy of the tree, its tests run in a process of their own until one fails."""

import ast
import ctypes
import importlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mutants.nearest import Reach, is_compiled
from tests.mutants.planting import Mutant, as_module

PR_SET_PDEATHSIG = 1
ROOT = Path(__file__).resolve().parents[2]
QUIET = (
    "-q",
    "-p",
    "no:cacheprovider",
    "--hypothesis-seed=0",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
    "--no-header",
)
LIBRARIES = (
    "torch", "numba", "pandas", "scipy.optimize", "scipy.stats", "pyarrow.parquet", "pydantic", "safetensors.torch",
    "tokenizers", "hypothesis", "matplotlib.figure", "typer",
)  # fmt: skip
UPSTREAM = (
    "attention",
    "config",
    "errors",
    "explanations",
    "files",
    "folding",
    "models",
    "notebook",
    "papers",
    "store",
    "subjects",
    "text",
    "traces",
    "trace_files",
)
FACTOR, SPARE = 4.0, 60.0
"""A bug has made an endless loop when its tests take so many times as long as without it, and so many seconds."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    mutant: Mutant
    caught: bool
    by: str  # the test that failed first, or how the process ended
    tests: int
    seconds: float


class Chosen:
    """A plugin of pytest: of what is collected these tests alone, in this order; and the first that failed."""

    def __init__(self, names: Sequence[str]) -> None:
        self.places = {name: place for place, name in enumerate(names)}
        self.failed = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.places), key=lambda item: self.places[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or f"import of {report.nodeid}"


def copy_tree(root: Path, to: Path) -> None:
    """The files that are under version control, and those that will be."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)


def prepare() -> None:
    """Import what does not change, once: every bug is then planted in a copy of this process."""
    os.environ.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="")
    sys.dont_write_bytecode = False
    for name in LIBRARIES:
        importlib.import_module(name)
    assert not any(name.startswith("heedful") for name in sys.modules), "heedful is to be imported with the bug in it"


def preload(tree: Path, sources: Mapping[str, str], but: Sequence[str]) -> None:
    """Import what of the tree cannot have a bug in it: what does not import any of these rooms."""
    names = {as_module(path): imported(ast.parse(source)) for path, source in sources.items()}
    open_ones = {name for name in names if f"{name}.".startswith(tuple(f"{one}." for one in but))}
    while more := {name for name, used in names.items() if used & open_ones} - open_ones - {"heedful"}:
        open_ones |= more
    sys.path[:0] = [str(tree), f"{tree}/src"]
    checking = importlib.import_module("tests.checking")
    checking.check("heedful")
    vars(checking)["check"] = lambda _: None  # what is imported later is checked already
    for name in sorted(set(names) - open_ones):
        if name.partition(".")[2].partition(".")[0] in UPSTREAM:
            importlib.import_module(name)


def judge(
    mutant: Mutant, tree: Path, sources: Mapping[str, str], names: Sequence[str], seconds: float, log: Path
) -> Verdict:
    """Plant it, run these tests, take it out again."""
    begun = time.monotonic()
    file = tree / mutant.path
    stamp = file.stat().st_mtime_ns
    changed = {Path(path).stem for path in importing(mutant.path, sources)}
    cache, own = loops(tree), tree.parent / f"{tree.name}-with-bug"
    shutil.rmtree(own, ignore_errors=True)
    copy_loops(cache, own, but=changed)
    file.write_text(mutant.planted(sources[mutant.path]))
    try:
        caught, by = in_child(tree, own, names, [Chosen(names)], log, int(SPARE + FACTOR * seconds))
    finally:
        file.write_text(sources[mutant.path])
        os.utime(file, ns=(stamp, stamp))
    copy_loops(own, cache, but=changed)
    taken = round(time.monotonic() - begun, 2)
    return Verdict(mutant=mutant, caught=caught, by=by, tests=len(names), seconds=taken)


def note_reach(tree: Path, name: str, written: Path) -> None:
    """Which lines the tests of a file come to, with no bug in them."""
    log = tree.parent / f"{tree.name}.log"
    failed, by = in_child(tree, loops(tree), [name], [Reach(tree, written)], log, 3600)
    if failed and not written.is_file():
        raise RuntimeError(f"{name} cannot be run: {by or 'see'} {log}.")


def in_child(
    tree: Path, cache: Path, names: Sequence[str], plugins: Sequence[Chosen | Reach], log: Path, limit: int
) -> tuple[bool, str]:
    """Whether a test fails, and which; a process that computes for longer than the limit hangs."""
    told = log.with_suffix(".by")
    told.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.setsid()
            with suppress(AttributeError, OSError):  # on Linux it ends with the process that started it
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            code = _run_tests(tree, cache, names, plugins, log, told)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    latest = time.monotonic() + 10 * limit  # for what waits and does not compute
    status = None
    try:
        while status is None and time.monotonic() < latest:
            done, ended = os.waitpid(child, os.WNOHANG)
            status = ended if done else None
            time.sleep(0.05)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # it hangs, it has left something running, or this is interrupted
    if status is None:
        _, status = os.waitpid(child, 0)
    by = told.read_text() if told.is_file() else ""
    if os.WIFSIGNALED(status):
        return True, f"signal {os.WTERMSIG(status)}"
    code = os.WEXITSTATUS(status)
    if not by and "ImportError while loading conftest" in log.read_text():
        by = "import of conftest"
    if code != 0 and not by:
        raise RuntimeError(f"pytest ended with {code}; see {log}.")
    return code != 0, by


def _run_tests(
    tree: Path, cache: Path, names: Sequence[str], plugins: Sequence[Chosen | Reach], log: Path, told: Path
) -> int:
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.chdir(tree)
    os.environ.update(PYTHONPATH=f"{tree}/src", NUMBA_CACHE_DIR=str(cache))
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(tree.parent / f"{tree.name}-examples")
    shutil.rmtree(os.environ["HYPOTHESIS_STORAGE_DIRECTORY"], ignore_errors=True)
    import numba

    vars(numba.config)["CACHE_DIR"] = str(cache)  # it has read its variables already
    for name in [name for name in sys.modules if f"{name}.".startswith("tests.") and name != "tests.checking"]:
        del sys.modules[name]
    known = [path for path in sys.path if path and not Path(path).is_relative_to(ROOT / "src") and Path(path) != ROOT]
    sys.path[:] = [str(tree), f"{tree}/src", *known]
    files = list(dict.fromkeys(name.partition("::")[0] for name in names))
    code = int(pytest.main([*QUIET, *([] if isinstance(plugins[0], Reach) else ["-x"]), *files], plugins=[*plugins]))
    told.write_text(next((plugin.failed for plugin in plugins if isinstance(plugin, Chosen)), "a test"))
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def loops(tree: Path) -> Path:
    """Where the compiled loops of a tree are kept."""
    place = tree.parent / f"{tree.name}-loops"
    place.mkdir(parents=True, exist_ok=True)
    return place


def copy_loops(source: Path, to: Path, *, but: set[str]) -> None:
    """The compiled loops without those of some modules, which may have a bug in them."""
    to.mkdir(parents=True, exist_ok=True)
    for file in source.rglob("*.nb?"):
        if file.name.partition(".")[0] not in but:
            (to / file.parent.name).mkdir(exist_ok=True)
            shutil.copy2(file, to / file.parent.name)


def importing(path: str, sources: Mapping[str, str]) -> set[str]:
    """The module and all with compiled loops that may have a part of it in them: what imports it, and so on."""
    loops = {file: imported(tree) for file, tree in _with_loops(sources)}
    found, grown = {path}, True
    while grown:
        modules = {as_module(file) for file in found}
        more = {file for file, names in loops.items() if names & modules} - found
        found, grown = found | more, bool(more)
    return found


def _with_loops(sources: Mapping[str, str]) -> Iterator[tuple[str, ast.Module]]:
    for file, source in sources.items():
        if "compiled" in source or "inlined" in source:
            tree = ast.parse(source)
            if any(map(is_compiled, ast.walk(tree))):
                yield file, tree


def imported(tree: ast.Module) -> set[str]:
    """Modules, and what may be modules."""
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name for node in froms for name in (str(node.module), *(f"{node.module}.{one.name}" for one in node.names))}
