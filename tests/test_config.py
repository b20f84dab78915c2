"""A run is a value: both ways through TOML and JSON, changed by dotted names, identified by its digest."""

from pathlib import Path

import pytest

from heedful.config import DataSettings, ModelSettings, RunSettings
from heedful.errors import ConfigError
from heedful.version import RESULTS_VERSION

CHANGED = RunSettings().override(
    ["model.encoder=lstm", "model.score_scale=100", "training.patience=3", "data.source=some file.csv"]
)


RESTING = CHANGED.override(
    ["model.attention_weights=given", "base.training.objective=adversary", "base.base.model.encoder=gru",
     "base.base.training.patience=3", "model.widths=[1, 3]"]
)  # fmt: skip


@pytest.mark.parametrize("name", ["run.toml", "run.json"])
@pytest.mark.parametrize("settings", [RunSettings(), CHANGED, RESTING, RunSettings(base=RunSettings())])
def test_settings_survive_a_file(tmp_path: Path, name: str, settings: RunSettings) -> None:
    settings.write(tmp_path / name)
    assert RunSettings.read(tmp_path / name) == settings


def test_what_a_file_does_not_name_has_its_default(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("[model]\nscore_scale = 1\n")
    assert RunSettings.read(tmp_path / "run.toml") == RunSettings(model=ModelSettings(score_scale=1))


def test_settings_are_frozen_and_can_be_keys() -> None:
    with pytest.raises(ValueError, match="frozen"):
        RunSettings().model.score_scale = 3.0  # type: ignore[misc]
    assert {RunSettings(): 1}[RunSettings()] == 1


def test_every_setting_is_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = ["data.seed=1", "model.encoder=lstm", "model.readout_range=0.5", "training.seed=1", "training.threads=2"]
    digests = {RunSettings().override([change]).digest("data") for change in changes}
    digests |= {RunSettings().digest("data"), RunSettings().digest("other data")}
    monkeypatch.setattr("heedful.config.RESULTS_VERSION", RESULTS_VERSION + 1)
    digests.add(RunSettings().digest("data"))
    assert len(digests) == len(changes) + 3


def test_equal_settings_written_differently_are_the_same_run() -> None:
    first, second = RunSettings().override(["model.score_scale=100"]), RunSettings().change({"model.score_scale": 1e2})
    assert first.digest("data") == second.digest("data")


def test_none_unsets_what_can_be_unset_and_is_a_word_elsewhere() -> None:
    found = CHANGED.override(["training.patience=none", "model.encoder=none"])
    assert (found.training.patience, found.model.encoder) == (None, "none")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("model.scale=3", "There is no setting 'model.scale'; did you mean 'model.score_scale'?"),
        ("score_scale=3", "There is no setting 'score_scale'; did you mean 'model.score_scale'?"),
        ("modle.score_scale=3", "There is no group of settings 'modle'; known: data, model, training, record, base."),
        ("model.score_scale=-1", "Setting 'model.score_scale' is -1: input should be greater than 0."),
        ("model.score_scale=nan", "Setting 'model.score_scale' is nan: input should be a finite number."),
        ("model.encoder=wavelet", "Setting 'model.encoder' is 'wavelet': input should be 'none', "),
        ("model.widths=[3, 4]", "Setting 'model.widths.1' is 4: a window has a middle, so its width is odd."),
        ("model.widths=[]", "Setting 'model.widths' is []: tuple should have at least 1 item"),
        ("base.model.scale=3", "There is no setting 'base.model.scale'; did you mean 'base.model.score_scale'?"),
        ("base.modle.encoder=lstm", "There is no group of settings 'modle'; known: model, training, record, base."),
        ("base.base.data.source=sst", "A base reads the data of the run that rests on it: change 'data.source', not"),
        ("base=3", "'base' is a group of settings, not 3"),
        ("model=3", "'model' is a group of settings, not 3"),
        ("model.score_scale", "A setting is changed by name=value, such as model.score_scale=100; got"),
        ("=3", "A setting is changed by name=value"),
    ],
)
def test_a_wrong_change_is_answered_with_a_sentence(change: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RunSettings().override([change])
    assert sentence in str(caught.value)


def test_all_wrong_values_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"'min_count' is 0.*'seed' is -1|'seed' is -1.*'min_count' is 0"):
        DataSettings.of({"min_count": 0, "seed": -1})


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("run.yaml", "", "Settings are read from .toml or .json, not from 'run.yaml'."),
        ("run.toml", "[model", "cannot be read"),
        ("run.json", "[]", "must hold a table of settings, not list"),
    ],
)
def test_a_file_that_is_no_settings_is_answered_with_a_sentence(
    tmp_path: Path, name: str, content: str, sentence: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError) as caught:
        RunSettings.read(tmp_path / name)
    assert sentence in str(caught.value)


def test_a_base_is_changed_by_dotted_names_and_reads_the_same_data() -> None:
    adversary = RESTING.base
    assert adversary is not None
    base = adversary.base
    assert base is not None
    assert (base.model.encoder, base.training.patience, base.base) == ("gru", 3, None)
    assert base.data == adversary.data == RESTING.data
    elsewhere = RESTING.override(["data.source=other.csv", "base.base.training.patience=none"])
    assert elsewhere.base is not None
    assert elsewhere.base.base is not None
    assert elsewhere.base.base.data.source == "other.csv"
    assert elsewhere.base.base.training.patience is None
    assert RESTING.override(["base=none"]).base is None


def test_settings_that_are_a_base_take_the_data_of_the_run_unless_they_have_their_own() -> None:
    data = DataSettings(source="a.csv")
    for base in (RunSettings(), RunSettings(data=data), RunSettings(base=RunSettings())):
        found = RunSettings(data=data, base=base)
        assert found.base is not None
        assert found.base.data == data
        assert found.base.base is None or found.base.base.data == data
    with pytest.raises(
        ConfigError, match=r"^A base reads the data of the run .* base\.data has \{'source': 'b\.csv'\}"
    ):
        RunSettings.of({"data": data, "base": RunSettings(data=DataSettings(source="b.csv"))})


def test_the_base_is_part_of_the_identity_and_no_base_is_not() -> None:
    none = RunSettings().digest("data")
    some = [RunSettings(), RunSettings().override(["model.encoder=lstm"]), RunSettings(base=RunSettings())]
    digests = {RunSettings(base=base).digest("data") for base in some}
    assert len({none, *digests}) == 4
    assert RunSettings().change({"base": None}).digest("data") == none


def test_what_is_usual_is_no_part_of_the_identity() -> None:
    """So that new settings leave finished runs where they are."""
    assert RunSettings().model_dump(mode="json", exclude_defaults=True) == {}
    changed = RunSettings().override(["model.encoder=conv", "base.model.encoder=conv", "base.model.widths=[1]"])
    assert changed.model_dump(mode="json", exclude_defaults=True) == {
        "model": {"encoder": "conv"},
        "base": {"model": {"encoder": "conv", "widths": [1]}},
    }
