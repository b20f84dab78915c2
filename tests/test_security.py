"""What docs/security.md promises: nothing that is loaded runs, cells stay texts, stores are private."""

import ast
import csv
import io
import json
import stat
import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import heedful
from heedful.files import write_table
from heedful.report.html import render_html
from heedful.report.page import Page, PageTable, Section
from heedful.spreadsheets import MARKED, as_csv, inert
from heedful.store import RUN, Store

SOURCES = Path(heedful.__file__).parent

RUNS_CODE = (
    *("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib", "jsonpickle", "yaml"),
    *("torch.jit", "torch.hub", "torch.package"),
)
"""Libraries that run what a file holds when it is loaded."""

BUILT_IN = ("eval", "exec", "compile", "__import__")
METHODS = ("to_pickle", "read_pickle", "extractall", "system", "popen", "mktemp")
NEEDED = {
    "torch.load": ("weights_only", True),
    "np.load": ("allow_pickle", False),
    "numpy.load": ("allow_pickle", False),
}
"""What a call must say to be safe."""

FORBIDDEN = ("shell", "trust_remote_code", "allow_pickle")
"""What no call may set to true."""


def unsafe(source: str) -> list[str]:
    """What of a source loads or runs things that come from elsewhere, by line."""
    nodes = ast.walk(ast.parse(source))
    return [f"line {getattr(node, 'lineno', 0)}: {name}" for node in nodes for name in _unsafe_in(node)]


def _unsafe_in(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [one.name for one in names if _runs_code(one.name)]
        case ast.ImportFrom(module=str(module), names=names):
            return [one.name for one in names if _runs_code(f"{module}.{one.name}") or one.name in METHODS]
        case ast.Constant(value=str(text)):  # as importlib takes it
            return [text] if text in RUNS_CODE else []
        case ast.Call(func=ast.Name(id=name)) if name in BUILT_IN:
            return [name]
        case ast.Call(func=function, keywords=keywords):
            called, last = ast.unparse(function), ast.unparse(function).rpartition(".")[2]
            said = {one.arg: one.value.value for one in keywords if isinstance(one.value, ast.Constant)}
            name, value = NEEDED.get(called, ("", None))
            wrong = _runs_code(called) or last in METHODS or any(said.get(one) is True for one in FORBIDDEN)
            return [called] if wrong or (name != "" and said.get(name) is not value) else []
    return []


def _runs_code(name: str) -> bool:
    return any(f"{name}.".startswith(f"{one}.") for one in RUNS_CODE)


def test_nothing_that_is_loaded_can_run() -> None:
    found = {path: unsafe(path.read_text(encoding="utf-8")) for path in SOURCES.rglob("*.py")}
    assert len(found) > 200
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import joblib; joblib.load(path)",
        "importlib.import_module('pickle')",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path)",
        "numpy.load(path, allow_pickle=True)",
        "pd.read_pickle(path)",
        "table.to_pickle(path)",
        "eval(text)",
        "exec(text)",
        "compile(text, '', 'exec')",
        "torch.hub.load(name)",
        "import yaml",
        "archive.extractall(folder)",
        "subprocess.run(text, shell=True)",
        "os.system(text)",
        "AutoModel.from_pretrained(name, trust_remote_code=True)",
    ],
)
def test_the_walk_finds_what_could(source: str) -> None:
    assert unsafe(source)


def test_the_walk_lets_the_safe_ones_pass() -> None:
    assert (
        unsafe(
            "import re; re.compile(x); np.load(path, allow_pickle=False); torch.load(p, weights_only=True); m.eval()"
        )
        == []
    )


FORMULAS = (
    "=1+1",
    "+1+1",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1",
    "'=1",
    "''@x",
    "--",
    "-x",
)
PLAIN = ("good", "", "-", "=", "'", "'tis", "-0.5", "+3", "-.9", "-1e-05", "a=1", " =1", "1-2")


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_a_text(text: str) -> None:
    assert inert(text) == f"'{text}"


@pytest.mark.parametrize("cell", [*PLAIN, -0.5, None, True, float("inf"), -3])
def test_what_is_no_formula_stays(cell: object) -> None:
    assert inert(cell) is cell


@given(st.text(alphabet="'=+-@\t\r\n＝a1. e", max_size=6))
def test_it_can_be_undone(text: str) -> None:
    shown = inert(text)
    assert (shown[1:] if MARKED.match(shown) else shown) == text


def test_saved_tables_hold_no_formula_and_everything_else_as_it_was(tmp_path: Path) -> None:
    texts = [*FORMULAS, *PLAIN[:2]]
    table = pd.DataFrame(
        {
            "text": texts,
            "=name": pd.Categorical([*FORMULAS[:1] * 13, "b"]),
            "some": pd.Series([1, None, *range(12)], dtype=object),
            "whole": pd.array([None, -1, *range(12)], dtype="Int64"),
            "number": [-0.5] * 14,
        }
    )
    before = table.copy()
    write_table(tmp_path / "it.csv", table)
    pd.testing.assert_frame_equal(table, before)
    with (tmp_path / "it.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["text", "'=name", "some", "whole", "number"]
    assert [row[0] for row in rows] == [f"'{text}" for text in FORMULAS] + [*PLAIN[:2]]
    assert [row[1:] for row in rows[:3]] == [
        ["'=1+1", "1", "", "-0.5"], ["'=1+1", "", "-1", "-0.5"], ["'=1+1", "0", "0", "-0.5"],
    ]  # fmt: skip
    write_table(tmp_path / "it.parquet", table)
    assert pd.read_parquet(tmp_path / "it.parquet")["text"].tolist() == texts  # programs read what was there


def test_the_table_in_a_report_holds_no_formula() -> None:
    cells = pd.DataFrame({"word": ["=1+1"]})
    table = PageTable(name="words", title="Words", cells=cells, data=cells)
    page = Page(title="T", headline="H", sections=[Section(name="s", title="S", tables=[table])])
    html = render_html(page)
    begin = html.index('class="csv">') + len('class="csv">')
    assert json.loads(html[begin:].split("</script>")[0]) == "word\n'=1+1\n"


def test_what_follows_a_carriage_return_begins_no_row() -> None:
    texts = ["good\r=1+1", "a\nb", "c"]
    written = as_csv(pd.DataFrame({"text": texts, "more": ["x"] * 3}))
    assert [row[0] for row in csv.reader(io.StringIO(written, newline=""))] == ["text", *texts]
    assert as_csv(pd.DataFrame({"text": texts[1:]})) == 'text\n"a\nb"\nc\n'


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_store_is_private_and_one_that_is_there_stays(tmp_path: Path) -> None:
    """Whoever wants to share one makes the folder first."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o750)
    for root, expected in ((tmp_path / "deep" / "runs", 0o700), (shared, 0o750)):
        Store(root).keep(RUN, "a" * 64, lambda path: path.mkdir(), name="it")
        assert mode(root) == expected
    assert mode(tmp_path / "deep") != 0o700 or sys.platform == "win32"
