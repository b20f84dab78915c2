"""The notebooks in docs/ run, and show what they were kept with: the same kinds of things, under the same titles."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks import FOLDER, code_cells, run

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def looks(outputs: list[dict[str, Any]]) -> list[tuple[str, list[str], str]]:
    """What an output is, in which forms, and its title without numbers, which another computer may round otherwise."""
    return [
        (one["output_type"], sorted(one.get("data", ())), _title("".join(one.get("data", {}).get("text/html", ""))))
        for one in outputs
    ]


def _title(html: str) -> str:
    found = re.search(r"<strong>(.*?)</strong>", html)
    return re.sub(r"[\d,.]+", "0", found[1]) if found else ""


def test_there_are_two() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["corpus-to-answer", "your-own-model"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_was_kept_with(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell, outputs in zip(code_cells(notebook), run(notebook), strict=True):
        assert looks(outputs) == looks(cell["outputs"]), "".join(cell["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_a_notebook(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert all({"cell_type", "id", "metadata", "source"} <= cell.keys() for cell in notebook["cells"])
    counts = [cell["execution_count"] for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))
    assert path.stat().st_size < 400_000
    assert not re.search(r"<script|/home/|/root/|/work/|/tmp/| at 0x", path.read_text(encoding="utf-8"))
