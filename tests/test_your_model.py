"""docs/your-model.md does what it says: its code runs, on fewer texts and with the head alone, and its command too."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.subjects import Subject
from tests.commands import Call

PAGE = (Path(__file__).parents[1] / "docs" / "your-model.md").read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMAND = re.findall(r"```sh\nheedful (.*?)\n```", PAGE)[0]

SMALLER = {"MOST, EVERYTHING = 6_920, True": "MOST, EVERYTHING = 480, False"}
QUICK = ("--texts", "8", "--by", "attention,leave_one_out,random", "--metrics", "aopc,correlation,gini")


@pytest.mark.usefixtures("data_folder", "one_thread", "undrawn")
def test_a_newcomer_fine_tunes_minilm_and_has_it_audited(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = CODE[0]
    for usual, small in SMALLER.items():
        assert usual in code
        code = code.replace(usual, small)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        exec(compile(code, "your-model.md", "exec"), {})
    done = call(*COMMAND.split(), *QUICK, "--json")
    assert done.code == 0, done.err
    assert {row["claim"] for row in done.json["verdicts"]} >= {"M1", "D1", "C8c", "D2", "S6b", "D3"}
    assert done.json["metrics"]["test_accuracy"] > 0.55
    assert (tmp_path / done.json["report"]).is_file()


def test_the_function_of_the_page_can_be_asked() -> None:
    found: dict[str, object] = {}
    exec(compile(CODE[1], "your-model.md", "exec"), found)
    assert isinstance(found["finds"], Subject)


def test_the_module_of_the_page_has_a_trace() -> None:
    found: dict[str, Any] = {}
    exec(compile(CODE[2], "your-model.md", "exec"), found)
    trace = found["mine"].trace(["a good film"])
    assert trace.units == ["a", "good", "film"]
    numbers = torch.tensor([[number for number, _ in found["encode"]("a good film")]])
    torch.testing.assert_close(trace.logits, found["mine"].model(numbers).detach().double(), rtol=0, atol=1e-6)


@pytest.mark.usefixtures("one_thread")
def test_the_estimators_of_the_page_are_fitted_and_explained() -> None:
    pytest.importorskip("sklearn")
    found: dict[str, Any] = {}
    exec(compile(CODE[3], "your-model.md", "exec"), found)
    assert found["theirs"].class_names == ("bad", "good")
    assert found["ours"].method == "attention"
    assert torch.equal(found["ours"].scores, found["trace"].attention_weights)
