"""Which tests come to which lines: what to run for a bug in one of them. A plugin of pytest writes it down."""

import ast
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.mutants.planting import Mutant, as_module

CALLS = 100
"""So many calls of a function are followed in a test: more come to the same lines, and take long."""

SECONDS, FEWEST = 25.0, 8
"""Tests are run for a bug until they have taken so long without it; so many at least."""


class Reach:
    """Notes the lines of some sources that each test comes to, fixtures that it shares included."""

    def __init__(self, root: Path, written: Path) -> None:
        self.root, self.written = f"{root}/", written
        self.known: dict[str, str | None] = {}
        self.lines: set[tuple[str, int]] = set()
        self.calls: Counter[int] = Counter()  # by the identity of the code
        self.of_fixtures: dict[str, set[tuple[str, int]]] = {}
        self.tests: dict[str, dict[str, Any]] = {}
        self.failed: list[str] = []

    def called(self, frame: FrameType, _event: str, _value: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in self.known:
            inside = name.startswith(f"{self.root}src/heedful/")
            self.known[name] = name.removeprefix(self.root) if inside else None
        path = self.known[name]
        if path is None:
            return None
        self.calls[id(frame.f_code)] += 1
        if self.calls[id(frame.f_code)] > CALLS:
            return None
        lines = self.lines
        lines.add((path, frame.f_lineno))

        def line(frame: FrameType, _event: str, _value: Any) -> Any:
            lines.add((path, frame.f_lineno))
            return line

        return line

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        outer, self.lines = self.lines, set()
        try:
            return (yield)
        finally:
            self.of_fixtures.setdefault(fixturedef.argname, set()).update(self.lines)
            self.lines = outer | self.lines

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.lines = set()
        self.calls.clear()
        threading.settrace(self.called)
        sys.settrace(self.called)
        begun = time.process_time()
        try:
            return (yield)
        finally:
            seconds = time.process_time() - begun
            sys.settrace(None)
            threading.settrace(None)
            shared = [self.of_fixtures.get(name, set()) for name in getattr(item, "fixturenames", ())]
            lines: dict[str, list[int]] = {}
            for path, number in sorted(self.lines.union(*shared)):
                lines.setdefault(path, []).append(number)
            self.tests[item.nodeid] = {"seconds": round(seconds, 3), "lines": lines}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.skipped:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """A test that fails without any bug says nothing about one."""
        useful = {name: test for name, test in self.tests.items() if name not in self.failed}
        self.written.write_text(json.dumps({"tests": useful, "left_out": self.failed}))


@dataclass(frozen=True)
class Timed:
    name: str
    seconds: float
    lines: Mapping[str, frozenset[int]]


def read(path: Path) -> list[Timed]:
    tests = json.loads(path.read_text())["tests"].items()
    return [
        Timed(name, test["seconds"], {file: frozenset(lines) for file, lines in test["lines"].items()})
        for name, test in tests
    ]


def nearest(mutant: Mutant, sources: Mapping[str, str], tests: list[Timed]) -> tuple[list[str], float]:
    """The names of the tests for a bug, the fastest first, and how long they take without it."""
    spans = _places(mutant, sources)
    reaching = [test for test in tests if any(test.lines.get(path, frozenset()) & lines for path, lines in spans)]
    stem = Path(mutant.path).stem
    found = sorted(reaching, key=lambda test: test.seconds * (0.5 if stem in test.name else 1.0))
    names: list[str] = []
    total = 0.0
    for test in found:
        if total + test.seconds > SECONDS and len(names) >= FEWEST:
            continue
        names.append(test.name)
        total += test.seconds
    return names, total


def _places(mutant: Mutant, sources: Mapping[str, str]) -> list[tuple[str, frozenset[int]]]:
    """Where a test comes to if it can see the bug: the statement; what calls a compiled loop, which is not traced;
    what uses a value that is made on import."""
    tree = ast.parse(sources[mutant.path])
    function = mutant.function.split(".")[-1] if mutant.function else ""
    own = _definition(tree, mutant.function)
    if own is None:
        names = _assigned(tree, mutant.line)
        return _users(names, mutant.path, sources) if names else [(mutant.path, _all_lines(tree))]
    if is_compiled(own):
        return _users({function}, mutant.path, sources)
    if mutant.line < own.body[0].lineno or isinstance(own, ast.ClassDef):  # a default value, a field
        return [(mutant.path, _lines(own))]
    return [(mutant.path, _statement(own, mutant.line))]


def is_compiled(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(one, ast.Name) and one.id in ("compiled", "inlined") for one in node.decorator_list
    )


def _definition(tree: ast.AST, name: str) -> ast.FunctionDef | ast.ClassDef | None:
    found: ast.AST = tree
    for part in name.split(".") if name else ():
        found = next(
            node
            for node in ast.walk(found)
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part and node is not found
        )
    return found if isinstance(found, ast.FunctionDef | ast.ClassDef) else None


def _lines(node: ast.FunctionDef | ast.ClassDef) -> frozenset[int]:
    """The lines of the body: the first of a function is run on import."""
    assert node.end_lineno is not None
    return frozenset(range(node.body[0].lineno, node.end_lineno + 1))


def _all_lines(tree: ast.Module) -> frozenset[int]:
    bodies = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return frozenset().union(*map(_lines, bodies))


def _statement(function: ast.AST, line: int) -> frozenset[int]:
    """The lines of the innermost statement that the line belongs to, or of the head of a block."""
    best: tuple[int, int] | None = None
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and node.end_lineno is not None:
            inner = getattr(node, "body", None)
            last = inner[0].lineno - 1 if isinstance(inner, list) else node.end_lineno
            begin = node.lineno
            if begin <= line <= max(begin, last) and (best is None or begin >= best[0]):
                best = (begin, max(begin, last))
    begin, last = best or (line, line)
    return frozenset(range(begin, last + 1))


def _assigned(tree: ast.Module, line: int) -> set[str]:
    """The names that the statement at the top of a module gives a value."""
    for node in tree.body:
        if node.lineno <= line <= (node.end_lineno or 0):
            return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return set()


def _users(names: set[str], path: str, sources: Mapping[str, str]) -> list[tuple[str, frozenset[int]]]:
    """The functions that mention a name, those that mention the compiled ones among them, and so on; in their module
    and in those that import it."""
    module = as_module(path)
    trees = {
        file: ast.parse(source)
        for file, source in sources.items()
        if file == path or module.rpartition(".")[2] in source
    }
    found: list[tuple[str, frozenset[int]]] = []
    todo, done = set(names), set()
    while todo:
        name = todo.pop()
        done.add(name)
        for file, tree in trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef) and node.name != name and mentions(node, name):
                    if is_compiled(node):
                        todo |= {node.name} - done
                    else:
                        found.append((file, _lines(node)))
            for top in tree.body:  # a value made of it, a default, a decorator
                if isinstance(top, ast.Assign | ast.AnnAssign) and mentions(top, name):
                    todo |= _assigned(tree, top.lineno) - done
    return found or [(path, _all_lines(trees[path]))]


def mentions(node: ast.AST, name: str) -> bool:
    return any(
        (isinstance(one, ast.Name) and one.id == name) or (isinstance(one, ast.Attribute) and one.attr == name)
        for one in ast.walk(node)
    )
