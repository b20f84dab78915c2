"""Which bugs are planted, and that the tests for each are those that can see it."""

import ast
import json
from pathlib import Path

import pytest

from tests.mutants.nearest import Timed, nearest
from tests.mutants.planting import compiles, mutants
from tests.mutants.running import importing


def changes(source: str) -> list[str]:
    return [f"{one.before} → {one.after}" for one in mutants("x.py", source) if compiles(one, source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["< → <=", "< → >"]),
        ("a is not b", ["is not → is"]),
        ("(a) + (b)", ["+ → -"]),
        ("x += y", ["+= → -="]),
        ("x and y or z", ["or → and", "and → or"]),
        ("not x", ["not x → (x)"]),
        ("f(-x)", ["f(-x) → pass", "-x → (x)"]),
        ("x = 3", ["3 → 4", "3 → 2"]),
        ("x = -3", ["-3 → (3)"]),
        ("x = 0.5", ["0.5 → 1.0", "0.5 → -0.5"]),
        ("x = True", ["True → False"]),
        ("y = x[:n]", ["n → (n) + 1"]),
        ("y = min(a, b)", ["min → max"]),
        ("y = x.argmax()", ["argmax → argmin"]),
        ("y = abs(x)", ["abs(x) → (x)"]),
        ("y = x.abs()", [".abs() → "]),
        ("if x: y", ["x → (not (x))"]),
        ("y = [i for i in x if i]", ["i → True"]),
        ("for i in x: break", ["break → continue"]),
    ],
)
def test_one_thing_is_changed_at_a_time(source: str, expected: list[str]) -> None:
    assert changes(source) == expected


def test_what_is_said_annotated_and_documented_is_left_alone() -> None:
    source = '''
def function(x: "Float[Tensor, '3']") -> Literal[1]:
    """Adds 1 + 1."""
    if x:
        raise ValueError(f"{1 + 1}" + "2")
    return x
'''
    assert changes(source) == ["x → (not (x))", "x → None"]


def test_a_changed_source_is_the_source_but_for_the_change() -> None:
    source = "é = 'ü'; x = 'ö' if a < 1 else b\n"
    planted = {one.planted(source) for one in mutants("x.py", source)}
    assert "é = 'ü'; x = 'ö' if a <= 1 else b\n" in planted
    assert "é = 'ü'; x = 'ö' if a < 2 else b\n" in planted


def test_names_stay_when_other_lines_change_and_none_comes_twice() -> None:
    source = "def f():\n    return 1 + 1\n"
    names = [one.name for one in mutants("x.py", source)]
    assert len(set(names)) == len(names)
    assert [one.name for one in mutants("x.py", f"import os\n\n{source}")] == names


LOOPS = """
from heedful.compiled import compiled

LIMIT = 3

@compiled
def inner(x):
    return x + LIMIT

def outer(x):
    y = 2
    return inner(x)

def other(x):
    return x - 1
"""
USER = "from heedful.loops import other\n\ndef far(x):\n    return other(x)\n"


def chosen_for(change: str) -> list[str]:
    """Of a test that calls `outer`, one that calls `other`, and one that calls it from afar."""
    sources = {"src/heedful/loops.py": LOOPS, "src/heedful/user.py": USER}
    places = {
        node.name: frozenset(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
        for node in ast.parse(LOOPS).body
        if isinstance(node, ast.FunctionDef)
    }
    tests = [
        Timed("outer", 1.0, {"src/heedful/loops.py": places["outer"]}),
        Timed("other", 2.0, {"src/heedful/loops.py": places["other"]}),
        Timed("far", 3.0, {"src/heedful/loops.py": places["other"], "src/heedful/user.py": frozenset((4,))}),
    ]
    (mutant,) = (one for one in mutants("src/heedful/loops.py", LOOPS) if f"{one.before} → {one.after}" == change)
    return nearest(mutant, sources, tests)[0]


def test_a_bug_is_run_with_the_tests_that_come_to_it_the_fastest_first() -> None:
    assert chosen_for("- → +") == ["other", "far"]
    assert chosen_for("2 → 3") == ["outer"]


def test_a_bug_in_a_compiled_loop_is_run_with_the_tests_of_what_calls_it() -> None:
    assert chosen_for("+ → -") == ["outer"]
    assert chosen_for("3 → 4") == ["outer"]


def test_loops_that_may_hold_the_bug_are_compiled_anew() -> None:
    loop = "from heedful.{} import x\nfrom heedful.compiled import compiled\n@compiled\ndef f(y):\n    return x + y\n"
    sources = {
        "src/heedful/a.py": "x = 1",
        "src/heedful/b.py": loop.format("a"),
        "src/heedful/c.py": loop.format("b"),
        "src/heedful/d.py": loop.format("other"),
    }
    assert importing("src/heedful/a.py", sources) == {"src/heedful/a.py", "src/heedful/b.py", "src/heedful/c.py"}


def test_what_is_judged_to_be_the_same_program_has_a_reason_and_is_there() -> None:
    root = Path(__file__).resolve().parents[2]
    same = json.loads(Path(__file__).with_name("equivalent.json").read_text())
    paths = {name.partition("::")[0] for name in same}
    names = {one.name for path in paths for one in mutants(path, (root / path).read_text())}
    assert set(same) <= names, "a line has changed: judge it again, or take it out of equivalent.json"
    assert all(len(reason.split()) > 4 for reason in same.values())
