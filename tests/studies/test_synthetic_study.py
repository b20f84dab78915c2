"""The synthetic part of Sun & Lu 2020 on a small scale: recordings are made once, tables and figures follow."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from heedful.errors import UnknownName
from heedful.store import Store
from heedful.studies.sun2020 import recording as recording_module
from heedful.studies.sun2020 import synthetic
from heedful.studies.sun2020.recording import PlantedSettings, Recording, RecordingSettings, record
from heedful.studies.sun2020.synthetic import plan
from heedful.studies.sun2020.synthetic_figures import FIGURES, figures
from heedful.studies.sun2020.synthetic_tables import (
    CLAIM_TABLES,
    TABLE_SETS,
    attention_gap,
    claim_tables,
    gap_courses,
    loss_table,
    published_tables,
    settling_times,
)
from tests.covering import covers


def small(settings: RecordingSettings) -> RecordingSettings:
    """The same training on few texts, for a moment."""
    values = settings.model_dump()
    values["data"]["size"] = 400
    values["training"] |= {"epochs": 2}
    values["model"] |= {"embedding_size": 8, "hidden_size": 8}
    return RecordingSettings.of(values | {"every": 2, "pairs": 3})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def found(store: Store) -> dict[str, list[Recording]]:
    """Every set of the plan, two seeds each, small."""
    sets = {name: [small(settings) for settings in wanted[:2]] for name, wanted in plan(quick=True).items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heedful.text.synthetic.HELD_OUT_SIZE", 60)  # most of the time would go into making texts
        return {name: record(store, wanted, workers=1) for name, wanted in sets.items()}


def test_the_recipe_is_the_paper_s() -> None:
    settings = synthetic.recipe(seed=3)
    assert (
        settings.model.model_dump()
        | {
            "score_scale": 10.0,
            "embedding_size": 100,
            "embedding_range": 0.1,
            "context_deviation": 1.0,
            "readout_range": 1.0,
            "dropout": 0.0,
        }
        == settings.model.model_dump()
    )
    assert (
        settings.training.model_dump()
        | {
            "optimizer": "sgd",
            "learning_rate": 0.015,
            "learning_rate_decay": 0.0,
            "batch_size": 200,
            "epochs": 500,
            "seed": 3,
        }
        == settings.training.model_dump()
    )
    assert settings.data == PlantedSettings(classes=2, noise=0.0, positive_share=0.5, size=12_000)


def test_a_quick_recording_covers_the_same_time_of_gradient_flow() -> None:
    whole, quick = synthetic.recipe(), synthetic.recipe(quick=True)
    assert quick.training.epochs < whole.training.epochs / 10
    covered = [settings.training.epochs * settings.training.learning_rate for settings in (whole, quick)]
    assert covered[0] == pytest.approx(covered[1])


def test_the_plan_has_what_the_captions_ask_for() -> None:
    sets = plan()
    assert {settings.model.embedding_range for settings in (*sets["data-1"], *sets["wide"])} == {0.1, 1.0}
    ratios = [name for name in sets if name.startswith("ratio-")]
    assert len(ratios) == 5
    assert all(len(sets[name]) == 4 for name in ratios)
    assert sets["ratio-0.5"] == sets["data-1"][:4]  # the balanced corpus is Data I, recorded once
    assert all(len(sets[name]) >= 5 for name in ("data-1", "data-2", "penalised", "wide"))
    assert [settings.training.alignment_penalty for settings in sets["affine"]] == [1e-3]


def test_what_a_recording_holds(found: dict[str, list[Recording]]) -> None:
    (recording, _) = found["data-1"]
    model, groups, pairs = (recording.table(name) for name in ("model", "groups", "pairs"))
    assert model["step"].tolist() == [1, 2, 4]  # two epochs of two steps
    assert set(groups["group"]) == {"positive", "negative", "neutral", "none"}
    assert len(pairs) == 3 * 6 * 3
    rate = recording.settings.training.learning_rate
    assert model["time"].tolist() == pytest.approx([step * rate / (0.015 * 60) for step in (1, 2, 4)])
    assert set(recording.facts) == {"train_accuracy", "test_accuracy"}


def test_the_last_scores_are_those_of_the_last_step_not_of_the_best_epoch(found: dict[str, list[Recording]]) -> None:
    recording = found["data-1"][0]
    last = recording.table("tokens").query("step == 4").set_index("token")["attention"]
    scores = recording.table("scores").set_index("token")["attention"]
    np.testing.assert_allclose(scores, last.loc[scores.index], atol=1e-6)


def test_shares_of_positive_terms_follow_from_the_tokens(found: dict[str, list[Recording]]) -> None:
    recording = found["data-1"][0]
    tokens = recording.table("tokens").query("step == 4 and group == 'positive'")
    signs = recording.table("signs").query("step == 4 and group == 'positive'")
    assert signs["polarity"].item() == pytest.approx((tokens["polarity"] > 0).mean())
    assert {"A", "B", "C", "D", "E", "F"} <= set(signs)


def test_only_the_affine_recording_has_dot_products_of_hidden_vectors(found: dict[str, list[Recording]]) -> None:
    assert "omega_hidden" in found["affine"][0].table("pairs")
    assert "omega_hidden" not in found["data-1"][0].table("pairs")


def test_a_recording_is_made_once(
    store: Store, found: dict[str, list[Recording]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_settings: RecordingSettings) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(recording_module, "_watch_training", refuse)
    wanted = [recording.settings for recording in found["data-1"]]
    assert record(store, wanted) == found["data-1"]
    with pytest.raises(AssertionError, match="trained again"):
        record(store, [small(synthetic.recipe(seed=9))])


def test_a_recording_that_failed_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_module, "_watch_training", lambda _settings: ({"model": "no table"}, {}))
    with pytest.raises(AttributeError):
        record(Store(tmp_path), [small(synthetic.recipe())])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_another_process_finished_in_the_meantime_is_taken(
    store: Store, found: dict[str, list[Recording]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording_module, "_watch_training", None)
    recording = found["data-2"][0]
    assert recording_module._record_one(store.root, recording.settings) == recording


def test_processes_give_the_same_numbers(tmp_path: Path, found: dict[str, list[Recording]]) -> None:
    wanted = [recording.settings for recording in found["data-1"]]
    seen: list[Recording] = []
    again = record(Store(tmp_path), wanted, workers=2, watch=seen.append)
    assert sorted(recording.seed for recording in seen) == [0, 1]
    for one, other in zip(found["data-1"], again, strict=True):
        for name in ("model", "pairs", "scores"):
            pd.testing.assert_frame_equal(one.table(name), other.table(name))


def test_every_table_of_the_claims_is_made(found: dict[str, list[Recording]]) -> None:
    tables = claim_tables(found)
    assert set(tables) == set(CLAIM_TABLES)
    assert all(len(table) and table["seed"].nunique() == 2 for table in tables.values())
    assert {part for needs, _ in CLAIM_TABLES.values() for part in needs} == set(TABLE_SETS)
    assert set(claim_tables({"data-1": found["data-1"]})) == {"dot_products"}


def test_tables_hold_the_settings_that_set_runs_apart(found: dict[str, list[Recording]]) -> None:
    tables = claim_tables(found)
    assert sorted(tables["penalty"]["penalty"].unique()) == [0.0, 1e-3]
    assert tables["penalty"]["corpus"].unique().tolist() == ["Data I"]
    assert sorted(tables["ratios"]["positive_share"].unique()) == [0.1, 0.3, 0.5, 0.7, 0.9]
    assert sorted(tables["terms"]["score_scale"].unique()) == [10.0, 100.0]
    assert sorted(tables["settling"]["embedding_range"].unique()) == [0.1, 1.0]
    assert sorted(tables["noise"]["noise"].unique()) == [0.0, 0.05]


def test_published_numbers_stand_beside_ours(found: dict[str, list[Recording]]) -> None:
    tables = published_tables(found)
    assert tables["synthetic_loss"]["published"].tolist() == [0.694, 0.505, 0.206, 0.073, 0.036, 0.020]
    scores = tables["synthetic_scores"].set_index(["quantity", "group"])
    ours = [recording.table("scores").groupby("group")["attention"].mean()["positive"] for recording in found["data-1"]]
    assert scores.loc[("attention", "positive"), "ours"] == pytest.approx(np.mean(ours))
    assert scores.loc[("attention", "positive"), "difference"] == pytest.approx(np.mean(ours) - 0.65)


def test_the_loss_is_taken_at_the_nearest_moment(found: dict[str, list[Recording]]) -> None:
    first = loss_table(found["data-1"]).iloc[0]
    assert first["ours"] == pytest.approx(np.mean([run.table("model")["loss"].iloc[0] for run in found["data-1"]]))


def test_the_gap_is_the_same_in_tables_and_courses(found: dict[str, list[Recording]]) -> None:
    recording = found["data-1"][0]
    course = gap_courses([recording])
    assert course["gap"].iloc[-1] == pytest.approx(attention_gap(recording.table("scores")), abs=1e-6)


def test_settling_times_by_hand() -> None:
    courses = {
        ("pos-pos", "a", "b"): [-1.0, 1.0, 1.0, 2.0],  # settles at 10
        ("neg-neg", "c", "d"): [1.0, -1.0, 1.0, 1.0],  # goes back once: at 20
        ("pos-neg", "a", "c"): [-1.0, -1.0, -1.0, 1.0],  # never
        ("pos-neg", "b", "c"): [-1.0, -1.0, -1.0, -1.0],  # from the start
        ("pos-neu", "a", "n"): [1.0, 1.0, 1.0, 1.0],  # not judged
    }
    rows = [(10.0 * step, *pair, course[step]) for step in range(4) for pair, course in courses.items()]
    table = settling_times(pd.DataFrame(rows, columns=["time", "kind", "first", "second", "omega"]))
    assert table["kind"].tolist() == ["pos-pos", "neg-neg", "pos-neg", "pos-neg"]
    assert table["settled"].tolist() == [10.0, 20.0, 30.0, 0.0]
    assert table["ever"].tolist() == [True, True, False, True]


@covers(figure=[*(f"sun2020 S{number}" for number in range(1, 13)), "sun2020 time"])
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_declared_and_drawn(name: str, found: dict[str, list[Recording]]) -> None:
    figure = FIGURES[name]
    assert set(figure.needs) <= set(plan())
    assert figure.see.endswith(".")
    assert figure.caption.endswith(".")
    drawn = figure.draw(found)
    assert isinstance(drawn, Figure)
    drawn.canvas.draw()


def test_figures_of_the_supplement_are_all_there() -> None:
    assert list(FIGURES) == [*(f"S{number}" for number in range(1, 13)), "time"]


def test_an_unknown_figure_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="There is no figure 'S13'"):
        figures(Store(tmp_path), names=["S13"])
