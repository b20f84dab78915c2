"""Notebooks without a kernel: their cells run one after the other in a fresh namespace, and what they show is caught.

`python -m tests.notebooks` runs those in docs/notebooks again and writes down what they show now.
"""

import ast
import base64
import contextlib
import io
import json
import linecache
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib import pyplot

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
Output = dict[str, Any]


def run(notebook: dict[str, Any]) -> Iterator[list[Output]]:
    """What each cell of code shows: what it prints, the value of its last expression, and pictures it leaves open."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(notebook)):
        yield list(_shown("".join(cell["source"]), f"<cell {number}>", names))


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _shown(source: str, name: str, names: dict[str, Any]) -> Iterator[Output]:
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    tree, printed, value = ast.parse(source, name), io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
            exec(compile(tree, name, "exec"), names)
            value = eval(compile(last, name, "eval"), names)
        else:
            exec(compile(tree, name, "exec"), names)
    if printed.getvalue():
        yield {"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(keepends=True)}
    if value is not None and not source.rstrip().endswith(";"):
        yield {"output_type": "execute_result", "metadata": {}, "data": _forms(value)}
    for figure in map(pyplot.figure, pyplot.get_fignums()):
        data = {"image/png": _png(figure), "text/plain": [repr(figure)]}
        yield {"output_type": "display_data", "metadata": {}, "data": data}
    pyplot.close("all")


def _forms(value: Any) -> dict[str, list[str]]:
    html = getattr(value, "_repr_html_", None)
    plain = {"text/plain": repr(value).splitlines(keepends=True)}
    return {"text/html": html().splitlines(keepends=True), **plain} if html else plain


def _png(figure: Any) -> str:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=80, metadata={"Software": None})
    return base64.b64encode(file.getvalue()).decode()


def main() -> None:
    """Run every notebook and keep what it shows."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for number, (cell, outputs) in enumerate(zip(code_cells(notebook), run(notebook), strict=True), 1):
                cell["execution_count"] = number
                cell["outputs"] = [
                    one | ({"execution_count": number} if one["output_type"] == "execute_result" else {})
                    for one in outputs
                ]
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
