"""A plan is a value: a product of lists, each run once, and a sentence for what is no plan."""

import json
from pathlib import Path
from typing import Any

import pytest

from heedful.config import RunSettings
from heedful.errors import ConfigError
from heedful.sweep.plan import Plan

FILE = """
seeds = [3, 5]
[base]
data.source = "sst"
[base.training]
epochs = 7
[grid]
model.score_scale = [1, 10]
"model.encoder" = ["none", "lstm"]
[[runs]]
training.optimizer = "sgd"
[[runs]]
training.optimizer = "adam"
training.patience = "none"
"""


def test_a_plan_is_every_run_with_every_point_and_every_seed(tmp_path: Path) -> None:
    (tmp_path / "scales.toml").write_text(FILE)
    plan = Plan.read(tmp_path / "scales.toml")
    assert (plan.name, len(plan)) == ("scales", 2 * 4 * 2)
    first, last = plan.runs[0], plan.runs[-1]
    assert first == RunSettings().override(
        ["data.source=sst", "training.epochs=7", "training.optimizer=sgd", "model.score_scale=1", "training.seed=3"]
    )
    assert (last.model.encoder, last.model.score_scale, last.training.seed) == ("lstm", 10, 5)
    assert plan.varied == ("model.encoder", "model.score_scale", "training.optimizer", "training.seed")


def test_the_same_plan_from_python_and_from_json(tmp_path: Path) -> None:
    (tmp_path / "scales.toml").write_text(FILE)
    base = RunSettings().override(["data.source=sst", "training.epochs=7"])
    grid = {"model.score_scale": [1, 10], "model.encoder": ["none", "lstm"]}
    runs = [{"training.optimizer": "sgd"}, {"training.optimizer": "adam"}]
    made = Plan.of(base, grid=grid, runs=runs, seeds=[3, 5], name="scales")
    assert made == Plan.read(tmp_path / "scales.toml")
    content = {"base": base.model_dump(), "grid": grid, "runs": runs, "seeds": [3, 5]}
    (tmp_path / "scales.json").write_text(json.dumps(content))
    assert made == Plan.read(tmp_path / "scales.json")


@pytest.mark.parametrize("name", ["../x", "/x", "a/b", "..", ".", "", ".hidden", "a\0b"])
def test_a_name_that_would_write_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(
        ConfigError, match=r"it must be one of a file, without folders: not .*\. Change `name` in the plan"
    ):
        Plan.of(name=name)


def test_a_number_of_seeds_counts_from_zero_and_a_run_comes_once() -> None:
    assert [run.training.seed for run in Plan.of(seeds=3).runs] == [0, 1, 2]
    assert len(Plan.of(grid={"model.score_scale": [10, 10.0, 1e1]})) == 1
    assert Plan.of().runs == (RunSettings(),)


def test_changes_alter_the_base_only(tmp_path: Path) -> None:
    (tmp_path / "scales.toml").write_text(FILE)
    plan = Plan.read(tmp_path / "scales.toml", ["training.epochs=1"])
    assert {run.training.epochs for run in plan.runs} == {1}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"gird": {}}, "has 'gird'; a plan has name, base, grid, runs, seeds and nothing else."),
        (
            {"grid": {"model.score_scale": 3}},
            "The grid gives each setting a list of values; 'model.score_scale' has 3.",
        ),
        ({"grid": {"model.encoder": "lstm"}}, "a list of values; 'model.encoder' has 'lstm'."),
        ({"grid": {"model.encoder": []}}, "a list of values; 'model.encoder' has []."),
        ({"grid": {"model.scale": [1]}}, "There is no setting 'model.scale'; did you mean 'model.score_scale'?"),
        ({"seeds": 0}, "Seeds are a number from 1 to 100,000, or a list of numbers, not 0."),
        ({"seeds": "many"}, "'seeds' of"),
        ({"runs": {"model.encoder": "lstm"}}, "'runs' of"),
        ({"runs": ["model.encoder"]}, "written as [[runs]]."),
        ({"seeds": 2, "grid": {"training.seed": [1]}}, "'training.seed' is changed by two parts of the plan"),
        ({"runs": [{"model": {"encoder": "lstm"}}], "grid": {"model.encoder": ["lstm"]}}, "changed by two parts"),
    ],
)
def test_what_is_no_plan_is_answered_with_a_sentence(tmp_path: Path, content: dict[str, Any], sentence: str) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError) as caught:
        Plan.read(tmp_path / "plan.json")
    assert sentence in str(caught.value)
